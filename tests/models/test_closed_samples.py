"""Sample mechanisms with loops: closed at neutral, and as movable as they claim."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise import models
from linkwise.errors import ModelError
from linkwise.model.hinges import SoftFinger
from tests.dense_kinematics import constraint_jacobian, loop_gap

# Mechanism, loops, freedoms left at the neutral configuration.
CLOSED = {
    "four_bar": (models.four_bar, 1, 1),
    "four_bar of other lengths": (
        lambda: models.four_bar(ground=0.37, crank=0.09, coupler=0.41, rocker=0.33), 1, 1,
    ),
    "stewart": (models.stewart, 6, 6),
    "dual_arm": (models.dual_arm, 2, 8),
    "dual_arm of pumas": (lambda: models.dual_arm(arm="puma560"), 2, 6),
    "multi_arm of one": (lambda: models.multi_arm(1), 1, 7),
    "multi_arm of three": (lambda: models.multi_arm(3), 3, 9),
    "multi_arm of five": (lambda: models.multi_arm(5), 5, 11),
    "multi_arm of three pumas": (lambda: models.multi_arm(3, arm="puma560"), 3, 6),
}  # fmt: skip


@pytest.mark.parametrize("name", CLOSED)
def test_loops_close_at_neutral(name):
    build, loops, _ = CLOSED[name]
    mech = build()
    assert len(mech.loops) == loops
    for loop in mech.loops:
        assert np.abs(loop_gap(mech, mech.neutral(), loop)).max() < 1e-12, loop.name


@pytest.mark.parametrize("name", CLOSED)
def test_freedoms_at_neutral(name):
    build, _, freedoms = CLOSED[name]
    mech = build()
    A = constraint_jacobian(mech, mech.neutral())
    singular = np.linalg.svd(A, compute_uv=False)
    rank = int((singular > 1e-9).sum())
    assert mech.nv - rank == freedoms
    # And not by a hair: the independent constraints are far from depending on each other.
    assert singular[rank - 1] > 1e-2


def test_a_moved_leg_opens_its_loop():
    """The check above can fail."""
    mech = models.stewart()
    q = mech.neutral()
    q[mech.q_slice("slider_2")] = 1e-3
    gaps = [np.abs(loop_gap(mech, q, loop)).max() for loop in mech.loops]
    assert np.argmax(gaps) == 1 and gaps[1] > 1e-4


def test_default_four_bar_is_the_one_in_the_sketch():
    mech = models.four_bar()
    q = mech.neutral()
    np.testing.assert_allclose(mech.pose(q, "coupler").p, (0.0, 0.0, 0.1), atol=1e-15)
    np.testing.assert_allclose(mech.pose(q, "coupler_end").p, (0.4, 0.0, 0.4), atol=1e-15)
    np.testing.assert_allclose(mech.pose(q, "rocker").p, (0.4, 0.0, 0.0), atol=1e-15)


def test_four_bar_that_cannot_close_says_so():
    with pytest.raises(ModelError, match="cannot join"):
        models.four_bar(coupler=0.1, rocker=0.1)


def test_bases_of_a_ring_stand_upright_on_the_floor():
    for arm in ("seven_dof", "puma560"):
        mech = models.multi_arm(5, arm=arm)
        first = "arm_2_shoulder_yaw_link" if arm == "seven_dof" else "arm_2_link_1"
        pose = mech.pose(mech.neutral(), first)
        np.testing.assert_allclose(pose.rot[:, 2], (0.0, 0.0, 1.0), atol=1e-14)
        assert pose.p[2] == pytest.approx(0.18 if arm == "seven_dof" else 0.0, abs=1e-14)


def test_an_unknown_arm_lists_the_known_ones():
    with pytest.raises(ModelError, match="'seven_dof', 'puma560'"):
        models.multi_arm(2, arm="scara")


def test_two_arms_with_a_grasp_of_their_own():
    mech = models.dual_arm(grasp=SoftFinger())
    assert [loop.hinge.nv for loop in mech.loops] == [2, 2]
    assert mech.v_slice("object") == slice(0, 6)  # as the docstring says


def test_an_object_let_go_at_one_hand_keeps_the_place_it_was_held_at():
    mech = models.dual_arm()
    let_go = mech.without("grasp_1")
    assert [loop.name for loop in let_go.loops] == ["grasp_2"]
    assert let_go.node("rim_1").body == "object"


def test_stewart_legs_are_equally_long():
    mech = models.stewart()
    q = mech.neutral()
    lengths = [
        np.linalg.norm(mech.pose(q, f"leg_{k}").p - mech.pose(q, f"lower_{k}").p)
        for k in range(1, 7)
    ]
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-14)
