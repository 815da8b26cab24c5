"""Functions of JAX on a GPU: checks of what `lw.convert.to_jax` promises, and their rates.

    python benchmarks/carried.py    here: packages that the machine with the GPU lacks
    python benchmarks/jax_gpu.py    on a machine with a GPU: writes benchmarks/results/jax_gpu.md

The second needs NumPy, CuPy and JAX with CUDA. Values and derivatives are compared with those of
the processor. What fails is written down as failed, and the rest goes on.
"""

import os
import time
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import carried  # noqa: F401 (makes the packages importable)
import numpy as np

import linkwise as lw

ROBOTS = {
    "arm (7)": lw.models.seven_dof_arm,
    "quadruped (free base, 18)": lw.models.quadruped,
    "four-bar (closed)": lw.models.four_bar,
}
RESULTS = Path(__file__).parent / "results" / "jax_gpu.md"
HEAD = """# Functions of JAX on a GPU

Written by `python benchmarks/jax_gpu.py`. Values and derivatives of forward dynamics on the GPU are
compared with those of the processor; differences are relative to the largest entry.

{machine}

| check | outcome |
| --- | --- |
"""
RATES = """
## Rates

Million evaluations per second under `jit`, from arrays on the GPU to arrays on the GPU; the best of
9 rounds of 10 calls. *Gradient* is that of Σ v̇² by q, v and τ.

| robot | numbers | states | forward dynamics | gradient |
| --- | --- | ---: | ---: | ---: |
"""


@cache
def function(robot: str, status: bool = False) -> tuple[lw.Mechanism, Callable[..., Any]]:
    """A robot and its forward dynamics."""
    mech = ROBOTS[robot]()
    return mech, lw.convert.to_jax("forward_dynamics", mech, status=status)


def states(mech: lw.Mechanism, count: int) -> list[np.ndarray]:
    """Random ones; loops need not be closed for forward dynamics."""
    rng = np.random.default_rng(0)
    few = np.array([mech.random(rng) for _ in range(64)])
    q = few[np.arange(count) % 64]
    return [q, *(0.5 * rng.standard_normal((2, count, mech.nv)))]


def cost(f: Callable[..., Any]) -> Callable[..., Any]:
    """Σ v̇²."""
    return lambda q, v, tau: (f(q, v, tau) ** 2).sum()


def compared(call: Callable[..., Any], arrays: list[np.ndarray], dtype: str) -> float:
    """The largest difference between the GPU and the processor, on the same numbers."""
    import jax

    ours, theirs = (
        call(*(jax.device_put(x.astype(dtype), jax.devices(kind)[0]) for x in arrays))
        for kind in ("gpu", "cpu")
    )
    worst = 0.0
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert next(iter(a.devices())).platform == "gpu", "the result is not on the GPU"
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        assert a.shape == b.shape and np.isfinite(b).all() and np.abs(b).max() > 0.0
        worst = max(worst, float(np.abs(a - b).max() / np.abs(b).max()))
    return worst


def of_transformations(robot: str, dtype: str) -> str:
    """`jit`, `vmap`, `grad`, `jacfwd`, `jacrev`, `hessian`."""
    import jax

    mech, f = function(robot)
    many, one = states(mech, 1000), [x[0] for x in states(mech, 1)]
    calls: dict[str, tuple[Callable[..., Any], list[np.ndarray], float]] = {
        "values": (f, many, 1.0),
        "vmap": (jax.vmap(f), many, 1.0),
        "grad": (jax.grad(cost(f), (0, 1, 2)), many, 10.0),
        "jacfwd": (jax.jacfwd(f, (0, 1, 2)), one, 10.0),
        "jacrev": (jax.jacrev(f, (0, 1, 2)), one, 10.0),
        "hessian": (jax.hessian(cost(f)), one, 100.0),
    }
    bound, parts = {"float64": 1e-10, "float32": 1e-3}[dtype], list[str]()
    for name, (call, arrays, more) in calls.items():
        apart = compared(jax.jit(call), arrays, dtype)
        assert apart < more * bound, f"{name} differs by {apart:.1e}"
        parts.append(f"{name} {apart:.0e}")
    return ", ".join(parts)


def of_copies() -> str:
    """XLA gives the kernel its own arrays."""
    import jax

    mech, f = function("arm (7)")
    arrays = [jax.device_put(x) for x in states(mech, 100)]
    text = jax.jit(f).lower(*arrays).compile().as_text()
    entry = text[text.index("ENTRY") :]
    assert "linkwise_CUDA" in entry and "callback" not in text, entry
    assert "copy" not in entry and "fusion" not in entry, entry
    return "the call takes the parameters of the program; no copy, no callback"


def of_status() -> str:
    """NaN rows and codes."""
    import jax

    mech, f = function("arm (7)", status=True)
    q, v, tau = states(mech, 200)
    q[7, 0], tau[150, 6] = np.nan, np.inf
    result, codes = jax.jit(f)(*(jax.device_put(x) for x in (q, v, tau)))
    bad = np.flatnonzero(codes)
    assert list(bad) == [7, 150] and bool(np.isnan(result[bad]).all())
    assert bool(np.isfinite(np.delete(result, bad, 0)).all())
    return "rows 7 and 150 of 200 are NaN and have a code, others are right"


def of_loops() -> str:
    """A scan of 200 steps, which XLA may record as a CUDA graph, and its gradient."""
    import jax

    mech, f = function("arm (7)")
    q, v, tau = states(mech, 50)

    def last(q: Any, v: Any, tau: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            q, v = x
            v = v + 1e-3 * f(q, v, tau)
            return (q + 1e-3 * v, v), None

        return jax.lax.scan(step, (q, v), None, length=200)[0]

    ahead = compared(jax.jit(last), [q, v, tau], "float64")
    by = jax.grad(lambda *x: last(*x)[0].sum(), (0, 1, 2))
    back = compared(jax.jit(by), [q, v, tau], "float64")
    assert ahead < 1e-10 and back < 1e-9, (ahead, back)
    return f"200 steps {ahead:.0e}, their gradient {back:.0e}"


def rate(robot: str, dtype: str, count: int) -> str:
    """A line of the second table."""
    import jax

    mech, f = function(robot)
    arrays = [jax.device_put(x.astype(dtype)) for x in states(mech, count)]
    numbers = list[float]()
    for call in (f, jax.grad(cost(f), (0, 1, 2))):
        run, best = jax.jit(call), float("inf")
        jax.block_until_ready(run(*arrays))
        for _ in range(9):
            began = time.perf_counter()
            for _ in range(10):
                result = run(*arrays)
            jax.block_until_ready(result)
            best = min(best, (time.perf_counter() - began) / 10)
        numbers.append(count / best / 1e6)
    return f"| {robot} | {dtype} | {count} | {numbers[0]:.1f} | {numbers[1]:.1f} |"


def main() -> None:
    """All checks, then the rates."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import machine

    jax.config.update("jax_enable_x64", True)
    assert jax.devices()[0].platform == "gpu", f"JAX has {jax.devices()}: no GPU"
    checks: dict[str, Callable[[], str]] = {
        f"{robot}, {dtype}": lambda robot=robot, dtype=dtype: of_transformations(robot, dtype)
        for dtype in ("float64", "float32")
        for robot in ROBOTS
    }
    checks |= {"copies": of_copies, "states without a result": of_status, "loops": of_loops}
    about = machine.description("jax", "jaxlib", "cupy-cuda13x", "numpy")
    lines, failed = [HEAD.format(machine=f"GPU: {jax.devices()[0].device_kind}. {about}")], 0
    for name, check in checks.items():
        try:
            outcome = check()
        except Exception as error:
            traceback.print_exception(error, limit=-4)
            outcome, failed = f"FAILED: {type(error).__name__}: {str(error)[:200]}", failed + 1
        lines.append(f"| {name} | {outcome} |\n")
        print(lines[-1], end="", flush=True)
    lines.append(RATES)
    for robot in ("arm (7)", "quadruped (free base, 18)"):
        for dtype in ("float32", "float64"):
            for count in (1 << 12, 1 << 20):
                lines.append(rate(robot, dtype, count) + "\n")
                print(lines[-1], end="", flush=True)
    out = Path(os.environ.get("OUT", RESULTS.parent)) / RESULTS.name
    out.write_text("".join(lines), encoding="utf-8")
    print(f"{failed} of {len(checks)} checks failed")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
