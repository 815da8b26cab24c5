"""Flexible bodies on a CUDA GPU: accelerations and motions of an arm against the CPU, and times.

    python benchmarks/flexible_gpu.py --prepare   here: references into build/flexible_gpu.npz
    python benchmarks/flexible_gpu.py             on a machine with a GPU: writes the results

The second needs NumPy and CuPy only, and exits with 1 where something differs.
"""

import sys
from pathlib import Path

import numpy as np
from gpu import timed
from gpu_reference import FOLDER, flexible_arm

import linkwise as lw
from linkwise.algebra import bias, mass, tau

STORED = FOLDER.parent / "flexible_gpu.npz"
FORWARD = mass.inv @ (tau - bias)
STATES, LARGE, MOTIONS, STEPS, STEP = 1024, 1 << 20, 1 << 16, 100, 1e-3
BOUND = {"float64": 1e-10, "float32": 2e-3}
RESULTS = Path(__file__).parent / "results" / "flexible_gpu.md"
HEAD = f"""# Flexible bodies on a CUDA GPU

Written by `python benchmarks/flexible_gpu.py`. An arm of two flexible links (`lw.flexible.beam`)
with geared motors. *Accelerations*: forward dynamics of 2^20 states a call. *Implicit steps*:
{MOTIONS:,} motions of {STEPS} steps of {1e3 * STEP:g} ms, of which only the last state is stored.
Arrays of the GPU in and out, timed by the GPU. *Difference* is the largest one from the CPU in
float64, relative to the largest entry, of {STATES:,} states or motions.

| quantity | numbers | millions per second | difference |
| --- | --- | ---: | ---: |
"""


def states(mech: lw.Mechanism, count: int) -> dict[str, np.ndarray]:
    """Numbers that both precisions have."""
    rng = np.random.default_rng(1)
    given = {"q": np.array([mech.random(rng) for _ in range(min(count, STATES))])}
    given |= {x: rng.standard_normal((len(given["q"]), mech.nv)) for x in ("v", "tau")}
    rows = np.arange(count) % STATES
    return {name: x.astype(np.float32).astype(float)[rows] for name, x in given.items()}


def motions(target: str, dtype: str, count: int):
    """The arm falls from different heights, by implicit steps."""
    mech = flexible_arm()
    q = np.zeros((count, mech.nq), dtype)
    q[:, 0] = np.linspace(-1.0, 1.0, STATES)[np.arange(count) % STATES]
    options = {"duration": STEPS * STEP, "step": STEP, "record_every": STEPS}
    return lambda: lw.rollout(mech, q, integrator="implicit", target=target, dtype=dtype, **options)


def prepare() -> None:
    """The results of the CPU, and the interpreter's in a few states."""
    mech = flexible_arm()
    given = states(mech, STATES)
    arrays = [given[x] for x in ("q", "v", "tau")]
    forward = lw.compile(FORWARD, mech)(*arrays)
    reference = lw.compile(FORWARD, mech, target="numpy")
    for i in range(3):
        again = reference(*(x[i] for x in arrays))
        assert np.abs(again - forward[i]).max() < 1e-10 * np.abs(again).max()
    last = motions("cpu", "float64", STATES)()
    STORED.parent.mkdir(parents=True, exist_ok=True)
    np.savez(STORED, forward=forward, q=last.q[:, -1], v=last.v[:, -1])
    print(f"prepared {STORED}")


def main() -> None:
    """Prepare, or compare and measure."""
    if "--prepare" in sys.argv:
        prepare()
        return
    import cupy as cp

    mech, stored, fine, page = flexible_arm(), np.load(STORED), True, [HEAD]
    for dtype in BOUND:
        kernel = lw.compile(FORWARD, mech, target="cuda", dtype=dtype)
        given = states(mech, LARGE)
        arrays = [cp.asarray(given[x].astype(dtype)) for x in kernel.arguments]
        result = kernel(*arrays)
        expected = stored["forward"]
        apart = np.abs(result[:STATES].get() - expected).max() / np.abs(expected).max()
        fine &= bool(apart < BOUND[dtype])
        seconds = timed(cp, lambda: kernel(*arrays), 4)  # noqa: B023
        page.append(f"| accelerations | {dtype} | {LARGE / seconds / 1e6:.1f} | {apart:.0e} |\n")
        run = motions("cuda", dtype, MOTIONS)
        last = run()
        apart = max(
            float(np.abs(getattr(last, x)[:STATES, -1] - stored[x]).max() / np.abs(stored[x]).max())
            for x in "qv"
        )
        fine &= bool(apart < 10.0 * BOUND[dtype])
        seconds = timed(cp, run, 1, rounds=3)
        rate = MOTIONS * STEPS / seconds / 1e6
        page.append(f"| implicit steps | {dtype} | {rate:.1f} | {apart:.0e} |\n")
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    RESULTS.write_text("".join([*page, f"\nGPU: {name}.\n"]), encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
