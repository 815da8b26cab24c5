"""Effective masses and rotational inertias, against dense matrices and pushes that are answered."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import (
    ModelError,
    ShapeError,
    SingularHingeError,
    TroubleWarning,
    UnknownNameError,
)
from tests.cases import close, linkage, state, states, tree
from tests.dense_kinematics import mass_matrix

NOWHERE = 1e-9
"""Singular values of J below this part of the largest are zero, for the reference."""


def reference(mech, q, node, frame):
    """J 𝓜⁻¹ J* with the dense mass matrix, which has armature in it."""
    J = lw.jacobian(mech, q, node, frame=frame)
    return J, J @ np.linalg.solve(mass_matrix(mech, q), J.T)


def pseudo_inverse(J, response):
    """The inverse on the range of J, from nothing but J and the response."""
    left, values, _ = np.linalg.svd(J)
    there = left[:, : int((values > NOWHERE * values.max()).sum())]
    return there @ np.linalg.inv(there.T @ response @ there) @ there.T


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        *((name, "world") for name in ("every hinge, armature", "floating")),
        pytest.param("pins", "world", marks=pytest.mark.slow),
        ("pins", "node"),
    ],
)
def test_against_dense_matrices(name, frame):
    mech = tree(name)
    q = state(mech)[0]
    J, response = reference(mech, q, "tool", frame)
    properties = lw.inertial.inertial_properties(mech, q, "tool", frame=frame)
    # The condition of 𝓜 of these trees is up to 1e4: 1e-12 of the largest response.
    scale = np.abs(response).max()
    close(properties.translational_response, response[3:, 3:], 1e-11, scale)
    close(properties.rotational_response, response[:3, :3], 1e-11, scale)
    close(properties.coupling, response[3:, :3], 1e-11, scale)
    close(properties.inverse, response, 1e-11, scale)
    for rows, inertia in (
        (slice(3, 6), properties.translational_inertia),
        (slice(0, 3), properties.rotational_inertia),
    ):
        close(inertia, pseudo_inverse(J[rows], response[rows, rows]), 1e-8)


@pytest.mark.parametrize("name", ["every hinge, armature", "floating", "pins"])
def test_effective_mass_is_one_row_of_the_task(name):
    """1 / m_u = J_u 𝓜⁻¹ J_u* for the row J_u = u* J_v: definitions before (30) and (31)."""
    mech = tree(name)
    q = state(mech)[0]
    rng = np.random.default_rng(2)
    J, response = reference(mech, q, "tool", "world")
    for u in rng.standard_normal((4, 3)):
        row = u / np.linalg.norm(u) @ J[3:]
        expected = 1.0 / (row @ np.linalg.solve(mass_matrix(mech, q), row))
        assert lw.inertial.effective_mass(mech, q, "tool", u) == pytest.approx(expected, rel=1e-10)
        turn = u / np.linalg.norm(u)
        expected = 1.0 / (turn @ response[:3, :3] @ turn)
        result = lw.inertial.effective_mass(mech, q, "tool", u, what="rotation")
        assert result == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("frame", ["world", "node"])
def test_a_unit_force_from_rest(frame):
    """The acceleration along u of the force u is 1 / m_u, and likewise about u (003 section 4.2).

    Starting from rest, and beyond what gravity does.
    """
    mech = lw.models.seven_dof_arm()
    q, rest = mech.random(seed=4), np.zeros(mech.nv)
    J = lw.jacobian(mech, q, "hand", frame=frame)
    alone = lw.forward_dynamics(mech, q, rest, rest)
    for u in np.random.default_rng(1).standard_normal((3, 3)):
        u = u / np.linalg.norm(u)
        for f, what in (
            (np.concatenate([np.zeros(3), u]), "mass"),
            (np.concatenate([u, np.zeros(3)]), "rotation"),
        ):
            pushed = lw.forward_dynamics(
                mech, q, rest, rest, forces={"hand": f}, forces_frame=frame
            )
            answer = f @ J @ (pushed - alone)
            felt = lw.inertial.effective_mass(mech, q, "hand", u, what=what, frame=frame)
            assert 1.0 / felt == pytest.approx(answer, rel=1e-10)


def test_the_inverse_of_a_block_is_not_a_block_of_the_inverse():
    """Λ_v is (Λ⁻¹ block)⁻¹; the block of Λ belongs to a hand that must not turn, and is heavier."""
    arm = lw.models.seven_dof_arm()
    q = arm.random(seed=0)
    properties = lw.inertial.inertial_properties(arm, q, "hand")
    full = np.linalg.inv(properties.inverse)
    held = full[3:, 3:]
    close(np.linalg.inv(properties.translational_response), properties.translational_inertia, 1e-11)
    assert np.abs(held - properties.translational_inertia).max() > 0.5  # kg: plainly another matrix
    # held - Λ_v = Λ_vω Λ_ωω⁻¹ Λ_ωv: not negative, the Schur complement of Λ.
    extra = full[3:, :3] @ np.linalg.solve(full[:3, :3], full[:3, 3:])
    close(held - properties.translational_inertia, extra, 1e-10)
    assert np.linalg.eigvalsh(extra).min() > -1e-10


def test_principal_values_are_the_extremes():
    mech = tree("floating")
    q = state(mech)[0]
    properties = lw.inertial.inertial_properties(mech, q, "tool")
    for values, axes, what in (
        (properties.principal_masses, properties.mass_axes, "mass"),
        (properties.principal_inertias, properties.inertia_axes, "rotation"),
    ):
        close(axes.T @ axes, np.eye(3), 1e-13)
        felt = partial(lw.inertial.effective_mass, mech, q, "tool", what=what)
        close(felt(axes.T), values, 1e-10)
        around = felt(np.random.default_rng(0).standard_normal((500, 3)))
        assert values[0] * (1 - 1e-12) <= around.min() and around.max() <= values[2] * (1 + 1e-12)
        assert (np.diff(values) >= 0.0).all()
    assert (
        properties.mass_isotropy == properties.principal_masses[0] / properties.principal_masses[2]
    )
    assert (
        properties.inertia_isotropy
        == properties.principal_inertias[0] / properties.principal_inertias[2]
    )


def test_a_free_body_weighs_what_it_weighs():
    """A ball: its mass in all directions at its centre, and less off it, by m / (1 + m r² / I)."""
    b = lw.Builder("ball")
    b.body(
        "ball",
        hinge=lw.hinges.Free(),
        inertia=lw.SpatialInertia.from_com(3.0, J_com=(0.2, 0.2, 0.2)),
    )
    b.node("rim", "ball", (0.5, 0.0, 0.0))
    mech = b.build()
    q = mech.neutral()
    centre = lw.inertial.inertial_properties(mech, q, "ball")
    close(centre.principal_masses, np.full(3, 3.0), 1e-14)
    close(centre.principal_inertias, np.full(3, 0.2), 1e-14)
    assert centre.mass_isotropy == pytest.approx(1.0, abs=1e-14)
    assert np.abs(centre.coupling).max() < 1e-15
    assert lw.inertial.effective_mass(mech, q, "rim", (1, 0, 0)) == pytest.approx(3.0, rel=1e-14)
    expected = 1.0 / (1.0 / 3.0 + 0.5**2 / 0.2)
    assert lw.inertial.effective_mass(mech, q, "rim", (0, 2, 0)) == pytest.approx(
        expected, rel=1e-14
    )
    # A moment about z moves the rim along y: Λ̄_vω = -r̃ Θ⁻¹.
    rim = lw.inertial.inertial_properties(mech, q, "rim")
    assert rim.coupling[1, 2] == pytest.approx(0.5 / 0.2, rel=1e-14)
    assert rim.coupling[2, 1] == pytest.approx(-0.5 / 0.2, rel=1e-14)


def test_batches_are_their_states():
    mech = tree("every hinge, armature")
    q = states(mech, 7)[0]
    u = np.random.default_rng(3).standard_normal((7, 3))
    full = lw.inertial.inertial_properties(mech, q, "tool")
    assert len(full) == 7 and "7 states" in str(full)
    masses = lw.inertial.effective_mass(mech, q, "tool", u)
    common = lw.inertial.effective_mass(mech, q, "tool", u[0])
    turning = lw.inertial.effective_mass(mech, q, "tool", u, what="rotation")
    assert masses.shape == common.shape == turning.shape == (7,)
    for i in range(7):
        one = lw.inertial.inertial_properties(mech, q[i], "tool")
        close(full[i].inverse, one.inverse, 1e-12)
        close(full[i].translational_inertia, one.translational_inertia, 1e-12)
        assert masses[i] == pytest.approx(
            lw.inertial.effective_mass(mech, q[i], "tool", u[i]), rel=1e-12
        )
        assert common[i] == pytest.approx(
            lw.inertial.effective_mass(mech, q[i], "tool", u[0]), rel=1e-12
        )
    assert lw.inertial.effective_mass(mech, q[:0], "tool", u[0]).shape == (0,)
    assert len(lw.inertial.inertial_properties(mech, q[:0], "tool")) == 0
    with pytest.raises(ShapeError):
        len(full[0])
    with pytest.raises(ShapeError):
        _ = full[0][0]


def two_links(tilt):
    """Two unit masses on unit rods in a plane that is turned: nothing is exactly zero any more."""
    b = lw.Builder("two links")
    bob = lw.SpatialInertia.point(1.0, (0.0, 0.0, -1.0))
    b.body("upper", hinge=lw.hinges.Pin((0, 1, 0)), inboard=tilt, inertia=bob)
    b.body("lower", "upper", lw.hinges.Pin((0, 1, 0)), inboard=(0.0, 0.0, -1.0), inertia=bob)
    b.node("tip", "lower", (0.0, 0.0, -1.0))
    return b.build()


TILTS = [lw.Pose.rpy(angles, (0.2, 0.1, 0.5)) for angles in np.random.default_rng(6).random((4, 3))]


@pytest.mark.parametrize("tilt", TILTS)
def test_blocked_directions_are_infinite(tilt):
    """A planar arm cannot leave its plane, however it is turned; stretched, nor its arc."""
    mech, normal = two_links(tilt), np.array(tilt.rot)[:, 1]
    q = np.array([[0.4, 0.7], [0.4, 0.0]])  # the second one is stretched
    assert (lw.inertial.effective_mass(mech, q, "tip", normal) == np.inf).all()
    properties = lw.inertial.inertial_properties(mech, q, "tip")
    assert properties.principal_masses[0, 2] == np.inf
    assert np.isfinite(properties.principal_masses[0, :2]).all()
    assert (properties.principal_masses[1, 1:] == np.inf).all()
    assert np.isfinite(properties.translational_inertia).all()
    assert (properties.mass_isotropy == 0.0).all()
    assert (properties.principal_inertias[:, 1:] == np.inf).all()
    close(np.abs(properties.inertia_axes[0, :, 0]), np.abs(normal), 1e-13)
    assert str(properties[1]).count("blocked") == 4


@pytest.mark.parametrize("tilt", TILTS[:2])
@pytest.mark.parametrize("angle", [1e-3, 1e-6])
def test_a_heavy_direction_keeps_its_digits(tilt, angle):
    """Along a nearly stretched arm: 5e11 kg, to nine digits; squared it would have four.

    Two unit masses on unit rods, the first one upright, the second at the angle a against it. With
    s = sin a and c = cos a the row of z is (s, s), 𝓜 = [[3 + 2c, 1 + c], [1 + c, 1]] of determinant
    1 + s², and (1, 1) 𝓜⁻¹ (1, 1)* = 2 / (1 + s²): m = (1 + s²) / (2 s²).
    """
    expected = (1.0 + np.sin(angle) ** 2) / (2.0 * np.sin(angle) ** 2)
    mech, along = two_links(tilt), np.array(tilt.rot)[:, 2]
    result = lw.inertial.effective_mass(mech, np.array([0.0, angle]), "tip", along)
    assert result == pytest.approx(expected, rel=1e-15 / angle + 1e-12)  # as exact as the row is


def test_nothing_moves_a_node_on_the_ground():
    mech = two_links(TILTS[0]).with_node("post", "world", (1.0, 2.0, 3.0))
    properties = lw.inertial.inertial_properties(mech, np.array([0.4, 0.7]), "post")
    assert (properties.principal_masses == np.inf).all() and (properties.inverse == 0.0).all()
    assert lw.inertial.effective_mass(mech, np.array([0.4, 0.7]), "post", (1, 0, 0)) == np.inf


@pytest.mark.parametrize(("name", "node"), [("four_bar", "coupler_end"), ("bennett", "bar_2")])
def test_loops_are_closed(name, node):
    """By constrained dynamics: what a push does to a mechanism whose loops hold."""
    mech, q = linkage(name)
    rest = np.zeros(mech.nv)
    alone = lw.forward_dynamics(mech, q, rest, rest)
    J = lw.jacobian(mech, q, node, frame="world")
    properties = lw.inertial.inertial_properties(mech, q, node)
    for u in np.random.default_rng(0).standard_normal((2, 3)):
        u = u / np.linalg.norm(u)
        f = np.concatenate([np.zeros(3), u])
        pushed = lw.forward_dynamics(mech, q, rest, rest, forces={node: f}, forces_frame="world")
        # The reference solves with the square of J_c, whose condition is 1e3 and more.
        answer = u @ J[3:] @ (pushed - alone)
        mass = lw.inertial.effective_mass(mech, q, node, u)
        assert 1.0 / mass == pytest.approx(answer, rel=1e-8)
        assert 1.0 / mass == pytest.approx(u @ properties.translational_response @ u, rel=1e-11)
        opened = lw.inertial.effective_mass(mech, q, node, u, loops="open")
        assert opened < mass * (1 - 1e-3)  # loops take freedoms away, which never makes it lighter
    close(
        properties.inverse,
        lw.dynamics.operational_inertia_inverse(mech, q, node, frame="world"),
        1e-10,
    )


def test_loops_leave_one_direction():
    mech, q = linkage("four_bar")
    properties = lw.inertial.inertial_properties(mech, np.stack([q, q]), "coupler_end")
    assert (np.isinf(properties.principal_masses).sum(axis=1) == 2).all()
    assert (
        lw.inertial.effective_mass(mech, q, "coupler_end", properties.mass_axes[0, :, 2]) == np.inf
    )
    full = lw.inertial.effective_mass(
        lw.loops.embed(mech), q, "coupler_end", properties.mass_axes[0, :, 0]
    )
    assert full == pytest.approx(properties.principal_masses[0, 0], rel=1e-11)


def test_directional_inertia_of_any_space():
    mech = tree("floating")
    q = states(mech, 3)[0]
    space = lw.operational_space(mech, q, "tool", frame="world")
    w = np.random.default_rng(5).standard_normal((3, 6))
    unit = w / np.linalg.norm(w, axis=1, keepdims=True)
    expected = 1.0 / np.einsum("ni,nij,nj->n", unit, space.inverse, unit)
    close(lw.inertial.directional_inertia(space, w), expected, 1e-13)
    close(lw.inertial.directional_inertia(space.inverse, 7.0 * w), expected, 1e-13)
    arm, bent = lw.models.pendulum(2), np.array([0.3, 0.8])
    tasks = lw.tasks.task_space(arm, bent, lw.Task.position("tip"))
    result = lw.inertial.directional_inertia(tasks, (1.0, 0.0, -0.5))
    mass = lw.inertial.effective_mass(arm, bent, "tip", (1.0, 0.0, -0.5))
    assert result == pytest.approx(mass, rel=1e-11)
    assert lw.inertial.directional_inertia(np.diag([0.5, 0.0]), (0, 1)) == np.inf
    assert lw.inertial.directional_inertia(np.diag([0.5, 0.0]), (3, 0)) == 2.0


def test_in_words():
    arm = lw.models.planar_rpp()
    text = str(lw.inertial.inertial_properties(arm, np.array([0.0, 0.6, 0.35]), "end_effector"))
    assert text.splitlines()[0] == (
        "inertial properties of 'end_effector' in the axes of the world"
    )
    assert "1 along y" in text and "2.751 along x" in text and "blocked along z" in text


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        (("hand", (0, 0, 0)), {}, ShapeError, "zero vector"),
        (("hand", (0, 1)), {}, ShapeError, r"must be \(3,\) or \(batch, 3\)"),
        (("hand", (0, np.nan, 1)), {}, ModelError, "finite"),
        (("hand", [[1, 0, 0], [0, 0, 0]]), {}, ShapeError, "zero vector in row 1"),
        (("hands", (0, 0, 1)), {}, UnknownNameError, "did you mean 'hand'"),
        ((["hand"], (0, 0, 1)), {}, ModelError, "name of one node"),
        (("hand", (0, 0, 1)), {"frame": "body"}, ModelError, "'node' or 'world'"),
        (("hand", (0, 0, 1)), {"frame": "reference"}, ModelError, "'reference' is 'world'"),
        (("hand", (0, 0, 1)), {"frame": "local"}, ModelError, "'local' is 'node'"),
        (("hand", (0, 0, 1)), {"loops": "cut"}, ModelError, "'closed', .* or 'open'"),
        (("hand", (0, 0, 1)), {"tolerance": 0.0}, ModelError, "between 0 and 1"),
    ],
)
def test_bad_input(arguments, options, error, words):
    arm = lw.models.seven_dof_arm()
    for what in ("mass", "rotation"):
        with pytest.raises(error, match=words):
            lw.inertial.effective_mass(arm, arm.random(seed=0), *arguments, what=what, **options)


def test_bad_shapes():
    arm = lw.models.seven_dof_arm()
    with pytest.raises(ShapeError, match="direction has 3 rows; the batch has 2"):
        lw.inertial.effective_mass(arm, np.zeros((2, 7)), "hand", np.eye(3))
    with pytest.raises(ShapeError):
        lw.inertial.effective_mass(arm, np.zeros(6), "hand", (1, 0, 0))
    with pytest.raises(ShapeError):
        lw.inertial.inertial_properties(arm, np.zeros((2, 2, 7)), "hand")
    with pytest.raises(ModelError):
        lw.inertial.inertial_properties("arm", np.zeros(7), "hand")
    with pytest.raises(ShapeError, match="not symmetric"):
        lw.inertial.directional_inertia([[1.0, 2.0], [0.0, 1.0]], (1, 0))
    with pytest.raises(ModelError, match="below zero"):
        lw.inertial.directional_inertia(np.diag([1.0, -1.0]), (0, 1))
    with pytest.raises(ShapeError, match="finite"):
        lw.inertial.directional_inertia(np.diag([1.0, np.nan]), (0, 1))
    with pytest.raises(ShapeError, match="must be"):
        lw.inertial.directional_inertia(np.ones(3), (0, 1, 0))
    with pytest.raises(ShapeError, match="3 states and direction 2 rows"):
        lw.inertial.directional_inertia(np.tile(np.eye(2), (3, 1, 1)), np.ones((2, 2)))


def test_a_state_in_trouble_is_told_and_the_others_stand():
    """A point mass on a slider, at the axis of a pin without inertia: D = m q² is zero there."""
    b = lw.Builder("turned slider")
    b.body("arm", hinge=lw.hinges.Pin((0, 0, 1)), inertia=lw.SpatialInertia.point(0.0))
    b.body("mass", "arm", lw.hinges.Prismatic((1, 0, 0)), inertia=lw.SpatialInertia.point(2.0))
    mech = b.build()
    q = np.array([[0.0, 0.5], [0.0, 0.0], [0.0, 0.7]])
    with pytest.warns(TroubleWarning):
        masses = lw.inertial.effective_mass(mech, q, "mass", (1, 1, 0))
    with pytest.warns(TroubleWarning):
        properties = lw.inertial.inertial_properties(mech, q, "mass")
    assert np.isnan(masses[1]) and np.isnan(properties.principal_masses[1]).all()
    close(masses[[0, 2]], np.full(2, 2.0), 1e-14)
    close(properties.principal_masses[[0, 2], :2], np.full((2, 2), 2.0), 1e-14)
    with pytest.raises(SingularHingeError):
        lw.inertial.effective_mass(mech, q[1], "mass", (1, 0, 0))


def test_nothing_that_moves():
    b = lw.Builder("post")
    b.body("post", hinge=lw.hinges.Locked(), inertia=lw.SpatialInertia.point(1.0))
    mech = b.build()
    assert lw.inertial.effective_mass(mech, [], "post", (1, 0, 0)) == np.inf
    properties = lw.inertial.inertial_properties(mech, np.zeros((2, 0)), "post")
    assert (properties.principal_masses == np.inf).all() and (
        properties.rotational_inertia == 0.0
    ).all()
    assert (lw.inertial.inertial_properties(mech, [], "post").principal_inertias == np.inf).all()
