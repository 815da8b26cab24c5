"""Whether the energy of a motion adds up: what it has, what it had, and the work that was done."""

from __future__ import annotations

import numpy as np

from linkwise.model.mechanism import Mechanism
from linkwise.simulation.report import Report

ALLOWED = 0.1
"""Part of the energy that was exchanged which may be missing without a warning."""

SMALL = 1e-6
"""A height [m] of the whole mechanism: less energy than lifting it by this is not looked at."""


def energy_lost(report: Report, mech: Mechanism) -> str:
    """What to warn of, or "" where the energy adds up, or is not known to.

    The drift of energy, less what the works are not known to, is compared with the energy that was
    exchanged: the largest kinetic energy or work, whichever is larger.
    """
    if not np.isfinite(report.drift):
        return ""
    works = [abs(work) for work in report.works.values() if np.isfinite(work)]
    exchanged = max([report.kinetic, *works])
    missing = report.drift - report.notes.work_error
    floor = SMALL * mech.total_mass * max(float(np.linalg.norm(mech.gravity)), 1.0)
    if missing <= ALLOWED * exchanged + floor:
        return ""
    by = report.integrator
    if np.isfinite(report.step):
        what = f"{by!r} in steps of {report.step:.3g} s"
        do = f"Try step={0.1 * report.step:.1g}, or integrator='adaptive'."
    else:
        what, do = f"{by!r}", "Use smaller rtol and atol."
    return (
        f"the energy of {report.name!r} does not add up: {missing:.3g} J appeared or were lost by "
        f"{what}, {100.0 * missing / exchanged:.3g} % of the {exchanged:.3g} J that were "
        f"exchanged. The motion is not the mechanism's. {do}"
    )
