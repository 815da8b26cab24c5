"""Kernels on a CUDA GPU: agreement with Pinocchio, arrays of three libraries, states per second.

    python benchmarks/gpu.py --prepare   here: robots, states and references into build/gpu
    python benchmarks/gpu.py             on a machine with a GPU: writes benchmarks/results/gpu.md

The second needs NumPy and CuPy only; Torch and JAX are checked where they are installed. What fails
is written down as failed, and the rest goes on.
"""

import argparse
import datetime
import math
import multiprocessing
import os
import platform
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from functools import cache
from pathlib import Path

import gpu_checks
import gpu_reference
import machine
import numpy as np
from gpu_reference import FILES, FOLDER, QUANTITIES, STATES, nodes_of, robot

import linkwise as lw

BATCHES = (1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 22)
MOST = 1 << 30
"""Numbers of a result, at most."""

RESULTS = Path(__file__).parent / "results" / "gpu.md"
HEAD = """# Kernels on a CUDA GPU

Written by `python benchmarks/gpu.py`. Billions of evaluations per second, from arrays on the GPU to
an array on the GPU, including the status of every state: the median of 9 rounds of calls from
Python, timed by the GPU. *Operations* are those of the graph for one state. *Limit* is the share of
the GPU's peak arithmetic: arithmetic instructions of a state (a product that one sum needs is fused
with it; a sine or cosine counts 8) times evaluations, over the fused multiply-adds per second that
a loop without anything else reaches. *Bytes* are those of the rows read and written, at the best
rate [TB/s]. *Difference* is to Pinocchio in float64, relative to the largest entry, the worst of
1024 states (64 for matrices). *Compile* includes derivation, source and the GPU's compiler, several
at a time.
"""

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


Case = tuple[str, str, str]


def cases() -> list[Case]:
    """Robot, quantity, kind of numbers."""
    return [(n, x, d) for n in FILES for x in QUANTITIES for d in ("float32", "float64")]


@cache
def kernel_of(name: str, quantity: str, dtype: str):
    """A kernel of the table."""
    nodes = nodes_of(name, quantity)
    return lw.compile(QUANTITIES[quantity], robot(name), nodes=nodes, target="cuda", dtype=dtype)


def compiled(case: Case) -> float:
    """Seconds to derive, write and compile a kernel; CuPy keeps it for the next process."""
    began = time.perf_counter()
    kernel_of(*case).device.loaded_on(0)
    return time.perf_counter() - began


def compiled_rung(number: int, dtype: str) -> None:
    """The same for a rung of the ladder."""
    gpu_checks.rung_kernel(gpu_reference.ladder()[number], dtype).device.loaded_on(0)


# ---------------------------------------------------------------------------------- measure


def fused_rate(cp, dtype: str) -> float:
    """Fused multiply-adds per second that the GPU reaches."""
    function = cp.RawModule(code=FUSED).get_function("single" if dtype == "float32" else "twice")
    blocks, count = 8 * cp.cuda.Device().attributes["MultiProcessorCount"], 2000
    out = cp.zeros(1, dtype)
    arguments = (out, np.dtype(dtype).type(0.999), np.int32(count))
    seconds = timed(cp, lambda: function((blocks,), (256,), arguments), 8)
    return blocks * 256 * count * 128 / seconds


def timed(cp, work: Callable[[], object], calls: int, rounds: int = 9) -> float:
    """Seconds of a call when several follow each other: the median, timed by the GPU."""
    for _ in range(3):
        work()
    times = list[float]()
    for _ in range(rounds):
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        for _ in range(calls):
            work()
        end.record()
        end.synchronize()
        times.append(1e-3 * cp.cuda.get_elapsed_time(begin, end) / calls)
    return float(np.median(times))


def arithmetic(traced) -> int:
    """Arithmetic instructions of a state: a product that only one sum needs is fused with it."""
    graph, used = traced.graph, traced.graph.used(traced.roots)
    uses = dict.fromkeys(used, 0)
    for n in used:
        if graph.op[n] not in ("const", "input"):
            for x in (graph.a[n], graph.b[n]):
                if x >= 0:
                    uses[x] += 1
    for n in traced.roots:
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


def measure(cp, case: Case, seconds: str, limit: float) -> str:
    """A line of the table."""
    name, quantity, dtype = case
    kernel = kernel_of(*case)
    stored = np.load(FOLDER / f"{name}.npz")
    expected = stored[quantity]
    rows = {x: stored[x].astype(dtype) for x in kernel.arguments}
    few = [cp.asarray(rows[x][: len(expected)]) for x in kernel.arguments]
    result = kernel(*few).get().astype(float).reshape(len(expected), -1)
    expected = expected.reshape(len(expected), -1)
    scale = np.abs(expected).max(axis=1)
    error = float((np.abs(result - expected).max(axis=1) / scale).max())
    if not error < (1e-9 if dtype == "float64" else 2e-3):
        raise AssertionError(f"results differ by {error:.1e}: nothing was measured")
    rates, best = list[str](), 0.0
    width = math.prod(kernel.signature.shape)
    for batch in BATCHES:
        if batch * width > MOST:
            rates.append("")
            continue
        arrays = [cp.tile(cp.asarray(rows[x]), (batch // STATES, 1)) for x in kernel.arguments]
        out = cp.full((batch, *kernel.signature.shape), cp.nan, dtype)
        codes = cp.full(batch, -1, np.int32)
        work = lambda: kernel(*arrays, out=out, status=codes)  # noqa: B023, E731
        rate = batch / timed(cp, work, 10 if batch >= 1 << 20 else 50)
        if codes.any() or cp.isnan(out).any():
            raise AssertionError(f"trouble in a batch of {batch}")
        last = out[batch - STATES :][: len(expected)]  # the states come again and again
        if not np.array_equal(last.get().astype(float).reshape(len(expected), -1), result):
            raise AssertionError(
                f"the last rows of a batch of {batch} are not those of a small one"
            )
        rates.append(f"{1e-9 * rate:.3g}")
        best = max(best, rate)
    share = best * arithmetic(kernel.traced) / limit
    numbers = width + sum(size for _, size in kernel.signature.inputs)
    flow = 1e-12 * best * (numbers * kernel.dtype.itemsize + 4)
    threads = kernel.device.emitted.threads // kernel.device.emitted.states
    return (
        f"| {name} | {quantity} | {dtype} | {kernel.ops.total()} | {threads} | {seconds} | "
        f"{' | '.join(rates)} | {100 * share:.0f} % | {flow:.1f} | {error:.0e} |"
    )


def call_time(cp) -> str:
    """Seconds that calls take on the CPU, with a batch that takes the GPU less."""
    kernel = kernel_of("panda", "forward dynamics", "float32")
    stored = np.load(FOLDER / "panda.npz")
    arrays = [cp.asarray(stored[x][:64].astype("float32")) for x in kernel.arguments]
    out, codes = cp.empty((64, 7), "float32"), cp.zeros(64, np.int32)
    times = list[float]()
    for _ in range(9):
        began = time.perf_counter()
        for _ in range(200):
            kernel(*arrays, out=out, status=codes)
        times.append((time.perf_counter() - began) / 200)
        cp.cuda.Device().synchronize()
    return f"{1e6 * float(np.median(times)):.0f} µs"


# ------------------------------------------------------------------------------------- report


def head(cp, date: str) -> tuple[list[str], dict[str, float]]:
    """The lines above the table, and the GPU's peak arithmetic."""
    card = cp.cuda.runtime.getDeviceProperties(0)
    driver, runtime = cp.cuda.runtime.driverGetVersion(), cp.cuda.runtime.runtimeGetVersion()
    requested = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(requested, capture_output=True, text=True, check=True, timeout=30)
        name = answer.stdout.split()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        name = "unknown"
    limits = {dtype: fused_rate(cp, dtype) for dtype in ("float32", "float64")}
    return [
        HEAD,
        f"GPU: {card['name'].decode()}, {card['multiProcessorCount']} multiprocessors; driver "
        f"{name} (CUDA {driver // 1000}.{driver % 1000 // 10}), CUDA {runtime // 1000}."
        f"{runtime % 1000 // 10}; {date}. Linkwise {lw.__version__}, Python "
        f"{platform.python_version()}, NumPy {np.__version__}, CuPy {cp.__version__}. Processor: "
        f"{machine.processor()}.",
        "",
        f"Fused multiply-adds: {1e-12 * limits['float32']:.1f} T/s in float32, "
        f"{1e-12 * limits['float64']:.1f} T/s in float64.",
        "",
    ], limits


def title() -> list[str]:
    """Of the table."""
    names = ["robot", "quantity", "numbers", "operations", "threads a state", "compile [s]"]
    names += [*(f"batch {batch}" for batch in BATCHES), "limit", "bytes", "difference"]
    return [f"| {' | '.join(names)} |", "| --- | --- | --- " + "| ---: " * (len(names) - 3) + "|"]


def message(error: BaseException) -> str:
    """A failure in one line."""
    first = (str(error).splitlines() or [""])[0]
    return f"failed: {type(error).__name__} {first[:160]}".replace("|", "/")


def waited(future: Future[float]) -> str:
    """Seconds of a compilation, or that it failed."""
    try:
        return f"{future.result(timeout=150):.1f}"
    except Exception as error:
        print(message(error), flush=True)
        return "failed"


def main(date: str) -> None:
    """Check, measure and write the table, step by step."""
    import cupy as cp

    target = Path(os.environ["OUT"]) / "gpu.md" if "OUT" in os.environ else RESULTS
    workers = max(1, (os.cpu_count() or 2) - 2)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn) as pool:
        order = sorted(cases(), key=lambda c: c[0] != "talos_reduced")  # the longest first
        futures = {case: pool.submit(compiled, case) for case in order}
        for number in range(len(gpu_reference.ladder())):
            for dtype in ("float64", "float32"):
                pool.submit(compiled_rung, number, dtype)
        seconds = {case: waited(future) for case, future in futures.items()}
    lines, limits = head(cp, date)
    lines += title()
    print("\n".join(lines[1:]), flush=True)
    for case in cases():
        try:
            lines.append(measure(cp, case, seconds[case], limits[case[2]]))
        except Exception as error:
            lines.append(f"| {' | '.join(case)} | {message(error)} |")
        print(lines[-1], flush=True)
        cp.get_default_memory_pool().free_all_blocks()
        target.write_text("\n".join(lines) + "\n")
    try:
        lines += ["", f"A call from Python with `out=` and `status=` takes {call_time(cp)}."]
    except Exception as error:
        lines += ["", f"A call from Python: {message(error)}."]
    print(lines[-1], flush=True)
    lines += ["", "Checked on the GPU:", ""]
    for name, check in gpu_checks.CHECKS.items():
        try:
            lines.append(f"- {name}: {check(cp)}")
        except Exception as error:
            lines.append(f"- {name}: {message(error)}")
            gpu_checks.show(error)
        print(lines[-1], flush=True)
        target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prepare", action="store_true", help="write build/gpu, without a GPU")
    parser.add_argument("--date", default=str(datetime.date.today()), help="of the measurement")
    arguments = parser.parse_args()
    gpu_reference.prepare() if arguments.prepare else main(arguments.date)
