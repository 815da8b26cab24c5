"""Postures: springs and dampers over joints."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError, UnknownNameError
from linkwise.tasks.control.posture import Posture


@pytest.fixture(scope="module")
def arm():
    return lw.models.seven_dof_arm()


def test_torque_is_the_slope_of_the_potential(arm):
    q, target = arm.random(seed=0), arm.random(seed=1)
    root = np.random.default_rng(2).standard_normal((7, 7))
    kp = root @ root.T + np.eye(7)
    posture = Posture(target, kp, 3.0)

    def potential(x):
        return 0.5 * (x - target) @ kp @ (x - target)

    step = 1e-6
    slope = [(potential(q + step * e) - potential(q - step * e)) / (2 * step) for e in np.eye(7)]
    np.testing.assert_allclose(posture.torque(arm, q, np.zeros(7)), -np.array(slope), atol=1e-8)


def test_damping_takes_energy(arm):
    v = arm.random_velocity(seed=3)
    tau = Posture.damping(2.0).torque(arm, arm.random(seed=3), v)
    assert tau @ v == pytest.approx(-2.0 * v @ v)


def test_by_acceleration_is_what_the_free_arm_would_do(arm):
    q, v = arm.random(seed=4), arm.random_velocity(seed=4)
    posture = Posture(arm.neutral(), 4.0, 2.0, by="acceleration")
    tau = posture.torque(arm, q, v) + lw.bias_force(arm, q, v)
    np.testing.assert_allclose(lw.forward_dynamics(arm, q, v, tau), -4.0 * q - 2.0 * v, atol=1e-9)


def test_only_the_hinges_named(arm):
    q, v = arm.random(seed=5), arm.random_velocity(seed=5)
    names = ("elbow_pitch", "wrist_roll")
    tau = Posture(arm.neutral(), (2.0, 5.0), 1.0, hinges=names).torque(arm, q, v)
    chosen = [3, 6]
    np.testing.assert_allclose(tau[chosen], -np.array([2.0, 5.0]) * q[chosen] - v[chosen])
    assert not np.delete(tau, chosen).any()


def test_mid_range_is_the_middle_and_quaternions_go_the_short_way():
    puma = lw.models.puma560()
    posture = Posture.mid_range(puma, 1.0, 1.0)
    np.testing.assert_allclose(posture.position, 0.5 * (puma.lower + puma.upper))
    flyer = lw.models.free_flyer()
    q = flyer.random(seed=1)
    posture = Posture(flyer.neutral(), 2.0, 1.0)
    pull = posture.torque(flyer, q, np.zeros(flyer.nv))
    np.testing.assert_allclose(flyer.integrate(q, 0.5 * pull), flyer.neutral(), atol=1e-12)


def test_batches_are_rows(arm):
    rng = np.random.default_rng(6)
    q = np.stack([arm.random(rng) for _ in range(3)])
    v = rng.standard_normal((3, 7))
    for posture in (Posture(arm.neutral(), 2.0, 1.0), Posture.mid_range(arm, 1.0, 1.0)):
        rows = [posture.torque(arm, a, b) for a, b in zip(q, v, strict=True)]
        np.testing.assert_array_equal(posture.torque(arm, q, v), rows)


def test_what_means_nothing_is_refused(arm):
    q, v = arm.neutral(), np.zeros(7)
    with pytest.raises(ModelError, match="kp of the posture is 0; every gain must be above zero"):
        Posture(q, 0.0, 1.0)
    with pytest.raises(ModelError, match="kv of the posture is -1"):
        Posture(q, 1.0, -1.0)
    with pytest.raises(ModelError, match="not symmetric"):
        Posture(q, [[1.0, 0.5], [0.0, 1.0]], 1.0)
    with pytest.raises(ModelError, match="eigenvalue -1"):
        Posture(q, [[1.0, 2.0], [2.0, 1.0]], 1.0)
    with pytest.raises(ModelError, match="or neither"):
        Posture(None, 1.0, 1.0)
    with pytest.raises(ShapeError, match=r"must be a number, \(7,\) or a matrix \(7, 7\)"):
        Posture(q, (1.0, 2.0), 1.0).torque(arm, q, v)
    with pytest.raises(UnknownNameError, match="elbow_pitch"):
        Posture(q, 1.0, 1.0, hinges=("elbow_pitched",)).torque(arm, q, v)
    with pytest.raises(ModelError, match="'pin_1' has no lower and upper limit"):
        Posture.mid_range(lw.models.pendulum(2), 1.0, 1.0, hinges=["pin_1"])


@pytest.mark.parametrize("target", [[np.nan] * 7, [0.0] * 6 + [np.inf], np.zeros((2, 7))])
def test_targets_that_are_no_configuration_are_refused_at_once(target):
    with pytest.raises(
        (ModelError, ShapeError), match=r"the position of the posture (is|has shape)"
    ):
        Posture(target, 1.0, 1.0)
