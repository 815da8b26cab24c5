"""How well accelerations fulfil the equations of motion: docs/evidence/accuracy.md.

    python tools/residuals.py [--count 10040] [--workers 2]

Each mechanism is a random tree of 1 to 60 bodies with every kind of hinge, masses up to a million
to one, on the ground or floating, with and without armature. For v̇ of the forward dynamics,

    r = |𝓜 v̇ + C - τ| / (|𝓜| |v̇| + |C| + |τ|), the largest entry above by the largest below,

with the mass matrix from Jacobians of the bodies, which shares no code with the sweeps, and C by
the interpreter. What is tried is the interpreter, and for every 100th one the compiled kernel.
A dense solve of 𝓜 v̇ = τ - C is measured beside it.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import linkwise as lw  # noqa: E402
from linkwise.dynamics.quantity import expression  # noqa: E402
from linkwise.sweeps.interpret import run  # noqa: E402
from linkwise.sweeps.program import Program  # noqa: E402
from tests.dense_kinematics import mass_matrix  # noqa: E402

PAGE = ROOT / "docs" / "evidence" / "accuracy.md"
BOUND = 1e-12
EVERY = 100

Row = tuple[int, int, int, float, float, float, float, float]
"""seed, bodies, dof, mass ratio, condition, residual, of the kernel (or nan), of dense."""


def draw(seed: int) -> tuple[lw.Mechanism, np.random.Generator]:
    """A mechanism of 1 to 60 bodies; sizes and ratios of masses are even on a log scale."""
    rng = np.random.default_rng(seed)
    n = round(float(np.exp(rng.uniform(0.0, np.log(60.0)))))
    mech = lw.models.random_tree(
        n,
        seed,
        floating=bool(rng.random() < 0.5),
        branching=float(rng.choice([0.0, 0.4, 1.0])),
        drives=bool(rng.random() < 0.5),
        mass_ratio=10.0 ** rng.uniform(0.0, 6.0),
    )
    return mech, rng


@cache
def program(name: str) -> Program:
    """The sweeps of a quantity, as derived."""
    return lw.plan(lw.derive(expression(name)).result)


def measured(seed: int) -> Row | None:
    """The residuals of one mechanism; None if nothing moves."""
    mech, rng = draw(seed)
    if mech.nv == 0:
        return None
    q, v = mech.random(rng), mech.random_velocity(rng)
    tau = 3.0 * rng.standard_normal(mech.nv)
    A = mass_matrix(mech, q)
    c = run(program("bias_force"), mech, q, v)

    def residual(vdot: np.ndarray) -> float:
        size = np.abs(A) @ np.abs(vdot) + np.abs(c) + np.abs(tau)
        return float(np.abs(A @ vdot + c - tau).max() / size.max())

    sweeps = program("forward_dynamics")
    result = residual(run(sweeps, mech, q, v, values={"tau": tau}))
    compiled = float("nan")
    if seed % EVERY == 0:
        forward = expression("forward_dynamics")
        compiled = residual(lw.compile(forward, mech, cache=False)(q, v, tau))
    masses = mech.inertias.mass
    ratio = float(masses.max() / masses.min())
    dense = residual(np.linalg.solve(A, tau - c))
    condition = float(np.linalg.cond(A))
    return seed, mech.n_bodies, mech.nv, ratio, condition, result, compiled, dense


def main() -> None:
    """Measure, and write the page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=10_040)
    options.add_argument("--workers", type=int, default=2)
    request = options.parse_args()
    rows, start = list[Row](), time.perf_counter()
    with ProcessPoolExecutor(request.workers) as pool:
        for i, row in enumerate(pool.map(measured, range(request.count), chunksize=20)):
            if row is not None:
                rows.append(row)
            if i % 100 == 99:
                took = time.perf_counter() - start
                worst = max(r[5] for r in rows)
                print(f"\r{i + 1} of {request.count}, {took:.0f} s, worst {worst:.1e}", end="")
    print()
    PAGE.write_text(page(rows), encoding="utf-8")


def page(rows: list[Row]) -> str:
    """The page of the documentation."""
    table = np.array(rows)
    result, compiled, dense = table[:, 5], table[:, 6], table[:, 7]
    compiled = compiled[~np.isnan(compiled)]
    above = int((result > BOUND).sum() + (compiled > BOUND).sum())
    lines = [_HEAD.format(count=len(rows), kernels=len(compiled), above=above)]
    lines += ["| | median | 99 % | worst |", "| --- | --- | --- | --- |"]
    for name, values in (
        ("sweeps, by the interpreter", result),
        ("sweeps, compiled", compiled),
        ("dense solve of the mass matrix", dense),
    ):
        low, high, worst = np.quantile(values, [0.5, 0.99, 1.0])
        lines.append(f"| {name} | {low:.1e} | {high:.1e} | {worst:.1e} |")
    lines += ["", "The worst ten:", ""]
    head = ["seed", "bodies", "dof", "ratio of masses", "condition of 𝓜", "sweeps", "dense"]
    lines += ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for seed, n, nv, ratio, condition, residual, _, plain in sorted(rows, key=lambda r: -r[5])[:10]:
        cells = [f"{seed}", f"{n}", f"{nv}", f"{ratio:.1e}", f"{condition:.1e}"]
        lines.append("| " + " | ".join([*cells, f"{residual:.1e}", f"{plain:.1e}"]) + " |")
    return "\n".join([*lines, "", _WHY])


_HEAD = """# Accuracy

How well do accelerations fulfil the equations of motion? On {count} random mechanisms that move,
with 1 to 60 bodies, every kind of hinge, mass ratios up to a million, fixed or floating, with and
without armature, this page compares 𝓜 v̇ + C with τ: the largest entry of the difference, relative
to the largest entry of |𝓜| |v̇| + |C| + |τ|. The mass matrix is the sum over the Jacobians of the
bodies and shares no code with the sweeps; {kernels} of the mechanisms were also compiled. Above
1e-12: {above}. `tools/residuals.py` writes this page and has the seeds.
"""

_WHY = """\
Causes of the worst residuals: in each case examined (8727, 4498, 5095, 3368), a gimbal is near its
lock (D of condition 1e3 to 2e7, gains G up to 100), and products with a large gain are rounded at
their size. Rounding also accumulates along the tree, so long trees come next. The residual
correlates with the number of bodies and with the condition of 𝓜 (correlation of the logarithms 0.6
each), less with the ratio of masses (0.4), and stays near the spacing of floating-point numbers,
2.2e-16. The accelerations themselves are less accurate: a condition of 1e10 means that a change of
τ in its last digit changes some of them in the sixth, whatever the method.

Earlier versions were less accurate. P⁺ = P - P H\\* D⁻¹ H P is the part of the inertia P that a
hinge transmits: for a heavy body on a free hinge nothing at all, a difference of large numbers.
With an explicit D⁻¹ its error grows with the condition of D, and residuals up to 1e-11 occurred.
Now D = L Δ L\\* is never inverted: with Y = L⁻¹ H P, P⁺ = P - Y\\* Δ⁻¹ Y (`sweeps/factored.py`), in
the interpreter and in every kernel, with about the same number of operations.
"""


if __name__ == "__main__":
    main()
