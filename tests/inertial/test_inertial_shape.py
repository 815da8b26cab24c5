"""Ellipsoids of inertia: what their points satisfy, and that surfaces are closed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError
from tests.cases import close

SHAPES = {
    kind: partial(lw.inertial.ellipsoid, kind=kind) for kind in ("belted", "gyration", "inertia")
}


@pytest.fixture(scope="module")
def hand():
    arm = lw.models.seven_dof_arm()
    return lw.inertial.inertial_properties(arm, arm.random(seed=0), "hand")


def quadratic(matrix, points):
    return np.einsum("ni,ij,nj->n", points, matrix, points)


@pytest.mark.parametrize("what", ["mass", "rotation"])
def test_equations(hand, what):
    """The definition of each: 003 section 4.4, with (34) for the belted one."""
    moving = what == "mass"
    response = hand.translational_response if moving else hand.rotational_response
    inertia = np.linalg.inv(response)
    belted = lw.inertial.ellipsoid(hand, what=what)
    close(quadratic(response, belted.points) / belted.radii, np.ones(len(belted.points)), 1e-12)
    gyration = lw.inertial.ellipsoid(hand, "gyration", what=what)
    close(quadratic(response, gyration.points), np.ones(len(gyration.points)), 1e-12)
    ellipsoid = lw.inertial.ellipsoid(hand, "inertia", what=what)
    close(quadratic(inertia, ellipsoid.points), np.ones(len(ellipsoid.points)), 1e-12)
    assert not belted.cut.any() and belted.limit == np.inf


def test_distance_is_effective_mass():
    arm = lw.models.seven_dof_arm()
    q = arm.random(seed=0)
    shape = lw.inertial.ellipsoid(lw.inertial.inertial_properties(arm, q, "hand"), resolution=16)
    close(shape.radii, lw.inertial.effective_mass(arm, q, "hand", shape.directions), 1e-11)


def test_construction_of_figure_5(hand):
    """w = |v| v takes the ellipsoid to the belted one: same direction, square of the distance."""
    v = lw.inertial.ellipsoid(hand, "gyration", resolution=24).points
    w = lw.inertial.ellipsoid(hand, resolution=24).points
    close(w, np.linalg.norm(v, axis=1, keepdims=True) * v, 1e-12)


def test_which_power_equation_34_needs(hand):
    """v / √|v| put for v in the ellipsoid's equation gives (34); v / |v|, as printed, does not.

    With the printed one the equation is the same at every distance: a cone.
    """
    w = lw.inertial.ellipsoid(hand, resolution=24).points
    size = np.linalg.norm(w, axis=1, keepdims=True)
    matrix = hand.translational_response
    close(quadratic(matrix, w / np.sqrt(size)), np.ones(len(w)), 1e-12)
    printed = quadratic(matrix, w / size)
    close(
        quadratic(matrix, 3.0 * w / np.linalg.norm(3.0 * w, axis=1, keepdims=True)), printed, 1e-13
    )
    assert np.abs(printed - 1.0).max() > 0.1


@pytest.mark.parametrize("kind", SHAPES)
def test_surfaces_are_closed_and_face_outward(hand, kind):
    shape = SHAPES[kind](hand, resolution=32)
    points, faces = shape.points, shape.faces
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    assert len(np.unique(edges, axis=0)) == len(edges)  # each way once,
    assert set(map(tuple, edges)) == set(map(tuple, edges[:, ::-1]))  # and back once
    assert len(points) - len(edges) // 2 + len(faces) == 2  # Euler: a ball
    corners = points[faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    middle = corners.mean(axis=1)
    assert (np.einsum("ni,ni->n", across, middle) > 0.0).all()
    volume = np.einsum("ni,ni->n", across, middle).sum() / 6.0
    if kind != "belted":
        semi = np.sqrt(shape.principal) if kind == "gyration" else 1.0 / np.sqrt(shape.principal)
        # 32 points around lose about 1 - (sin x / x)² with x = 2π/32, twice.
        assert volume == pytest.approx(4.0 / 3.0 * np.pi * semi.prod(), rel=0.04)
    # Normals of vertices: beside those of the triangles around them.
    close(np.linalg.norm(shape.normals, axis=1), np.ones(len(points)), 1e-12)
    for k in (0, 40, 200):
        around = across[(faces == k).any(axis=1)].sum(axis=0)
        assert shape.normals[k] @ around / np.linalg.norm(around) > 0.98


def test_normals_are_those_of_the_surface(hand):
    """Along two directions of the surface nothing changes: finite differences of m_u u."""
    shape = lw.inertial.ellipsoid(hand, resolution=16)
    matrix = hand.translational_response
    rng = np.random.default_rng(0)

    def on(u):
        u = u / np.linalg.norm(u)
        return u / (u @ matrix @ u)

    for u, normal in zip(shape.directions[::17], shape.normals[::17], strict=True):
        step = 1e-6 * rng.standard_normal(3)
        moved = (on(u + step) - on(u - step)) / 2e-6
        assert abs(normal @ moved) < 1e-8 * np.linalg.norm(moved)


def test_a_plane_cuts_the_belted_surface(hand):
    directions = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    curve = lw.inertial.ellipsoid(hand, plane=directions)
    assert curve.points.shape == (96, 2) and curve.faces.shape == (0, 3)
    space = curve.placed((0, 0, 0))
    normal = np.cross(*directions)
    assert np.abs(space @ normal).max() < 1e-12 * np.abs(space).max()
    felt = quadratic(hand.translational_response, space) / np.linalg.norm(space, axis=1)
    close(felt, np.ones(96), 1e-12)
    plain = lw.inertial.ellipsoid(hand.translational_response[np.ix_([0, 2], [0, 2])])
    close(np.sort(plain.radii), np.sort(lw.inertial.ellipsoid(hand, plane="xz").radii), 1e-12)


def test_the_inertia_ellipse_of_a_plane_is_a_shadow(hand):
    """Moving in a plane leaves the third direction free: support of the solid's projection."""
    flat = lw.inertial.ellipsoid(hand, "inertia", plane="xy", resolution=400)
    solid = lw.inertial.ellipsoid(hand, "inertia", resolution=400)
    angle = np.linspace(0.0, 2.0 * np.pi, 9)
    for c in np.stack([np.cos(angle), np.sin(angle)], axis=-1):
        reach = (flat.points @ c).max()
        assert reach == pytest.approx((solid.points[:, :2] @ c).max(), rel=1e-3)
        exact = np.sqrt(c @ hand.translational_response[:2, :2] @ c)
        assert reach == pytest.approx(exact, rel=1e-3)


def test_blocked_directions_are_cut():
    arm = lw.models.planar_rpp()
    properties = lw.inertial.inertial_properties(arm, np.array([0.3, 0.6, 0.35]), "end_effector")
    for kind, make in SHAPES.items():
        shape = make(properties)
        assert np.isfinite(shape.points).all() and np.isfinite(shape.normals).all()
        close(np.linalg.norm(shape.normals, axis=1), np.ones(len(shape.points)), 1e-12)
        if kind == "inertia":  # flat
            assert np.abs(shape.points[:, 2]).max() == 0.0
            continue
        far = 3.0 * properties.principal_masses[1]
        far = far if kind == "belted" else np.sqrt(far)
        assert shape.limit == pytest.approx(far) and shape.cut.any() and not shape.cut.all()
        close(shape.radii[shape.cut], np.full(shape.cut.sum(), far), 1e-12)
        assert shape.radii.max() <= far * (1 + 1e-12) and "cut at" in str(shape)
    near = lw.inertial.ellipsoid(properties, limit=1.5)
    assert near.limit == 1.5 and near.radii.max() == pytest.approx(1.5)
    kept = near.points[~near.cut]
    felt = quadratic(properties.translational_response, kept) / np.linalg.norm(kept, axis=1)
    close(felt, np.ones(len(kept)), 1e-12)
    # Vertices are where there is something to see: not crowded around the blocked direction.
    assert lw.inertial.ellipsoid(properties).cut.mean() < 0.6
    flat = lw.inertial.ellipsoid(properties, plane="xy")
    assert not flat.cut.any() and flat.radii.max() == pytest.approx(properties.principal_masses[1])
    with pytest.raises(ModelError, match="finite where a direction is blocked"):
        lw.inertial.ellipsoid(properties, limit=np.inf)
    with pytest.raises(ModelError, match="'end_effector' has no belted ellipsoid: it cannot turn"):
        lw.inertial.ellipsoid(properties, what="rotation", plane="xy")


def test_placed(hand):
    shape = lw.inertial.ellipsoid(hand, resolution=8)
    close(shape.placed((1, 2, 3), 0.1), np.array([1.0, 2.0, 3.0]) + 0.1 * shape.points, 1e-14)
    arm = lw.models.seven_dof_arm()
    q = arm.random(seed=0)
    pose = lw.forward_kinematics(arm, q, "hand")
    ours = lw.inertial.ellipsoid(
        lw.inertial.inertial_properties(arm, q, "hand", frame="node"), resolution=8
    )
    away = ours.placed(pose, 0.1) - pose.p
    close(
        np.linalg.norm(away, axis=1), 0.1 * lw.inertial.effective_mass(arm, q, "hand", away), 1e-11
    )
    assert "surface of" in str(shape) and "kg" in str(shape)
    with pytest.raises(ShapeError, match="must have three"):
        lw.inertial.ellipsoid(np.eye(2)).placed((0, 0, 0))


def test_bad_input(hand):
    arm = lw.models.seven_dof_arm()
    many = lw.inertial.inertial_properties(arm, np.zeros((2, 7)) + 0.3, "hand")
    for make in SHAPES.values():
        with pytest.raises(ShapeError, match=r"choose one of them"):
            make(many)
        with pytest.raises(ShapeError, match="Use a block of six rows"):
            make(np.eye(6))
        with pytest.raises(ModelError, match="even whole number"):
            make(hand, resolution=7)
        with pytest.raises(ModelError, match="'mass' or 'rotation'"):
            make(hand, what="weight")
        with pytest.raises(ModelError, match="two of x, y, z"):
            make(hand, plane="xx")
        with pytest.raises(ShapeError, match="two directions"):
            make(hand, plane=np.eye(3))
        with pytest.raises(ModelError, match="along one line"):
            make(hand, plane=[[1, 0, 0], [2, 0, 0]])
        with pytest.raises(ShapeError, match="which already is one"):
            make(np.eye(2), plane="xy")
        with pytest.raises(ModelError, match="below zero"):
            make(np.diag([1.0, -1.0]))
        with pytest.raises(ModelError, match="above zero"):
            make(hand, limit=0.0)
        with pytest.raises(ModelError, match="all are blocked"):
            make(np.zeros((3, 3)))
