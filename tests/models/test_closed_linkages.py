"""Delta robot, Peaucellier's linkage, biped and handover: what each is built for."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import models
from linkwise.errors import ModelError
from tests.dense_kinematics import constraint_jacobian, loop_gap, mass_matrix

# Mechanism, bodies, dof of the tree, mass [kg], rows of the loops, freedoms left.
LINKAGES = {
    "peaucellier": (models.peaucellier, 7, 7, 4.0, 15, 1),
    "peaucellier of other lengths": (
        lambda: models.peaucellier(arm=0.6, side=0.25, crank=0.22, density=1.0),
        7, 7, 2 * 0.6 + 4 * 0.25 + 0.22, 15, 1,
    ),
    "delta": (models.delta, 10, 21, 1.8, 18, 3),
    "delta of other lengths": (
        lambda: models.delta(arm=0.3, forearm=0.7, width=0.1, mass=1.0), 10, 21, 2.5, 18, 3,
    ),
    "biped": (models.biped, 7, 18, 32.0, 12, 6),
    "biped that may tip": (
        lambda: models.biped(contact=lw.hinges.Pin((0.0, 1.0, 0.0))), 7, 18, 32.0, 10, 8,
    ),
    "biped on points": (lambda: models.biped(contact=lw.hinges.Spherical()), 7, 18, 32.0, 6, 12),
    "handover": (models.handover, 16, 26, 183.2 + 12.0, 6, 20),
}  # fmt: skip


@pytest.fixture(params=LINKAGES, scope="module")
def linkage(request):
    build, *promised = LINKAGES[request.param]
    return build(), promised


def test_size(linkage):
    mech, (bodies, dof, mass, rows, _) = linkage
    assert (mech.n_bodies, mech.nv) == (bodies, dof)
    assert mech.total_mass == pytest.approx(mass, rel=1e-12)
    assert sum(loop.rows for loop in mech.loops) == rows


def test_loops_close_at_neutral(linkage):
    mech, _ = linkage
    for loop in mech.loops:
        assert np.abs(loop_gap(mech, mech.neutral(), loop)).max() < 1e-12, loop.name


def test_freedoms_at_neutral(linkage):
    mech, (*_, freedoms) = linkage
    singular = np.linalg.svd(constraint_jacobian(mech, mech.neutral()), compute_uv=False)
    rank = int((singular > 1e-9).sum())
    assert mech.nv - rank == freedoms
    assert singular[rank - 1] > 1e-2  # and not by a hair


def test_it_validates_and_can_be_drawn(linkage):
    mech, _ = linkage
    q = mech.neutral()
    assert not mech.validate()
    assert (mech.lower <= q).all() and (q <= mech.upper).all()
    for body in mech.bodies:
        assert body.geometry, body.name
    A = mass_matrix(mech, mech.random(seed=1))
    assert np.linalg.eigvalsh(A).min() > 1e-9 * np.abs(A).max()


def moved(mech, hinge, angle, steps=20):
    """The closed configuration with one hinge turned by an angle, reached in small steps."""
    q, i = mech.neutral(), mech.v_slice(hinge).start
    free = [j for j in range(mech.nv) if j != i]
    for _ in range(steps):
        v = np.zeros(mech.nv)
        v[i] = angle / steps
        q = mech.integrate(q, v)
        for _ in range(8):
            v = np.zeros(mech.nv)
            J = lw.loops.constraint_jacobian(mech, q)[:, free]
            v[free] = -np.linalg.lstsq(J, lw.loops.constraint_error(mech, q), rcond=1e-9)[0]
            q = mech.integrate(q, v)
    assert np.abs(lw.loops.constraint_error(mech, q)).max() < 1e-12
    return q


# -------------------------------------------------------------------------------------- peaucellier


@pytest.mark.parametrize("angle", [-1.2, -0.5, 0.3, 0.9, 1.3])
def test_the_pen_draws_a_straight_line(angle):
    """z = -(arm² - side²) / (2 crank), x = z tan(angle / 2)."""
    mech = models.peaucellier()
    q = moved(mech, "crank_pin", angle)
    z = -(0.5**2 - 0.2**2) / (2.0 * 0.2)
    # The crank hangs along -z and turns about y: its end is at P + 0.2 (-sin, 0, -cos), seen from O
    # under half that angle, and the pen on the same ray.
    expected = (z * np.tan(0.5 * angle), 0.0, z)
    np.testing.assert_allclose(mech.pose(q, "pen").p, expected, atol=1e-12)


def test_over_constrained_pins_stay_so():
    """Rank 6 of 15 all along, not only at neutral."""
    mech = models.peaucellier()
    for angle in (0.4, 1.1):
        J = lw.loops.constraint_jacobian(mech, moved(mech, "crank_pin", angle))
        assert np.linalg.matrix_rank(J, tol=1e-9) == 6


def test_a_rhombus_that_cannot_be_says_so():
    for bad in ({"crank": 0.15}, {"crank": 0.4}, {"side": 0.6}):
        with pytest.raises(ModelError, match="cannot be put together"):
            models.peaucellier(**bad)


# -------------------------------------------------------------------------------------------- delta


def test_the_platform_never_turns():
    mech = models.delta()
    q = mech.neutral()
    rng = np.random.default_rng(0)
    for _ in range(3):
        v = lw.loops.project_velocity(mech, q, rng.standard_normal(mech.nv))
        q = lw.loops.project_position(mech, mech.integrate(q, v, 0.05)).required()
        pose = mech.pose(q, "tool")
        np.testing.assert_allclose(pose.rot, np.eye(3), atol=1e-11)
    assert np.abs(pose.p - mech.pose(mech.neutral(), "tool").p).max() > 0.01


def test_inverse_kinematics_of_delta_in_closed_form():
    """Of the arm angles only: each arm's elbow is a rod away from the platform's joint."""
    mech = models.delta()
    q = mech.neutral()
    v = lw.loops.project_velocity(mech, q, np.random.default_rng(3).standard_normal(mech.nv))
    q = lw.loops.project_position(mech, mech.integrate(q, v, 0.1)).required()
    tool = mech.pose(q, "tool").p
    for k, about in enumerate((0.0, 2.0 * np.pi / 3.0, 4.0 * np.pi / 3.0), start=1):
        c, s = np.cos(about), np.sin(about)
        x, y, z = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ tool
        # |(0.2 + 0.25 cos a, 0, -0.25 sin a) - (x + 0.06, y, z)| = 0.55 for the angle a.
        dx = x + 0.06 - 0.2
        left = 0.55**2 - dx**2 - y**2 - z**2 - 0.25**2
        a = q[mech.q_slice(f"motor_{k}")][0]
        assert -2.0 * 0.25 * (dx * np.cos(a) - z * np.sin(a)) == pytest.approx(left, abs=1e-11)


def test_rods_that_are_too_short_are_refused():
    with pytest.raises(ModelError, match="longer than base_radius"):
        models.delta(forearm=0.3)


# -------------------------------------------------------------------------------------------- biped


def test_the_ground_carries_the_weight_evenly():
    """Held still at neutral, each foot carries half the weight."""
    mech = models.biped()
    q, v = mech.neutral(), np.zeros(mech.nv)
    np.testing.assert_allclose(mech.pose(q, "left_sole").p, (0.0, 0.1, 0.0), atol=1e-15)
    np.testing.assert_allclose(mech.pose(q, "left_foot").rot, np.eye(3), atol=1e-15)
    # Some joint forces hold it: those of least norm with J_c* λ = g on the base's rows.
    g = lw.gravity_force(mech, q)
    J = lw.loops.constraint_jacobian(mech, q)
    lam = np.linalg.lstsq(J[:, :6].T, g[:6], rcond=None)[0]
    tau = g - J.T @ lam
    tau[:6] = 0.0
    assert np.abs(lw.forward_dynamics(mech, q, v, tau)).max() < 1e-10
    forces = lw.loops.constraint_forces(mech, q, v, tau).reshape(2, 6)
    np.testing.assert_allclose(forces[:, 5], 32.0 * 9.81 / 2.0, rtol=1e-9)


# ----------------------------------------------------------------------------------------- handover


def test_cargo_is_in_the_left_hand_and_can_be_taken_by_the_right():
    mech = models.handover()
    q = mech.neutral()
    assert not np.asarray(mech.gravity).any()
    box, hand = mech.pose(q, "cargo"), mech.pose(q, "left_hand")
    np.testing.assert_allclose((hand.inverse() @ box).p, (0.0, 0.0, 0.1), atol=1e-14)
    both = lw.loops.close_loop(mech, q, "right_grasp", "right_hand", "cargo")
    assert [loop.name for loop in both.loops] == ["left_grasp", "right_grasp"]
    assert np.abs(lw.loops.constraint_error(both, q)).max() < 1e-12
    right = both.without("left_grasp")
    assert [loop.name for loop in right.loops] == ["right_grasp"] and right.nq == mech.nq
