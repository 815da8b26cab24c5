"""Robots stepped from Python on a CUDA GPU: checks, and steps per second.

    python benchmarks/stepping_gpu.py        writes results/stepping_gpu.md

Needs NumPy, CuPy and Torch; JAX is checked where it is installed. A quadruped rests on its feet,
held by position servos. First, single steps are compared with a rollout on the GPU, with arrays of
each library and after some robots begin anew; then steps are timed. The GPU is waited for only at
the end of a measurement.
"""

import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.models.quadruped import STANCE_HEIGHT
from linkwise.simulation import Ground, VectorEnv, ground_contacts

RESULTS = Path(__file__).parent / "results" / "stepping_gpu.md"
HEAD = """# Stepping from Python on a CUDA GPU

Written by `python benchmarks/stepping_gpu.py`. A quadruped (18 degrees of freedom, 4 feet, 12
servos) on the ground, {substeps} steps of the integrator for each action. Actions and observations
are tensors of Torch on the GPU. *Call* is the time until `sim.step` returns to Python [µs], *step*
the time of a step until the GPU has done it [µs]; *env* is a step of `VectorEnv` with resets [µs].
Millions of steps of the integrator per second.

| batch | dtype | call | step | million steps per second | env |
| --- | --- | --- | --- | --- | --- |
"""
STEP, SUBSTEPS, CALLS = 5e-3, 4, 200
SEEN = ("q", "v", "gravity", "base_height", "contact_forces")


def robot() -> tuple[lw.Mechanism, np.ndarray, dict[str, Any]]:
    """The robot with servos, its pose and the options of a simulator."""
    mech = lw.models.quadruped()
    servos = [
        lw.Actuator.position(b.hinge_name, b.hinge_name, kp=40.0, kv=1.0) for b in mech.bodies[1:]
    ]
    mech = lw.Mechanism(mech.name, mech.bodies, mech.nodes, actuators=servos)
    q = mech.neutral().copy()
    q[6] = STANCE_HEIGHT
    feet = ground_contacts(mech, Ground(friction=0.8), bodies=[x.name for x in mech.nodes])
    options = {"q": q, "step": STEP, "substeps": SUBSTEPS, "contacts": feet, "target": "cuda"}
    return mech, q, options | {"observations": SEEN}


def check(dtype: str, near: float) -> float:
    """Single steps against one rollout; returns the largest difference."""
    import cupy as cp

    mech, q, options = robot()
    batch, calls, worst = 257, 10, 0.0
    rng = np.random.default_rng(0)
    control = 0.2 * rng.standard_normal((batch, calls, 12)).astype(dtype)
    start = [np.tile(q, (batch, 1)).astype(dtype), np.zeros((batch, mech.nv), dtype)]
    runs = lw.rollout(
        mech,
        *map(cp.asarray, start),
        duration=calls * SUBSTEPS * STEP,
        step=STEP,
        integrator="implicit",
        contacts=options["contacts"],
        controls=cp.asarray(np.repeat(control, SUBSTEPS, axis=1)),
        record_every=SUBSTEPS,
        target="cuda",
        dtype=dtype,
    )
    libraries = ["cupy", "torch"]
    try:
        import_module("jax")
        libraries.append("jax")
    except ImportError:
        print("JAX is not installed")
    for library in libraries:
        sim = lw.Simulator(mech, batch=batch, dtype=dtype, library=library, **options)
        for k in range(calls):
            seen = sim.step(_taken(control[:, k], library))
            assert type(seen).__module__.split(".")[0] in (library, "jaxlib"), type(seen)
        off = float(np.abs(_here(sim.q) - cp.asnumpy(runs.q[:, -1])).max())
        assert off <= near, f"{library} {dtype}: single steps are {off:.2e} off a rollout"
        worst = max(worst, off)
        before, mask = _here(sim.q).copy(), rng.random(batch) < 0.5
        sim.reset(_taken(mask, library))
        after = _here(sim.q)
        assert np.abs(after[mask] - start[0][mask]).max() < 1e-6, "reset"
        assert np.array_equal(after[~mask], before[~mask]), "robots that were not reset"
        assert not _here(sim.status).any()
        print(f"{dtype} {library}: off a rollout by {off:.1e}; resets are right")
    return worst


def _taken(x: np.ndarray, library: str) -> Any:
    if library == "cupy":
        return import_module("cupy").asarray(x)
    if library == "torch":
        return import_module("torch").tensor(x, device="cuda")
    return import_module("jax.numpy").asarray(x)


def _here(x: Any) -> np.ndarray:
    if hasattr(x, "get"):
        return x.get()
    return x.cpu().numpy() if hasattr(x, "cpu") else np.asarray(x)


def measured(batch: int, dtype: str) -> str:
    """A row of the table."""
    import torch

    mech, _, options = robot()
    sim = lw.Simulator(mech, batch=batch, dtype=dtype, library="torch", **options)
    action = torch.zeros(batch, 12, device="cuda", dtype=getattr(torch, dtype))
    env = VectorEnv(
        sim,
        reward=lambda sim, action: sim["base_height"][:, 0],
        terminated=lambda sim: sim["base_height"][:, 0] < 0.2,
        time_limit=50,
    )

    def timed(call: Any) -> tuple[float, float]:
        for _ in range(10):
            call(action)
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call(action)
        returned = time.perf_counter() - start
        torch.cuda.synchronize()
        return 1e6 * returned / CALLS, 1e6 * (time.perf_counter() - start) / CALLS

    call, step = timed(sim.step)
    _, total = timed(env.step)
    rate = batch * SUBSTEPS / step
    return f"| {batch} | {dtype} | {call:.0f} | {step:.0f} | {rate:.0f} | {total:.0f} |\n"


def main() -> None:
    """Check, measure, print, write."""
    check("float64", 1e-7)
    check("float32", 1e-2)
    text = HEAD.format(substeps=SUBSTEPS)
    for dtype in ("float32", "float64"):
        for batch in (1024, 4096, 16384, 65536):
            row = measured(batch, dtype)
            print(row, end="", flush=True)
            text += row
    RESULTS.write_text(text)


if __name__ == "__main__":
    main()
