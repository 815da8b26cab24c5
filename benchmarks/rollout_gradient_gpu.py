"""Gradients of rollouts on a GPU: agreement with the processor, and their rates.

    python benchmarks/carried.py                here: packages that the machine with the GPU lacks
    python benchmarks/rollout_gradient_gpu.py   on a machine with a GPU: writes the table

The second needs NumPy and CuPy, and Torch for the last check.
"""

import os
import time
from pathlib import Path
from typing import Any

import carried  # noqa: F401 (makes the packages importable)
import cupy as cp
import machine
import numpy as np

import linkwise as lw

ROBOTS = {"arm (7)": lw.models.seven_dof_arm, "quadruped (free base, 18)": lw.models.quadruped}
STEP, STEPS, COMPARED, ROUNDS = 1e-3, 100, 64, 7
MOTIONS = {"arm (7)": 65_536, "quadruped (free base, 18)": 16_384}
ALLOWED = {"float64": 1e-10, "float32": 1e-3}
RESULTS = Path(__file__).parent / "results" / "rollout_gradient_gpu.md"
HEAD = """# Gradients of rollouts on a GPU

Written by `python benchmarks/rollout_gradient_gpu.py`. {steps} steps of 1 ms with joint forces for
each step, all states recorded, arrays of the GPU in and out. The gradient is that of a weighted sum
of the last record by the initial state and all joint forces. *Both* is the rollout and its gradient
together over the rollout alone. *Difference* is that to the gradient on the processor in float64,
of {compared} motions, relative to the largest entry. Thousands of motions per second, the median of
{rounds} rounds.

{machine}
| robot | integrator | numbers | motions | rollout | gradient | both | difference |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |
"""


def inputs(mech: lw.Mechanism, count: int) -> list[np.ndarray]:
    """States, joint forces and weights of the last positions."""
    rng = np.random.default_rng(0)
    few = np.array([mech.random(rng) for _ in range(COMPARED)])
    v = 0.3 * rng.standard_normal((COMPARED, mech.nv))
    tau = rng.standard_normal((COMPARED, STEPS, mech.nv)) * np.diag(lw.mass_matrix(mech, few[0]))
    w = rng.standard_normal((COMPARED, mech.nq))
    return [x[np.arange(count) % COMPARED] for x in (few, v, tau, w)]


def timed(work: Any) -> float:
    """Seconds of a call, the median; the first one compiles."""
    times = list[float]()
    for _ in range(ROUNDS + 1):
        cp.cuda.Device().synchronize()
        began = time.perf_counter()
        work()
        cp.cuda.Device().synchronize()
        times.append(time.perf_counter() - began)
    return float(np.median(times[1:]))


def row(robot: str, integrator: str, dtype: str) -> str:
    """One line of the table."""
    mech, count = ROBOTS[robot](), MOTIONS[robot]
    options: dict[str, Any] = {"duration": STEPS * STEP, "step": STEP, "integrator": integrator}
    q, v, tau, w = inputs(mech, COMPARED)
    right = lw.rollout(mech, q, v, tau=tau, **options).gradient(w)
    q, v, tau, w = (cp.asarray(x, dtype=dtype) for x in inputs(mech, count))
    options |= {"target": "cuda", "dtype": dtype}

    def run() -> Any:
        return lw.rollout(mech, q, v, tau=tau, **options)

    runs = run()
    made = runs.gradient(w)
    pairs = [(made.q, right.q), (made.v, right.v), (made.tau, right.tau)]
    apart = max(np.abs(x[:COMPARED].get() - y).max() / np.abs(y).max() for x, y in pairs)
    assert apart < ALLOWED[dtype], f"{robot}, {integrator}, {dtype}: {apart:.1e}"
    there, back = timed(run), timed(lambda: runs.gradient(w))
    rates = f"{count / there / 1e3:,.0f} | {count / back / 1e3:,.0f} | {1 + back / there:.2f}"
    return f"| {robot} | {integrator} | {dtype} | {count:,} | {rates} | {apart:.0e} |\n"


def with_torch() -> str:
    """Tensors on the GPU that require gradients."""
    import torch

    mech = lw.models.quadruped()
    q, v, tau, w = inputs(mech, COMPARED)
    options: dict[str, Any] = {"duration": STEPS * STEP, "step": STEP}
    grads = list[list[np.ndarray]]()
    for device, target in (("cpu", "cpu"), ("cuda", "cuda")):
        given = [torch.tensor(x, device=device) for x in (q, v, tau)]
        leaves = [x.requires_grad_() for x in given]
        runs = lw.rollout(mech, leaves[0], leaves[1], tau=leaves[2], target=target, **options)
        assert runs.q.device.type == device
        (runs.q[:, -1] * torch.tensor(w, device=device)).sum().backward()
        assert all(x.grad.device.type == device for x in leaves)
        grads.append([x.grad.cpu().numpy() for x in leaves])
    pairs = zip(*grads, strict=True)
    apart = max(np.abs(x - y).max() / np.abs(x).max() for x, y in pairs)
    assert apart < ALLOWED["float64"], apart
    return (
        f"\n`backward` of Torch through `lw.rollout(..., target='cuda')` with tensors on the GPU "
        f"(Torch {torch.__version__}): gradients by q, v and τ stay there and differ from those of "
        f"tensors on the processor by {apart:.0e}.\n"
    )


def main() -> None:
    """Measure and write."""
    card = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    about = f"GPU: {card}. {machine.description('numpy')}"
    text = HEAD.format(steps=STEPS, compared=COMPARED, rounds=ROUNDS, machine=about)
    for robot in ROBOTS:
        for integrator in ("euler", "rk4"):
            for dtype in ("float64", "float32"):
                text += row(robot, integrator, dtype)
                print(text.splitlines()[-1], flush=True)
    text += with_torch()
    target = Path(os.environ["OUT"]) / RESULTS.name if "OUT" in os.environ else RESULTS
    target.write_text(text)
    print(text.splitlines()[-1])


if __name__ == "__main__":
    main()
