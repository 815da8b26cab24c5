"""Functions of Torch on a GPU: checks of what `lw.convert.to_torch` promises, and their rates.

    python benchmarks/carried.py     here: packages that the machine with the GPU lacks
    python benchmarks/torch_gpu.py   on a machine with a GPU: writes benchmarks/results/torch_gpu.md

The second needs NumPy, CuPy and Torch with CUDA. Values and derivatives are compared with those of
the processor. What fails is written down as failed, and the rest goes on.
"""

import os
import time
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import carried  # noqa: F401 (makes the packages importable)
import machine
import numpy as np
import torch

import linkwise as lw
from linkwise.codegen.cuda.device import Gpu
from linkwise.errors import TroubleWarning

ROBOTS = {
    "arm (7)": lw.models.seven_dof_arm,
    "quadruped (free base, 18)": lw.models.quadruped,
    "four-bar (closed)": lw.models.four_bar,
}
RESULTS = Path(__file__).parent / "results" / "torch_gpu.md"
HEAD = """# Functions of Torch on a GPU

Written by `python benchmarks/torch_gpu.py`. Values and derivatives of forward dynamics on the GPU
are compared with those of the processor; differences are relative to the largest entry.

{machine}

| check | outcome |
| --- | --- |
"""
RATES = """
## Rates

Million evaluations per second, from tensors on the GPU to tensors on the GPU; the best of 9 rounds
of 10 calls. *Gradient* is that of Σ v̇² by q, v and τ, with `backward`.

| robot | numbers | states | forward dynamics | gradient |
| --- | --- | ---: | ---: | ---: |
"""


@cache
def function(robot: str, status: bool = False) -> tuple[lw.Mechanism, Callable[..., Any]]:
    """A robot and its forward dynamics."""
    mech = ROBOTS[robot]()
    return mech, lw.convert.to_torch("forward_dynamics", mech, status=status)


def states(mech: lw.Mechanism, count: int, device: str, dtype: Any = torch.float64) -> list[Any]:
    """Random ones; loops need not be closed for forward dynamics."""
    rng = np.random.default_rng(0)
    few = np.array([mech.random(rng) for _ in range(64)])
    arrays = [few[np.arange(count) % 64], *(0.5 * rng.standard_normal((2, count, mech.nv)))]
    return [torch.tensor(x, dtype=dtype, device=device) for x in arrays]


def gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """Those of Σ v̇² by all inputs, with `backward`."""

    def call(*arrays: Any) -> Any:
        leaves = [x.detach().requires_grad_() for x in arrays]
        f(*leaves).square().sum().backward()
        return [x.grad for x in leaves]

    return call


def compared(call: Callable[..., Any], ours: list[Any], theirs: list[Any]) -> float:
    """The largest difference between the GPU and the processor, on the same numbers."""
    worst, results = 0.0, [call(*x) for x in (ours, theirs)]
    pairs = [x if isinstance(x, list | tuple) else [x] for x in results]
    for a, b in zip(*pairs, strict=True):
        assert a.is_cuda and a.shape == b.shape, "the result is not on the GPU"
        a, b = a.detach().cpu().double(), b.detach().double()
        assert bool(torch.isfinite(b).all()) and float(b.abs().max()) > 0.0
        worst = max(worst, float((a - b).abs().max() / b.abs().max()))
    return worst


def of_transformations(robot: str, dtype: Any) -> str:
    """`backward`, `vmap`, `jacrev`, `jacfwd`, `hessian`, `torch.compile`."""
    torch._dynamo.reset()  # all functions share one code, which is compiled eight times at most
    mech, f = function(robot)
    many = [states(mech, 1000, device, dtype) for device in ("cuda", "cpu")]
    one = [[x[0] for x in each] for each in many]
    compiled = torch.compile(f, fullgraph=True, backend="aot_eager")

    def cost(q: Any, v: Any, tau: Any) -> Any:
        return f(q, v, tau).square().sum()

    calls: dict[str, tuple[Callable[..., Any], list[Any], float]] = {
        "values": (f, many, 1.0),
        "everyday": (lambda *x: lw.forward_dynamics(mech, *x), many, 1.0),
        "vmap": (torch.func.vmap(f), many, 1.0),
        "backward": (gradients(f), many, 10.0),
        "compiled": (gradients(compiled), many, 10.0),
        "jacrev": (torch.func.jacrev(f, (0, 1, 2)), one, 10.0),
        "jacfwd": (torch.func.jacfwd(f, (0, 1, 2)), one, 10.0),
        "hessian": (torch.func.hessian(cost), one, 100.0),
    }
    if dtype is torch.float32 or mech.loops:
        calls.pop("everyday")  # compiled for float64; ranks of loops are found on the processor
    bound, parts = {torch.float64: 1e-10, torch.float32: 1e-3}[dtype], list[str]()
    for name, (call, (ours, theirs), more) in calls.items():
        apart = compared(call, ours, theirs)
        assert apart < more * bound, f"{name} differs by {apart:.1e}"
        parts.append(f"{name} {apart:.0e}")
    return ", ".join(parts)


def of_copies() -> str:
    """Kernels get the addresses of the tensors, for values and gradients."""
    mech, f = function("arm (7)")
    x = [y.requires_grad_() for y in states(mech, 1000, "cuda")]
    taken, start = list[list[int]](), Gpu._start

    def watched(self: Gpu, loaded: Any, arguments: tuple[Any, ...], count: int) -> None:
        taken.append([a.data.ptr for a in arguments if hasattr(a, "data") and hasattr(a, "get")])
        start(self, loaded, arguments, count)

    weight = torch.randn(1000, 7, dtype=torch.float64, device="cuda")
    Gpu._start = watched
    try:
        result = f(*x)
        by = torch.autograd.grad(result, x, weight)
    finally:
        Gpu._start = start
    inputs = [y.data_ptr() for y in x]
    assert taken[0][:4] == [*inputs, result.data_ptr()], "copied"
    assert taken[1][:4] == [*inputs, weight.data_ptr()], "copied"
    assert taken[1][4] == by[0].untyped_storage().data_ptr(), "copied"
    return "kernels of values and gradients read and write the memory of the tensors"


def of_streams() -> str:
    """A stream of the caller, whose inputs are not ready yet; and a recorded graph."""
    mech, f = function("arm (7)", status=True)
    x = states(mech, 1000, "cuda")
    expected, _ = f(*x)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        slow = torch.zeros(1 << 27, device="cuda")  # keeps the stream busy before the inputs exist
        for _ in range(20):
            slow += 1.0
        late = (x[2] + 0.0 * slow[0]).requires_grad_()
        other, codes = f(x[0], x[1], late)
        (by,) = torch.autograd.grad(other.sum(), late)
    side.synchronize()
    assert torch.equal(other, expected) and not bool(codes.any())
    assert bool(torch.isfinite(by).all()) and float(by.abs().max()) > 0.0
    try:
        graph, given = torch.cuda.CUDAGraph(), [y.clone() for y in x]
        with torch.cuda.graph(graph):
            recorded, _ = f(*given)
        given[2] *= 2.0
        graph.replay()
        torch.cuda.synchronize()
        right = torch.equal(recorded, f(*given)[0])
        note = "a CUDA graph replays it" if right else "FAILED: a CUDA graph replays other numbers"
    except Exception as error:
        note = f"no CUDA graph ({type(error).__name__}: {str(error)[:80]})"
    return f"inputs that arrive late on a stream of the caller are waited for; {note}"


def of_status() -> str:
    """NaN rows, their gradients, warnings and codes."""
    mech, f = function("arm (7)")
    q, v, tau = states(mech, 200, "cuda")
    q[7, 0], tau[150, 6] = torch.nan, torch.inf
    q.requires_grad_()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = f(q, v, tau)
        result[[0, 1]].sum().backward()
    assert any(issubclass(w.category, TroubleWarning) and "2 of 200" in str(w.message)
               for w in caught)  # fmt: skip
    bad, rows = torch.tensor([7, 150], device="cuda"), torch.isnan(result).all(-1)
    assert torch.equal(torch.nonzero(rows).ravel(), bad)
    assert torch.equal(torch.nonzero(torch.isnan(q.grad).all(-1)).ravel(), bad)
    codes = function("arm (7)", status=True)[1](q, v, tau)[1]
    assert torch.equal(torch.nonzero(codes).ravel(), bad)
    return "rows 7 and 150 of 200 are NaN, in values and gradients; a warning, or codes"


def of_kernels() -> str:
    """Kernels for "cuda" and tensors on two devices."""
    mech = ROBOTS["arm (7)"]()
    kernel = lw.compile(lw.dynamics.expression("forward_dynamics"), mech, target="cuda")
    x = [y.requires_grad_() for y in states(mech, 10, "cuda")]
    assert torch.autograd.gradcheck(
        lambda *y: kernel(*y), [y[:2].detach().requires_grad_() for y in x]
    )
    try:
        function("arm (7)")[1](x[0], x[1].cpu(), x[2])
    except lw.errors.ShapeError as error:
        assert "v is on cpu" in str(error), error
        return "a kernel for 'cuda' passes `gradcheck`; tensors on two devices are refused"
    raise AssertionError("tensors on two devices pass")


def rate(robot: str, dtype: Any, count: int) -> str:
    """A line of the second table."""
    mech, f = function(robot, status=True)
    x, numbers = states(mech, count, "cuda", dtype), list[float]()
    for call in (f, gradients(lambda *y: f(*y)[0])):
        call(*x)
        torch.cuda.synchronize()
        best = float("inf")
        for _ in range(9):
            began = time.perf_counter()
            for _ in range(10):
                call(*x)
            torch.cuda.synchronize()
            best = min(best, (time.perf_counter() - began) / 10)
        numbers.append(count / best / 1e6)
    kind = str(dtype).removeprefix("torch.")
    return f"| {robot} | {kind} | {count} | {numbers[0]:.1f} | {numbers[1]:.1f} |"


def main() -> None:
    """All checks, then the rates."""
    checks: dict[str, Callable[[], str]] = {
        f"{robot}, {dtype}": lambda robot=robot, dtype=dtype: of_transformations(robot, dtype)
        for dtype in (torch.float64, torch.float32)
        for robot in ROBOTS
    }
    checks |= {"copies": of_copies, "streams": of_streams, "states without a result": of_status}
    checks |= {"kernels": of_kernels}
    about = machine.description("torch", "cupy-cuda13x", "numpy")
    lines = [HEAD.format(machine=f"GPU: {torch.cuda.get_device_name()}. {about}")]
    failed = 0
    for name, check in checks.items():
        try:
            outcome = check()
        except Exception as error:
            traceback.print_exception(error, limit=-4)
            outcome, failed = f"FAILED: {type(error).__name__}: {str(error)[:200]}", failed + 1
        lines.append(f"| {name} | {outcome} |\n")
        print(lines[-1], end="", flush=True)
    lines.append(RATES)
    for robot in ROBOTS:
        for dtype in (torch.float32, torch.float64):
            try:
                lines.append(rate(robot, dtype, 1 << 17) + "\n")
            except Exception as error:
                failed += 1
                lines.append(f"| {robot} | {dtype} | FAILED: {type(error).__name__} | | |\n")
            print(lines[-1], end="", flush=True)
    out = Path(os.environ.get("OUT", RESULTS.parent)) / RESULTS.name
    out.write_text("".join(lines), encoding="utf-8")
    print(f"{failed} failed")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
