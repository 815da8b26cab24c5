"""Sliders: what they show and what they set."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.viewer.dial import closed_near, dialled, dials, reading


def turned(mech, q, changes):
    """q with some dials moved, each hinge by its own."""
    for k in range(mech.n_bodies):
        group = {d: changes.get(d, reading(mech, d, q)) for d in dials(mech) if d.body == k}
        if group:
            q = dialled(mech, q, k, group)
    return q


@pytest.mark.parametrize("make", [lw.models.puma560, lw.models.humanoid, lw.models.stewart])
def test_dials_say_where_it_is(make):
    """Reading all dials and setting them gives the same pose: quaternions up to their sign."""
    mech = make()
    q = mech.random(seed=3)
    again = turned(mech, mech.neutral(), {d: reading(mech, d, q) for d in dials(mech)})
    assert np.allclose(
        lw.forward_kinematics(mech, again).matrix, lw.forward_kinematics(mech, q).matrix
    )


def test_dials_of_all_hinges():
    mech = lw.models.random_tree(12, seed=4)
    q = mech.random(seed=1)
    again = turned(mech, mech.neutral(), {d: reading(mech, d, q) for d in dials(mech)})
    assert np.allclose(mech.poses(again).matrix, mech.poses(q).matrix)
    assert len(dials(mech)) == sum(
        b.hinge.nq - (b.hinge.quaternion is not None) for b in mech.bodies
    )


def test_limits_and_units():
    mech = lw.models.puma560()
    first = dials(mech)[0]
    assert first.label == "joint_1 [rad]" and first.limited
    assert (first.low, first.high) == pytest.approx((-np.deg2rad(160), np.deg2rad(160)))
    free = [d for d in dials(lw.models.humanoid()) if d.body == 0]
    assert [d.turn for d in free] == [0, 1, 2, None, None, None]
    assert free[3].label.endswith("[m]") and not free[3].limited


def test_one_sided_limits_stay_within_the_slider():
    b = lw.Builder("one")
    for name, low, high in (("a", 5.0, np.inf), ("b", -np.inf, -7.0), ("c", -1.0, np.inf)):
        b.body(
            name,
            "world",
            lw.hinges.Prismatic((0, 0, 1)),
            inertia=lw.SpatialInertia.point(1.0),
            drive=lw.Drive(lower=low, upper=high),
        )
    for dial in dials(b.build()):
        assert dial.low < dial.high and not dial.limited
    a, b_, c = dials(b.build())
    assert a.low == 5.0 and b_.high == -7.0 and c.low == -1.0 and c.high >= 1.0


def test_an_angle_without_limits_goes_round():
    mech = lw.models.four_bar()
    first = dials(mech)[0]
    assert first.round and reading(mech, first, np.array([7.0, 0.0, 0.0])) == pytest.approx(
        7.0 - 2.0 * np.pi
    )
    limited = dials(lw.models.puma560())[0]
    assert not limited.round and reading(lw.models.puma560(), limited, np.full(6, 7.0)) == 7.0


def test_followers_have_no_dial_and_follow():
    b = lw.Builder("geared")
    for name in ("a", "b"):
        b.body(
            name,
            "world",
            lw.hinges.Pin((0, 0, 1)),
            hinge_name=name,
            inertia=lw.SpatialInertia.solid_sphere(1, 0.1),
        )
    b.couple("gear", "b", {"a": -2.0})
    mech = b.build()
    assert [d.hinge for d in dials(mech)] == ["a"]
    q, why = closed_near(mech, np.array([0.3, 0.0]), "a")
    assert np.allclose(q, (0.3, -0.6)) and why == ""


def test_turning_the_crank_moves_the_rocker():
    mech = lw.models.four_bar()
    q = mech.neutral()
    for angle in np.linspace(0.0, 2.0 * np.pi, 25)[1:]:
        request = q.copy()
        request[0] = angle
        q, why = closed_near(mech, request, "crank_pin")
        assert why == "" and q[0] == angle
        assert np.abs(lw.loops.constraint_error(mech, q)).max() < 1e-10


def test_what_cannot_be_closed_is_told():
    """The rocker of this four-bar swings; it cannot lie down on the ground link."""
    mech = lw.models.four_bar()
    request = mech.neutral()
    request[2] = -2.5
    q, why = closed_near(mech, request, "rocker_pin")
    assert q is None and "coupler_rocker" in why
