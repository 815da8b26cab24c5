"""Rollouts on a CUDA GPU: agreement with the CPU, steps per second.

    python benchmarks/rollout_gpu.py --prepare here: states and references into build/rollout_gpu
    python benchmarks/rollout_gpu.py on a machine with a GPU: writes results/rollout_gpu.md

The second needs NumPy and CuPy only. What fails is written down as failed, and the rest goes on.
"""

import argparse
import datetime
import multiprocessing
import os
import platform
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import machine
import numpy as np
from gpu import arithmetic, fused_rate, message
from gpu_checks import show

import linkwise as lw
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.rollout_kernel import motion_kernel

ROBOTS = {"arm": lw.models.seven_dof_arm, "humanoid": lw.models.humanoid}
INTEGRATORS = ("euler", "rk4", "rk4_mujoco", "variational")
TIMED = ("euler", "rk4")
BATCHES = (1 << 10, 1 << 12, 1 << 14, 1 << 17, 1 << 20)
STATES, STEPS, STEP = 256, 100, 1e-3
MOST = 1 << 33
"""Bytes of joint forces, at most."""

FOLDER = Path(__file__).parent.parent / "build" / "rollout_gpu"
RESULTS = Path(__file__).parent / "results" / "rollout_gpu.md"
HEAD = """# Rollouts on a CUDA GPU

Written by `python benchmarks/rollout_gpu.py`. Motions of {steps} steps of 1 ms with different joint
forces in each step, arrays on the GPU, and the final state as the result; a call of `lw.rollout`
from Python, the median of 5, including the check that every motion succeeded. Millions of steps per
second; a step of `rk4` computes the accelerations four times. *Operations* are those of one step,
for `variational` with one of its iterations, so that its limit understates the GPU. *Limit* is the
share of the GPU's peak arithmetic: arithmetic instructions of a step (a product that one sum needs
is fused with it; a sine or cosine counts 8) times steps, over the fused multiply-adds per second
that a loop without anything else reaches. *All states*: every step recorded, with the numbers read
and written [TB/s]. *Difference* is to `lw.rollout` on a CPU in float64 after {few} steps, the worst
of {states} motions [rad, m, 1/s]. *Compile* includes derivation, source and the GPU's compiler,
several at a time.
"""
FEW = 50


def case_arrays(name: str, dtype: str) -> tuple[np.ndarray, ...]:
    """q, v (256, n) and joint forces (256, steps, nv)."""
    mech, rng = ROBOTS[name](), np.random.default_rng(0)
    q = np.array([mech.random(rng) for _ in range(STATES)])
    v = 0.3 * rng.standard_normal((STATES, mech.nv))
    tau = rng.standard_normal((STATES, STEPS, mech.nv))
    return tuple(x.astype(dtype) for x in (q, v, tau))


def prepare() -> None:
    """References, computed by the CPU in float64, for the numbers that the GPU gets."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, make in ROBOTS.items():
        for integrator in INTEGRATORS:
            for dtype in ("float64", "float32"):
                q, v, tau = (x.astype(float) for x in case_arrays(name, dtype))
                options = {"duration": FEW * STEP, "integrator": integrator, "record_every": FEW}
                result = lw.rollout(make(), q, v, tau=tau[:, :FEW], step=STEP, **options)
                place = FOLDER / f"{name}_{integrator}_{dtype}.npz"
                np.savez(place, q=result.q[:, -1], v=result.v[:, -1])


def compiled(name: str, integrator: str, dtype: str) -> float:
    """Seconds to derive, write and compile; CuPy keeps it for the next process."""
    import cupy as cp

    began = time.perf_counter()
    mech = ROBOTS[name]()
    q, v, tau = (cp.asarray(x[:32]) for x in case_arrays(name, dtype))
    lw.rollout(
        mech,
        q,
        v,
        tau=tau,
        duration=STEPS * 1e-3,
        integrator=integrator,
        target="cuda",
        dtype=dtype,
    )
    return time.perf_counter() - began


def difference(cp, mech: lw.Mechanism, name: str, integrator: str, dtype: str) -> float:
    """To the reference; a wrong result is an error."""
    q, v, tau = (cp.asarray(x) for x in case_arrays(name, dtype))
    options = {"duration": FEW * STEP, "integrator": integrator, "target": "cuda", "dtype": dtype}
    result = lw.rollout(mech, q, v, tau=tau[:, :FEW], step=STEP, record_every=FEW, **options)
    right = np.load(FOLDER / f"{name}_{integrator}_{dtype}.npz")
    assert not result.status.any(), "motions end early"
    q_found, v_found = (x[:, -1].get().astype(float) for x in (result.q, result.v))
    apart = np.abs(mech.difference(mech.normalise(q_found), right["q"])).max()
    worst = float(max(apart, np.abs(v_found - right["v"]).max()))
    # float64: rounding grown over 50 steps. float32: 3e-8 a number in states of size 10, likewise.
    if not worst < {"float64": 1e-10, "float32": 5e-3}[dtype]:
        raise AssertionError(f"results differ by {worst:.1e}: nothing was measured")
    return worst


def seconds(cp, work: Callable[[], object], rounds: int = 5) -> float:
    """Time of a call until the GPU has finished: the median."""
    work()
    times = list[float]()
    for _ in range(rounds):
        cp.cuda.Device().synchronize()
        began = time.perf_counter()
        work()
        cp.cuda.Device().synchronize()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def row(cp, name: str, integrator: str, dtype: str, took: str, limit: float) -> str:
    """A line of the table."""
    mech, size = ROBOTS[name](), np.dtype(dtype).itemsize
    kernel = motion_kernel(MotionRequest(mech, integrator, itemsize=size), "cuda")
    error = difference(cp, mech, name, integrator, dtype)
    q, v, tau = (cp.asarray(x) for x in case_arrays(name, dtype))
    options = {"duration": STEPS * STEP, "step": STEP, "integrator": integrator}
    rates, best, flow = list[str](), 0.0, 0.0
    for batch in BATCHES:
        times = batch // STATES
        if batch * STEPS * mech.nv * size > MOST:
            rates.append("")
            continue
        q_all, v_all = cp.tile(q, (times, 1)), cp.tile(v, (times, 1))
        forces = cp.tile(cp.ascontiguousarray(tau.transpose(1, 2, 0)), (1, 1, times))
        given = {"tau": forces.transpose(2, 0, 1), "target": "cuda", "dtype": dtype} | options
        result = lw.rollout(mech, q_all, v_all, record_every=STEPS, **given)
        few = lw.rollout(mech, q, v, tau=tau, record_every=STEPS, **options, target="cuda",
                         dtype=dtype)  # fmt: skip
        if not bool((result.q[-STATES:] == few.q).all()):
            raise AssertionError(f"the last of {batch} motions are not those of a small batch")
        took_one = seconds(cp, lambda: lw.rollout(mech, q_all, v_all, record_every=STEPS, **given))  # noqa: B023
        rates.append(f"{1e-6 * batch * STEPS / took_one:.3g}")
        best = max(best, batch * STEPS / took_one)
        if batch * STEPS * (mech.nq + 2 * mech.nv) * size < MOST:
            each = seconds(cp, lambda: lw.rollout(mech, q_all, v_all, record_every=1, **given))  # noqa: B023
            flow = max(flow, batch * STEPS / each)
        cp.get_default_memory_pool().free_all_blocks()
    share = best * sum(arithmetic(s.traced) for s in kernel.stepping.step) / limit
    terabytes = 1e-12 * flow * (mech.nq + 2 * mech.nv) * size
    return (
        f"| {name} | {integrator} | {dtype} | {kernel.ops.total()} | "
        f"{kernel.device.emitted.workers} | {took} | "
        f"{' | '.join(rates)} | {100 * share:.0f} % | {1e-6 * flow:.3g} ({terabytes:.2f}) | "
        f"{error:.0e} |"
    )


def calls(cp) -> list[str]:
    """4096 sequences of joint forces for the arm from one state, as in sampling controllers."""
    mech, lines = ROBOTS["arm"](), list[str]()
    q, v, tau = case_arrays("arm", "float32")
    forces = np.tile(tau[:, :64], (16, 1, 1))
    there = cp.ascontiguousarray(cp.asarray(forces).transpose(1, 2, 0)).transpose(2, 0, 1)
    options = {"duration": 0.32, "step": 5e-3, "target": "cuda", "dtype": "float32"}
    options["record_every"] = 8
    at, speed = cp.asarray(q[0]), cp.asarray(v[0])
    for integrator in TIMED:
        given = options | {"integrator": integrator}
        card = seconds(cp, lambda: lw.rollout(mech, at, speed, tau=there, **given))  # noqa: B023
        here = seconds(cp, lambda: lw.rollout(mech, q[0], v[0], tau=forces, **given))  # noqa: B023
        lines.append(
            f"- {integrator}: {1e3 * card:.2f} ms with joint forces on the GPU, {1e3 * here:.1f} "
            "ms with those of NumPy, which are copied there and results back"
        )
    return lines


def of_libraries(cp) -> str:
    """Arrays of Torch and JAX, where they are installed."""
    mech, options = ROBOTS["arm"](), {"duration": 9e-3, "target": "cuda", "dtype": "float32"}
    q, v, tau = (x[:33] for x in case_arrays("arm", "float32"))
    right = lw.rollout(mech, q, v, tau=tau[:, :9], **options)
    assert type(right.q) is np.ndarray
    libraries = ["NumPy"]
    try:
        import torch

        given = [torch.tensor(x, device="cuda") for x in (q, v, tau[:, :9].copy())]
        result = lw.rollout(mech, *given[:2], tau=given[2], **options)
        assert isinstance(result.q, torch.Tensor) and result.q.is_cuda
        assert np.array_equal(result.q.cpu().numpy(), right.q)
        libraries.append("Torch")
    except ImportError:
        pass
    try:
        import jax

        given = [jax.device_put(x) for x in (q, v, tau[:, :9].copy())]
        result = lw.rollout(mech, *given[:2], tau=given[2], **options)
        assert isinstance(result.q, jax.Array) and np.array_equal(np.asarray(result.q), right.q)
        libraries.append("JAX")
    except ImportError:
        pass
    return f"{', '.join(libraries)}: results in kind, the same to the bit"


def of_trouble(cp) -> str:
    """Motions that end early, in both kinds of kernels; the others stay as they are."""
    for name, dtype in (("arm", "float32"), ("arm", "float64"), ("humanoid", "float64")):
        mech, options = ROBOTS[name](), {"duration": 0.4, "step": 0.01, "target": "cuda"}
        q, v, _ = (x[:77].copy() for x in case_arrays(name, dtype))
        sound = lw.rollout(mech, q, v, dtype=dtype, **options)
        v[[5, 40]] *= 1e6
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = lw.rollout(mech, q, v, dtype=dtype, **options)
        assert "2 of 77" in str(caught[0].message), caught
        assert list(np.flatnonzero(result.status)) == [5, 40]
        assert np.isnan(result.q[[5, 40], -1]).any(axis=-1).all()
        rest = np.setdiff1d(np.arange(77), [5, 40])
        assert np.array_equal(result.q[rest], sound.q[rest])
    return "motions that grow without bounds are NaN from there, with a code; the others stay"


def of_batches(cp) -> str:
    """Sizes that fill no warp, one motion, forces in another order in memory."""
    for name in ROBOTS:
        mech, options = ROBOTS[name](), {"duration": 7e-3, "target": "cuda"}
        q, v, tau = case_arrays(name, "float64")
        tau = tau[:, :7]
        full = lw.rollout(mech, q, v, tau=tau, **options)
        for count in (1, 2, 31, 33, 100, 255):
            part = lw.rollout(mech, q[:count], v[:count], tau=tau[:count], **options)
            assert np.array_equal(part.q, full.q[:count]), count
        one = lw.rollout(mech, q[9], v[9], tau=tau[9], **options)
        assert np.array_equal(one.q, full.q[9])
        given = [cp.asarray(x) for x in (q, v, tau)]
        turned = cp.ascontiguousarray(given[2].transpose(1, 2, 0)).transpose(2, 0, 1)
        for forces in (given[2], turned, cp.asfortranarray(given[2])):
            result = lw.rollout(mech, *given[:2], tau=forces, **options)
            assert np.array_equal(result.q.get(), full.q)
    return "1 to 255 motions, one alone, forces in three orders in memory: the same to the bit"


CHECKS = {"Libraries": of_libraries, "Trouble": of_trouble, "Batches": of_batches}


def main(date: str) -> None:
    """Check, measure and write the table, step by step."""
    import cupy as cp

    target = Path(os.environ["OUT"]) / "rollout_gpu.md" if "OUT" in os.environ else RESULTS
    kinds = [(n, i, d) for n in ROBOTS for i in INTEGRATORS for d in ("float32", "float64")]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max(1, (os.cpu_count() or 2) - 2), mp_context=spawn) as pool:
        futures = {kind: pool.submit(compiled, *kind) for kind in reversed(kinds)}
        took = {kind: f"{future.result():.1f}" for kind, future in futures.items()}
    card = cp.cuda.runtime.getDeviceProperties(0)
    limits = {dtype: fused_rate(cp, dtype) for dtype in ("float32", "float64")}
    lines = [
        HEAD.format(steps=STEPS, few=FEW, states=STATES),
        f"GPU: {card['name'].decode()}, {card['multiProcessorCount']} multiprocessors; {date}. "
        f"Linkwise {lw.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"CuPy {cp.__version__}. Processor: {machine.processor()}.",
        "",
        f"Fused multiply-adds: {1e-12 * limits['float32']:.1f} T/s in float32, "
        f"{1e-12 * limits['float64']:.1f} T/s in float64.",
        "",
    ]
    names = ["robot", "integrator", "numbers", "operations", "threads a motion", "compile [s]"]
    names += [*(f"batch {b}" for b in BATCHES), "limit", "all states (bytes)", "difference"]
    lines += [f"| {' | '.join(names)} |", "| --- | --- | --- " + "| ---: " * (len(names) - 3) + "|"]
    print("\n".join(lines), flush=True)
    for kind in kinds:
        try:
            lines.append(row(cp, *kind, took[kind], limits[kind[2]]))
        except Exception as error:
            lines.append(f"| {' | '.join(kind)} | {message(error)} |")
        print(lines[-1], flush=True)
        target.write_text("\n".join(lines) + "\n")
    lines += [
        "",
        "One call with 4096 sequences of 64 steps for the arm, from one state, float32:",
        "",
    ]
    try:
        lines += calls(cp)
    except Exception as error:
        lines.append(f"- {message(error)}")
    lines += ["", "Checked on the GPU:", ""]
    for name, check in CHECKS.items():
        try:
            lines.append(f"- {name}: {check(cp)}")
        except Exception as error:
            lines.append(f"- {name}: {message(error)}")
            show(error)
    print("\n".join(lines[-9:]), flush=True)
    target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prepare", action="store_true", help="references, without a GPU")
    parser.add_argument("--date", default=str(datetime.date.today()), help="of the measurement")
    arguments = parser.parse_args()
    prepare() if arguments.prepare else main(arguments.date)
