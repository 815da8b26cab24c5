"""Elastic rods: links with springs beside ANCF cable elements of exudyn, at equal accuracy.

    python benchmarks/rod.py EXUDYN_PYTHON

EXUDYN_PYTHON is the interpreter of an environment with exudyn from PyPI and NumPy.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
import numpy as np

import linkwise as lw
from linkwise.simulation.implicit.long_steps import LongSteps

RESULTS = Path(__file__).parent / "results" / "rod.md"
LENGTH, RADIUS, DENSITY, E, DAMPING = 1.0, 0.005, 1000.0, 1e7, 0.01
AREA, MOMENT = np.pi * RADIUS**2, 0.25 * np.pi * RADIUS**4
TIMES = [0.25, 0.5, 0.75, 1.0]
STEPS = (5e-3, 2.5e-3, 1.25e-3)
"""Each divides the times of the records."""
OURS = [(n, h) for n in (16, 32, 64, 128) for h in (*STEPS, 6.25e-4)]
OURS += [(1000, 2.5e-3)]
THEIRS = [(n, h) for n in (8, 16, 32, 64) for h in STEPS]
REFERENCE = (64, 5e-4)
LEVELS = (0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)

HEAD = """# Elastic rods beside exudyn

Written by `python benchmarks/rod.py EXUDYN_PYTHON`, with exudyn {version}. *Time* is
that of the processor for one thread, since the machine was shared with other work. A cantilever
of {length:g} m falls from the horizontal under its weight (radius {radius:g} m, {density:g} kg/m³,
E = {E:g} N/m², Kelvin-Voigt damping {damping:g} s) and swings by more than a right angle within
1 s. *Linkwise*: `lw.models.rod` of n links, which also may twist and bend out of the plane (4 n
degrees of freedom), by implicit steps of order one; *extrapolated*: twice the motion with half the
step less the motion with the step, which is of order two and takes the time of both. *exudyn*: n
ANCF cable elements in the plane (4 (n + 1) coordinates), generalised-α, sparse solver.

*Error* is the largest distance of the tip from that of exudyn with {elements} elements and steps of
{step:g} s at t = 0.25, 0.5, 0.75 and 1 s. Model and kernels
are made before the time is taken.

{machine}
"""


def ours(n: int, h: float) -> tuple[np.ndarray, float]:
    """Tip (x, z) at TIMES, and time [s]."""
    mech = lw.models.rod(
        n,
        length=LENGTH,
        radius=RADIUS,
        density=DENSITY,
        youngs_modulus=E,
        damping=DAMPING,
    )
    stepper, path = LongSteps(mech, actuated=False, passive=True), []
    state = stepper.first(mech.neutral(), np.zeros(mech.nv))
    began = time.process_time()
    for _ in TIMES:
        given = np.zeros((1, mech.nv)), np.zeros((1, 0))
        state = stepper.advance(state, h, round(TIMES[0] / h), *given).last
        path.append(mech.pose(state.q, "tip").p[[0, 2]])
    return np.array(path), time.process_time() - began


def theirs(python: str) -> dict:
    """What exudyn computes."""
    rod = {"length": LENGTH, "mass": DENSITY * AREA, "EI": E * MOMENT, "EA": E * AREA}
    case = {"rod": rod | {"damping": DAMPING}, "runs": [*THEIRS, REFERENCE], "times": TIMES}
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "case.json", Path(folder) / "made.json"
        given.write_text(json.dumps(case))
        side = Path(__file__).parent / "exudyn_rod_side.py"
        subprocess.run([python, str(side), str(made), str(given)], check=True)
        return json.loads(made.read_text())


def main(python: str) -> None:
    """Measure, and write the page."""
    other = theirs(python)
    reference = np.array(other["runs"][-1]["path"])
    rows = list[tuple[str, int, float, float, float]]()
    for run in other["runs"][:-1]:
        error = np.linalg.norm(np.array(run["path"]) - reference, axis=1).max()
        rows.append(("exudyn", run["elements"], run["step"], error, run["spent"]))
    made = dict[tuple[int, float], tuple[np.ndarray, float]]()
    for n, h in OURS:
        path, spent = ours(n, h)
        made[n, h] = path, spent
        rows.append(("Linkwise", n, h, np.linalg.norm(path - reference, axis=1).max(), spent))
    for n, h in OURS:
        if (n, 0.5 * h) in made:
            (coarse, first), (fine, second) = made[n, h], made[n, 0.5 * h]
            error = np.linalg.norm(2.0 * fine - coarse - reference, axis=1).max()
            rows.append(("Linkwise, extrapolated", n, h, error, first + second))
    lines = [
        HEAD.format(
            version=other["version"],
            machine=machine.description(),
            length=LENGTH,
            radius=RADIUS,
            density=DENSITY,
            E=E,
            damping=DAMPING,
            elements=REFERENCE[0],
            step=REFERENCE[1],
        )
    ]
    lines.append("\n## Shortest time to an accuracy\n\n")
    lines.append(
        "| error of the tip below [m] | Linkwise: links, step, time [s] | exudyn: elements, "
    )
    lines.append("step, time [s] | exudyn over Linkwise |\n| ---: | ---: | ---: | ---: |\n")
    for level in LEVELS:
        best = list[tuple[str, float]]()
        for name in ("Linkwise", "exudyn"):
            good = [x for x in rows if x[0].startswith(name) and x[3] < level]
            x = min(good, key=lambda x: x[4], default=None)
            text = "not reached" if x is None else f"{x[1]}, {1e3 * x[2]:g} ms, {x[4]:.3f}"
            text += " (extrapolated)" if x is not None and x[0].endswith("extrapolated") else ""
            best.append((text, np.nan if x is None else x[4]))
        ratio = best[1][1] / best[0][1]
        ratio = f"{ratio:.2g}" if np.isfinite(ratio) else ""
        lines.append(f"| {level:g} | {best[0][0]} | {best[1][0]} | {ratio} |\n")
    lines.append(
        "\n## All runs\n\n| program | links or elements | step [ms] | error [m] | time [s] |\n"
    )
    lines.append("| --- | ---: | ---: | ---: | ---: |\n")
    for name, n, h, error, spent in rows:
        lines.append(f"| {name} | {n} | {1e3 * h:g} | {error:.4f} | {spent:.3f} |\n")
    RESULTS.write_text("".join(lines))


if __name__ == "__main__":
    main(sys.argv[1])
