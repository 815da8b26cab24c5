"""Identify robots with known numbers from noisy data: docs/evidence/identification.md.

    python tools/identification.py                 writes docs/evidence/identification.md

Each arm follows an exciting motion within its limits. Its joint forces, with friction and dampers,
get noise of 2 % of their spread; 20 seeds. The share of 95 % intervals with the true number in them
should be near 95 %. In the second way only positions and forces are known, and `smoothed` makes
velocities and accelerations.
"""

import sys
import time
from importlib import metadata
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import linkwise as lw  # noqa: E402
from linkwise.identification import model  # noqa: E402
from linkwise.identification.rows import base_of  # noqa: E402

KINDS = ("inertia", "damping", "friction")
SEEDS, NOISE, STILL, BANDWIDTH = 20, 0.02, 1e-5, 8.0
PAGE = ROOT / "docs/evidence/identification.md"
HEAD = f"""\
# Identification of robots with known numbers

Written by `tools/identification.py`. Each arm follows a motion of `exciting_motion` within its
limits, for 10 s in steps of 10 ms. Noise of {100 * NOISE:g} % of the spread of each joint's force
is added, on {SEEDS} seeds. *Coverage* is the share of base parameters that are inside their 95 %
intervals; *error* is the root mean square of their errors in standard deviations, which should
be 1. *Measured* has exact velocities and accelerations. *Smoothed* has positions with noise of
{1e3 * STILL:g} mrad, through `smoothed` with {BANDWIDTH:g} Hz. *Numbers* are
base parameters; times are processor times of the fastest fit, on a machine with other work.

| robot | numbers | condition | coverage, measured | error | coverage, smoothed | error | time |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def robots() -> dict[str, lw.Mechanism]:
    """Arms from the library, from Menagerie and from example-robot-data."""
    files = metadata.files("example-robot-data") or []
    panda = lw.load(next(str(f.locate()) for f in files if f.name == "panda.urdf"), base="fixed")
    panda = panda.without(*(c.name for c in panda.couplings))
    fingers = [b.hinge_name for b in panda.bodies if "finger" in b.hinge_name]
    arms = {
        "pendulum of two links": lw.models.pendulum(2),
        "PUMA 560": lw.models.puma560(),
        "UR5e (Menagerie)": lw.load(ROOT / "tests/identification/menagerie_ur5e.xml"),
        "panda (example-robot-data)": panda.lock(fingers).merge_locked(),
    }
    return {name: with_friction(mech) for name, mech in arms.items()}


def with_friction(mech: lw.Mechanism) -> lw.Mechanism:
    """Dampers and friction of drives, smaller towards the hand."""
    for i, body in enumerate(mech.bodies):
        share = 1.0 / (1.0 + i)
        mech = mech.with_drive(body.hinge_name, damping=2.0 * share, friction=1.5 * share)
    return mech


def row(name: str, mech: lw.Mechanism) -> str:
    """The line of one robot."""
    m = lw.identification.exciting_motion(mech, parameters=KINDS)
    tau = lw.inverse_dynamics(mech, m.q, m.v, m.vdot)
    tau = tau + mech.damping * m.v + mech.friction * np.sign(m.v)
    base = base_of(mech, KINDS, list(range(mech.nv)))
    truth, noise = base.matrix @ model.nominal(mech, KINDS), NOISE * np.std(tau, axis=0)
    cells, condition, best = list[str](), 0.0, np.inf
    for smooth in (False, True):
        inside, off = 0, list[float]()
        for seed in range(SEEDS):
            rng = np.random.default_rng(seed)
            force = tau + noise * rng.standard_normal(tau.shape)
            data, slow = (m.q, m.v, m.vdot, force), model.STILL
            if smooth:
                q = m.q + STILL * rng.standard_normal(m.q.shape)
                made = lw.identification.smoothed(mech, m.t, q, force, bandwidth=BANDWIDTH)
                data, slow = (made.q, made.v, made.vdot, made.tau), 5e-3
            begun = time.process_time()
            fit = lw.identify(mech, *data, parameters=KINDS, slow=slow)
            best = min(best, time.process_time() - begun)
            low, high = fit.interval().T
            inside += int(((low <= truth) & (truth <= high)).sum())
            off.append(float(np.mean(((fit.estimate - truth) / fit.deviation) ** 2)))
            condition = condition or fit.condition
        share, error = inside / (SEEDS * len(truth)), float(np.sqrt(np.mean(off)))
        cells += [f"{100 * share:.1f} %", f"{error:.2f}"]
    line = f"| {name} | {len(truth)} | {condition:.0f} | {' | '.join(cells)} | {best:.2f} s |"
    print(line, flush=True)
    return line


if __name__ == "__main__":
    PAGE.write_text(HEAD + "\n".join(row(*x) for x in robots().items()) + "\n", encoding="utf-8")
