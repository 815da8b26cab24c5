"""Errors of constraints by a kernel beside those of each loop by itself, from poses of bodies."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics.closure import error_at, error_kernel, loop_errors, relative_poses
from linkwise.errors import ModelError
from linkwise.model import closure

MECHANISMS = [
    lw.models.dual_arm(),
    lw.models.four_bar(),
    lw.models.delta(),
    lw.models.stewart(),
    lw.models.peaucellier(),
    lw.models.multi_arm(2, arm="puma560", grasp=lw.hinges.SoftFinger()),
]


def by_hand(mech, q, per="row"):
    poses = relative_poses(mech, q, compiled=False)
    return (error_at if per == "row" else loop_errors)(mech, q, poses)


@pytest.mark.parametrize("mech", MECHANISMS, ids=lambda x: x.name)
def test_errors_far_from_closed(mech):
    q = np.array([mech.random(seed=i) for i in range(5)])
    for per in ("row", "loop"):
        batch, expected = lw.loops.constraint_error(mech, q, per=per), by_hand(mech, q, per)
        np.testing.assert_allclose(batch, expected, atol=1e-14)
        np.testing.assert_allclose(
            lw.loops.constraint_error(mech, q[2], per=per), expected[2], atol=1e-14
        )
        assert np.abs(expected).max() > 0.1
    assert error_kernel(mech, True) is not None


def test_errors_of_the_size_of_rounding():
    """Nearly closed, an error keeps its digits: 1e-9 of it is not lost in those of the poses."""
    mech = lw.models.four_bar()
    q = lw.loops.assemble(mech, mech.neutral()).q + np.array([0.0, 1e-7, 0.0])
    expected = by_hand(mech, q)
    np.testing.assert_allclose(lw.loops.constraint_error(mech, q), expected, atol=1e-15)
    assert 1e-8 < np.abs(expected).max() < 1e-6


@pytest.mark.parametrize("turn", [0.4, np.pi - 1e-3, np.pi])
def test_a_pin_whose_axes_point_apart(turn):
    """Turned across its axis by up to half a turn, where every turn about it is as near."""
    build = lw.Builder("turned")
    light = lw.SpatialInertia.from_com(1.0, (0.0, 0.0, 0.1), (0.1, 0.1, 0.1))
    build.body("a", hinge=lw.hinges.Pin((1, 0, 0)), inertia=light)
    build.body("b", parent="a", hinge=lw.hinges.Pin((0, 0, 1)), inertia=light)
    build.node("end", "b")
    build.loop("back", "world", "end", lw.hinges.Pin((0, 0, 1)))
    mech, q = build.build(), np.array([turn, 0.0])
    e = lw.loops.constraint_error(mech, q, per="loop")[0]
    assert np.linalg.norm(e[:3]) == pytest.approx(turn, abs=1e-9)
    assert abs(e[2]) < 1e-9
    if turn < 3.0:
        both = np.array([turn, 0.7])
        assert lw.loops.constraint_error(mech, both) == pytest.approx(by_hand(mech, both))


def test_a_soft_finger_reaches_every_attitude():
    """The nearest pose, also by a search over the coordinates of the hinge."""
    hinge = lw.hinges.SoftFinger((0.0, 0.6, 0.8))
    for seed in range(4):
        turn = np.random.default_rng(seed).normal(size=3)
        X = lw.Pose.rpy(turn, (0.1, -0.2, 0.3))
        expected = closure.error(hinge, X, closure.coordinates(hinge, X))
        np.testing.assert_allclose(closure.loop_error(hinge, X), expected, atol=1e-13)
        assert np.abs(expected[3:]).max() > 0.1


def test_other_hinges_are_measured_one_by_one():
    mech = lw.models.four_bar()
    loop = dataclasses.replace(mech.loops[0], hinge=lw.hinges.Universal((0, 1, 0), (1, 0, 0)))
    other = dataclasses.replace(mech, loops=(loop,))
    assert error_kernel(other, True) is None
    q = mech.random(seed=1)
    expected = by_hand(other, q)
    np.testing.assert_allclose(lw.loops.constraint_error(other, q), expected, atol=1e-14)
    assert np.abs(expected).max() > 0.1


def test_states_that_are_not_finite_are_refused():
    mech = lw.models.four_bar()
    q = np.array([mech.random(seed=1), np.full(3, np.nan)])
    for bad in (q, q[1]):
        with pytest.raises(ModelError, match="q"):
            lw.loops.constraint_error(mech, bad)
