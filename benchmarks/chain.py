"""Serial chains from 10 to 100,000 links: forward dynamics of one state, one core.

Run with `python benchmarks/chain.py`; writes benchmarks/results/chain.md. Pinocchio's `aba` runs in
the same process as long as its data fit into memory: they hold four dense nv x nv x nv tensors.
Results are compared first.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import machine
import numpy as np
import pinocchio as pin

import linkwise as lw
from linkwise.algebra import bias, mass, tau
from linkwise.model import Builder
from linkwise.model.hinges import Pin
from linkwise.spatial import Pose, SpatialInertia

SIZES = (10, 30, 100, 300, 600, 1_000, 10_000, 100_000)
BATCH, LARGEST_BATCH, LARGEST_PINOCCHIO = 64, 1_000, 600
FORWARD_DYNAMICS = mass.inv @ (tau - bias)
RESULTS = Path(__file__).parent / "results" / "chain.md"

COM, OFFSET = (0.01, 0.02, 0.1), (0.0, 0.0, 0.2)
AXES = {"y": (0.0, 1.0, 0.0), "x": (1.0, 0.0, 0.0), "z": (0.0, 0.0, 1.0)}


def main() -> None:
    """Measure and write the table."""
    lines = [
        "# Serial chains",
        "",
        "Written by `make bench`. Three kinds of links in turn, with pins about y, x and z;",
        "forward dynamics in float64 on one core. *One call* is a call from Python, the result",
        f"made anew; *batch* is {BATCH} states in one call. Operations are multiplications and",
        "additions for one body. Chains of more than 64 links get loops over bodies by themselves;",
        "here all have them, so that the code is the same for all lengths (a few instructions more",
        "or less where a length is no multiple of the vector width). *Compile* has the derivation,",
        "the code and the tables of where the numbers of each body stand, which take some",
        "microseconds a body.",
        "",
        machine.description("linkwise", "numpy", "llvmlite", "pin"),
        "",
        f"Load average {machine.load()}.",
        "",
        "| links | compile [s] | instructions | one call [µs] | ns per body | batch, ns a body | "
        "operations a body | scratch [MB] | Pinocchio aba [µs] | ratio | largest difference |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    peak = [peak_memory(n) for n in (10, 100_000)]  # first: children inherit the peak of this one
    times = dict[int, float]()
    lw.compile(FORWARD_DYNAMICS, chain(12), rolled=True, cache=False)  # imports
    for n in SIZES:
        text, times[n] = row(n)
        lines.append(text)
        print(lines[-1], flush=True)
    first, second = times[10_000] / times[1_000], times[100_000] / times[10_000]
    lines += [
        "",
        f"Cost of 10,000 links over 1,000: {first:.2f}; of 100,000 over 10,000: {second:.2f}.",
        f"A process that builds, compiles and runs 100,000 links takes at most {peak[1]:.0f} MB,",
        f"one for 10 links {peak[0]:.0f} MB. Pinocchio would need 32 GB at 1,000 links.",
    ]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(lines) + "\n")


def peak_memory(n: int) -> float:
    """Peak memory [MB] of a separate process that makes and runs a chain."""
    command = [sys.executable, __file__, "--memory", str(n)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def run_once(n: int) -> None:
    """Make a chain, run it once, print the most memory this process has had [MB]."""
    mech = chain(n)
    kernel = lw.compile(FORWARD_DYNAMICS, mech, rolled=True, cache=False)
    kernel(*np.zeros((3, n)))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)


def row(n: int) -> tuple[str, float]:
    """One line of the table, and the time of one call [s]."""
    mech = chain(n)
    began = time.perf_counter()
    kernel = lw.compile(FORWARD_DYNAMICS, mech, rolled=True, cache=False)
    seconds = time.perf_counter() - began
    rng = np.random.default_rng(0)
    q, v, force = rng.uniform(-1, 1, n), rng.normal(size=n) / np.sqrt(n), rng.normal(size=n)
    theirs = pinocchio_aba(n) if n <= LARGEST_PINOCCHIO else None
    difference, other, ratio = "", "", ""
    if theirs is not None:
        expected = np.array(theirs(q, v, force))
        error = float(np.abs(kernel(q, v, force) - expected).max() / np.abs(expected).max())
        if error > 1e-8:
            raise SystemExit(f"{n} links: results differ by {error:.1e}: nothing was measured")
        difference = f"{error:.0e}"
    rounds = max(5, 200_000 // n)
    one = best(lambda: kernel(q, v, force), rounds)
    if theirs is not None:
        aba = theirs
        spent = best(lambda: aba(q, v, force), max(5, rounds // 4))
        other, ratio = f"{1e6 * spent:.1f}", f"{spent / one:.1f}"
    batch = ""
    if n <= LARGEST_BATCH:
        rows = [np.tile(x, (BATCH, 1)) for x in (q, v, force)]
        each = best(lambda: kernel(*rows, threads=1), max(5, rounds // 16)) / BATCH
        batch = f"{1e9 * each / n:.1f}"
    ops = (kernel.ops["mul"] + kernel.ops["add"] + kernel.ops["sub"]) / n
    size = sum(line.startswith("  ") for line in kernel.source.splitlines())
    scratch = kernel.device.machine.work * 8 / 1e6
    line = (
        f"| {n:,} | {seconds:.2f} | {size:,} | {1e6 * one:.1f} | {1e9 * one / n:.1f} | {batch} | "
        f"{ops:.0f} | {scratch:.2f} | {other} | {ratio} | {difference} |"
    )
    return line, one


def links(n: int) -> list[tuple[float, str]]:
    """Mass and axis of each link."""
    return [(1.0 + 0.1 * (i % 3), "yxz"[i % 3]) for i in range(n)]


def moments(m: float) -> np.ndarray:
    """Rotational inertia about the centre of mass."""
    return m * np.diag([0.004, 0.005, 0.003])


def chain(n: int) -> lw.Mechanism:
    """The chain in Linkwise."""
    b = Builder(f"chain_{n}")
    pins = {name: Pin(axis) for name, axis in AXES.items()}
    inertias = {m: SpatialInertia.from_com(m, COM, moments(m)) for m, _ in links(min(n, 3))}
    outward = Pose.translation(OFFSET)
    parent = "world"
    for i, (m, axis) in enumerate(links(n), start=1):
        inboard = Pose.identity() if i == 1 else outward
        b.body(f"link{i}", parent, pins[axis], inboard=inboard, inertia=inertias[m])
        parent = f"link{i}"
    return b.build()


def pinocchio_chain(n: int) -> pin.Model:
    """The same chain in Pinocchio."""
    kinds = {"x": pin.JointModelRX, "y": pin.JointModelRY, "z": pin.JointModelRZ}
    model, parent = pin.Model(), 0
    for i, (m, axis) in enumerate(links(n), start=1):
        placement = pin.SE3(np.eye(3), np.array(OFFSET if i > 1 else (0.0, 0.0, 0.0)))
        parent = model.addJoint(parent, kinds[axis](), placement, f"joint{i}")
        inertia = pin.Inertia(m, np.array(COM), moments(m))
        model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
    return model


def pinocchio_aba(n: int) -> Callable[..., np.ndarray]:
    """Forward dynamics of that chain, ready to be called."""
    model = pinocchio_chain(n)
    data = model.createData()
    return lambda q, v, force: pin.aba(model, data, q, v, force)


def best(work: Callable[[], object], rounds: int) -> float:
    """Shortest of several runs [s]: the least disturbed."""
    times = list[float]()
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        run_once(int(sys.argv[2]))
    else:
        main()
