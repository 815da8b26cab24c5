"""The sample arms that carry a smaller one."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import models
from tests.dense_kinematics import body_jacobians, difference_jacobians, mass_matrix

POSITION, POSE = lw.Task.position("tip"), lw.Task.pose("tip")
SAMPLES = {
    "with a wrist": (lambda: models.macro_mini(), 10, 122.67, "mini_yaw", POSE),
    "without": (lambda: models.macro_mini(wrist=False), 7, 122.3, "mini_yaw", POSITION),
    "planar": (
        models.planar_macro_mini,
        4,
        50.7,
        "mini_shoulder",
        lw.Task.position("tip", "xy"),
    ),
}


@pytest.fixture(params=SAMPLES, scope="module")
def sample(request):
    build, *rest = SAMPLES[request.param]
    return build(), *rest


def test_size_mass_and_consistency(sample):
    mech, dof, mass, _, _ = sample
    assert mech.n_bodies == mech.nv == mech.nq == dof
    assert mech.total_mass == pytest.approx(mass, rel=1e-12)
    assert mech.validate() == ()
    assert np.isfinite([mech.lower, mech.upper]).all() and np.isfinite(mech.effort_limit).all()
    q = mech.random(3)
    # Central differences of poses with a step of 1e-6 are good to about 1e-9.
    np.testing.assert_allclose(
        body_jacobians(mech, q), difference_jacobians(mech, q), rtol=0, atol=1e-8
    )
    assert np.linalg.eigvalsh(mass_matrix(mech, q))[0] > 0.0


def test_neutral_is_the_middle_of_the_mini_and_regular(sample):
    mech, _, _, split, task = sample
    mini = [b for b in mech.bodies if b.name.startswith("mini_")]
    for body in mini:
        at = mech.q_slice(body.name)
        assert mech.lower[at] == -mech.upper[at]
    smallest = lw.papers.smallest_mini(mech, mech.neutral(), task, tolerance=1e-3)
    assert smallest.split == split
    assert smallest.nv == smallest.rank == smallest.rows == len(mini)


def test_the_mini_is_what_its_own_model_says(sample):
    """Mounted on the macro and taken off again: the same arm."""
    mech, _, _, split, _ = sample
    parts = lw.papers.macro_mini(mech, split, "tip")
    assert parts.carrier in ("wrist_link", "elbow_link")
    assert parts.mini.total_mass < 0.02 * parts.macro.total_mass
    assert {b.name for b in parts.mini.bodies} == {
        b.name for b in mech.bodies if b.name.startswith("mini_")
    }


def test_the_macro_holds_its_mini_level(sample):
    """Shoulder, elbow and wrist turn by a quarter in all: the last link of the macro lies flat."""
    mech, _, _, split, _ = sample
    carrier = lw.papers.macro_mini(mech, split, "tip").carrier
    if carrier != "wrist_link":
        pytest.skip("this macro has no wrist")
    along = mech.pose(mech.neutral(), carrier).rot[:, 2]
    np.testing.assert_allclose(along, [1.0, 0.0, 0.0], atol=1e-12)


def test_gravity_can_be_held_with_the_torques_there_are(sample):
    mech = sample[0]
    q = np.stack([mech.random(np.random.default_rng(i)) for i in range(50)])
    assert np.all(np.abs(lw.gravity_force(mech, q)) < mech.effort_limit)
