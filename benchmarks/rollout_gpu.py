"""Rollouts on a CUDA card: agreement with the processor, steps a second.

    python benchmarks/rollout_gpu.py --prepare   here: states and references into build/rollout_gpu
    python benchmarks/rollout_gpu.py             where a card is: writes results/rollout_gpu.md

The second needs NumPy and CuPy only. What fails is written down as failed, and the rest goes on.
"""

import argparse
import datetime
import multiprocessing
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import machine
import numpy as np
from gpu import arithmetic, fused_rate, told

import linkwise as lw
from linkwise.simulation.rollout_kernel import card_kernel

ROBOTS = {"arm": lw.models.seven_dof_arm, "humanoid": lw.models.humanoid}
INTEGRATORS = ("euler", "rk4", "rk4_mujoco", "variational")
TIMED = ("euler", "rk4")
BATCHES = (1 << 10, 1 << 12, 1 << 14, 1 << 17, 1 << 20)
STATES, STEPS, STEP = 256, 100, 1e-3
MOST = 1 << 33
"""Bytes of joint forces, at most."""

FOLDER = Path(__file__).parent.parent / "build" / "rollout_gpu"
RESULTS = Path(__file__).parent / "results" / "rollout_gpu.md"
HEAD = """# Rollouts on a CUDA card

Written by `python benchmarks/rollout_gpu.py`. Motions of {steps} steps of 1 ms with joint forces of
their own in each step, arrays on the card, the state at the end out; a call of `lw.rollout` from
Python, the median of 5, until the status of every motion is back. Millions of steps a second; a
step of `rk4` has the accelerations four times. *Operations* are those of one step. *Limit* is the
share of the card's arithmetic: arithmetic instructions of a step (a product that one sum needs is
fused with it; a sine or cosine counts 8) times steps, over the fused multiply-adds a second that a
loop of nothing else reaches. *All states*: every step recorded, with the numbers read and written
[TB/s]. *Difference* is to `lw.rollout` on a processor in float64 after {few} steps, the worst of
{states} motions [rad, m, 1/s]. *Compile* is derivation, source and the card's compiler.
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
    """References, by the processor in float64, of the numbers that the card gets."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, make in ROBOTS.items():
        for integrator in INTEGRATORS:
            for dtype in ("float64", "float32"):
                q, v, tau = (x.astype(float) for x in case_arrays(name, dtype))
                options = {"steps": FEW, "integrator": integrator, "record_every": FEW}
                found = lw.rollout(make(), q, v, tau=tau[:, :FEW], step=STEP, **options)
                place = FOLDER / f"{name}_{integrator}_{dtype}.npz"
                np.savez(place, q=found.q[:, -1], v=found.v[:, -1])


def compiled(name: str, integrator: str, dtype: str) -> float:
    """Seconds to derive, write and compile; CuPy keeps it for the next process."""
    import cupy as cp

    began = time.perf_counter()
    mech = ROBOTS[name]()
    q, v, tau = (cp.asarray(x[:32]) for x in case_arrays(name, dtype))
    lw.rollout(mech, q, v, tau=tau, steps=STEPS, integrator=integrator, target="cuda", dtype=dtype)
    return time.perf_counter() - began


def difference(cp, mech: lw.Mechanism, name: str, integrator: str, dtype: str) -> float:
    """To the reference; a wrong result is an error."""
    q, v, tau = (cp.asarray(x) for x in case_arrays(name, dtype))
    options = {"steps": FEW, "integrator": integrator, "target": "cuda", "dtype": dtype}
    found = lw.rollout(mech, q, v, tau=tau[:, :FEW], step=STEP, record_every=FEW, **options)
    right = np.load(FOLDER / f"{name}_{integrator}_{dtype}.npz")
    assert not found.status.any(), "motions end early"
    q_found, v_found = (x[:, -1].get().astype(float) for x in (found.q, found.v))
    apart = np.abs(mech.difference(mech.normalise(q_found), right["q"])).max()
    worst = float(max(apart, np.abs(v_found - right["v"]).max()))
    # float64: rounding grown over 50 steps. float32: 3e-8 a number in states of size 10, likewise.
    if not worst < {"float64": 1e-10, "float32": 5e-3}[dtype]:
        raise AssertionError(f"results differ by {worst:.1e}: nothing was measured")
    return worst


def seconds(cp, work: Callable[[], object], rounds: int = 5) -> float:
    """Of a call, until the card has finished: the median."""
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
    kernel = card_kernel(mech, integrator, itemsize=size)
    error = difference(cp, mech, name, integrator, dtype)
    q, v, tau = (cp.asarray(x) for x in case_arrays(name, dtype))
    options = {"steps": STEPS, "step": STEP, "integrator": integrator}
    rates, best, flow = list[str](), 0.0, 0.0
    for batch in BATCHES:
        times = batch // STATES
        if batch * STEPS * mech.nv * size > MOST:
            rates.append("")
            continue
        q_all, v_all = cp.tile(q, (times, 1)), cp.tile(v, (times, 1))
        forces = cp.tile(cp.ascontiguousarray(tau.transpose(1, 2, 0)), (1, 1, times))
        given = {"tau": forces.transpose(2, 0, 1), "target": "cuda", "dtype": dtype} | options
        found = lw.rollout(mech, q_all, v_all, record_every=STEPS, **given)
        few = lw.rollout(mech, q, v, tau=tau, record_every=STEPS, **options, target="cuda",
                         dtype=dtype)  # fmt: skip
        if not bool((found.q[-STATES:] == few.q).all()):
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
        f"| {name} | {integrator} | {dtype} | {kernel.ops.total()} | {took} | "
        f"{' | '.join(rates)} | {100 * share:.0f} % | {1e-6 * flow:.3g} ({terabytes:.2f}) | "
        f"{error:.0e} |"
    )


def calls(cp) -> list[str]:
    """4096 sequences of joint forces for the arm from one state, as in sampling controllers."""
    mech, lines = ROBOTS["arm"](), list[str]()
    q, v, tau = case_arrays("arm", "float32")
    forces = np.tile(tau[:, :64], (16, 1, 1))
    there = cp.ascontiguousarray(cp.asarray(forces).transpose(1, 2, 0)).transpose(2, 0, 1)
    options = {"steps": 64, "step": 5e-3, "target": "cuda", "dtype": "float32", "record_every": 8}
    at, speed = cp.asarray(q[0]), cp.asarray(v[0])
    for integrator in TIMED:
        given = options | {"integrator": integrator}
        card = seconds(cp, lambda: lw.rollout(mech, at, speed, tau=there, **given))  # noqa: B023
        here = seconds(cp, lambda: lw.rollout(mech, q[0], v[0], tau=forces, **given))  # noqa: B023
        lines.append(
            f"- {integrator}: {1e3 * card:.2f} ms with joint forces on the card, {1e3 * here:.1f} "
            "ms with those of NumPy, which are copied there and results back"
        )
    return lines


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
        f"Card: {card['name'].decode()}, {card['multiProcessorCount']} multiprocessors; {date}. "
        f"Linkwise {lw.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"CuPy {cp.__version__}. Processor: {machine.processor()}.",
        "",
        f"Fused multiply-adds: {1e-12 * limits['float32']:.1f} T/s in float32, "
        f"{1e-12 * limits['float64']:.1f} T/s in float64.",
        "",
    ]
    names = ["robot", "integrator", "numbers", "operations", "compile [s]"]
    names += [*(f"batch {b}" for b in BATCHES), "limit", "all states (bytes)", "difference"]
    lines += [f"| {' | '.join(names)} |", "| --- | --- | --- " + "| ---: " * (len(names) - 3) + "|"]
    print("\n".join(lines), flush=True)
    for kind in kinds:
        try:
            lines.append(row(cp, *kind, took[kind], limits[kind[2]]))
        except Exception as error:
            lines.append(f"| {' | '.join(kind)} | {told(error)} |")
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
        lines.append(f"- {told(error)}")
    print("\n".join(lines[-3:]), flush=True)
    target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prepare", action="store_true", help="references, without a card")
    parser.add_argument("--date", default=str(datetime.date.today()), help="of the measurement")
    arguments = parser.parse_args()
    prepare() if arguments.prepare else main(arguments.date)
