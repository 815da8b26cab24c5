"""Hybrid dynamics beside what a user of Pinocchio does instead, and how both grow with the robot.

Run with `python benchmarks/hybrid.py`; writes benchmarks/results/hybrid.md (`--quick` measures less
and writes nothing). Pinocchio has no hybrid dynamics. Its user takes the mass matrix and the bias
and solves the driven part densely, or takes the inverse mass matrix, solves the prescribed part,
and runs forward dynamics with the forces found. The faster of the two is compared with.
"""

import sys
import timeit
from collections.abc import Callable
from pathlib import Path

import chain as chains
import machine
import numpy as np
import pinocchio as pin
import pinocchio_side as peer
from kernel import ROBOTS, best

import linkwise as lw
from linkwise.dynamics import hybrid_kernel

try:
    from scipy.linalg.lapack import dpotrf, dpotrs
except ImportError:
    dpotrf = dpotrs = None

Array = np.ndarray
Route = Callable[[Array, Array, Array, Array], tuple[Array, Array]]
QUICK = "--quick" in sys.argv[1:]
BATCH, ROUNDS = (64, 2) if QUICK else (4096, 15)
SIZES = (8, 16, 32) if QUICK else (8, 16, 32, 64, 128, 256, 512)
METHODS = ("FD1", "FD2", "FD3", "FD4", "forward_dynamics")
RESULTS = Path(__file__).parent / "results" / "hybrid.md"
HEAD = """# Hybrid dynamics compared with Pinocchio

Written by `make bench`. Some hinges have given accelerations, the others given forces; all forces
and all accelerations are computed. Microseconds for one state, float64, one core; ratios are
Pinocchio over Linkwise. *One call* is a call from Python, cycling through 16 states; *batch* is
{batch} states in one call, for Pinocchio a loop in Python. Linkwise's kernel gives forces at
prescribed and accelerations at driven hinges; `lw.hybrid_dynamics` combines them with the given
ones, for a few microseconds more. Pinocchio has two routes, of which the faster counts: *dense* is
`rnea` at the prescribed accelerations, `crba`, a Cholesky solution of the driven part (LAPACK) and
the product that gives the forces; *inverse* is `nonLinearEffects`, `computeMinverse`, a solution of
the prescribed part, and `aba`. Both are Python around Pinocchio's and LAPACK's functions; calls and
NumPy's indexing are most of it for small robots, which a C++ user would not pay. Results are
compared first. A floating base is always driven.

{machine}

Load average {load}.

| robot | prescribed | operations | one call | Pinocchio | route | ratio | batch | Pinocchio | \
ratio | largest difference |
| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |
"""


def main() -> None:
    """Measure and write the tables."""
    text = HEAD.format(
        batch=BATCH,
        machine=machine.description("linkwise", "numpy", "llvmlite", "pin", "example-robot-data"),
        load=machine.load(),
    )
    for title in ROBOTS:
        for share in ("one", "half", "all but one"):
            text += logged(robot_row(title, share))
    text += growth()
    text += methods()
    if not QUICK:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(text)


def logged(line: str) -> str:
    """A line, shown as it is made."""
    print(line, flush=True)
    return line + "\n"


# ------------------------------------------------------------------------------------- rows


def robot_row(title: str, share: str) -> str:
    """One robot, with one, half or all but one of its hinges prescribed."""
    mech, model = peer.models(*ROBOTS[title])
    hinges = [b.hinge_name for b in mech.bodies if 0 < b.hinge.nv < 6]
    chosen = {"one": hinges[-1:], "half": hinges[1::2]}.get(share, hinges[1:])
    kernel, held = hybrid_kernel(mech, chosen), freedoms(mech, chosen)
    arrays = states(mech)
    layout = lw.convert.pinocchio_layout(mech, model)
    theirs = [layout.q_to(arrays[0])] + [layout.v_to(arrays[0], x) for x in arrays[1:]]
    there = np.flatnonzero(layout.v_to(arrays[0][0], held.astype(float)))
    routes = {"dense": dense(model, there), "inverse": inverse(model, there)}
    name, route = fastest(routes, theirs)
    error = largest_difference(kernel, held, arrays, routes, theirs, layout)
    lists = [[x[i].copy() for x in arrays] for i in range(16)]
    their_lists = [[x[i].copy() for x in theirs] for i in range(16)]
    one = best(lambda: [kernel(*x) for x in lists], ROUNDS) / 16
    other = best(lambda: [route(*x) for x in their_lists], ROUNDS) / 16
    out = kernel(*arrays)
    batch = best(lambda: kernel(*arrays, out=out, threads=1), ROUNDS) / BATCH
    other_batch = best(lambda: loop(route, theirs), 3) / BATCH
    us = [1e6 * t for t in (one, other, batch, other_batch)]
    return (
        f"| {title} | {len(there)} of {mech.nv} | {kernel.ops.total()} | {us[0]:.2f} | "
        f"{us[1]:.2f} | {name} | {us[1] / us[0]:.1f} | {us[2]:.3f} | {us[3]:.2f} | "
        f"{us[3] / us[2]:.0f} | {error:.0e} |"
    )


def growth() -> str:
    """Chains, every other hinge prescribed: one call."""
    text = """
## Growth with the number of links

Serial chains, every other hinge prescribed, one call; chains of more than 64 links get loops over
bodies.

| links | Linkwise [µs] | ns per link | dense [µs] | inverse [µs] | ratio | largest difference |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""
    print(text, flush=True)
    for n in SIZES:
        mech, model = chains.chain(n), chains.pinocchio_chain(n)
        chosen = [body.hinge_name for body in mech.bodies[::2]]
        kernel, held = hybrid_kernel(mech, chosen), freedoms(mech, chosen)
        rng = np.random.default_rng(0)
        q, v = rng.uniform(-1, 1, n), rng.normal(size=n) / np.sqrt(n)
        given = [q, v, *rng.normal(size=(2, n))]
        arrays = [np.tile(x, (1, 1)) for x in given]
        routes = {
            "dense": dense(model, np.flatnonzero(held)),
            "inverse": inverse(model, np.flatnonzero(held)),
        }
        error = largest_difference(kernel, held, arrays, routes, arrays, None)
        rounds = ROUNDS if QUICK else max(10, 20_000 // n)
        one = 1e6 * best(lambda k=kernel, x=given: k(*x), rounds)
        other = [
            1e6 * best(lambda f=f, x=given: f(*x), max(2, rounds // 4)) for f in routes.values()
        ]
        text += logged(
            f"| {n} | {one:.1f} | {1e3 * one / n:.0f} | {other[0]:.1f} | {other[1]:.1f} | "
            f"{min(other) / one:.1f} | {error:.0e} |"
        )
    return text


def methods() -> str:
    """FD1 to FD4 and the derived form: scalar operations on robots from files and samples."""
    text = """
## Forward dynamics by name

Passes over the tree and scalar operations for one state, after folding, without armature where the
robot has none.

| robot | passes | FD1 | FD2 | FD3 | FD4 | derived |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
"""
    print(text, flush=True)
    robots = {title: peer.models(*ROBOTS[title])[0] for title in ROBOTS}
    robots |= {
        "puma560": lw.models.puma560(),
        "quadruped": lw.models.quadruped(),
        "humanoid": lw.models.humanoid(),
        "chain of 30": lw.models.chain(30),
    }
    for title, mech in robots.items():
        passes, counts = set[int](), list[str]()
        for name in METHODS:
            expr = lw.dynamics.expression(name)
            derived = name == "forward_dynamics"
            kernel = lw.compile(expr, mech, target="numpy", derive=derived)
            passes.add(len(kernel.program.passes))
            counts.append(str(kernel.ops.total()))
        count = "/".join(str(n) for n in sorted(passes))
        text += logged(f"| {title} | {count} | {' | '.join(counts)} |")
    return text


# ------------------------------------------------------------------------------ Pinocchio's side


def dense(model: pin.Model, held: Array) -> Route:
    """Mass matrix and bias; the driven part solved by Cholesky."""
    data, free = model.createData(), np.setdiff1d(np.arange(model.nv), held)
    among, across = np.ix_(free, free), np.ix_(held, free)

    def route(q: Array, v: Array, tau: Array, vdot: Array) -> tuple[Array, Array]:
        motion, force = vdot.copy(), tau.copy()
        motion[free] = 0.0
        bias = pin.rnea(model, data, q, v, motion)
        mass = pin.crba(model, data, q)  # both triangles: its Python face fills them
        motion[free] = solved(mass[among], (tau - bias)[free])
        force[held] = bias[held] + mass[across] @ motion[free]
        return motion, force

    return route


def inverse(model: pin.Model, held: Array) -> Route:
    """Inverse mass matrix; the prescribed part solved by Cholesky, then forward dynamics."""
    data, free = model.createData(), np.setdiff1d(np.arange(model.nv), held)
    among, across = np.ix_(held, held), np.ix_(held, free)

    def route(q: Array, v: Array, tau: Array, vdot: Array) -> tuple[Array, Array]:
        force = tau.copy()
        bias = pin.nonLinearEffects(model, data, q, v)
        yielding = pin.computeMinverse(model, data, q)
        desired = vdot[held] - yielding[across] @ (tau - bias)[free]
        force[held] = bias[held] + solved(yielding[among], desired)
        return pin.aba(model, data, q, v, force), force

    return route


def solved(matrix: Array, right: Array) -> Array:
    """A definite system, by LAPACK's Cholesky where SciPy is there."""
    if dpotrf is None or not len(right):
        return np.linalg.solve(matrix, right)
    factor, _ = dpotrf(matrix, lower=1)
    return dpotrs(factor, right, lower=1)[0]


def fastest(routes: dict[str, Route], arrays: list[Array]) -> tuple[str, Route]:
    """The quicker one for the first state."""
    first = [x[0] for x in arrays]
    number = 5 if QUICK else 100
    spent = {
        name: min(timeit.repeat(lambda f=f: f(*first), number=number, repeat=3))
        for name, f in routes.items()
    }
    name = min(spent, key=spent.__getitem__)
    return name, routes[name]


def loop(route: Route, arrays: list[Array]) -> tuple[Array, Array]:
    """A batch, state by state; each result goes into its row."""
    motions, forces = np.empty_like(arrays[1]), np.empty_like(arrays[1])
    for i, state in enumerate(zip(*arrays, strict=True)):
        motions[i], forces[i] = route(*state)
    return motions, forces


# --------------------------------------------------------------------------------------- states


def freedoms(mech: lw.Mechanism, hinges: list[str]) -> Array:
    """Which entries of a velocity belong to some hinges."""
    held = np.zeros(mech.nv, dtype=bool)
    for name in hinges:
        held[mech.v_slice(name)] = True
    return held


def states(mech: lw.Mechanism) -> list[Array]:
    """A batch of q, v, tau and vdot."""
    rng = np.random.default_rng(0)
    q = np.array([mech.random(rng) for _ in range(BATCH)])
    return [q, *rng.standard_normal((3, BATCH, mech.nv))]


def largest_difference(
    kernel: Callable[..., Array],
    held: Array,
    arrays: list[Array],
    routes: dict[str, Route],
    theirs: list[Array],
    layout: lw.convert.Layout | None,
) -> float:
    """Of accelerations and of forces, each relative to its largest, over a few states."""
    worst, together = 0.0, kernel(*arrays)
    for i in {0, len(together) // 2, len(together) - 1}:
        q, tau, vdot = arrays[0][i], arrays[2][i], arrays[3][i]
        ours = np.where(held, vdot, together[i]), np.where(held, together[i], tau)
        for route in routes.values():
            result = route(*(x[i] for x in theirs))
            for local, other in zip(ours, result, strict=True):
                expected = other if layout is None else layout.v_from(q, other)
                worst = max(worst, float(np.abs(local - expected).max() / np.abs(expected).max()))
    if worst > 1e-8:
        raise SystemExit(f"results differ by {worst:.1e}: nothing was measured")
    return worst


if __name__ == "__main__":
    main()
