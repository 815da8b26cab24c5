"""Single elements and blocks of the inverse mass matrix beside Pinocchio, with growing length.

Run with `python benchmarks/open_chain.py`; writes benchmarks/results/open_chain.md. Pinocchio has
two ways to an element: computeMinverse, which makes all of them, and aba with a unit force and
neither velocity nor gravity, which makes a column. Results are compared first.
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
from linkwise.algebra import D, mass

Array = np.ndarray
Route = Callable[[Array], Array]

ROBOTS = {
    "panda (arm, 7)": ("panda.urdf", "fixed", ("panda_finger_joint1", "panda_finger_joint2")),
    "solo12 (free base, 18)": ("solo12.urdf", "free", ()),
    "talos_reduced (free base, 38)": ("talos_reduced.urdf", "free", ()),
}
SIZES = (10, 30, 100, 300, 1_000, 10_000)
LARGEST_DENSE = 300
BATCH, ROUNDS = 1024, 15
RESULTS = Path(__file__).parent / "results" / "open_chain.md"
HEAD = """# Elements of the inverse mass matrix compared with Pinocchio

Written by `make bench`. Float64. Microseconds for one state; ratios are Pinocchio over Linkwise.
*One call* is a call from Python, cycling through 16 states, with a new result array; *batch* is
{batch} states on one core into an existing array, for Pinocchio a Python loop that stores each
result in its row. *computeMinverse* computes all elements, whichever are needed; *aba* is
Pinocchio's forward dynamics with a unit force and neither velocity nor gravity, one call for each
column of the block. Operations are those of one state after folding; *inertias* is the cost of the
articulated inertias alone, which every element needs.

{machine}

Load average {load}.
"""
ROBOT_TABLE = """
## Robots

| robot | part | operations | inertias | of the matrix | one call | computeMinverse | ratio | \
aba | ratio | batch | computeMinverse | ratio | largest difference |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""
CHAIN_TABLE = """
## Chains

Serial chains of three kinds of links in turn: the element of the middle joint and the last one, by
loops over bodies; beside it the last three joints' block. *Growth* is the ratio of costs to the
previous line over the ratio of lengths: 1 is linear. Pinocchio's data hold dense tensors of the
third power of the length: it ends at {largest} links here.

| links | element | ns per body | growth | block 3 × 3 | computeMinverse | growth | ratio | aba | \
ratio | largest difference |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def main() -> None:
    """Measure and write both tables."""
    text = HEAD.format(
        batch=BATCH,
        machine=machine.description("linkwise", "numpy", "llvmlite", "pin", "example-robot-data"),
        load=machine.load(),
    )
    text += ROBOT_TABLE
    for title, robot in ROBOTS.items():
        mech, model = peer.models(*robot)
        last = mech.nv - 1
        parts = {
            "one element": ((last // 2,), (last,)),
            "last 3 × 3": ((last - 2, last - 1, last),) * 2,
        }
        for part, (rows, columns) in parts.items():
            text += logged(robot_row(f"{title} | {part}", mech, model, rows, columns))
    text += CHAIN_TABLE.format(largest=LARGEST_DENSE)
    before = None
    for n in SIZES:
        line, before = chain_row(n, before)
        text += logged(line)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text)


def logged(line: str) -> str:
    """A line of a table, printed too."""
    print(line, flush=True)
    return line + "\n"


def robot_row(
    title: str,
    mech: lw.Mechanism,
    model: pin.Model,
    rows: tuple[int, ...],
    columns: tuple[int, ...],
) -> str:
    """One line of the table of robots."""
    layout = lw.convert.pinocchio_layout(mech, model)
    kernel = lw.compile(mass.inv, mech, rows=rows, columns=columns)
    root = mech.bodies[0].name
    inertias = lw.compile(D, mech, rows=root, blocks=True, target="numpy").ops.total()
    full = lw.compile(mass.inv, mech, target="numpy").ops.total()
    rng = np.random.default_rng(0)
    q = np.array([mech.random(rng) for _ in range(BATCH)])
    theirs = layout.q_to(q)
    # Our velocities are theirs in another order; a hinge with one velocity has one of theirs.
    units = np.array([layout.v_to(q[0], e) for e in np.eye(mech.nv)])
    order = [int(np.argmax(np.abs(units[i]))) for i in range(mech.nv)]
    r, c = [order[i] for i in rows], [order[i] for i in columns]
    minverse, column = minverse_route(model, r, c), aba_route(model, r, c)
    error = difference(kernel(q[0]), minverse(theirs[0]), column(theirs[0]))
    lists, their_lists = list(q[:16].copy()), list(theirs[:16].copy())
    one = chain.best(lambda: [kernel(x) for x in lists], ROUNDS) / 16
    other, third = (
        chain.best(lambda f=f: [f(x) for x in their_lists], ROUNDS) / 16 for f in (minverse, column)
    )
    out = kernel(q)
    batch = chain.best(lambda: kernel(q, out=out, threads=1), ROUNDS) / BATCH
    results = np.empty_like(out)

    def loop() -> None:
        for i, x in enumerate(theirs):
            results[i] = minverse(x)

    other_batch = chain.best(loop, 3) / BATCH
    ops = kernel.ops.total()
    us = [1e6 * t for t in (one, other, third, batch, other_batch)]
    return (
        f"| {title} | {ops} | {inertias} | {ops / full:.0%} | {us[0]:.2f} | {us[1]:.2f} | "
        f"{us[1] / us[0]:.1f} | {us[2]:.2f} | {us[2] / us[0]:.1f} | {us[3]:.3f} | {us[4]:.2f} | "
        f"{us[4] / us[3]:.0f} | {error:.0e} |"
    )


def chain_row(
    n: int, before: tuple[int, float, float] | None
) -> tuple[str, tuple[int, float, float]]:
    """One line of the table of chains, and what the next one is compared with."""
    mech = chain.chain(n)
    kernel = lw.compile(mass.inv, mech, rows=n // 2, columns=n - 1, rolled=True, cache=False)
    tip = (n - 3, n - 2, n - 1)
    block = lw.compile(mass.inv, mech, rows=tip, columns=tip, rolled=True, cache=False)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, n)
    rounds = max(3, 20_000 // n)
    one, three = chain.best(lambda: kernel(q), rounds), chain.best(lambda: block(q), rounds)
    other, third, error = np.nan, np.nan, np.nan
    if n <= LARGEST_DENSE:
        model = chain.pinocchio_chain(n)
        minverse, column = (f(model, [n // 2], [n - 1]) for f in (minverse_route, aba_route))
        error = difference(kernel(q), minverse(q), column(q))
        other, third = (
            chain.best(lambda f=f: f(q), max(3, rounds // 8)) for f in (minverse, column)
        )
    growth = ["", ""]
    if before is not None:
        longer = n / before[0]
        growth = [
            shown(t / t0 / longer, ".2f") for t, t0 in zip((one, other), before[1:], strict=True)
        ]
    line = (
        f"| {n:,} | {1e6 * one:.1f} | {1e9 * one / n:.1f} | {growth[0]} | {1e6 * three:.1f} | "
        f"{shown(1e6 * other, '.1f')} | {growth[1]} | {shown(other / one, '.1f')} | "
        f"{shown(1e6 * third, '.1f')} | {shown(third / one, '.1f')} | {shown(error, '.0e')} |"
    )
    return line, (n, one, other)


def shown(number: float, form: str) -> str:
    """A number, or nothing where there is none."""
    return format(number, form) if np.isfinite(number) else ""


def minverse_route(model: pin.Model, rows: list[int], columns: list[int]) -> Route:
    """All of the inverse, and the block out of it."""
    data, block = model.createData(), np.ix_(rows, columns)

    def route(q: Array) -> Array:
        return pin.computeMinverse(model, data, q)[block]

    return route


def aba_route(model: pin.Model, rows: list[int], columns: list[int]) -> Route:
    """Forward dynamics with a unit force: a column each."""
    weightless = pin.Model(model)
    weightless.gravity = pin.Motion.Zero()
    data, still = weightless.createData(), np.zeros(model.nv)
    units = [np.eye(model.nv)[c].copy() for c in columns]

    def route(q: Array) -> Array:
        result = [np.array(pin.aba(weightless, data, q, still, e))[rows] for e in units]
        return np.stack(result, axis=-1)

    return route


def difference(ours: Array, *others: Array) -> float:
    """Largest difference, relative to the largest entry."""
    worst = max(float(np.abs(ours - other).max() / np.abs(other).max()) for other in others)
    if worst > 1e-8:
        raise SystemExit(f"results differ by {worst:.1e}: nothing was measured")
    return worst


if __name__ == "__main__":
    if sys.argv[1:] == ["--quick"]:  # a look at whether it runs
        SIZES, ROUNDS, BATCH = (10, 30), 2, 64
        RESULTS = Path("/dev/null")
    main()
