"""A warning where flexible bodies bend further than their modes describe."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import BendingWarning
from linkwise.model.bending import warn_if_bent

SECTION = {"area": 1e-4, "bending": 1e-9, "young": 7e9, "density": 2700.0}


def arm(
    second: bool = True, hinge: lw.hinges.Hinge | None = None
) -> tuple[lw.flexible.FlexibleBody, lw.Mechanism]:
    beam = lw.flexible.beam(2.0, **SECTION, modes=2, lumps=3, directions=("y", "rz"))
    if not second:
        parts = (beam.positions, beam.modes, beam.stiffness, beam.masses)
        beam = lw.flexible.FlexibleBody(*parts, beam.inertias)
    b = lw.Builder("arm", gravity=(0, -9.81, 0))
    beam.add_to(b, "arm", "world", hinge or lw.hinges.Pin((0, 0, 1)))
    return beam, b.build()


def bent(beam: lw.flexible.FlexibleBody, second: bool, part: float) -> np.ndarray:
    """Coordinates with which the farthest node moves by this part of the length."""
    eta = np.array([1.0, 0.1])

    def size(factor: float) -> float:
        there, back = (beam.shape(sign * factor * eta) for sign in (1.0, -1.0))
        moved = 0.5 * (there + back) - beam.positions if second else there - beam.positions
        return float(np.linalg.norm(moved, axis=1).max()) / 2.0

    return np.concatenate([[0.3], eta * (part / size(1.0)) ** (0.5 if second else 1.0)])


@pytest.mark.parametrize(("second", "limit"), [(True, 0.1), (False, 0.4)])
def test_warned_of_once_beyond_the_limit(second: bool, limit: float) -> None:
    beam, mech = arm(second)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mech.pose(bent(beam, second, 0.98 * limit), "arm.tip")
        mech.pose(-bent(beam, second, 0.98 * limit), "arm.tip")
    words = f"{'shortens it' if second else 'moves its nodes'} by {130 * limit:.0f}%"
    far = bent(beam, second, 1.3 * limit)
    with pytest.warns(BendingWarning, match=rf"'arm\.modes' of 'arm' .* {words}"):
        mech.pose(far, "arm.tip")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mech.pose(far, "arm.tip")


def test_motions_and_batches() -> None:
    beam, mech = arm()
    q = np.array([bent(beam, True, 0.01), bent(beam, True, 0.4), np.full(3, np.nan)])
    with pytest.warns(BendingWarning):
        warn_if_bent(mech, q)
    options = {"duration": 0.3, "step": 1e-3}
    for run in (lw.rollout, lw.simulate):
        _, mech = arm(hinge=lw.hinges.Locked())
        with pytest.warns(BendingWarning):
            made = run(mech, np.zeros(2), np.array([10.0, 0.0]), **options)
        assert np.abs(made.q[:, 0]).max() > 0.9 and not made.q[0].any()
