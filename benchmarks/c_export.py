"""Emitted C beside the LLVM kernel for one state: time of one evaluation, in compiled loops.

Run with `python benchmarks/c_export.py [ROBOT ...]`; prints a table. Both sides run the same states
from a loop in machine code, and are compared with each other first.
"""

import ctypes
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import machine
import numpy as np

import linkwise as lw
from linkwise.algebra import N, bias, mass, tau, vdot
from linkwise.cli.robot import open_robot
from linkwise.codegen.c import emit_c

ROBOTS = ("puma560", "seven_dof_arm", "quadruped", "humanoid")
QUANTITIES = {
    "forward dynamics": (mass + N).inv @ (tau - bias),
    "inverse dynamics": (mass + N) @ vdot + bias,
    "mass matrix": mass + N,
}
FLAGS = {"-O2": ["-O2"], "-O2 -march=native": ["-O2", "-march=native"]}
STATES = 256
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
    """Measure and print."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("no C compiler")
    print(machine.description("linkwise", "llvmlite"))
    version = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True)
    print(f"Compiler: {version.stdout.splitlines()[0]}. Load average {machine.load()}.\n")
    print(
        "| robot | quantity | operations | LLVM [ns] | "
        + " | ".join(f"C {f}" for f in FLAGS)
        + " |"
    )
    print("| --- " * (4 + len(FLAGS)) + "|")
    for robot in sys.argv[1:] or ROBOTS:
        for title, expr in QUANTITIES.items():
            print(row(compiler, robot, title, expr), flush=True)


def row(compiler: str, robot: str, title: str, expr: lw.algebra.Expr) -> str:
    """One line of the table."""
    mech = open_robot(robot)
    kernel = lw.compile(expr, mech)
    rng = np.random.default_rng(0)
    drawn = {
        "q": np.array([mech.random(rng) for _ in range(STATES)]),
        "v": np.array([mech.random_velocity(rng) for _ in range(STATES)]),
    }
    arrays = [
        drawn[name] if name in drawn else rng.standard_normal((STATES, size))
        for name, size in kernel.traced.inputs
    ]
    width = len(kernel.traced.outputs)
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    expected, found = np.empty((2, STATES, width))
    cells = list[str]()
    with tempfile.TemporaryDirectory() as folder:
        loops = [
            build(compiler, Path(folder), kernel, flags, str(i))
            for i, flags in enumerate(FLAGS.values())
        ]

        def reference() -> None:
            kernel.machine.single(ctypes.addressof(pointers), expected.ctypes.data, STATES)

        def ours(loop: Callable[..., object]) -> Callable[[], object]:
            return lambda: loop(ctypes.addressof(pointers), found.ctypes.data, STATES)

        times = clocked([reference, *(ours(loop) for loop in loops)])
        for loop, seconds in zip(loops, times[1:], strict=True):
            found[:] = np.nan
            ours(loop)()
            assert np.abs(found - expected).max() <= 1e-11 * np.abs(expected).max()
            cells.append(f"{1e9 * seconds / STATES:.0f} ns, {seconds / times[0]:.2f} times")
    count = sum(kernel.ops.values())
    first = f"{mech.name} | {title} | {count} | {1e9 * times[0] / STATES:.0f}"
    return f"| {first} | {' | '.join(cells)} |"


def build(
    compiler: str, folder: Path, kernel: object, flags: list[str], mark: str
) -> Callable[..., object]:
    """The emitted function with a loop around it, from a shared object."""
    header, source = emit_c(
        kernel.traced, "measured", mech=kernel.mech, derivation=kernel.derivation
    )
    (folder / "measured.h").write_text(header, encoding="ascii")
    arguments = ", ".join(
        f"inputs[{i}] + {size} * i" for i, (_, size) in enumerate(kernel.traced.inputs)
    )
    width = len(kernel.traced.outputs)
    # The loop stands in a file of its own: calls are real calls, as a user's are.
    (folder / "measured.c").write_text(source, encoding="ascii")
    loop = LOOP.format(name="measured", arguments=arguments, width=width)
    (folder / "loop.c").write_text(f'#include "measured.h"\n{loop}', encoding="ascii")
    target = folder / f"measured_{mark}.so"
    options = ["-std=c99", *flags, "-shared", "-fPIC", "-o", str(target)]
    files = [str(folder / "measured.c"), str(folder / "loop.c")]
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
