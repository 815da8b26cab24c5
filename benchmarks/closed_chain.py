"""Constrained forward dynamics compared with Pinocchio: arms that hold an object, and its growth.

Run with `python benchmarks/closed_chain.py`; writes benchmarks/results/closed_chain.md. Pinocchio's
side is `constraintDynamics` with a 6-D closure for each weld and a 3-D one for each ball, μ = 0 and
one iteration, which is the rigid problem. The accelerations of both are compared first.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import chain
import machine
import numpy as np
import pinocchio as pin

sys.path.insert(0, str(Path(__file__).parents[1]))

import linkwise as lw
from tests.loops.pinocchio_loops import SETTINGS, model_with_inertias, rigid_constraints

Array = np.ndarray

SYSTEMS: dict[str, Callable[[], lw.Mechanism]] = {
    "two arms of 7 axes": lambda: lw.models.multi_arm(2),
    "four arms of 7 axes": lambda: lw.models.multi_arm(4),
    "two PUMA 560": lambda: lw.models.multi_arm(2, arm="puma560"),
    "four PUMA 560": lambda: lw.models.multi_arm(4, arm="puma560"),
    "Stewart platform": lw.models.stewart,
}
QUICK = "--quick" in sys.argv[1:]
STATES, BATCH, ROUNDS = 16, 1024, 3 if QUICK else 15
LINKS = (6, 12) if QUICK else (6, 12, 24, 48)
ARMS = (2, 4) if QUICK else (2, 3, 4, 5, 6, 7, 8)
AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
RESULTS = Path(__file__).parent / "results" / "closed_chain.md"
HEAD = """# Constrained forward dynamics compared with Pinocchio

Written by `make bench`. `lw.forward_dynamics` against
`pinocchio.constraintDynamics` on the same mechanisms and states, float64; microseconds for one
state, ratios are theirs over ours. *One call* is a call from Python cycling through {states} closed
states; *batch* is {batch} states on one core into an existing array, for Pinocchio a Python loop
that stores each result in its row. *Operations* are scalar ones of the kernel, *free* those of the
same tree with open loops. Arms hold a rigid object on a free hinge; a grasp is a weld of six rows,
a leg of the platform ends in a ball of three.

{machine}

Load average {load}.

| system | dof | rows | operations | free | one call | Pinocchio | ratio | batch | \
Pinocchio | ratio | largest difference |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""
GROWTH = """
## Growth

Operations of one evaluation, and the time of one call [µs]. Links: two arms, each with the given
number of pins; *a pair* is one link of each. Arms: seven pins each; the matrix Ω has six rows for
each.

| links an arm | operations | a pair | one call | | arms | operations | an arm | one call |
| ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |
"""


def main() -> None:
    """Measure and write both tables."""
    text = HEAD.format(
        states=STATES,
        batch=BATCH,
        machine=machine.description("linkwise", "numpy", "llvmlite", "pin"),
        load=machine.load(),
    )
    for title, made in SYSTEMS.items():
        text += logged(row(title, made()))
    text += GROWTH
    links = [growth(arms(2, n), n) for n in LINKS]
    numbers = [growth(lw.models.multi_arm(n, radius=0.5), n) for n in ARMS]
    for i in range(max(len(links), len(numbers))):
        left = links[i] if i < len(links) else "| | | | "
        right = numbers[i] if i < len(numbers) else "| | | | "
        text += logged(f"{left} | {right} |")
    if not QUICK:
        RESULTS.write_text(text)


def logged(line: str) -> str:
    """A line of a table, printed too."""
    print(line, flush=True)
    return line + "\n"


def states(mech: lw.Mechanism) -> tuple[Array, Array, Array]:
    """Closed configurations near neutral, velocities that the loops allow, and joint forces."""
    rng = np.random.default_rng(0)
    away = 0.1 * rng.standard_normal((STATES, mech.nv))
    near = [mech.integrate(mech.neutral(), x) for x in away]
    q = np.stack([lw.loops.project_position(mech, x).required() for x in near])
    v = lw.loops.project_velocity(mech, q, rng.standard_normal((STATES, mech.nv)))
    return q, v, rng.standard_normal((STATES, mech.nv))


def ours_on(mech: lw.Mechanism, arrays: tuple[Array, ...]) -> tuple[float, float, int]:
    """Seconds for one call and for one of a batch, and operations."""
    from linkwise.dynamics.closure import closed_kernel

    lists = list(zip(*(list(x.copy()) for x in arrays), strict=True))
    lw.forward_dynamics(mech, *lists[0])
    function = lw.forward_dynamics
    one = chain.best(lambda: [function(mech, *x) for x in lists], ROUNDS) / STATES
    many = [np.tile(x, (BATCH // STATES, 1)) for x in arrays]
    out = function(mech, *many)
    batch = chain.best(lambda: function(mech, *many, out=out, threads=1), ROUNDS) / BATCH
    return one, batch, sum(closed_kernel(mech, "forward_dynamics").ops.values())


def row(title: str, mech: lw.Mechanism) -> str:
    """One system in both libraries."""
    mech = mech.without_armature()
    q, v, tau = states(mech)
    one, batch, operations = ours_on(mech, (q, v, tau))
    theirs, difference = pinocchio_on(mech, q, v, tau)
    tree = lw.dynamics.tree_of(mech)
    free = sum(lw.dynamics.kernels.kernel(tree, "forward_dynamics").ops.values())
    rows = len(lw.loops.constraint_names(mech))
    us = [1e6 * t for t in (one, theirs[0], batch, theirs[1])]
    return (
        f"| {title} | {mech.nv} | {rows} | {operations} | {free} | {us[0]:.2f} | {us[1]:.1f} | "
        f"{us[1] / us[0]:.1f} | {us[2]:.3f} | {us[3]:.1f} | {us[3] / us[2]:.0f} | "
        f"{difference:.0e} |"
    )


def pinocchio_on(
    mech: lw.Mechanism, q: Array, v: Array, tau: Array
) -> tuple[tuple[float, float], float]:
    """Seconds of Pinocchio for one call and one of a batch, and how far it is from ours."""
    model = model_with_inertias(mech)
    model.gravity.linear = np.array(mech.gravity)
    model.armature[:] = 0.0
    layout = lw.convert.pinocchio_layout(mech, model)
    constraints, work = rigid_constraints(mech, model), pin.StdVec_RigidConstraintData()
    for constraint in constraints:
        work.append(constraint.createData())
    data = model.createData()
    pin.initConstraintDynamics(model, data, constraints, work)
    turn = np.stack([layout.v_to(q[0], e) for e in np.eye(mech.nv)], axis=-1)  # a permutation
    given = (layout.q_to(q), layout.v_to(q, v), tau @ turn.T)
    lists = list(zip(*(list(np.ascontiguousarray(x)) for x in given), strict=True))
    proximal = pin.ProximalSettings(*SETTINGS)

    def call(x: tuple[Array, ...]) -> Array:
        return pin.constraintDynamics(model, data, *x, constraints, work, proximal)

    ours = lw.forward_dynamics(mech, q, v, tau)
    result = np.stack([turn.T @ call(x) for x in lists])
    difference = float(np.abs(result - ours).max() / np.abs(ours).max())
    one = chain.best(lambda: [call(x) for x in lists], ROUNDS) / STATES
    many, rows = lists * (BATCH // STATES), np.empty((BATCH, mech.nv))

    def loop() -> None:
        for i, x in enumerate(many):
            rows[i] = call(x)

    return (one, chain.best(loop, 3) / BATCH), difference


def arms(count: int, links: int) -> lw.Mechanism:
    """Arms of pins, their tips on one object that is built where they end."""
    rng, b = np.random.default_rng(links), lw.Builder(f"arms_{count}_{links}")
    for k in range(count):
        parent = "world"
        for i in range(links):
            name = f"arm_{k}_{i}"
            inertia = lw.SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.3)).moved(
                lw.Pose.translation((0.0, 0.0, 0.15))
            )
            at = (float(k), 0.0, 0.0) if i == 0 else (0.0, 0.0, 0.3)
            turn = lw.Pose.rpy(0.5 * rng.standard_normal(3), at)
            b.body(name, parent, lw.hinges.Pin(AXES[i % 3]), inboard=turn, inertia=inertia)
            parent = name
        b.node(f"tip_{k}", parent, (0.0, 0.0, 0.3))
    b.body(
        "object",
        "world",
        lw.hinges.Free(),
        inertia=lw.SpatialInertia.solid_box(4.0, (0.5, 0.3, 0.1)),
    )
    open_ = b.build()
    for k in range(count):
        b.node(f"grasp_{k}", "object", open_.pose(open_.neutral(), f"tip_{k}"))
        b.loop(f"grasp_{k}", f"tip_{k}", f"grasp_{k}")
    return b.build()


def growth(mech: lw.Mechanism, n: int) -> str:
    """Operations and time of one system, with its size in front."""
    mech = mech.without_armature()
    one, _, operations = ours_on(mech, states(mech))
    return f"| {n} | {operations} | {operations // n} | {1e6 * one:.2f}"


if __name__ == "__main__":
    main()
