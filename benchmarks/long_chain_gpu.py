"""Forward dynamics of one chain of up to 1,000,000 links on a GPU, by scans, beside one core.

    python benchmarks/long_chain_gpu.py --prepare   here: code, tables and references of the sweep
    python benchmarks/long_chain_gpu.py             on a machine with a GPU: writes the table

The second needs NumPy and CuPy only. States are drawn again there from the same seed.
"""

import argparse
import lzma
import pickle
import time
from functools import partial
from pathlib import Path

import carried  # noqa: F401  (makes packages importable on a machine that lacks them)
import numpy as np

FOLDER = Path(__file__).parent.parent / "build" / "long_chain"
RESULTS = Path(__file__).parent / "results" / "long_chain_gpu.md"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
GOALS = {100_000: 0.3, 1_000_000: 2.0}
ROUNDS = 30
KINDS = ("forward dynamics", "inverse dynamics")

HEAD = """# Long chains on a GPU

Written by `python benchmarks/long_chain_gpu.py`. One chain of pins about y, x and z in turn,
float64, that of `chain.md`. *Sweep* is the rolled kernel on one core of the machine
that prepared the run, shared with other work (best of several calls); *scan* is `schedule="scan"`
on the GPU, arrays of the GPU in and out, the median of {rounds} calls timed by the GPU.
*Difference* is scan to sweep, of the largest entry.
*Residual* says how well accelerations fulfil the equations
of motion: inverse dynamics, by sweep or scan, returns the forces, which are of size 1 N m, and the
largest difference is given [N m]. Both grow with the length of the chain, whose links transmit
larger forces. *Runs* are the parts of the chain that threads sweep.

"""
COLUMNS = (
    *("quantity", "links", "runs", "sweep, one core [ms]", "scan, GPU [ms]", "goal [ms]", "ratio"),
    *("difference", "residual, sweep", "residual, scan"),
)


def state(n: int) -> tuple[np.ndarray, ...]:
    """q, v, and forces or accelerations."""
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, n), rng.normal(size=n) / np.sqrt(n), rng.normal(size=n)


def prepare(sizes: list[int]) -> None:
    """Code, tables and references."""
    import chain

    import linkwise as lw
    from linkwise.algebra import bias, mass, tau, vdot

    expressions = dict(zip(KINDS, (mass.inv @ (tau - bias), mass @ vdot + bias), strict=True))
    FOLDER.mkdir(parents=True, exist_ok=True)
    for n in sizes:
        mech = chain.chain(n)
        q, v, x = state(n)
        sweeps = {k: lw.compile(e, mech, rolled=True, cache=False) for k, e in expressions.items()}
        for kind, expr in expressions.items():
            scan = lw.compile(expr, mech, target="cuda", schedule="scan")
            sweep = sweeps[kind]
            value = sweep(q, v, x)
            spent = chain.best(partial(sweep, q, v, x), max(3, 200_000 // n))
            residual = np.nan
            if kind == KINDS[0]:
                residual = float(np.abs(sweeps[KINDS[1]](q, v, value) - x).max())
            packed = pickle.dumps((scan.device.code, value, spent, residual))
            path = FOLDER / f"{kind.split()[0]}_{n}.xz"
            path.write_bytes(lzma.compress(packed, preset=1))
            print(
                f"{path.name}: {path.stat().st_size >> 10} KiB, sweep {1e3 * spent:.2f} ms",
                flush=True,
            )


def measure() -> None:
    """Run what was prepared and write the table."""
    import cupy as cp

    from linkwise.codegen.scan.device import Loaded

    lines = [HEAD.format(rounds=ROUNDS)]
    lines += [f"| {' | '.join(COLUMNS)} |\n", f"| --- |{' ---: |' * (len(COLUMNS) - 1)}\n"]
    parts = list[str]()
    for kind in KINDS:
        for n in SIZES:
            path = FOLDER / f"{kind.split()[0]}_{n}.xz"
            if not path.exists():
                continue
            code, value, spent, residual = pickle.loads(lzma.decompress(path.read_bytes()))
            rows = [cp.asarray(x) for x in state(n)]
            out, mark = cp.empty(n), cp.zeros(1, np.int32)
            loaded = Loaded(cp, code)
            loaded(rows, out, mark)
            assert int(mark[0]) == 0, f"status {int(mark[0])}"
            got = out.get()
            apart = float(np.abs(got - value).max() / np.abs(value).max())
            times = sorted(timed(cp, partial(loaded, rows, out, mark)) for _ in range(ROUNDS))
            spent_gpu = times[ROUNDS // 2]
            ours = ""
            if kind == KINDS[0]:
                inverse = pickle.loads(lzma.decompress((FOLDER / f"inverse_{n}.xz").read_bytes()))[
                    0
                ]
                back = cp.empty(n)
                Loaded(cp, inverse)([*rows[:2], out], back, mark)
                ours = f"{float(cp.abs(back - rows[2]).max()):.0e}"
            sweep = f"{residual:.0e}" if np.isfinite(residual) else ""
            goal = GOALS.get(n, "") if kind == KINDS[0] else ""
            cells = [kind, f"{n:,}", f"{code.runs:,}", f"{1e3 * spent:.3f}", f"{spent_gpu:.3f}"]
            cells += [f"{goal}", f"{1e3 * spent / spent_gpu:.1f}", f"{apart:.0e}", sweep, ours]
            lines.append(f"| {' | '.join(cells)} |\n")
            print(lines[-1], end="", flush=True)
            stages = range(len(code.kinds))
            each = [
                (name, timed(cp, launch))
                for stage in stages
                for name, launch in loaded.launches(stage, (*rows, out, mark))
            ]
            parts.append(f"{kind}, {n:,}: " + ", ".join(f"{a} {1e3 * b:.0f}" for a, b in each))
            print(parts[-1], flush=True)
            loaded = rows = out = None
            cp.get_default_memory_pool().free_all_blocks()
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    lines.append(f"\nGPU: {name}. Kernels of a call in sequence [µs], each timed alone:\n\n")
    lines += [f"- {part}\n" for part in parts]
    RESULTS.write_text("".join(lines))


def timed(cp, work) -> float:
    """Time of the GPU [ms]."""
    begin, end = cp.cuda.Event(), cp.cuda.Event()
    begin.record()
    work()
    end.record()
    end.synchronize()
    return float(cp.cuda.get_elapsed_time(begin, end))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("sizes", nargs="*", type=int)
    options = parser.parse_args()
    began = time.perf_counter()
    if options.prepare:
        prepare(options.sizes or list(SIZES))
    else:
        measure()
    print(f"{time.perf_counter() - began:.0f} s")
