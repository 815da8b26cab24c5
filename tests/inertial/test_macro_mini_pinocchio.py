"""Macro and mini against Pinocchio, whose reduced models lock the joints of one of the two."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import models

pin = pytest.importorskip("pinocchio")
pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """The arm of seven joints without armature, which URDF has no place for."""
    mech = models.macro_mini(wrist=False).without_armature()
    path = tmp_path_factory.mktemp("macro_mini") / "arm.urdf"
    lw.save(mech, path)
    model = pin.buildModelFromUrdf(str(path))
    assert [model.names[i] for i in range(1, 8)] == [b.hinge_name for b in mech.bodies]
    return mech, model, mech.random(6)


def inverse_inertia(model, q):
    """J A⁻¹ J* of the tip's position, world axes, by Pinocchio's own functions."""
    data = model.createData()
    A = pin.crba(model, data, q)
    A = np.triu(A) + np.triu(A, 1).T
    frame = model.getFrameId("tip")
    J = pin.computeFrameJacobian(model, data, q, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)[:3]
    return J @ np.linalg.inv(A) @ J.T, A


def test_the_three_inertias(case):
    mech, model, q = case
    report = lw.papers.reduced_inertia(mech, q, lw.Task.position("tip"), split="mini_yaw")
    mini = pin.buildReducedModel(model, [1, 2, 3, 4], q)
    held = pin.buildReducedModel(model, [5, 6, 7], q)
    for result, there, place in (
        (report.whole_inverse, model, q),
        (report.mini_inverse, mini, q[4:]),
        (report.locked_inverse, held, q[:4]),
    ):
        expected, _ = inverse_inertia(there, place)
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_the_inertia_of_the_mini_alone_is_a_block_of_the_whole(case):
    mech, model, q = case
    _, alone = inverse_inertia(pin.buildReducedModel(model, [1, 2, 3, 4], q), q[4:])
    state = lw.papers.macro_mini(mech, "mini_yaw", "tip").at(q)
    np.testing.assert_allclose(state.inertia_22, alone, rtol=0, atol=1e-13)
    np.testing.assert_allclose(state.mini_inertia, alone, rtol=0, atol=1e-13)
