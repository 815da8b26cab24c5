"""Checks of the promises of a kernel call, run on the GPU: each raises or returns a summary."""

import os
import threading
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from importlib import metadata
from typing import Any

import gpu_reference
import numpy as np
from gpu_reference import FOLDER, QUANTITIES, STATES, Rung, robot

import linkwise as lw
from linkwise.algebra import bias, mass, tau

FORWARD = QUANTITIES["forward dynamics"]


def show(error: BaseException) -> None:
    """Where it failed."""
    traceback.print_exception(error, limit=-3)


@cache
def kernel_of(name: str, dtype: str = "float32"):
    """Forward dynamics of a robot."""
    return lw.compile(FORWARD, robot(name), target="cuda", dtype=dtype)


@cache
def host_arrays(name: str = "panda") -> list[np.ndarray]:
    """Its stored states in float32."""
    stored = np.load(FOLDER / f"{name}.npz")
    return [stored[x].astype("float32") for x in kernel_of(name).arguments]


def complete(cp) -> tuple[Any, list[Any], Any]:
    """The kernel of the arm, arrays on the GPU, and its result."""
    kernel, arrays = kernel_of("panda"), [cp.asarray(x) for x in host_arrays()]
    return kernel, arrays, kernel(*arrays)


def same(a, b) -> bool:
    """To the bit."""
    return a.shape == b.shape and bool((a == b).all())


# ------------------------------------------------------------------------------------ libraries


def of_torch(cp) -> str:
    """Addresses in and out, kind, out=, streams."""
    try:
        import torch
    except ImportError:
        return "not installed"
    kernel, _, expected = complete(cp)
    arrays = [torch.tensor(x, device="cuda") for x in host_arrays()]
    _addresses(arrays, lambda x: x.data_ptr())
    result = kernel(*arrays)
    assert isinstance(result, torch.Tensor) and result.is_cuda
    assert cp.from_dlpack(result).data.ptr == result.data_ptr()
    assert same(cp.from_dlpack(result), expected)
    out = torch.empty_like(arrays[0])
    address = out.data_ptr()
    assert kernel(*arrays, out=out) is out and out.data_ptr() == address
    assert same(cp.from_dlpack(out), expected)
    side, codes = torch.cuda.Stream(), torch.full((STATES,), -1, dtype=torch.int32, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        slow = torch.zeros(1 << 27, device="cuda")  # keeps the stream busy before the inputs exist
        for _ in range(20):
            slow += 1.0
        late = arrays[2] + 0.0 * slow[0]
        other = kernel(arrays[0], arrays[1], late, status=codes)
    side.synchronize()
    assert same(cp.from_dlpack(other), expected) and not bool(codes.any())
    try:
        kernel(*(x.cpu() for x in arrays))
        raise AssertionError("tensors of the processor pass")
    except lw.errors.ShapeError as error:
        assert "cuda" in str(error), error
    version = metadata.version("torch")
    return f"{version}, same addresses in and out, a tensor back, `out=`, the current stream"


def of_jax(cp) -> str:
    """Addresses in and out, kind."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        import jax
    except ImportError:
        return "not installed"
    if jax.devices()[0].platform != "gpu":
        return f"{metadata.version('jax')} is here without CUDA, not checked"
    kernel, _, expected = complete(cp)
    arrays = [jax.device_put(x) for x in host_arrays()]
    _addresses(arrays, lambda x: x.unsafe_buffer_pointer())
    result = kernel(*arrays)
    assert isinstance(result, jax.Array), type(result)
    again = cp.from_dlpack(result)
    assert again.data.ptr == result.unsafe_buffer_pointer() and same(again, expected)
    assert same(cp.from_dlpack(kernel(arrays[0] + 0.0, *arrays[1:])), expected)
    try:
        kernel(*arrays, out=result)
        raise AssertionError("out of JAX passes")
    except lw.errors.ShapeError as error:
        assert "JAX" in str(error), error
    return f"{metadata.version('jax')}, same addresses in and out, an array of JAX back"


def _addresses(arrays: list[Any], address: Callable[[Any], int]) -> None:
    from linkwise.codegen import arrays as device_arrays

    for array in arrays:
        seen = device_arrays.taken("q", array)
        assert seen.data.ptr == address(array), "copied"


# ----------------------------------------------------------------------------------------- rows


def of_rows(cp) -> str:
    """Steps between rows, one row for all, odd batches, single states, out=, wrong arrays."""
    kernel, (q, v, t), expected = complete(cp)
    wide = cp.zeros((STATES, 40), "float32")
    wide[:, 3:10] = q
    assert same(kernel(wide[:, 3:10], v, t), expected)
    assert same(kernel(cp.asfortranarray(q), v, t), expected)
    assert same(kernel(q[::-1], v[::-1], t[::-1]), expected[::-1])
    for batch in (1, 2, 31, 32, 33, 127, 1000):
        for start in (0, 1):
            part = slice(start, start + batch)
            assert same(kernel(q[part], v[part], t[part]), expected[part]), batch
            codes = cp.full(batch, -1, np.int32)
            assert same(kernel(q[part], v[part], t[part], status=codes), expected[part]), batch
            assert not codes.any()
    one = kernel(q, v[5], t[:1])
    assert same(one[5], kernel(q[5], v[5], t[0])) and one.shape == expected.shape
    out = cp.empty_like(t)
    assert kernel(q, v, t, out=out) is out and same(out, expected)
    for codes in (None, cp.zeros(STATES, np.int32)):
        out = t.copy()
        assert kernel(q, v, out, out=out, status=codes) is out and same(out, expected)
    wrong = {
        "memory of the processor": lambda: kernel(q.get(), v.get(), t.get()),
        "too few": lambda: kernel(q, v),
        "another kind": lambda: kernel(q, v, t.astype("float64")),
        "another width": lambda: kernel(q[:, :6], v, t),
        "another batch": lambda: kernel(q, v[:9], t),
    }
    for what, call in wrong.items():
        try:
            call()
        except lw.errors.ShapeError:
            continue
        raise AssertionError(f"no error: {what}")
    return "views with other steps, one row for all, odd batches, single states, `out=`, refusals"


def of_repetition(cp) -> str:
    """Many calls, many streams, several threads: the same bits."""
    kernel, arrays, expected = complete(cp)
    codes = cp.zeros(STATES, np.int32)
    for _ in range(300):
        result = kernel(*arrays, status=codes)
    assert same(result, expected)
    cp.cuda.Device().synchronize()
    streams, results = [cp.cuda.Stream(non_blocking=True) for _ in range(4)], list[Any]()
    for i in range(40):
        with streams[i % 4]:
            mine, ours = [x + 0.0 for x in arrays], cp.full(STATES, -1, np.int32)
            results.append((kernel(*mine, status=ours), ours, mine))
    cp.cuda.Device().synchronize()
    assert all(same(x, expected) and not ours.any() for x, ours, _ in results)
    wrong = list[str]()

    def work() -> None:
        for _ in range(30):
            if not same(kernel(*arrays), expected):
                wrong.append("differs")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    return "300 calls, 40 on 4 streams, 120 from 4 threads, the same to the bit"


# -------------------------------------------------------------------------------------- trouble


def of_trouble(cp) -> str:
    """Codes, NaN rows, warnings, exceptions."""
    kernel, arrays, expected = complete(cp)
    q, v, t = (x.copy() for x in arrays)
    q[3, 2], v[40, 0], t[41, 6], q[1000, 6] = cp.nan, cp.inf, -cp.inf, cp.nan
    codes = cp.full(STATES, -1, np.int32)
    result = kernel(q, v, t, status=codes)
    bad = np.flatnonzero(codes.get())
    assert list(bad) == [3, 40, 41, 1000] and set(codes.get()[bad]) == {1}, bad
    fine = np.setdiff1d(np.arange(STATES), bad)
    assert bool(cp.isnan(result[bad]).all()) and same(result[fine], expected[fine])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel(q, v, t)
    assert "4 of 1024" in str(caught[0].message) and "row 3" in str(caught[0].message)
    try:
        kernel(q[3], v[3], t[3])
        raise AssertionError("a state that is not finite passes")
    except lw.errors.ModelError as error:
        assert "q is not finite (entry 2)" in str(error), error
    angle = float(np.arctan2(np.sin(1e6), np.cos(1e6)))
    far, near = cp.full((1, 7), 1e6, "float32"), cp.full((1, 7), angle, "float32")
    ratio = kernel(far, arrays[1][:1], arrays[2][:1]) / kernel(near, arrays[1][:1], arrays[2][:1])
    assert float(cp.abs(ratio - 1).max()) < 1e-3, ratio
    solo, states = kernel_of("solo12"), [cp.asarray(x) for x in host_arrays("solo12")]
    before = solo(*states)
    states[0][7, 3:7] *= 1.1
    after = solo(*states, status=codes)
    assert "quaternion" in solo.describe(int(codes[7])) and int((codes != 0).sum()) == 1
    rest = np.setdiff1d(np.arange(STATES), [7])
    assert same(before[rest], after[rest]) and bool(cp.isnan(after[7]).all())
    return f"inputs not finite, angles of 1e6 rad, a quaternion; {_singular(cp)}; other rows stay"


def _singular(cp) -> str:
    arm = lw.models.seven_dof_arm()
    kernel = lw.compile(mass.inv @ (tau - bias), arm, target="cuda", parameters=("inertia",))
    rng = np.random.default_rng(0)
    states = [cp.asarray(x) for x in rng.standard_normal((3, 5, 7))]
    rows = np.tile(kernel.nominal("inertia"), (5, 1))
    right = kernel(*states, cp.asarray(rows))
    rows[2] = 0.0
    codes = cp.zeros(5, np.int32)
    result = kernel(*states, cp.asarray(rows), status=codes)
    assert [i for i, c in enumerate(codes.tolist()) if c] == [2], codes
    assert "hinge of body" in kernel.describe(int(codes[2])) and bool(cp.isnan(result[2]).all())
    assert same(result[[0, 1, 3, 4]], right[[0, 1, 3, 4]])
    try:
        kernel(*(x[0] for x in states), cp.zeros(rows.shape[1], "float64"))
        raise AssertionError("an arm without mass passes")
    except lw.errors.SingularHingeError:
        return "a hinge without inertia, named"


# --------------------------------------------------------------------------------------- ladder


def rung_kernel(rung: Rung, dtype: str):
    """The kernel of a rung."""
    return lw.compile(
        rung.expr,
        rung.mech,
        nodes=rung.nodes,
        parameters=rung.parameters,
        target="cuda",
        dtype=dtype,
    )


def of_ladder(cp, dtype: str) -> str:
    """Random mechanisms against the processor's results."""
    stored, eps = np.load(FOLDER / "ladder.npz"), float(np.finfo(dtype).eps)
    worst, states, skipped, wrong = 0.0, 0, 0, list[str]()
    rungs = gpu_reference.ladder()
    for i, rung in enumerate(rungs):
        try:
            kernel = rung_kernel(rung, dtype)
            arrays = [cp.asarray(stored[f"{i} {x}"].astype(dtype)) for x in kernel.arguments]
            codes = cp.full(len(arrays[0]), -1, np.int32)
            result = kernel(*arrays, status=codes).get().astype(float)
        except Exception as error:
            show(error)
            wrong.append(f"{rung.title} ({type(error).__name__})")
            continue
        expected, growth = stored[f"{i} expected"], stored[f"{i} growth"]
        bound = 64.0 * eps * growth
        use = bound < 0.05  # beyond that rounding leaves nothing to compare
        axes = tuple(range(1, expected.ndim))
        scale = np.maximum(1.0, np.abs(expected).max(axis=axes))
        apart = np.abs(result - expected).max(axis=axes) / scale
        fine = (apart <= bound) & (codes.get() == 0)
        if not fine[use].all():
            row = int(np.flatnonzero(use & ~fine)[0])
            code, off = int(codes[row]), apart[row] / bound[row]
            wrong.append(f"{rung.title} (row {row}: code {code}, {off:.1e} of the bound)")
        worst = max(worst, float((apart / bound)[use & fine].max(initial=0.0)))
        states, skipped = states + int(use.sum()), skipped + int((~use).sum())
    text = f"{len(rungs) - len(wrong)} of {len(rungs)} kernels right on {states} states"
    text += f" (at most {worst:.2f} of the bound 64 ε κ; {skipped} states too ill to compare)"
    return text + (f"; FAILED: {'; '.join(wrong)}" if wrong else "")


CHECKS: dict[str, Callable[[Any], str]] = {
    "Rows": of_rows,
    "Calls again, streams, threads": of_repetition,
    "Trouble": of_trouble,
    "Ladder of random mechanisms, float64": lambda cp: of_ladder(cp, "float64"),
    "Ladder of random mechanisms, float32": lambda cp: of_ladder(cp, "float32"),
    "Torch": of_torch,
    "JAX": of_jax,
}
