"""Derivatives of dynamics on a CUDA GPU: sets of matrices per second, and what memory allows.

    python benchmarks/gpu_derivatives.py --prepare   here: robots and references into build
    python benchmarks/gpu_derivatives.py             on a machine with a GPU: writes the page

The first needs Pinocchio and the files of its robots, the second NumPy and CuPy only. Results are
compared with the processor's before anything is timed.
"""

import argparse
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import machine
import numpy as np

import linkwise as lw
from linkwise.dynamics.derivatives import FORWARD_DERIVATIVES, INVERSE_DERIVATIVES

FORMULAS = {"inverse dynamics": INVERSE_DERIVATIVES, "forward dynamics": FORWARD_DERIVATIVES}
STATES, BATCH = 64, 1 << 20
ALLOWED = {"float32": 5e-3, "float64": 1e-9}
HERE = Path(__file__).parent
PREPARED = HERE.parent / "build" / "gpu_derivatives.pickle"
RESULTS = HERE / "results" / "gpu_derivatives.md"
HEAD = """# Derivatives on a CUDA GPU

Written by `python benchmarks/gpu_derivatives.py`. A set is all matrices of one state: ∂τ/∂q, ∂τ/∂v
and 𝓜 of inverse dynamics, ∂v̇/∂q, ∂v̇/∂v and 𝓜⁻¹ of forward dynamics. Billions of sets per second,
from arrays on the GPU to an array on the GPU with the status of every state, 2^20 states a call:
the median of 9 rounds, timed by the GPU. *Bytes* are those that a set reads and writes; *share* is
that of the bandwidth of a copy, {copy:.2f} TB/s here. *Operations* are those of the graph that
runs. *Values* is how many of them wait for their use at most, in the order they are computed in; a
thread has 255 registers. *Spilled* are bytes of a thread that went to memory instead. The last
column is the largest difference from the processor in float64, relative to the largest entry.

GPU: {gpu}. {versions}.

| robot (dof) | numbers | derivatives of | operations | values | spilled | billion sets/s | \
bytes | share | difference |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def prepare() -> None:
    """Write the robots, states and results of the processor."""
    import pinocchio_side as peer
    from derivatives import ROBOTS

    panda, _ = peer.models(*ROBOTS["panda (7)"][0])
    kept, rng = dict[str, Any](), np.random.default_rng(0)
    for name, mech in {"seven_dof_arm (7)": lw.models.seven_dof_arm(), "panda (7)": panda}.items():
        q = np.array([mech.random(rng) for _ in range(STATES)])
        given = [q, *rng.standard_normal((2, STATES, mech.nv))]
        expected = {title: lw.compile(f, mech)(*given) for title, f in FORMULAS.items()}
        kept[name] = mech, given, expected
    PREPARED.parent.mkdir(exist_ok=True)
    PREPARED.write_bytes(pickle.dumps(kept))


def bandwidth(cp: Any, timed: Any) -> float:
    """Bytes per second that a copy reads and writes."""
    source = cp.zeros(1 << 28, np.float32)
    target = cp.empty_like(source)
    return 2 * source.nbytes / timed(cp, lambda: cp.copyto(target, source), 4)


def main() -> None:
    """Measure everything and write the page."""
    import cupy as cp
    from gpu import timed

    copy = bandwidth(cp, timed)
    gpu = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    versions = f"{machine.versions('numpy')}, CuPy {cp.__version__}"
    text = HEAD.format(copy=copy / 1e12, gpu=gpu, versions=versions)
    for name, (mech, given, expected) in pickle.loads(PREPARED.read_bytes()).items():
        for dtype in ALLOWED:
            for title in FORMULAS:
                line = row(cp, timed, mech, title, given, expected[title], dtype, copy)
                print(f"| {name} | {dtype} | {title} | {line}", flush=True)
                text += f"| {name} | {dtype} | {title} | {line}\n"
    RESULTS.write_text(text, encoding="utf-8")


def row(
    cp: Any,
    timed: Any,
    mech: lw.Mechanism,
    title: str,
    given: list[Any],
    expected: dict[str, Any],
    dtype: str,
    copy: float,
) -> str:
    """The rest of a line of the table."""
    from linkwise.codegen.cuda.plan import planned

    kernel = lw.compile(FORMULAS[title], mech, target="cuda", dtype=dtype)
    few = [cp.asarray(x.astype(dtype)) for x in given]
    result = kernel(*few)
    worst = max(
        float(np.abs(result[key].get() - x).max() / np.abs(x).max()) for key, x in expected.items()
    )
    if not worst < ALLOWED[dtype]:
        raise SystemExit(f"{title}: results differ by {worst:.1e}: nothing was measured")
    arrays = [cp.tile(x, (BATCH // STATES, 1)) for x in few]
    out = cp.empty((BATCH, *kernel.signature.shape), dtype)
    codes = cp.zeros(BATCH, np.int32)
    rate = BATCH / timed(cp, partial(kernel, *arrays, out=out, status=codes), 8)
    size = sum(x[0].nbytes for x in (*arrays, out)) + 4  # and the status
    function, (graph, *_) = kernel.device.loaded_on(0).function, planned(kernel.request)
    return (
        f"{graph.operations():,} | {graph.in_registers()[1]} | {function.local_size_bytes} | "
        f"{rate / 1e9:.2f} | {size} | {rate * size / copy:.0%} | {worst:.0e} |"
    )


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--prepare", action="store_true")
    prepare() if options.parse_args().prepare else main()
