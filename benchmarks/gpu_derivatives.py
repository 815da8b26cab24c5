"""Derivatives of dynamics on a CUDA GPU: sets of matrices per second, and what memory allows.

    python benchmarks/gpu_derivatives.py [--dtype float32] [--robot panda.urdf]

Needs CuPy and a GPU; without a file the arm is `lw.models.seven_dof_arm()`. A set is all matrices
of one state: ∂v̇/∂q, ∂v̇/∂v and 𝓜⁻¹, or ∂τ/∂q, ∂τ/∂v and 𝓜. Results are compared with the
processor's before anything is timed. *Memory* is the share of the bandwidth that a copy reaches,
with the bytes that a set reads and writes.
"""

import argparse
from functools import partial

import numpy as np
from gpu import timed

import linkwise as lw
from linkwise.dynamics.derivatives import FORWARD_DERIVATIVES, INVERSE_DERIVATIVES

FORMULAS = {"forward": FORWARD_DERIVATIVES, "inverse": INVERSE_DERIVATIVES}
BATCHES = (1 << 14, 1 << 17, 1 << 20)


def bandwidth(cp) -> float:
    """Bytes per second that a copy reads and writes."""
    source = cp.zeros(1 << 28, np.float32)
    target = cp.empty_like(source)
    return 2 * source.nbytes / timed(cp, lambda: cp.copyto(target, source), 4)


def main() -> None:
    """Measure and print."""
    import cupy as cp

    options = argparse.ArgumentParser()
    options.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    options.add_argument("--robot")
    given = options.parse_args()
    mech = lw.load(given.robot) if given.robot else lw.models.seven_dof_arm()
    if mech.couplings:
        names = [c.name for c in mech.couplings]
        mech = mech.without(*names)
    limit, rng = bandwidth(cp), np.random.default_rng(0)
    print(f"{mech.name}, {mech.nv} dof, {given.dtype}; a copy moves {limit / 1e12:.2f} TB/s")
    for name, formula in FORMULAS.items():
        kernel = lw.compile(formula, mech, target="cuda", dtype=given.dtype)
        reference = lw.compile(formula, mech)
        states = np.array([mech.random(rng) for _ in range(64)])
        few = [states, *rng.standard_normal((2, 64, mech.nv))]
        expected = reference(*few)
        result = kernel(*(cp.asarray(x.astype(given.dtype)) for x in few))
        worst = max(
            float(np.abs(result[key].get() - x).max() / np.abs(x).max())
            for key, x in expected.items()
        )
        if not worst < (1e-9 if given.dtype == "float64" else 5e-3):
            raise SystemExit(f"{name}: results differ by {worst:.1e}: nothing was measured")
        numbers = sum(x.shape[1] for x in few) + kernel.signature.shape[0]
        size = numbers * np.dtype(given.dtype).itemsize + 4  # and the status
        for batch in BATCHES:
            arrays = [cp.asarray(np.tile(x, (batch // 64, 1)).astype(given.dtype)) for x in few]
            out = cp.empty((batch, kernel.signature.shape[0]), given.dtype)
            codes = cp.zeros(batch, np.int32)
            rate = batch / timed(cp, partial(kernel, *arrays, out=out, status=codes), 8)
            print(
                f"{name}: {batch:>8} states, {rate / 1e9:.3f} billion sets/s, {size} bytes a set, "
                f"{rate * size / 1e12:.2f} TB/s ({rate * size / limit:.0%} of memory), "
                f"{kernel.ops.total()} operations, difference {worst:.0e}"
            )
        function = kernel.device.loaded_on(0).function
        print(f"{name}: {function.num_regs} registers, {function.local_size_bytes} bytes spilled")


if __name__ == "__main__":
    main()
