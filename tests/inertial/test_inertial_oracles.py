"""Effective masses beside Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.cases import close
from tests.dynamics.test_operational_oracles import their_inverse
from tests.dynamics.test_oracles import ROBOTS, ROTATED, robot

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", ROBOTS)
def test_robots(name):
    import pinocchio as pin

    it = robot(name)
    number = it.model.getFrameId(it.hand, pin.FrameType.BODY)
    aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    J = pin.computeFrameJacobian(it.model, it.data, it.q_pin, number, aligned)[ROTATED]
    theirs = J @ their_inverse(it) @ J.T
    properties = lw.inertial.inertial_properties(it.mech, it.q, it.hand)
    close(properties.inverse, theirs, 1e-10)
    for u in np.random.default_rng(0).standard_normal((5, 3)):
        u = u / np.linalg.norm(u)
        mass = lw.inertial.effective_mass(it.mech, it.q, it.hand, u)
        assert mass == pytest.approx(1.0 / (u @ theirs[3:, 3:] @ u), rel=1e-10)
        turning = lw.inertial.effective_mass(it.mech, it.q, it.hand, u, what="rotation")
        assert turning == pytest.approx(1.0 / (u @ theirs[:3, :3] @ u), rel=1e-10)
