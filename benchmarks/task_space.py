"""One tick of operational-space control: one kernel beside Pinocchio and NumPy.

Run with `python benchmarks/task_space.py`; writes benchmarks/results/task_space.md. Both compute
Λ, μ, p, J̄ and the torque of the same law in world axes; Pinocchio's side is written three ways and
the fastest counts. Results are compared first.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import chain
import limits
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
fastest of three ways to write it: computeMinverse and products, crba and one solve, computeAllTerms
and one solve (two of these for the law). *One call* is `law(q, v, ...)` from Python with 16 states
in turn, with new result arrays, in a dictionary; *bare* is its kernel called with arrays in order,
the result one array; the first ratio is of one call. *Batch* is {batch} states on one core into an
existing array; for Pinocchio a Python loop that stores each result in its row. *Law* is the torque
alone from state, goal pose and gains: ẍ = k_p e - k_v ẋ, the error as twice the vector part of a
quaternion; the goal as numbers.

{machine}

Load average {load}.

*Issue rate* is the share of the floating-point instructions that one core can start, measured in
the same run, that a batch uses: the rest is loads and stores of values that do not fit in
registers.

| robot | | operations | one call | bare | peer | ratio | batch | peer | ratio | issue rate | \
difference |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


PEAK = [1.0]
"""Floating-point instructions a core can start in a ns."""


def main() -> None:
    """Measure and write the table."""
    PEAK[0] = limits.instructions_per_ns()
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
    v, desired = rng.normal(size=(BATCH, mech.nv)), rng.normal(size=(BATCH, 6))
    turn = np.stack([layout.v_to(q[0], e) for e in np.eye(mech.nv)], axis=-1)  # a permutation
    frame = model.getFrameId(node)
    tick = lw.control_law(mech, task, also=TOLD[:-1], compensate="task")
    law = lw.control_law(mech, task, kp=KP, kv=KV, compensate="task")
    codes = np.zeros(BATCH, dtype=np.int32)
    tick.kernel(q, v, desired, status=codes)
    q[codes != 0] = q[np.flatnonzero(codes == 0)[0]]  # no state at a singularity
    theirs = (layout.q_to(q), v @ turn.T, desired[:, SWAP])
    target = lw.tasks.task_position(mech, mech.random(rng), task)
    goal = np.tile(law.goal(target), (BATCH, 1))
    arrays = law.inputs | {"q": q, "v": v, "closing": desired, "goal": goal}
    all_of, alone = ticks(model, frame), laws(model, frame, target)

    def called(i: int) -> object:
        return tick(q[i], v[i], acceleration=desired[i])

    def led(i: int) -> object:
        return law(q[i], v[i], goal[i])

    states = [[x[i] for x in theirs] for i in range(16)]
    apart = max(difference(called(i), f(*states[i]), turn) for i in range(8) for f in all_of)
    off = max(relative(turn @ led(i), *f(*states[i])) for i in range(8) for f in alone)
    return [
        row(f"| {title} | Λ, μ, p, J̄, τ |", tick, called, all_of, apart, arrays, theirs),
        row(f"| {title} | law |", law, led, alone, off, arrays, theirs),
    ]


def row(
    title: str,
    ours: lw.tasks.ControlLaw,
    call: Callable[[int], object],
    peers: list[Tick],
    apart: float,
    arrays: dict[str, Array],
    theirs: tuple[Array, ...],
) -> str:
    """One line."""
    bare = ours.kernel
    states = [[x[i] if x.ndim == 2 else x for x in inputs(ours, arrays)] for i in range(16)]
    one = chain.best(lambda: [call(i) for i in range(16)], ROUNDS) / 16
    least = chain.best(lambda: [bare(*x) for x in states], ROUNDS) / 16
    lists = [[x[i].copy() for x in theirs] for i in range(16)]
    times = [chain.best(lambda f=f: [f(*x) for x in lists], ROUNDS) / 16 for f in peers]
    quickest = peers[int(np.argmin(times))]
    full = inputs(ours, arrays)
    out = np.empty((BATCH, *bare.signature.shape))
    batch = chain.best(lambda: bare(*full, out=out, threads=1), ROUNDS) / BATCH
    kept = [np.empty((BATCH, *x.shape)) for x in quickest(*lists[0])]

    def loop() -> None:
        for i in range(BATCH):
            parts = quickest(*(x[i] for x in theirs))
            for place, part in zip(kept, parts, strict=True):
                place[i] = part

    other_batch = chain.best(loop, 3) / BATCH
    busy = limits.vector_instructions(bare) / bare.signature.lanes / (1e9 * batch * PEAK[0])
    us = [1e6 * t for t in (one, least, min(times), batch, other_batch)]
    return (
        f"{title} {ours.ops} | {us[0]:.2f} | {us[1]:.2f} | {us[2]:.1f} | {us[2] / us[0]:.1f} | "
        f"{us[3]:.3f} | {us[4]:.1f} | {us[4] / us[3]:.0f} | {100.0 * busy:.0f} % | {apart:.0e} |"
    )


def inputs(law: lw.tasks.ControlLaw, arrays: dict[str, Array]) -> list[Array]:
    """What the kernel of a law takes."""
    return [arrays[name] for name in law.arguments]


def ticks(model: pin.Model, frame: int) -> list[Tick]:
    """Λ, μ, p, J̄ and τ, written three ways."""
    data = model.createData()
    zero = np.zeros(model.nv)

    def by_inverse(q: Array, v: Array, desired: Array) -> tuple[Array, ...]:
        inverse = pin.computeMinverse(model, data, q)
        pin.forwardKinematics(model, data, q, v, zero)
        jacobian = pin.computeFrameJacobian(model, data, q, frame, ALIGNED)
        pin.updateFramePlacement(model, data, frame)
        drift = pin.getFrameClassicalAcceleration(model, data, frame, ALIGNED).vector
        response = inverse @ jacobian.T
        return finished(jacobian, response, drift, nle(q, v), gravity(q), desired)

    def by_solve(q: Array, v: Array, desired: Array) -> tuple[Array, ...]:
        mass = pin.crba(model, data, q)
        mass = np.triu(mass) + np.triu(mass, 1).T
        pin.forwardKinematics(model, data, q, v, zero)
        jacobian = pin.computeFrameJacobian(model, data, q, frame, ALIGNED)
        pin.updateFramePlacement(model, data, frame)
        drift = pin.getFrameClassicalAcceleration(model, data, frame, ALIGNED).vector
        response = np.linalg.solve(mass, jacobian.T)
        return finished(jacobian, response, drift, nle(q, v), gravity(q), desired)

    def by_all_terms(q: Array, v: Array, desired: Array) -> tuple[Array, ...]:
        pin.computeAllTerms(model, data, q, v)
        mass, bias, weight = data.M, data.nle, data.g
        pin.updateFramePlacement(model, data, frame)
        jacobian = pin.getFrameJacobian(model, data, frame, ALIGNED)
        pin.forwardKinematics(model, data, q, v, zero)
        drift = pin.getFrameClassicalAcceleration(model, data, frame, ALIGNED).vector
        response = np.linalg.solve(mass, jacobian.T)
        return finished(jacobian, response, drift, bias, weight, desired)

    def nle(q: Array, v: Array) -> Array:
        return pin.nonLinearEffects(model, data, q, v)

    def gravity(q: Array) -> Array:
        return pin.computeGeneralizedGravity(model, data, q).copy()

    return [by_inverse, by_solve, by_all_terms]


def finished(
    jacobian: Array, response: Array, drift: Array, bias: Array, weight: Array, desired: Array
) -> tuple[Array, ...]:
    """Λ, μ, p, J̄, τ from J, M⁻¹ Jᵀ, J̇ v, nonlinear effects and gravity."""
    inertia = np.linalg.inv(jacobian @ response)
    inverse = response @ inertia
    p = inverse.T @ weight
    mu = inverse.T @ (bias - weight) - inertia @ drift
    torque = jacobian.T @ (inertia @ desired + mu + p)
    return inertia, mu, p, inverse, torque


def laws(model: pin.Model, frame: int, target: lw.Pose) -> list[Tick]:
    """The torque from state and goal alone: μ + p is one product, J̄ none; written two ways."""
    data, zero = model.createData(), np.zeros(model.nv)
    goal = pin.SE3(np.array(target.rot), np.array(target.p))

    def law(q: Array, v: Array, response: Callable[[Array], Array], bias: Array) -> tuple[Array]:
        pin.forwardKinematics(model, data, q, v, zero)
        jacobian = pin.computeFrameJacobian(model, data, q, frame, ALIGNED)
        place = pin.updateFramePlacement(model, data, frame)
        drift = pin.getFrameClassicalAcceleration(model, data, frame, ALIGNED).vector
        turn = 2.0 * pin.Quaternion(goal.rotation @ place.rotation.T).coeffs()
        error = np.empty(6)
        error[:3] = goal.translation - place.translation
        error[3:] = turn[:3] * np.sign(turn[3])
        desired = KP * error - KV * (jacobian @ v)
        moved = response(jacobian.T)
        seen = desired - drift + moved.T @ bias
        return (jacobian.T @ np.linalg.solve(jacobian @ moved, seen),)

    def by_inverse(q: Array, v: Array, _: Array) -> tuple[Array, ...]:
        inverse = pin.computeMinverse(model, data, q)
        bias = pin.nonLinearEffects(model, data, q, v)
        return law(q, v, lambda x: inverse @ x, bias)

    def by_solve(q: Array, v: Array, _: Array) -> tuple[Array, ...]:
        mass = pin.crba(model, data, q)
        mass = np.triu(mass) + np.triu(mass, 1).T
        bias = pin.nonLinearEffects(model, data, q, v)
        return law(q, v, lambda x: np.linalg.solve(mass, x), bias)

    return [by_inverse, by_solve]


def relative(ours: Array, theirs: Array) -> float:
    """Largest difference, relative to the largest entry."""
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


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
    return max(relative(a, b) for a, b in pairs)


if __name__ == "__main__":
    if "--quick" in sys.argv:
        BATCH, ROUNDS = 64, 3
    main()
