"""Gradients of motions that begin at rest: the length of no turn is a root without a slope."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

STEP = 0.05


def rolling(hinge, **options):
    inertia = lw.SpatialInertia.from_com(1.0, (0.02, 0.01, 0.03), (0.1, 0.1, 0.12))
    return lw.Builder("rolling").body("ball", hinge=hinge, inertia=inertia, **options).build()


def slope(function, d, h=1e-3):
    """How an array changes along a direction: differences of order four."""
    near, far = (function(s * h * d) - function(-s * h * d) for s in (1, 2))
    return (8 * near - far) / (12 * h)


@pytest.mark.parametrize("integrator", ["rk4", "euler", "rk4_mujoco"])
@pytest.mark.parametrize(
    "hinge",
    [lw.hinges.PointOnPlane(0.2), lw.hinges.SoftFinger(), lw.hinges.Planar()],
    ids=lambda hinge: hinge.kind,
)
def test_gradients_from_rest(hinge, integrator):
    mech = rolling(hinge)
    q, w = mech.random(1), np.arange(1.0, 1.0 + mech.nq)
    tau, options = np.zeros(mech.nv), {"duration": 2 * STEP, "step": STEP, "integrator": integrator}
    ours = lw.rollout(mech, q, tau, tau=tau, **options).gradient(q=w)

    def after(dq, dv):
        return lw.rollout(mech, mech.integrate(q, dq), dv, tau=tau, **options).q[-1]

    for by, of in ((ours.q, lambda d: after(d, 0 * d)), (ours.v, lambda d: after(0 * d, d))):
        expected = [w @ slope(of, e) for e in np.eye(mech.nv)]
        assert np.abs(expected).max() > 0.1
        np.testing.assert_allclose(by, expected, atol=1e-8)
