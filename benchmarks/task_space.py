"""One tick of operational-space control: one kernel beside Pinocchio and NumPy.

Run with `python benchmarks/task_space.py`; writes benchmarks/results/task_space.md. Both compute
Λ, μ, p, J̄ and the torque of the same law in world axes; Pinocchio's side is written three ways and
the quickest counts. Results are compared first.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import chain
import machine
import numpy as np
import pinocchio as pin
import pinocchio_side as peer

import linkwise as lw

Array = np.ndarray
Tick = Callable[[Array, Array, Array], tuple[Array, ...]]

ROBOTS = {
    "panda (7)": (
        ("panda.urdf", "fixed", ("panda_finger_joint1", "panda_finger_joint2")),
        "panda_link8",
    ),
    "ur5 (6)": (("ur5_robot.urdf", "fixed", ()), "tool0"),
    "talos_reduced, base held (32)": (
        ("talos_reduced.urdf", "fixed", ()),
        "gripper_left_base_link",
    ),
}
TOLD = ("inertia", "coriolis", "gravity", "consistent_inverse", "torque")
BATCH, ROUNDS = 1024, 15
KP, KV = 400.0, 40.0
ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
SWAP = [3, 4, 5, 0, 1, 2]  # Pinocchio has linear rows first
RESULTS = Path(__file__).parent / "results" / "task_space.md"
HEAD = """# One tick of operational-space control

Written by `make bench`. Λ, μ, p, J̄ and the torque τ = J* (Λ ẍ + μ + p) of the pose of one node, in
world axes, float64. Microseconds for one state; ratios are Pinocchio and NumPy over ours, the
quickest of three ways to write it: computeMinverse and products, crba and one solve,
computeAllTerms and one solve. *One call* is a call from Python with 16 states in turn, results
made anew (ours are views of one new array, in a dictionary); *bare* is the same kernel without the
dictionary. *Batch* is {batch} states on one core into an array that is there; for Pinocchio a loop
in Python that puts each result into its row. *Law* is the torque alone from state, goal pose and
gains: ẍ = k_p e - k_v ẋ, the error as twice the vector part of a quaternion.

{machine}

Load average {load}.

| robot | | operations | one call | bare | peer | ratio | batch | peer | ratio | difference |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def main() -> None:
    """Measure and write the table."""
    text = HEAD.format(
        batch=BATCH,
        machine=machine.description("linkwise", "numpy", "llvmlite", "pin", "example-robot-data"),
        load=machine.load(),
    )
    for title, (robot, node) in ROBOTS.items():
        for line in rows(title, robot, node):
            print(line, flush=True)
            text += line + "\n"
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text)


def rows(title: str, robot: tuple[str, str, tuple[str, ...]], node: str) -> list[str]:
    """Two lines of the table: all quantities, and the law by itself."""
    mech, model = peer.models(*robot)
    layout = lw.convert.pinocchio_layout(mech, model)
    task, rng = lw.Task.pose(node), np.random.default_rng(0)
    q = np.array([mech.random(rng) for _ in range(BATCH)])
    v, wanted = rng.normal(size=(BATCH, mech.nv)), rng.normal(size=(BATCH, 6))
    turn = np.stack([layout.v_to(q[0], e) for e in np.eye(mech.nv)], axis=-1)  # a permutation
    their_q, their_v = layout.q_to(q), v @ turn.T
    frame = model.getFrameId(node)
    tick = lw.control_law(mech, task, also=TOLD[:-1], compensate="task")
    law = lw.control_law(mech, task, kp=KP, kv=KV, compensate="task")
    target = lw.task_position(mech, mech.random(rng), task)
    goal = np.tile(law.goal(target), (BATCH, 1))
    found = []
    first = ticks(model, frame)
    ours = tick(q[0], v[0], acceleration=wanted[0])
    theirs = first[0](their_q[0], their_v[0], wanted[0][SWAP])
    error = difference(ours, theirs, turn)
    arrays = {"q": q, "v": v, "closing": wanted, "goal": goal} | {
        name: x for name, x in law.inputs.items() if name not in ("goal",)
    }
    peers_law = laws(model, frame, target)
    for kind, ours_, peers, worst in (
        ("Λ, μ, p, J̄, τ", tick, first, error),
        ("law", law, peers_law, law_error(law, peers_law[0], arrays, (their_q, their_v), turn)),
    ):
        found.append(row(title, kind, ours_, peers, worst, arrays, (their_q, their_v)))
    return found


def row(
    title: str,
    kind: str,
    ours: lw.ControlLaw,
    peers: list[Tick],
    error: float,
    arrays: dict[str, Array],
    theirs: tuple[Array, Array],
) -> str:
    """One line."""
    bare = ours.kernel.kernel if kind != "law" else ours.kernel
    states = [
        [arrays[n][i] if arrays[n].ndim == 2 else arrays[n] for n in ours.arguments]
        for i in range(16)
    ]
    one = chain.best(lambda: [ours.kernel(*x) for x in states], ROUNDS) / 16
    least = chain.best(lambda: [bare(*x) for x in states], ROUNDS) / 16
    wanted = arrays["closing"][:, SWAP]
    lists = [(theirs[0][i].copy(), theirs[1][i].copy(), wanted[i].copy()) for i in range(16)]
    other = min(chain.best(lambda f=f: [f(*x) for x in lists], ROUNDS) / 16 for f in peers)
    batch_arrays = [arrays[n] for n in ours.arguments]
    out = bare(*batch_arrays)
    batch = chain.best(lambda: bare(*batch_arrays, out=out, threads=1), ROUNDS) / BATCH
    quickest = min(peers, key=lambda f: chain.best(lambda: [f(*x) for x in lists], 3))
    kept = [np.empty((BATCH, *x.shape)) for x in quickest(*lists[0])]

    def loop() -> None:
        for i in range(BATCH):
            parts = quickest(theirs[0][i], theirs[1][i], wanted[i])
            for place, part in zip(kept, parts, strict=True):
                place[i] = part

    other_batch = chain.best(loop, 3) / BATCH
    us = [1e6 * t for t in (one, least, other, batch, other_batch)]
    return (
        f"| {title} | {kind} | {ours.ops} | {us[0]:.2f} | {us[1]:.2f} | {us[2]:.1f} | "
        f"{us[2] / us[0]:.1f} | {us[3]:.3f} | {us[4]:.1f} | {us[4] / us[3]:.0f} | {error:.0e} |"
    )


def ticks(model: pin.Model, frame: int) -> list[Tick]:
    """Λ, μ, p, J̄ and τ, written three ways."""
    data = model.createData()
    zero = np.zeros(model.nv)

    def by_inverse(q: Array, v: Array, wanted: Array) -> tuple[Array, ...]:
        inverse = pin.computeMinverse(model, data, q)
        pin.forwardKinematics(model, data, q, v, zero)
        jacobian = pin.computeFrameJacobian(model, data, q, frame, ALIGNED)
        pin.updateFramePlacement(model, data, frame)
        drift = pin.getFrameClassicalAcceleration(model, data, frame, ALIGNED).vector
        response = inverse @ jacobian.T
        return finished(jacobian, response, drift, nle(q, v), gravity(q), wanted)

    def by_solve(q: Array, v: Array, wanted: Array) -> tuple[Array, ...]:
        mass = pin.crba(model, data, q)
        mass = np.triu(mass) + np.triu(mass, 1).T
        pin.forwardKinematics(model, data, q, v, zero)
        jacobian = pin.computeFrameJacobian(model, data, q, frame, ALIGNED)
        pin.updateFramePlacement(model, data, frame)
        drift = pin.getFrameClassicalAcceleration(model, data, frame, ALIGNED).vector
        response = np.linalg.solve(mass, jacobian.T)
        return finished(jacobian, response, drift, nle(q, v), gravity(q), wanted)

    def by_all_terms(q: Array, v: Array, wanted: Array) -> tuple[Array, ...]:
        pin.computeAllTerms(model, data, q, v)
        mass, bias, weight = data.M, data.nle, data.g
        pin.updateFramePlacement(model, data, frame)
        jacobian = pin.getFrameJacobian(model, data, frame, ALIGNED)
        pin.forwardKinematics(model, data, q, v, zero)
        drift = pin.getFrameClassicalAcceleration(model, data, frame, ALIGNED).vector
        response = np.linalg.solve(mass, jacobian.T)
        return finished(jacobian, response, drift, bias, weight, wanted)

    def nle(q: Array, v: Array) -> Array:
        return pin.nonLinearEffects(model, data, q, v)

    def gravity(q: Array) -> Array:
        return pin.computeGeneralizedGravity(model, data, q).copy()

    return [by_inverse, by_solve, by_all_terms]


def finished(
    jacobian: Array, response: Array, drift: Array, bias: Array, weight: Array, wanted: Array
) -> tuple[Array, ...]:
    """Λ, μ, p, J̄, τ from J, M⁻¹ Jᵀ, J̇ v, nonlinear effects and gravity."""
    inertia = np.linalg.inv(jacobian @ response)
    inverse = response @ inertia
    p = inverse.T @ weight
    mu = inverse.T @ (bias - weight) - inertia @ drift
    torque = jacobian.T @ (inertia @ wanted + mu + p)
    return inertia, mu, p, inverse, torque


def laws(model: pin.Model, frame: int, target: lw.Pose) -> list[Tick]:
    """The torque from state and goal alone: μ + p is one product, J̄ none."""
    data, zero = model.createData(), np.zeros(model.nv)
    goal = pin.SE3(np.array(target.rot), np.array(target.p))

    def law(q: Array, v: Array, _: Array) -> tuple[Array, ...]:
        inverse = pin.computeMinverse(model, data, q)
        bias = pin.nonLinearEffects(model, data, q, v)
        pin.forwardKinematics(model, data, q, v, zero)
        jacobian = pin.computeFrameJacobian(model, data, q, frame, ALIGNED)
        place = pin.updateFramePlacement(model, data, frame)
        drift = pin.getFrameClassicalAcceleration(model, data, frame, ALIGNED).vector
        turn = 2.0 * pin.Quaternion(goal.rotation @ place.rotation.T).coeffs()
        error = np.empty(6)
        error[:3] = goal.translation - place.translation
        error[3:] = turn[:3] * np.sign(turn[3])
        wanted = KP * error - KV * (jacobian @ v)
        response = inverse @ jacobian.T
        seen = wanted - drift + response.T @ bias
        return (jacobian.T @ np.linalg.solve(jacobian @ response, seen),)

    return [law]


def law_error(
    law: lw.ControlLaw,
    peer_law: Tick,
    arrays: dict[str, Array],
    theirs: tuple[Array, Array],
    turn: Array,
) -> float:
    """Largest relative difference of the law's torque over some states."""
    worst = 0.0
    for i in range(8):
        given = [arrays[n][i] if arrays[n].ndim == 2 else arrays[n] for n in law.arguments]
        (other,) = peer_law(theirs[0][i], theirs[1][i], np.zeros(6))
        apart = np.abs(turn @ law.kernel(*given) - other).max()
        worst = max(worst, float(apart / np.abs(other).max()))
    return worst


def difference(ours: dict[str, Array], theirs: tuple[Array, ...], turn: Array) -> float:
    """Largest relative difference of all five."""
    inertia, mu, p, inverse, torque = theirs
    pairs = [
        (ours["inertia"][np.ix_(SWAP, SWAP)], inertia),
        (ours["coriolis"][SWAP], mu),
        (ours["gravity"][SWAP], p),
        (turn @ ours["consistent_inverse"][:, SWAP], inverse),
        (turn @ ours["torque"], torque),
    ]
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)


if __name__ == "__main__":
    if "--quick" in sys.argv:
        BATCH, ROUNDS = 64, 3
    main()
