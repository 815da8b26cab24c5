"""Steps of one long rod on a GPU: `lw.simulation.implicit_step` by scans.

python benchmarks/rod_step_gpu.py --prepare [sizes]   # anywhere: code, tables, references
python benchmarks/rod_step_gpu.py                     # with a GPU: measures what was prepared
"""

import argparse
import lzma
import pickle
import time
from functools import partial
from pathlib import Path

import numpy as np
from long_chain_gpu import FOLDER, timed

SIZES, H, ROUNDS = (1_000, 10_000, 100_000, 1_000_000), 2e-3, 30
RESULTS = Path(__file__).parent / "results" / "rod_step_gpu.md"
HEAD = f"""# Steps of a rod on a GPU

Written by `python benchmarks/rod_step_gpu.py`. One elastic rod (`lw.models.rod`: bending, twist and
stretch at each link), one implicit step of {1e3 * H:g} ms from a bent state, float64. *Sweep* is
the rolled kernel on one core of the machine that prepared the run, shared with other work; *scan*
is the complete step of `lw.simulation.implicit_step(..., target="cuda")`, the median of {ROUNDS}
calls. *Difference* is that of the accelerations, of the largest entry.

| links | degrees of freedom | sweep, one core [ms] | scan, GPU [ms] | ratio | difference |
| ---: | ---: | ---: | ---: | ---: | ---: |
"""


def state(n: int) -> tuple[np.ndarray, np.ndarray]:
    """q and v of a bent rod."""
    rng = np.random.default_rng(0)
    scale = np.tile([1e-2, 1e-2, 1e-3, 1e-6], n)
    return scale * rng.uniform(-1, 1, 4 * n), scale * rng.normal(size=4 * n) / np.sqrt(n)


def pushed(q, v, numbers):
    """Dampers and springs at the end of the step."""
    d, k, rest = numbers
    return -d * v - k * (q + H * v - rest)


def prepare(sizes: list[int]) -> None:
    """Code, tables and references."""
    import linkwise as lw
    from linkwise.dynamics.passive import passive

    FOLDER.mkdir(parents=True, exist_ok=True)
    for n in sizes:
        mech = lw.models.rod(n, length=n / 1000.0)
        q, v = state(n)
        drives = passive(mech)
        numbers = drives.damping, drives.stiffness, drives.rest
        scan = lw.simulation.implicit_step(mech, H, target="cuda")
        sweep = lw.simulation.implicit_step(mech, H, target="cpu", schedule="sweep").kernel
        tau = pushed(q, v, numbers)
        value, spent = sweep(q, v, tau), list[float]()
        for _ in range(5):
            began = time.perf_counter()
            sweep(q, v, tau)
            spent.append(time.perf_counter() - began)
        packed = pickle.dumps((scan.kernel.device.code, numbers, value, min(spent)))
        (FOLDER / f"rod_{n}.xz").write_bytes(lzma.compress(packed, preset=1))
        print(f"{n}: sweep {1e3 * min(spent):.2f} ms", flush=True)


def measure() -> None:
    """Run what was prepared and write the table."""
    import cupy as cp

    from linkwise.codegen.scan.device import Loaded

    lines = [HEAD]
    for n in SIZES:
        path = FOLDER / f"rod_{n}.xz"
        if not path.exists():
            continue
        code, numbers, value, spent = pickle.loads(lzma.decompress(path.read_bytes()))
        q, v = (cp.asarray(x) for x in state(n))
        numbers = [cp.asarray(x) for x in numbers]
        loaded, out, mark = Loaded(cp, code), cp.empty(4 * n), cp.zeros(1, np.int32)
        tau, after = cp.empty(4 * n), cp.empty(4 * n)

        def step(loaded=loaded, q=q, v=v, out=out, mark=mark, tau=tau, after=after, x=numbers):
            tau[...] = pushed(q, v, x)
            loaded([q, v, tau], out, mark)
            after[...] = q + H * (v + H * out)

        step()
        assert int(mark[0]) == 0, f"status {int(mark[0])}"
        apart = float(np.abs(out.get() - value).max() / np.abs(value).max())
        on_gpu = sorted(timed(cp, partial(step)) for _ in range(ROUNDS))[ROUNDS // 2]
        cells = [f"{n:,}", f"{4 * n:,}", f"{1e3 * spent:.3f}", f"{on_gpu:.3f}"]
        cells += [f"{1e3 * spent / on_gpu:.1f}", f"{apart:.0e}"]
        lines.append(f"| {' | '.join(cells)} |\n")
        print(lines[-1], end="", flush=True)
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    RESULTS.write_text("".join([*lines, f"\nGPU: {name}.\n"]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("sizes", nargs="*", type=int)
    options = parser.parse_args()
    prepare(options.sizes or list(SIZES)) if options.prepare else measure()
