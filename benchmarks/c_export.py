"""Emitted C beside the LLVM kernel for one state: time of one evaluation, in compiled loops.

Run with `python benchmarks/c_export.py`; writes benchmarks/results/c_export.md. Both sides run the
same states from a loop in machine code, one at a time, and are compared with each other first.
"""

import ctypes
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import kernel as kernels
import machine
import numpy as np
import pinocchio_side as peer

import linkwise as lw
from linkwise.algebra import Expr
from linkwise.codegen.c.source import CSource
from linkwise.codegen.cpu.device import Processor
from linkwise.codegen.cpu.llvm import emit_graph
from linkwise.codegen.cpu.machine import load, object_code
from linkwise.codegen.kernel import Kernel
from linkwise.codegen.stages import Signature

QUANTITIES = ("forward dynamics", "inverse dynamics", "mass matrix")
FLAGS = {"-O2": ["-O2"], "-O2 -march=native": ["-O2", "-march=native"]}
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
STATES = 4096
RESULTS = Path(__file__).parent / "results" / "c_export.md"
LOOP = """
void loop(const double *const *inputs, double *out, long count)
{{
    long i;
    for (i = 0; i < count; ++i) {{
        {name}({arguments}, out + {width} * i);
    }}
}}
"""


def main() -> None:
    """Measure and write the table."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("no C compiler")
    version = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True)
    text = (
        "# Emitted C\n\nWritten by `make bench`. Nanoseconds for one state, called from a loop in "
        "machine code, and times the LLVM\nkernel's scalar function. Compiled with "
        f"`{' '.join(STRICT)}`. Without `-march=native` the compiler may not\nuse fused "
        "multiplications and additions. Results agree to the difference given.\n\n"
        f"{machine.description('linkwise', 'llvmlite')}\n"
        f"Compiler: {version.stdout.splitlines()[0]}. Load average {machine.load()}.\n\n"
        "| robot | quantity | operations | LLVM [ns] | "
        + " | ".join(f"C {flags}" for flags in FLAGS)
        + " | largest difference |\n"
        + "| --- " * 2
        + "| ---: " * (3 + len(FLAGS))
        + "|\n"
    )
    for title in kernels.ROBOTS:
        for quantity in QUANTITIES:
            line = row(compiler, title, quantity)
            print(line, flush=True)
            text += line + "\n"
    RESULTS.write_text(text)


def row(compiler: str, title: str, quantity: str) -> str:
    """One line of the table."""
    mech, _ = peer.models(*kernels.ROBOTS[title])
    expr = kernels.QUANTITIES[quantity]
    scalar = one_lane(expr, mech)
    source = lw.compile(expr, mech, target="c")
    assert isinstance(source, CSource)
    drawn = kernels.states(scalar, mech)
    arrays = [np.ascontiguousarray(x[:STATES]) for x in drawn]
    width = int(np.prod(scalar.signature.shape))
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    result = np.empty((STATES, width))
    out = np.empty((STATES, *scalar.signature.shape))
    expected = scalar(*arrays).reshape(STATES, width)
    cells, worst = list[str](), 0.0
    with tempfile.TemporaryDirectory() as folder:
        loops = [
            build(compiler, Path(folder), source.named(f"measured_{i}"), scalar, flags)
            for i, flags in enumerate(FLAGS.values())
        ]

        def ours(loop: Callable[..., object]) -> Callable[[], object]:
            return lambda: loop(ctypes.addressof(pointers), result.ctypes.data, STATES)

        reference = lambda: scalar(*arrays, out=out, threads=1)  # noqa: E731
        times = clocked([reference, *(ours(loop) for loop in loops)])
        for loop, seconds in zip(loops, times[1:], strict=True):
            result[:] = np.nan
            ours(loop)()
            worst = max(worst, float(np.abs(result - expected).max() / np.abs(expected).max()))
            cells.append(f"{1e9 * seconds / STATES:.0f} ns, {seconds / times[0]:.2f} times")
    if not worst < 1e-12:
        raise SystemExit(f"results differ by {worst:.1e}: nothing was measured")
    first = f"{title} | {quantity} | {scalar.ops.total()} | {1e9 * times[0] / STATES:.0f}"
    return f"| {first} | {' | '.join(cells)} | {worst:.0e} |"


def one_lane(expr: Expr, mech: lw.Mechanism) -> Kernel:
    """The kernel with scalar registers for batches as well."""
    usual = lw.compile(expr, mech, rolled=False)
    traced = usual.traced
    unit = emit_graph(traced, itemsize=8, lanes=1)
    code = load(object_code(unit), lanes=1, itemsize=8, work=unit.work)
    ops = traced.graph.count(traced.roots)
    signature = Signature(traced.inputs, traced.shape, ops)
    return Kernel(usual.request, "cpu", Processor(usual.request, signature, code))


def build(
    compiler: str, folder: Path, source: CSource, scalar: Kernel, flags: list[str]
) -> Callable[..., object]:
    """The emitted function with a loop around it, from a shared object."""
    source.write(folder)
    arguments = ", ".join(
        f"inputs[{i}] + {size} * i" for i, (_, size) in enumerate(scalar.signature.inputs)
    )
    width = int(np.prod(scalar.signature.shape))
    # The loop is in a separate file, so that calls are real calls, as a user's are.
    loop = LOOP.format(name=source.name, arguments=arguments, width=width)
    (folder / "loop.c").write_text(f'#include "{source.name}.h"\n{loop}', encoding="ascii")
    target = folder / f"{source.name}.so"
    files = [str(folder / f"{source.name}.c"), str(folder / "loop.c")]
    options = [*STRICT, *flags, "-shared", "-fPIC", "-o", str(target)]
    subprocess.run([compiler, *options, *files, "-lm"], check=True)
    function = ctypes.CDLL(str(target)).loop
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
    return function


def clocked(calls: list[Callable[[], object]], runs: int = 41) -> list[float]:
    """Median wall time [s] of each call; interleaved, so that noise is shared."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(runs):
        for seconds, call in zip(times, calls, strict=True):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
    return [statistics.median(t[1:]) for t in times]


if __name__ == "__main__":
    main()
