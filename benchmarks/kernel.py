"""Compiled kernels beside Pinocchio: one call from Python, and batches on one core.

Run with `python benchmarks/kernel.py`; writes benchmarks/results/kernel.md. Both libraries get the
same URDF; results are compared first.
"""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import limits
import machine
import numpy as np
import pinocchio_side as peer

import linkwise as lw
from linkwise.algebra import Expr, J, bias, mass, tau, vdot
from linkwise.codegen.kernel import Kernel

ROBOTS = {
    "panda (arm, 7)": ("panda.urdf", "fixed", ("panda_finger_joint1", "panda_finger_joint2")),
    "solo12 (free base, 18)": ("solo12.urdf", "free", ()),
    "talos_reduced (free base, 38)": ("talos_reduced.urdf", "free", ()),
}
NODES = {"panda": "panda_link8", "solo12": "FL_FOOT", "talos": "left_sole_link"}
QUANTITIES: dict[str, Expr] = {
    "forward dynamics": mass.inv @ (tau - bias),
    "inverse dynamics": mass @ vdot + bias,
    "mass matrix": mass,
    "inverse mass matrix": mass.inv,
    "Jacobian": J,
    "operational-space inertia": (J @ mass.inv @ J.T).inv,
}
BATCH, ROUNDS = 4096, 15
RESULTS = Path(__file__).parent / "results" / "kernel.md"
HEAD = """# Kernels compared with Pinocchio

Written by `make bench`. Microseconds for one state; ratios are Pinocchio over Linkwise. Float64
unless noted. *One call* is a call from Python, cycling through 16 states, with a new result array;
*batch* is {batch} states on one core into an existing array, for Pinocchio its parallel function
with one thread, or a loop in Python that puts each result into its row where it has none. Input and
result are checked (finite, unit quaternions, no singular hinge) in all of our figures. Operations
are multiplications and additions after folding, for one state. *Compile* is the first time, with
the derivation; *cached* is another process's kernel from disk, once LLVM is loaded. The Jacobian
and the operational-space inertia are those of one node ({nodes}), in its axes.

*Of the limit*: the batch's floating-point instructions (fused ones count once) over what the core
can start in that time, {rate:.1f} vector instructions a nanosecond, measured in this run; the rest
goes into memory, shuffles between rows and registers, and waiting.

{machine}

Load average {load}.

| robot | quantity | operations | compile [s] | cached [ms] | one call | Pinocchio | ratio | \
batch | Pinocchio | ratio | of the limit | batch float32 | largest difference |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def main() -> None:
    """Measure and write the table."""
    rate = limits.instructions_per_ns()
    text = HEAD.format(
        batch=BATCH,
        nodes=", ".join(NODES.values()),
        rate=rate,
        machine=machine.description("linkwise", "numpy", "llvmlite", "pin", "example-robot-data"),
        load=machine.load(),
    )
    for title in ROBOTS:
        for quantity in QUANTITIES:
            line = row(title, quantity, rate)
            print(line, flush=True)
            text += line + "\n"
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text)


def row(title: str, quantity: str, rate: float) -> str:
    """One line of the table."""
    mech, model = peer.models(*ROBOTS[title])
    layout = lw.convert.pinocchio_layout(mech, model)
    node = next(name for key, name in NODES.items() if title.startswith(key))
    nodes = (node,) if quantity in ("Jacobian", "operational-space inertia") else ()
    kernel, cold, warm = compiled(QUANTITIES[quantity], mech, nodes)
    low = lw.compile(QUANTITIES[quantity], mech, nodes=nodes, dtype=np.float32, cache=False)
    arrays = states(kernel, mech)
    theirs = [
        layout.q_to(x) if name == "q" else layout.v_to(arrays[0], x)
        for name, x in zip(kernel.arguments, arrays, strict=True)
    ]
    single, many = peer.routes(quantity, model, node, theirs)
    error = largest_difference(kernel, arrays, single, theirs, layout)
    lists = [[x[i].copy() for x in arrays] for i in range(16)]
    their_lists = [[x[i].copy() for x in theirs] for i in range(16)]
    one = best(lambda: [kernel(*x) for x in lists]) / 16
    other = best(lambda: [single(*x) for x in their_lists]) / 16
    out = kernel(*arrays)
    batch = best(lambda: kernel(*arrays, out=out, threads=1)) / BATCH
    other_batch = best(many, 5) / BATCH
    small, codes = [x.astype(np.float32) for x in arrays], np.zeros(BATCH, np.int32)
    out32 = low(*small, status=codes)
    batch32 = best(lambda: low(*small, out=out32, status=codes, threads=1)) / BATCH
    ops = kernel.ops["mul"] + kernel.ops["add"] + kernel.ops["sub"]
    busy = limits.vector_instructions(kernel) / kernel.signature.lanes / (1e9 * batch * rate)
    us = [1e6 * t for t in (one, other, batch, other_batch, batch32)]
    return (
        f"| {title} | {quantity} | {ops} | {cold:.2f} | {1e3 * warm:.1f} | {us[0]:.2f} | "
        f"{us[1]:.2f} | {us[1] / us[0]:.1f} | {us[2]:.3f} | {us[3]:.2f} | {us[3] / us[2]:.0f} | "
        f"{busy:.0%} | {us[4]:.3f} | {error:.0e} |"
    )


def compiled(expr: Expr, mech: lw.Mechanism, nodes: tuple[str, ...]) -> tuple[Kernel, float, float]:
    """The kernel, the seconds to compile it, and the seconds to get it from disk."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LINKWISE_CACHE"] = folder
        times = list[float]()
        for _ in range(2):
            began = time.perf_counter()
            kernel = lw.compile(expr, mech, nodes=nodes)
            times.append(time.perf_counter() - began)
        del os.environ["LINKWISE_CACHE"]
    return kernel, times[0], times[1]


def states(kernel: Kernel, mech: lw.Mechanism) -> list[np.ndarray]:
    """A batch of random states."""
    rng = np.random.default_rng(0)
    drawn = {"q": np.array([mech.random(rng) for _ in range(BATCH)])}
    for name in ("v", "tau", "vdot"):
        drawn[name] = rng.standard_normal((BATCH, mech.nv))
    return [drawn[name] for name in kernel.arguments]


def largest_difference(
    kernel: Kernel,
    arrays: list[np.ndarray],
    single: Callable[..., np.ndarray],
    theirs: list[np.ndarray],
    layout: lw.convert.Layout,
) -> float:
    """Relative to the largest entry, over a few states of the batch and of single calls."""
    worst, together = 0.0, kernel(*arrays)
    for i in (0, 1, BATCH // 2, BATCH - 1):
        q = arrays[0][i]
        expected = ours_of(np.array(single(*(x[i] for x in theirs))), layout, q)
        scale = np.abs(expected).max()
        for result in (together[i], kernel(*(x[i] for x in arrays))):
            worst = max(worst, float(np.abs(result - expected).max() / scale))
    if worst > 1e-9:
        raise SystemExit(f"results differ by {worst:.1e}: nothing was measured")
    return worst


def ours_of(value: np.ndarray, layout: lw.convert.Layout, q: np.ndarray) -> np.ndarray:
    """A result of Pinocchio in our order and conventions: angular before linear, as in v."""
    if value.ndim == 1:
        return layout.v_from(q, value)
    if value.shape == (6, 6):
        return value[np.ix_([3, 4, 5, 0, 1, 2], [3, 4, 5, 0, 1, 2])]
    turn = np.array([layout.v_from(q, column) for column in np.eye(value.shape[1])])
    if value.shape[0] == 6:
        return value[[3, 4, 5, 0, 1, 2]] @ turn
    if not np.array_equal(value, value.T):
        value = np.triu(value) + np.triu(value, 1).T
    return turn.T @ value @ turn


def best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Shortest of several runs [s]: the least disturbed."""
    times = list[float]()
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
