"""Kernels on a CUDA card: agreement with Pinocchio, arrays of three libraries, states a second.

    python benchmarks/gpu.py --prepare   here: robots and Pinocchio's results into build/gpu
    python benchmarks/gpu.py             where a card is: writes benchmarks/results/gpu.md

The second needs NumPy and CuPy only; Torch and JAX are checked where they are installed.
"""

import argparse
import datetime
import importlib.util
import multiprocessing
import os
import shutil
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from pathlib import Path

import machine
import numpy as np

if importlib.util.find_spec("linkwise") is None:  # a card's machine has a copy of the repository
    sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import linkwise as lw
from linkwise.algebra import J, N, bias, mass, tau, vdot

FILES = {"panda": "panda.urdf", "solo12": "solo12.urdf", "talos_reduced": "talos_reduced.urdf"}
FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
QUANTITIES = {
    "forward dynamics": mass.inv @ (tau - bias),
    "inverse dynamics": mass @ vdot + bias,
    "mass matrix": mass,
}
STATES = 1024
BATCHES = (1 << 12, 1 << 16, 1 << 20, 1 << 22)
CALLS = 8
HERE = Path(__file__).parent
FOLDER = HERE.parent / "build" / "gpu"
RESULTS = HERE / "results" / "gpu.md"

FUSED = r"""
extern "C" __global__ void __launch_bounds__(256, 4) single(float *o, float a, int n)
{
    float x[8];
    for (int i = 0; i < 8; ++i) x[i] = threadIdx.x + i;
    for (int j = 0; j < n; ++j)
#pragma unroll
        for (int u = 0; u < 128; ++u) x[u % 8] = fmaf(x[u % 8], a, a);
    for (int i = 1; i < 8; ++i) x[0] += x[i];
    if (x[0] == 12345.0f) *o = x[0];
}
extern "C" __global__ void __launch_bounds__(256, 4) twice(double *o, double a, int n)
{
    double x[8];
    for (int i = 0; i < 8; ++i) x[i] = threadIdx.x + i;
    for (int j = 0; j < n; ++j)
#pragma unroll
        for (int u = 0; u < 128; ++u) x[u % 8] = fma(x[u % 8], a, a);
    for (int i = 1; i < 8; ++i) x[0] += x[i];
    if (x[0] == 12345.0) *o = x[0];
}
"""


def robot(name: str, folder: Path | None = None) -> lw.Mechanism:
    """The mechanism, fingers of the arm locked."""
    if folder is None:
        files = metadata.files("example-robot-data") or []
        path = next(str(f.locate()) for f in files if f.name == FILES[name])
    else:
        path = str(folder / FILES[name])
    mech = lw.load(path, base="fixed" if name == "panda" else "free")
    if name == "panda":
        mech = mech.without(*(c.name for c in mech.couplings)).lock(FINGERS).merge_locked()
    return mech


# ---------------------------------------------------------------------------------- prepare


def prepare() -> None:
    """The robots' files, random states, and what Pinocchio makes of them."""
    import pinocchio as pin

    FOLDER.mkdir(parents=True, exist_ok=True)
    files = metadata.files("example-robot-data") or []
    for name, file in FILES.items():
        path = next(str(f.locate()) for f in files if f.name == file)
        shutil.copyfile(path, FOLDER / file)
        mech = robot(name)
        root = [] if name == "panda" else [pin.JointModelFreeFlyer()]
        model = pin.buildModelFromUrdf(path, *root)
        if name == "panda":
            ids = [model.getJointId(x) for x in FINGERS]
            model = pin.buildReducedModel(model, ids, pin.neutral(model))
        model.armature[:] = 0.0
        data, layout = model.createData(), lw.convert.pinocchio_layout(mech, model)
        rng = np.random.default_rng(1)
        q = np.array([mech.random(rng) for _ in range(STATES)]).astype(np.float32).astype(float)
        q = np.array([mech.normalise(x) for x in q])
        v, t, a = rng.standard_normal((3, STATES, mech.nv))
        q_p, v_p, t_p, a_p = layout.q_to(q), *(layout.v_to(q, x) for x in (v, t, a))
        fd = [
            layout.v_from(q[i], pin.aba(model, data, q_p[i], v_p[i], t_p[i])) for i in range(len(q))
        ]
        inverse = [
            layout.v_from(q[i], pin.rnea(model, data, q_p[i], v_p[i], a_p[i]))
            for i in range(len(q))
        ]
        matrices = list[np.ndarray]()
        for x in q_p[:64]:
            upper = np.triu(pin.crba(model, data, x))
            matrices.append(upper + np.triu(upper, 1).T)
        found = {"forward dynamics": fd, "inverse dynamics": inverse, "mass matrix": matrices}
        np.savez(FOLDER / f"{name}.npz", q=q, v=v, tau=t, vdot=a, **found)
        print(name, {key: np.shape(x) for key, x in found.items()})


# ---------------------------------------------------------------------------------- measure


def kernel_of(name: str, quantity: str, dtype: str):
    """A kernel of the table."""
    return lw.compile(QUANTITIES[quantity], robot(name, FOLDER), target="cuda", dtype=dtype)


def compiled(case: tuple[str, str, str]) -> float:
    """Seconds to derive, write and compile a kernel; CuPy keeps it for the next process."""
    import cupy as cp

    began = time.perf_counter()
    kernel_of(*case)._on(cp, 0)
    return time.perf_counter() - began


def fused_rate(cp, dtype: str) -> float:
    """Fused multiply-adds a second that the card reaches."""
    function = cp.RawModule(code=FUSED).get_function("single" if dtype == "float32" else "twice")
    blocks, count = 8 * cp.cuda.Device().attributes["MultiProcessorCount"], 2000
    out = cp.zeros(1, dtype)
    arguments = (out, np.dtype(dtype).type(0.999), np.int32(count))
    seconds = timed(cp, lambda: function((blocks,), (256,), arguments))
    return blocks * 256 * count * 128 / seconds


def timed(cp, work, rounds: int = 9) -> float:
    """Seconds of a call when several follow each other: the median, by the card's own clock."""
    work()
    times = list[float]()
    for _ in range(rounds):
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        for _ in range(CALLS):
            work()
        end.record()
        end.synchronize()
        times.append(1e-3 * cp.cuda.get_elapsed_time(begin, end) / CALLS)
    return float(np.median(times))


def arithmetic(traced) -> int:
    """Arithmetic instructions of a state: a product that only one sum needs is fused with it."""
    graph, used = traced.graph, traced.graph.used(traced.wanted)
    uses = dict.fromkeys(used, 0)
    for n in used:
        if graph.op[n] not in ("const", "input"):
            for x in (graph.a[n], graph.b[n]):
                if x >= 0:
                    uses[x] += 1
    for n in traced.wanted:
        uses[n] += 1
    count, turns = 0, 0
    for n in used:
        op = graph.op[n]
        count += op in ("add", "sub", "mul", "neg")
        turns += op in ("sin", "cos")
        if op in ("add", "sub"):
            pair = (graph.a[n], graph.b[n])
            count -= any(graph.op[x] == "mul" and uses[x] == 1 for x in pair)
    return count + 8 * turns


def measure(cp, case: tuple[str, str, str], seconds: float, limit: float) -> str:
    """A line of the table."""
    name, quantity, dtype = case
    kernel = kernel_of(*case)
    stored = np.load(FOLDER / f"{name}.npz")
    expected = stored[quantity]
    rows = {x: stored[x].astype(dtype) for x in kernel.arguments}
    few = [cp.asarray(rows[x][: len(expected)]) for x in kernel.arguments]
    found = kernel(*few).get().astype(float).reshape(len(expected), -1)
    expected = expected.reshape(len(expected), -1)
    scale = np.abs(expected).max(axis=1)
    error = float((np.abs(found - expected).max(axis=1) / scale).max())
    if not error < (1e-9 if dtype == "float64" else 2e-3):
        raise SystemExit(f"{case}: results differ by {error:.1e}: nothing was measured")
    rates = list[str]()
    best = 0.0
    for batch in BATCHES:
        arrays = [cp.tile(cp.asarray(rows[x]), (batch // STATES, 1)) for x in kernel.arguments]
        if batch * kernel.signature.shape[0] ** len(kernel.signature.shape) > 1 << 30:
            rates.append("")
            continue
        out = cp.full((batch, *kernel.signature.shape), cp.nan, dtype)
        codes = cp.full(batch, -1, np.int32)
        rate = batch / timed(cp, lambda: kernel(*arrays, out=out, status=codes))  # noqa: B023
        assert not codes.any() and not cp.isnan(out).any()
        rates.append(f"{1e-9 * rate:.3g}")
        best = max(best, rate)
    share = best * arithmetic(kernel.traced) / limit
    threads = kernel.emitted.threads // kernel.emitted.states
    return (
        f"| {name} | {quantity} | {dtype} | {kernel.ops.total()} | {threads} | {seconds:.1f} | "
        f"{' | '.join(rates)} | {100 * share:.0f} % | {error:.0e} |"
    )


# ----------------------------------------------------------------------------------- checks


def checks(cp) -> list[str]:
    """What a call promises, tried on this card; raises where it does not hold."""
    told = list[str]()
    kernel = kernel_of("panda", "forward dynamics", "float32")
    stored = np.load(FOLDER / "panda.npz")
    host = [stored[x].astype("float32") for x in kernel.arguments]
    q, v, t = (cp.asarray(x) for x in host)
    expected = kernel(q, v, t)
    assert isinstance(expected, cp.ndarray) and expected.shape == (STATES, 7)
    told.append(_other_library(cp, kernel, host, expected, "torch"))
    told.append(_other_library(cp, kernel, host, expected, "jax"))
    _rows(cp, kernel, q, v, t, expected)
    told.append("Views with other steps, one row for all, `out=`, odd batches, single states: yes.")
    _trouble(cp, kernel, q, v, t, expected)
    told.append(
        "Status: NaN and infinite inputs, angles of 1e6 rad, unnormalised quaternions, a singular "
        "hinge: named; the other rows are the same to the bit."
    )
    _variants(cp)
    told.append("Parameters (gravity, inertia, payload, locked) a row each or one for all: yes.")
    told.append(f"Random trees and other expressions, against the interpreter: {_ladder(cp)}.")
    return told


def _other_library(cp, kernel, host, expected, library: str) -> str:
    try:
        if library == "torch":
            import torch

            arrays = [torch.tensor(x, device="cuda") for x in host]
            address, kind = (lambda x: x.data_ptr()), torch.Tensor
        else:
            import jax

            arrays = [jax.device_put(x) for x in host]
            address, kind = (lambda x: x.unsafe_buffer_pointer()), jax.Array
    except ImportError:
        return f"{library}: not installed."
    from linkwise.codegen import device_arrays

    for array in arrays:
        assert device_arrays.taken("q", array).array.data.ptr == address(array)
    found = kernel(*arrays)
    assert isinstance(found, kind), type(found)
    again = cp.from_dlpack(found)
    assert again.data.ptr == address(found)
    assert bool((again == expected).all())
    more = ""
    if library == "torch":
        out = torch.empty_like(arrays[0])
        assert kernel(*arrays, out=out) is out and bool((cp.from_dlpack(out) == expected).all())
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        codes = torch.empty(STATES, dtype=torch.int32, device="cuda")
        with torch.cuda.stream(side):
            doubled = arrays[2] * 2.0 / 2.0
            other = kernel(arrays[0], arrays[1], doubled, status=codes)
        side.synchronize()
        assert bool((cp.from_dlpack(other) == expected).all()) and not bool(codes.any())
        try:
            kernel(*(x.cpu() for x in arrays))
        except lw.errors.ShapeError as error:
            assert "cuda" in str(error)
        more = ", `out=`, a stream of its own"
    return f"{library} {metadata.version(library)}: same addresses in and out, in kind{more}."


def _rows(cp, kernel, q, v, t, expected) -> None:
    wide = cp.zeros((STATES, 40), "float32")
    wide[:, 3:10] = q
    assert bool((kernel(wide[:, 3:10], v, t) == expected).all())
    assert bool((kernel(cp.asfortranarray(q), v, t) == expected).all())
    for batch in (1, 2, 31, 32, 33, 127, 1000):
        assert bool((kernel(q[:batch], v[:batch], t[:batch]) == expected[:batch]).all())
        assert bool(
            (
                kernel(q[1 : 1 + batch], v[1 : 1 + batch], t[1 : 1 + batch])
                == expected[1 : 1 + batch]
            ).all()
        )
    one = kernel(q, v[5], t[:1])
    assert bool((one[5] == kernel(q[5], v[5], t[0])).all()) and one.shape == expected.shape
    out = t.copy()
    assert kernel(q, v, out, out=out) is out and bool((out == expected).all())
    for wrong in (
        lambda: kernel(q.get(), v.get(), t.get()),
        lambda: kernel(q, v),
        lambda: kernel(q, v, t.astype("float64")),
        lambda: kernel(q[:, :6], v, t),
        lambda: kernel(q, v[:9], t),
    ):
        try:
            wrong()
        except lw.errors.ShapeError:
            continue
        raise AssertionError("no error for a wrong array")


def _trouble(cp, kernel, q, v, t, expected) -> None:
    q, v, t = q.copy(), v.copy(), t.copy()
    q[3, 2], v[40, 0], t[41, 6], q[1000, 6] = cp.nan, cp.inf, -cp.inf, cp.nan
    codes = cp.full(STATES, -1, np.int32)
    found = kernel(q, v, t, status=codes)
    bad = np.flatnonzero(codes.get())
    assert list(bad) == [3, 40, 41, 1000] and set(codes.get()[bad]) == {1}, bad
    fine = np.setdiff1d(np.arange(STATES), bad)
    assert bool(cp.isnan(found[bad]).all()) and bool((found[fine] == expected[fine]).all())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel(q, v, t)
    assert "4 of 1024" in str(caught[0].message) and "row 3" in str(caught[0].message)
    try:
        kernel(q[3], v[3], t[3])
        raise AssertionError("a state that is not finite passes")
    except lw.errors.ModelError as error:
        assert "q is not finite (entry 2)" in str(error)
    far = cp.full((1, 7), 1e6, "float32")
    near = cp.asarray(np.arctan2(np.sin(1e6), np.cos(1e6)) * np.ones((1, 7)), "float32")
    assert float(cp.abs(kernel(far, v[:1], t[:1]) / kernel(near, v[:1], t[:1]) - 1).max()) < 1e-4
    solo = kernel_of("solo12", "forward dynamics", "float32")
    stored = np.load(FOLDER / "solo12.npz")
    arrays = [cp.asarray(stored[x].astype("float32")) for x in solo.arguments]
    before = solo(*arrays)
    arrays[0][7, 3:7] *= 1.1
    codes = cp.zeros(STATES, np.int32)
    after = solo(*arrays, status=codes)
    assert "quaternion" in solo.describe(int(codes[7])) and int((codes != 0).sum()) == 1
    rest = np.setdiff1d(np.arange(STATES), [7])
    assert bool((before[rest] == after[rest]).all()) and bool(cp.isnan(after[7]).all())


def _variants(cp) -> None:
    mech = lw.models.seven_dof_arm()
    rng = np.random.default_rng(3)
    q, v, t = rng.standard_normal((3, 70, 7))
    names = ("gravity", "inertia", "payload:hand", "locked")
    kernel = lw.compile(mass.inv @ (tau - bias), mech, target="cuda", parameters=names)
    plain = lw.compile(mass.inv @ (tau - bias), mech, target="cuda")
    nominal = {name: kernel.nominal(name) for name in names}
    states = [cp.asarray(x) for x in (q, v, t)]
    found = kernel(*states, **{name: cp.asarray(x) for name, x in nominal.items()})
    assert float(cp.abs(found - plain(*states)).max()) < 1e-9
    moon = mech.with_gravity([0.0, 0.0, -1.62])
    rows = np.tile(nominal["gravity"], (70, 1))
    rows[::2] = [0.0, 0.0, -1.62]
    mixed = kernel(
        *states, **{n: cp.asarray(rows if n == "gravity" else x) for n, x in nominal.items()}
    )
    there = lw.compile(mass.inv @ (tau - bias), moon, target="cuda")(*states)
    assert float(cp.abs(mixed[::2] - there[::2]).max()) < 1e-9
    assert float(cp.abs(mixed[1::2] - found[1::2]).max()) < 1e-9


def _ladder(cp) -> str:
    from linkwise.codegen.numpy_kernel import NumpyKernel

    worst, count = 0.0, 0
    expressions = {
        "fd": (mass + N).inv @ (tau - bias),
        "id": mass @ vdot + bias,
        "mass": mass,
        "minv": mass.inv,
        "J": J,
        "osi": J @ mass.inv @ J.T,
    }
    for mech in (lw.models.random_tree(6, 1), lw.models.random_tree(9, 5), lw.models.quadruped()):
        for key, expr in expressions.items():
            if key in ("minv", "osi") and mech.n_bodies > 6:  # straight code of many columns
                continue
            nodes = [mech.bodies[-1].name] if key in ("J", "osi") else []
            reference: NumpyKernel = lw.compile(expr, mech, nodes=nodes, target="numpy")
            kernel = lw.compile(expr, mech, nodes=nodes, target="cuda")
            rng = np.random.default_rng(count)
            q = np.array([mech.random(rng) for _ in range(5)])
            given = {"q": q} | {x: rng.standard_normal((5, mech.nv)) for x in ("v", "tau", "vdot")}
            expected = reference(*(given[x] for x in kernel.arguments))
            found = kernel(*(cp.asarray(given[x]) for x in kernel.arguments)).get()
            scale = max(1.0, float(np.abs(expected).max()))
            worst = max(worst, float(np.abs(found - expected).max()) / scale)
            count += 1
    assert worst < 1e-8, worst
    return f"{count} kernels, largest difference {worst:.0e}"


def main() -> None:
    """Check, measure and write the table."""
    import cupy as cp

    cases = [(n, x, d) for n in FILES for x in QUANTITIES for d in ("float32", "float64")]
    with ProcessPoolExecutor(
        min(len(cases), max(1, (os.cpu_count() or 2) - 2)),
        mp_context=multiprocessing.get_context("spawn"),
    ) as pool:
        seconds = dict(zip(cases, pool.map(compiled, cases), strict=True))
    print("compiled", {case: round(s, 1) for case, s in seconds.items()}, flush=True)
    card = cp.cuda.runtime.getDeviceProperties(0)
    driver = cp.cuda.runtime.driverGetVersion()
    limits = {dtype: fused_rate(cp, dtype) for dtype in ("float32", "float64")}
    lines = [
        "# Kernels on a CUDA card",
        "",
        "Written by `python benchmarks/gpu.py`. Billions of evaluations a second from arrays on",
        "the card to an array on the card, status of every state included: the median of 9 times",
        f"{CALLS} calls from Python, by the card's clock. *Operations* are those of the graph for",
        "one state. *Limit* is the share of the card's arithmetic: arithmetic instructions of a",
        "state (a product that one sum needs is fused with it; a sine or cosine counts 8) times",
        "evaluations, over the fused multiply-adds a second that a loop of nothing else reaches.",
        "*Difference* is to Pinocchio in float64, relative to the largest entry, the worst of",
        "1024 states (64 for matrices). *Compile* is all of it: derivation, source, the card's",
        "compiler; several at a time.",
        "",
        f"Card: {card['name'].decode()}, {card['multiProcessorCount']} multiprocessors, driver for "
        f"CUDA {driver // 1000}.{driver % 1000 // 10}; {datetime.date.today()}. "
        f"{machine.versions('linkwise', 'numpy', 'cupy-cuda13x', 'torch', 'jax')}.",
        "",
        f"Fused multiply-adds: {1e-12 * limits['float32']:.1f} T/s in float32, "
        f"{1e-12 * limits['float64']:.1f} T/s in float64.",
        "",
        "| robot | quantity | numbers | operations | threads a state | compile [s] | "
        + " | ".join(f"batch {batch}" for batch in BATCHES)
        + " | limit | difference |",
        "| --- | --- | --- | ---: | ---: | ---: | " + "---: | " * len(BATCHES) + "---: | ---: |",
    ]
    for case in cases:
        lines.append(measure(cp, case, seconds[case], limits[case[2]]))
        print(lines[-1], flush=True)
        cp.get_default_memory_pool().free_all_blocks()
    told = checks(cp)
    lines += ["", "Checked on the card:", "", *(f"- {line}" for line in told)]
    print("\n".join(told))
    target = Path(os.environ["OUT"]) / "gpu.md" if "OUT" in os.environ else RESULTS
    target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prepare", action="store_true", help="write build/gpu, without a card")
    prepare() if parser.parse_args().prepare else main()
