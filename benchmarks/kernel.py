"""Compiled kernels beside Pinocchio: one call from Python, and batches on one core.

Run with `python benchmarks/kernel.py`; writes benchmarks/results/kernel.md. Both libraries get the
same URDF; results are compared first.
"""

import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import machine
import numpy as np
import pinocchio as pin

import linkwise as lw
from linkwise.algebra import Expr, bias, mass, tau, vdot
from linkwise.codegen.kernel import Kernel

ROBOTS = {
    "panda (arm, 7)": ("panda.urdf", "fixed", ("panda_finger_joint1", "panda_finger_joint2")),
    "solo12 (free base, 18)": ("solo12.urdf", "free", ()),
    "talos_reduced (free base, 38)": ("talos_reduced.urdf", "free", ()),
}
QUANTITIES: dict[str, Expr] = {
    "forward dynamics": mass.inv @ (tau - bias),
    "inverse dynamics": mass @ vdot + bias,
    "mass matrix": mass,
    "inverse mass matrix": mass.inv,
}
BATCH, ROUNDS = 4096, 15
RESULTS = Path(__file__).parent / "results" / "kernel.md"


def main() -> None:
    """Measure and write the table."""
    lines = [
        "# Kernels beside Pinocchio",
        "",
        "Written by `make bench`. Microseconds for one state; ratios are Pinocchio over Linkwise.",
        "Float64. *One call* is a call from Python with 16 states in turn, the result made anew;",
        f"*batch* is {BATCH} states on one core, for Pinocchio its parallel function with one",
        "thread, or a loop in Python where it has none. Operations are multiplications and",
        "additions after folding, for one state. Matrices are compiled for the small robot only:",
        "straight-line code grows with the number of entries.",
        "",
        machine.description("linkwise", "numpy", "llvmlite", "pin"),
        "",
        f"Load average {machine.load()}.",
        "",
        "| robot | quantity | operations | compile [s] | one call | Pinocchio | ratio | "
        "batch | Pinocchio | ratio | largest difference |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for title in ROBOTS:
        for quantity in QUANTITIES:
            if "matrix" in quantity and "panda" not in title:
                continue
            lines.append(row(title, quantity))
            print(lines[-1], flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(lines) + "\n")


def row(title: str, quantity: str) -> str:
    """One line of the table."""
    mech, model = models(*ROBOTS[title])
    layout = lw.convert.pinocchio_layout(mech, model)
    began = time.perf_counter()
    kernel = lw.compile(QUANTITIES[quantity], mech)
    seconds = time.perf_counter() - began
    rng = np.random.default_rng(0)
    q = np.array([mech.random(rng) for _ in range(BATCH)])
    ours = {"q": q, "v": rng.standard_normal((BATCH, mech.nv))}
    for name in ("tau", "vdot"):
        ours[name] = rng.standard_normal((BATCH, mech.nv))
    arrays = [ours[name] for name in kernel.arguments]
    theirs = [layout.q_to(q)] + [layout.v_to(q, ours[n]) for n in kernel.arguments[1:]]
    single, many = theirs_of(quantity, model, theirs)
    error = largest_difference(kernel, arrays, single, theirs, layout, q)
    lists = [[x[i] for x in arrays] for i in range(16)]
    their_lists = [[x[i] for x in theirs] for i in range(16)]
    one = best(lambda: [kernel(*x) for x in lists]) / 16
    other = best(lambda: [single(*x) for x in their_lists]) / 16
    batch, other_batch = best(lambda: kernel(*arrays)) / BATCH, best(many, 5) / BATCH
    ops = kernel.ops["mul"] + kernel.ops["add"] + kernel.ops["sub"]
    us = [1e6 * t for t in (one, other, batch, other_batch)]
    return (
        f"| {title} | {quantity} | {ops} | {seconds:.2f} | {us[0]:.2f} | {us[1]:.2f} | "
        f"{us[1] / us[0]:.1f} | {us[2]:.3f} | {us[3]:.2f} | {us[3] / us[2]:.0f} | {error:.0e} |"
    )


def largest_difference(
    kernel: Kernel,
    arrays: list[np.ndarray],
    single: Callable[..., np.ndarray],
    theirs: list[np.ndarray],
    layout: lw.convert.Layout,
    q: np.ndarray,
) -> float:
    """Relative to the largest entry, over a few states of the batch and of single calls."""
    worst = 0.0
    together = kernel(*arrays)
    for i in (0, 1, BATCH // 2, BATCH - 1):
        expected = np.array(single(*(x[i] for x in theirs)))
        if expected.ndim == 1:
            expected = layout.v_from(q[i], expected)
        elif not np.array_equal(expected, expected.T):
            expected = np.triu(expected) + np.triu(expected, 1).T
        scale = np.abs(expected).max()
        for found in (together[i], kernel(*(x[i] for x in arrays))):
            worst = max(worst, float(np.abs(found - expected).max() / scale))
    if worst > 1e-9:
        raise SystemExit(f"results differ by {worst:.1e}: nothing was measured")
    return worst


def models(file: str, base: str, locked: tuple[str, ...]) -> tuple[lw.Mechanism, pin.Model]:
    """The robot in both libraries, fingers locked."""
    files = metadata.files("example-robot-data") or []
    path = next(str(f.locate()) for f in files if f.name == file)
    mech = lw.load(path, base=base)
    if locked:
        mech = mech.without(*(c.name for c in mech.couplings)).lock(locked).merge_locked()
    root = [pin.JointModelFreeFlyer()] if base == "free" else []
    model = pin.buildModelFromUrdf(path, *root)
    if locked:
        ids = [model.getJointId(name) for name in locked]
        model = pin.buildReducedModel(model, ids, pin.neutral(model))
    model.armature[:] = 0.0
    return mech, model


def theirs_of(
    quantity: str, model: pin.Model, arrays: list[np.ndarray]
) -> tuple[Callable[..., np.ndarray], Callable[[], object]]:
    """Pinocchio's function for one state, and for the batch on one thread."""
    data = model.createData()
    if quantity == "forward dynamics":
        pool, columns = pin.ModelPool(model), [np.asfortranarray(x.T) for x in arrays]
        out = np.zeros((model.nv, BATCH), order="F")
        return (
            lambda q, v, t: pin.aba(model, data, q, v, t),
            lambda: pin.abaInParallel(1, pool, *columns, out),
        )
    if quantity == "inverse dynamics":
        pool, columns = pin.ModelPool(model), [np.asfortranarray(x.T) for x in arrays]
        out = np.zeros((model.nv, BATCH), order="F")
        return (
            lambda q, v, a: pin.rnea(model, data, q, v, a),
            lambda: pin.rneaInParallel(1, pool, *columns, out),
        )
    if quantity == "mass matrix":
        return (
            lambda q: pin.crba(model, data, q),
            lambda: [pin.crba(model, data, q) for q in arrays[0]],
        )
    return (
        lambda q: pin.computeMinverse(model, data, q),
        lambda: [pin.computeMinverse(model, data, q) for q in arrays[0]],
    )


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
