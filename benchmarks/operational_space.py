"""Operational space by recursion beside dense matrices: robots, and chains of growing length.

Run with `python benchmarks/operational_space.py`; writes benchmarks/results/operational_space.md.
Pinocchio's side is what its users do for J M⁻¹ Jᵀ: computeMinverse, a frame Jacobian for each node
and two products, and its Delassus matrix, which needs no M⁻¹. Results are compared first.
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
from linkwise.algebra import J, mass

Array = np.ndarray
Route = Callable[[Array], Array]

COMPLIANCE = J @ mass.inv @ J.T
ROBOTS = {
    "panda (arm, 7)": (
        ("panda.urdf", "fixed", ("panda_finger_joint1", "panda_finger_joint2")),
        (("panda_link8",),),
    ),
    "solo12 (free base, 18)": (
        ("solo12.urdf", "free", ()),
        (("FL_FOOT",), ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")),
    ),
    "talos_reduced (free base, 38)": (
        ("talos_reduced.urdf", "free", ()),
        (("left_sole_link",), ("left_sole_link", "right_sole_link", "gripper_left_base_link")),
    ),
}
SIZES = (10, 30, 100, 300, 1_000, 10_000)
LARGEST_DENSE = 300
BATCH, ROUNDS = 1024, 15
ORDER = [3, 4, 5, 0, 1, 2]
RESULTS = Path(__file__).parent / "results" / "operational_space.md"
HEAD = """# Operational space compared with dense matrices

Written by `make bench`. J 𝓜⁻¹ J* of one node and of several, in the axes of the nodes; float64.
Microseconds for one state; ratios are the dense method over ours. *One call* is a call from Python,
cycling through 16 states, with a new result array; *batch* is {batch} states on one core into an
existing array, for Pinocchio a Python loop that stores each result in its row. *Dense* is
computeMinverse, a frame Jacobian for each node, and J M⁻¹ Jᵀ in NumPy; *Delassus* is Pinocchio's
matrix of that name with one rigid contact for each node. *Rank-aware* is `lw.operational_space`:
rank, directions and a finite inertia in every state.

{machine}

Load average {load}.
"""
ROBOT_TABLE = """
## Robots

| robot | nodes | operations | one call | dense | ratio | Delassus | ratio | batch | dense | \
ratio | rank-aware | largest difference |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""
CHAIN_TABLE = """
## Chains

Serial chains of three kinds of links in turn; the node is the tip, the second one the middle. One
call. *Growth* is the ratio of costs to the previous line over the ratio of lengths: 1 is linear.
The dense method fills M⁻¹, with the square of the length, and Pinocchio's data hold dense tensors
of the third power: it ends at {largest} links here.

| links | nodes | one call | ns per body | growth | dense | growth | ratio | Delassus | ratio | \
rank-aware | largest difference |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def main() -> None:
    """Measure and write both tables."""
    text = HEAD.format(
        batch=BATCH,
        machine=machine.description("linkwise", "numpy", "llvmlite", "pin", "example-robot-data"),
        load=machine.load(),
    )
    text += ROBOT_TABLE
    for title, (robot, sets) in ROBOTS.items():
        for nodes in sets:
            text += logged(robot_row(title, robot, nodes))
    text += CHAIN_TABLE.format(largest=LARGEST_DENSE)
    for count in (1, 2):
        before = None
        for n in SIZES:
            line, before = chain_row(n, count, before)
            text += logged(line)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text)


def logged(line: str) -> str:
    """A line of a table, printed too."""
    print(line, flush=True)
    return line + "\n"


def robot_row(title: str, robot: tuple[str, str, tuple[str, ...]], nodes: tuple[str, ...]) -> str:
    """One line of the table of robots."""
    mech, model = peer.models(*robot)
    layout = lw.convert.pinocchio_layout(mech, model)
    kernel = lw.compile(COMPLIANCE, mech, nodes=nodes)
    rng = np.random.default_rng(0)
    q = np.array([mech.random(rng) for _ in range(BATCH)])
    theirs = layout.q_to(q)
    frames = [model.getFrameId(name) for name in nodes]
    dense, delassus = dense_route(model, frames), delassus_route(model, frames)
    error = difference(kernel(q[0]), dense(theirs[0]), delassus(theirs[0]))
    lists, their_lists = list(q[:16].copy()), list(theirs[:16].copy())
    one = chain.best(lambda: [kernel(x) for x in lists], ROUNDS) / 16
    other, third = (
        chain.best(lambda f=f: [f(x) for x in their_lists], ROUNDS) / 16 for f in (dense, delassus)
    )
    out = kernel(q)
    batch = chain.best(lambda: kernel(q, out=out, threads=1), ROUNDS) / BATCH
    rows = np.empty_like(out)

    def loop() -> None:
        for i, x in enumerate(theirs):
            rows[i] = dense(x)

    other_batch = chain.best(loop, 3) / BATCH
    aware = chain.best(lambda: [lw.operational_space(mech, x, nodes) for x in lists], 5) / 16
    ops = kernel.ops["mul"] + kernel.ops["add"] + kernel.ops["sub"]
    us = [1e6 * t for t in (one, other, third, batch, other_batch, aware)]
    return (
        f"| {title} | {len(nodes)} | {ops} | {us[0]:.2f} | {us[1]:.1f} | {us[1] / us[0]:.1f} | "
        f"{us[2]:.1f} | {us[2] / us[0]:.1f} | {us[3]:.3f} | {us[4]:.1f} | {us[4] / us[3]:.0f} | "
        f"{us[5]:.0f} | {error:.0e} |"
    )


def chain_row(
    n: int, count: int, before: tuple[int, float, float] | None
) -> tuple[str, tuple[int, float, float]]:
    """One line of the table of chains, and what the next one is compared with."""
    mech = chain.chain(n)
    nodes = (f"link{n}", f"link{n // 2}")[:count]
    kernel = lw.compile(COMPLIANCE, mech, nodes=nodes, rolled=True, cache=False)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, n)
    rounds = max(3, 20_000 // n)
    one, other, third, error = chain.best(lambda: kernel(q), rounds), np.nan, np.nan, np.nan
    if n <= LARGEST_DENSE:
        model, frames = pinocchio_chain(n, nodes)
        dense, delassus = dense_route(model, frames), delassus_route(model, frames)
        error = difference(kernel(q), dense(q), delassus(q))
        other, third = (
            chain.best(lambda f=f: f(q), max(3, rounds // 8)) for f in (dense, delassus)
        )
    aware = chain.best(lambda: lw.operational_space(mech, q, nodes), 3) if n <= 1_000 else np.nan
    growth = ["", ""]
    if before is not None:
        longer = n / before[0]
        growth = [
            shown(t / t0 / longer, ".2f") for t, t0 in zip((one, other), before[1:], strict=True)
        ]
    extra = f"{shown(1e6 * aware, '.0f')} | {shown(error, '.0e')} |"
    line = (
        f"| {n:,} | {count} | {1e6 * one:.1f} | {1e9 * one / n:.1f} | {growth[0]} | "
        f"{shown(1e6 * other, '.1f')} | {growth[1]} | {shown(other / one, '.1f')} | "
        f"{shown(1e6 * third, '.1f')} | {shown(third / one, '.1f')} | {extra}"
    )
    return line, (n, one, other)


def shown(number: float, form: str) -> str:
    """A number, or nothing where there is none."""
    return format(number, form) if np.isfinite(number) else ""


def dense_route(model: pin.Model, frames: list[int]) -> Route:
    """computeMinverse, the Jacobians of the frames, and the product of the three matrices."""
    data = model.createData()
    jacobians = np.zeros((6 * len(frames), model.nv))

    def route(q: Array) -> Array:
        inverse = pin.computeMinverse(model, data, q)
        if len(frames) == 1:
            jacobian = pin.computeFrameJacobian(model, data, q, frames[0], peer.LOCAL)
            return jacobian @ inverse @ jacobian.T
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        for i, frame in enumerate(frames):
            jacobians[6 * i : 6 * i + 6] = pin.getFrameJacobian(model, data, frame, peer.LOCAL)
        return jacobians @ inverse @ jacobians.T

    return route


def delassus_route(model: pin.Model, frames: list[int]) -> Route:
    """Pinocchio's Delassus matrix with a rigid contact for each frame."""
    data = model.createData()
    models, records = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for frame in frames:
        place = model.frames[frame]
        contact = pin.RigidConstraintModel(
            pin.ContactType.CONTACT_6D, model, place.parentJoint, place.placement, peer.LOCAL
        )
        models.append(contact)
        records.append(contact.createData())
    return lambda q: pin.computeDelassusMatrix(model, data, q, models, records, 0.0)


def pinocchio_chain(n: int, nodes: tuple[str, ...]) -> tuple[pin.Model, list[int]]:
    """The chain of `chain.py` in Pinocchio, with a frame on each of the links asked for."""
    kinds = {"x": pin.JointModelRX, "y": pin.JointModelRY, "z": pin.JointModelRZ}
    model, parent, result = pin.Model(), 0, dict[str, int]()
    for i, (m, axis) in enumerate(chain.links(n), start=1):
        placement = pin.SE3(np.eye(3), np.array(chain.OFFSET if i > 1 else (0.0, 0.0, 0.0)))
        parent = model.addJoint(parent, kinds[axis](), placement, f"joint{i}")
        inertia = pin.Inertia(m, np.array(chain.COM), chain.moments(m))
        model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
        if f"link{i}" in nodes:
            frame = pin.Frame(f"link{i}", parent, pin.SE3.Identity(), pin.FrameType.OP_FRAME)
            result[f"link{i}"] = model.addFrame(frame)
    return model, [result[name] for name in nodes]


def difference(ours: Array, *others: Array) -> float:
    """Largest difference, relative to the largest entry."""
    order = np.concatenate([6 * i + np.array(ORDER) for i in range(len(ours) // 6)])
    turned = [np.asarray(other)[np.ix_(order, order)] for other in others]
    worst = max(float(np.abs(ours - other).max() / np.abs(other).max()) for other in turned)
    if worst > 1e-8:
        raise SystemExit(f"results differ by {worst:.1e}: nothing was measured")
    return worst


if __name__ == "__main__":
    if sys.argv[1:] == ["--quick"]:  # a look at whether it runs
        SIZES, ROUNDS, BATCH = (10, 30), 2, 64
        RESULTS = Path("/dev/null")
    main()
