"""What to say of rollouts: motions that fail, steps that are not solved, starts in the ground."""

from __future__ import annotations

import warnings
from collections import Counter
from contextvars import ContextVar
from typing import Any

import numpy as np

from linkwise.codegen.stepping.kernel import describe
from linkwise.errors import SimulationError, TroubleWarning, caller
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.implicit.ground import ContactPoint
from linkwise.simulation.implicit.inside import DEEP, warn_if_inside
from linkwise.simulation.implicit.segments import UNSOLVED, warn_unsolved
from linkwise.simulation.rollout_result import Rollout
from linkwise.simulation.stiff_drive import remedy
from linkwise.spatial.array import Array

REPORTED = ContextVar("reported", default=True)
"""Whether a batch warns of motions that fail; studies store their reasons instead."""


def report(result: Rollout) -> None:
    """Raise if a single motion failed; warn if some of many did."""
    if not REPORTED.get():
        return
    _report_unsolved(result)
    status = np.where(result.stopped >= 0, 0, result.status)
    if not np.any(status):
        return
    if result.batch is None:
        n = max(int(result.failed_step), 0)  # -1: the beginning itself
        raise SimulationError(
            f"{result.mech.name!r} by {result.integrator!r} in steps of {result.step:.6g} s: "
            f"{describe(result.mech, int(result.status))}, in the step after t = "
            f"{n * result.step:.9g} s. A shorter step or other forces may help."
            + remedy(result.mech, result.integrator),
            recording=result,
        )
    kinds = Counter(int(code) for code in status if code)
    (code, _), lost = kinds.most_common(1)[0], sum(kinds.values())
    first = int(np.flatnonzero(status)[0])
    when = max(float(result.failed_step[first]), 0.0) * result.step
    warnings.warn(
        f"{lost} of {result.batch} motions of {result.mech.name!r} end early and are NaN from "
        f"there; the first is number {first}, after t = {when:.6g} s. Most often: "
        f"{describe(result.mech, code)}." + remedy(result.mech, result.integrator),
        TroubleWarning,
        stacklevel=caller(),
    )


def report_inside(
    mech: Mechanism, q: Array, points: tuple[ContactPoint, ...], penetration: Any
) -> None:
    """Warn if a motion begins deep inside the ground: only then its first record is deep."""
    if penetration is None or penetration.shape[-1] < 2:
        return
    first = penetration[..., 1]
    if not bool((first <= DEEP).all()):  # NaN for a motion that failed at once
        deepest = int(first.argmax()) if q.ndim > 1 and len(q) > 1 else 0
        warn_if_inside(mech, q.reshape(-1, mech.nq)[deepest], points)


def _report_unsolved(result: Rollout) -> None:
    """Warn if impulses of some steps were not solved for."""
    if result.unsolved is None:
        return
    last: Any = result.unsolved[..., -1]  # NaN for motions that fail
    many = int((last > UNSOLVED).sum())
    if many:
        which = "" if result.batch is None else f" in {many} of {result.batch} motions"
        warn_unsolved(result.mech, float(last[last > UNSOLVED].max()), result.step, which)
