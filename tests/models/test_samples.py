"""Every sample mechanism: size, mass, consistency, and a mass matrix that can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from linkwise import models
from linkwise.errors import ModelError
from linkwise.model import Mechanism
from linkwise.model.hinges import Free
from linkwise.models.quadruped import STANCE_HEIGHT
from tests.dense_kinematics import body_jacobians, difference_jacobians, mass_matrix


@dataclass(frozen=True)
class Sample:
    """A mechanism and what is promised of it."""

    build: Callable[[], Mechanism]
    bodies: int
    dof: int
    mass: float
    tips: tuple[str, ...]


SAMPLES = {
    "pendulum": Sample(lambda: models.pendulum(3), 3, 3, 3.0, ("tip",)),
    "pendulum of points": Sample(
        lambda: models.pendulum(2, point_masses=True), 2, 2, 2.0, ("tip",)
    ),
    "chain": Sample(lambda: models.chain(12), 12, 12, 1.2, ("tip",)),
    "planar_rpp": Sample(models.planar_rpp, 3, 3, 4.0, ("end_effector",)),
    "puma560": Sample(models.puma560, 6, 6, 36.45, ("flange",)),
    "ur_arm": Sample(models.ur_arm, 6, 6, 17.7, ("flange",)),
    "seven_dof_arm": Sample(models.seven_dof_arm, 7, 7, 16.6, ("hand",)),
    "quadruped": Sample(
        models.quadruped,
        13,
        18,
        12.8,
        ("front_left_foot", "front_right_foot", "hind_left_foot", "hind_right_foot"),
    ),
    "humanoid": Sample(
        models.humanoid,
        13,
        30,
        73.0,
        ("left_hand", "right_hand", "left_sole", "right_sole", "head_top"),
    ),
    "free_flyer": Sample(models.free_flyer, 15, 20, 183.2, ("left_hand", "right_hand", "docking")),
    "four_bar": Sample(models.four_bar, 3, 3, 2.0, ("coupler_end", "rocker_end")),
    "stewart": Sample(models.stewart, 13, 24, 12.0 + 6 * 3.2, ("centre", "leg_1", "anchor_6")),
    "dual_arm": Sample(models.dual_arm, 15, 20, 37.2, ("arm_1_hand", "arm_2_hand", "rim_2")),
    "multi_arm": Sample(lambda: models.multi_arm(4), 29, 34, 70.4, ("arm_4_hand", "rim_4")),
    "multi_arm of pumas": Sample(
        lambda: models.multi_arm(3, arm="puma560"), 19, 24, 113.35, ("arm_3_flange",)
    ),
}


@pytest.fixture(params=SAMPLES, scope="module")
def sample(request):
    return SAMPLES[request.param]


@pytest.fixture(scope="module")
def mech(sample):
    return sample.build()


def test_size_and_mass(sample, mech):
    assert (mech.n_bodies, mech.nv) == (sample.bodies, sample.dof)
    assert mech.total_mass == pytest.approx(sample.mass, rel=1e-12)
    quaternions = sum(isinstance(body.hinge, Free) for body in mech.bodies)
    assert mech.nq == mech.nv + quaternions


def test_named_nodes_exist(sample, mech):
    for tip in sample.tips:
        assert np.isfinite(mech.pose(mech.neutral(), tip).p).all()


def test_it_validates(mech):
    errors = [finding for finding in mech.validate() if finding.severity == "error"]
    assert not errors, errors


def test_neutral_is_within_the_ranges(mech):
    q = mech.neutral()
    assert (mech.lower <= q).all() and (q <= mech.upper).all()
    assert (mech.lower < mech.upper).all()


def test_every_body_can_be_drawn(mech):
    for body in mech.bodies:
        assert body.geometry, body.name
        assert all(min(shape.size) > 0.0 for shape in body.geometry), body.name


def test_jacobians_are_derivatives_of_the_poses(mech):
    q = mech.random(seed=3)
    np.testing.assert_allclose(body_jacobians(mech, q), difference_jacobians(mech, q), atol=1e-7)


def test_mass_matrix_is_symmetric_and_positive(mech):
    for seed in range(3):
        A = mass_matrix(mech, mech.random(seed=seed))
        np.testing.assert_allclose(A, A.T, rtol=0.0, atol=1e-12 * np.abs(A).max())
        assert np.linalg.eigvalsh(A).min() > 1e-9 * np.abs(A).max()


def test_all_functions_are_documented_and_exported():
    for name in models.__all__:
        assert getattr(models, name).__doc__, name


# ------------------------------------------------------------------------------------ one by one


def test_pendulum_is_the_textbook_one():
    mech = models.pendulum(1, length=0.8, mass=1.5)
    q = np.array([0.3])
    np.testing.assert_allclose(mass_matrix(mech, q), [[1.5 * 0.8**2 / 3]], rtol=1e-14)
    expected = (-0.8 * np.sin(0.3), 0.0, -0.8 * np.cos(0.3))
    np.testing.assert_allclose(mech.pose(q, "tip").p, expected, atol=1e-15)
    # Two point masses, angles relative: the classical double pendulum.
    l, m, c = 0.8, 1.5, np.cos(0.7)
    A = mass_matrix(models.pendulum(2, length=l, mass=m, point_masses=True), np.array([0.2, 0.7]))
    expected = m * l**2 * np.array([[3 + 2 * c, 1 + c], [1 + c, 1]])
    np.testing.assert_allclose(A, expected, rtol=1e-13)


def test_seven_dof_arm_has_a_spherical_shoulder_and_wrist():
    mech = models.seven_dof_arm()
    q = mech.random(seed=1)
    shoulder, elbow = (mech.pose(q, f"{name}_link").p for name in ("shoulder_pitch", "elbow_pitch"))
    wrist, hand = mech.pose(q, "wrist_pitch_link").p, mech.pose(q, "hand").p
    np.testing.assert_allclose(shoulder, (0.0, 0.0, 0.33), atol=1e-15)
    lengths = [np.linalg.norm(b - a) for a, b in ((shoulder, elbow), (elbow, wrist), (wrist, hand))]
    np.testing.assert_allclose(lengths, (0.40, 0.38, 0.12), rtol=1e-14)


def test_posture_moves_the_zero_of_the_seven_dof_arm():
    posture = np.array([0.3, 0.5, -0.2, 1.1, 0.4, -0.6, 0.1])
    straight, bent = models.seven_dof_arm(), models.seven_dof_arm(posture=posture)
    q = np.array([0.1, -0.2, 0.3, 0.2, -0.1, 0.25, 0.4])
    np.testing.assert_allclose(
        bent.pose(q, "hand").matrix, straight.pose(q + posture, "hand").matrix, atol=1e-14
    )
    np.testing.assert_allclose(bent.upper, straight.upper - posture, atol=1e-15)


def test_legged_robots_stand_on_level_feet():
    dog, man = models.quadruped(), models.humanoid()
    heights = [dog.pose(dog.neutral(), foot).p[2] for foot in SAMPLES["quadruped"].tips]
    np.testing.assert_allclose(heights, -STANCE_HEIGHT, atol=1e-14)
    soles = [man.pose(man.neutral(), f"{side}_sole").p for side in ("left", "right")]
    top = man.pose(man.neutral(), "head_top").p[2]
    np.testing.assert_allclose([top - sole[2] for sole in soles], 1.741, atol=1e-14)
    # Balanced: the centre of mass is over the feet, which reach from heel to toe.
    com = man.center_of_mass(man.neutral())
    assert -0.06 < com[0] < 0.198 and abs(com[1]) < 1e-15


def test_humanoid_has_the_shares_of_the_source():
    """De Leva 1996, table 4: the male column adds up to one."""
    man = models.humanoid(mass=100.0)
    shares = {
        name: float(man.inertia(name).mass) for name in ("left_thigh", "left_forearm", "torso")
    }
    assert shares["left_thigh"] == pytest.approx(14.16)
    assert shares["left_forearm"] == pytest.approx(1.62 + 0.61)  # with the hand
    assert shares["torso"] == pytest.approx(16.33 + 15.96)
    assert man.total_mass == pytest.approx(100.0, rel=1e-12)


def test_free_flyer_has_no_weight():
    np.testing.assert_array_equal(models.free_flyer().gravity, np.zeros(3))


@pytest.mark.parametrize("build", [models.pendulum, models.chain, models.multi_arm])
def test_no_links_is_an_error(build):
    with pytest.raises(ModelError, match="at least 1"):
        build(0)
