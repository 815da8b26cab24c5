"""Errors of an identified mechanism on other measurements."""

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.spatial.array import Array

KINDS = ("inertia", "damping")


@cache
def arm(scale: float = 1.0, damping: float = 0.4) -> lw.Mechanism:
    """Two links in a vertical plane."""
    b = lw.Builder("arm", gravity=(0.0, -9.81, 0.0))
    inboard, parent = (0.0, 0.0, 0.0), "world"
    for name, m in (("upper", 2.0 * scale), ("lower", 1.0 / scale)):
        rod = lw.SpatialInertia.solid_box(m, (0.5, 0.06, 0.06))
        rod = rod.moved(lw.Pose.translation((0.25, 0.0, 0.0)))
        pin, drive = lw.hinges.Pin((0, 0, 1)), lw.Drive(damping=damping)
        b = b.body(name, parent, pin, inertia=rod, inboard=inboard, drive=drive)
        inboard, parent = (0.5, 0.0, 0.0), name
    return b.build()


@cache
def motion() -> tuple[Array, Array, Array]:
    m = lw.identification.exciting_motion(
        arm(), duration=4.0, step=0.02, parameters=KINDS, tries=6, rounds=0
    )
    return m.q, m.v, m.vdot


def forces() -> Array:
    q, v, vdot = motion()
    return lw.inverse_dynamics(arm(), q, v, vdot) + arm().damping * v


BIAS = np.array([3.0, -1.0])


def test_a_constant_error_counts() -> None:
    tau = forces()
    fit = lw.identify(arm(1.3, 0.1), *motion(), tau, parameters=KINDS)
    assert max(fit.validate(*motion(), tau).values()) < 1e-6
    biased = fit.validate(*motion(), tau + BIAS)
    assert np.allclose(list(biased.values()), np.abs(BIAS) / np.std(tau, axis=0), rtol=1e-6)


def test_identified_offsets_do_not_count() -> None:
    tau, kinds = forces() + BIAS, (*KINDS, "offset")
    fit = lw.identify(arm(1.3, 0.1), *motion(), tau, parameters=kinds)
    assert np.allclose(fit.offset, BIAS, rtol=1e-5)
    assert np.allclose(fit.forces(*motion()), forces(), atol=1e-4)
    assert max(fit.validate(*motion(), tau).values()) < 1e-5
    half = fit.validate(*motion(), forces() + 0.5 * BIAS)
    assert np.allclose(list(half.values()), 0.5 * np.abs(BIAS) / np.std(tau, axis=0), rtol=1e-4)
    parts = lw.identification.cross_validate(
        arm(1.3, 0.1), *motion(), tau, folds=3, parameters=kinds
    )
    assert parts.error.max() < 1e-4


def test_forces_that_were_not_measured_may_be_missing() -> None:
    tau, given = forces(), {"parameters": KINDS, "measured": ["upper"]}
    holes = tau.copy()
    holes[:, 1] = np.nan
    holes[7, 0] = np.nan
    fit, other = (lw.identify(arm(1.3, 0.1), *motion(), x, **given) for x in (holes, tau))
    assert fit.gaps == 1 and fit.names == other.names
    assert np.allclose(fit.estimate, other.estimate, rtol=1e-5, atol=1e-7)
    assert fit.validate(*motion(), holes)["upper"] < 1e-6
    parts = lw.identification.cross_validate(arm(1.3, 0.1), *motion(), holes, folds=2, **given)
    assert parts.error.shape == (2, 1) and parts.error.max() < 1e-5
    with pytest.raises(lw.ModelError, match="every sample has a number that is not finite"):
        lw.identify(arm(), *motion(), holes, parameters=KINDS)
