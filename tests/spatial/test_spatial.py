"""The spatial layer against plain matrix algebra and against its own group properties."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, strategies as st

import linkwise as lw
from linkwise.codegen.scalar.graph import Graph, Scalar
from linkwise.errors import ModelError, ShapeError
from linkwise.spatial import Pose, SpatialInertia, pose as rigid, quaternion, rotation, vector

seeds = st.integers(0, 2**32 - 1)


def random_pose(rng, shape=()):
    return Pose(rotation.random_rotation(rng, shape), rng.standard_normal((*shape, 3)))


def random_inertia(rng):
    points, masses = rng.standard_normal((6, 3)), rng.random(6) + 0.1
    total = SpatialInertia.zero()
    for point, mass in zip(points, masses, strict=True):
        total = total + SpatialInertia.point(mass, point)
    return total


# --------------------------------------------------------------------- rotations, quaternions


@given(seed=seeds)
def test_rotation_and_quaternion_are_the_same_group(seed):
    rng = np.random.default_rng(seed)
    a, b = quaternion.random(rng, (2,))
    product = quaternion.to_matrix(quaternion.multiply(a, b))
    np.testing.assert_allclose(
        product, quaternion.to_matrix(a) @ quaternion.to_matrix(b), atol=1e-14
    )
    np.testing.assert_allclose(
        quaternion.to_matrix(quaternion.conjugate(a)), quaternion.to_matrix(a).T, atol=1e-15
    )
    np.testing.assert_allclose(quaternion.from_matrix(quaternion.to_matrix(a)), a, atol=1e-14)


@given(seed=seeds, angle=st.sampled_from([0.0, 1e-160, 1e-9, 1e-4, 0.3, 3.0, np.pi - 1e-9, np.pi]))
def test_exponential_and_logarithm(seed, angle):
    rng = np.random.default_rng(seed)
    axis = rng.standard_normal(3)
    axis /= np.linalg.norm(axis)
    rot = rotation.exp(angle * axis)
    np.testing.assert_allclose(rot, rotation.axis_angle(axis, angle), atol=1e-15)
    back = rotation.log(rot)
    np.testing.assert_allclose(np.linalg.norm(back), angle, atol=1e-14, rtol=1e-12)
    # At half a turn w and -w are the same rotation.
    np.testing.assert_allclose(rotation.exp(back), rot, atol=4e-15)


@pytest.mark.parametrize("corner", [np.diag(d) for d in ([1, -1, -1], [-1, 1, -1], [-1, -1, 1])])
def test_half_turns_have_a_quaternion(corner):
    q = quaternion.from_matrix(corner.astype(float))
    np.testing.assert_allclose(quaternion.to_matrix(q), corner, atol=1e-15)


@given(seed=seeds, pitch=st.sampled_from([0.0, 0.4, np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9]))
def test_rpy_round_trip_even_at_gimbal_lock(seed, pitch):
    roll, yaw = np.random.default_rng(seed).uniform(-np.pi, np.pi, 2)
    rot = rotation.rpy(roll, pitch, yaw)
    np.testing.assert_allclose(rotation.rpy(*rotation.rpy_of(rot)), rot, atol=1e-15)


def test_rpy_is_about_fixed_axes():
    rot = rotation.rpy(0.3, -0.4, 1.2)
    x, y, z = np.eye(3)
    by_hand = (
        rotation.axis_angle(z, 1.2) @ rotation.axis_angle(y, -0.4) @ rotation.axis_angle(x, 0.3)
    )
    np.testing.assert_allclose(rot, by_hand, atol=1e-15)


@given(seed=seeds)
def test_aligning(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, 3))
    rot = rotation.aligning(a, b)
    np.testing.assert_allclose(rot @ a / np.linalg.norm(a), b / np.linalg.norm(b), atol=1e-14)
    np.testing.assert_allclose(rotation.aligning(a, -a) @ a, -a, atol=1e-14)
    np.testing.assert_allclose(rotation.aligning(a, a), np.eye(3), atol=1e-15)
    # The shortest one: its axis is normal to both.
    np.testing.assert_allclose(rotation.log(rot) @ a, 0.0, atol=1e-13)


@given(seed=seeds)
def test_quaternion_rate_is_the_derivative(seed):
    rng = np.random.default_rng(seed)
    q, w = quaternion.random(rng), rng.standard_normal(3)
    h = 1e-5
    slope = (quaternion.integrate(q, h * w) - quaternion.integrate(q, -h * w)) / (2 * h)
    np.testing.assert_allclose(quaternion.rate(q, w), slope, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_normalise_any_length(scale):
    q = quaternion.normalise(scale * np.array([1.0, -2.0, 3.0, 4.0]))
    np.testing.assert_allclose(np.linalg.norm(q), 1.0, atol=1e-15)


# ------------------------------------------------------------------------- poses and shifts


@given(seed=seeds)
def test_poses_compose_as_matrices(seed):
    a, b = (random_pose(np.random.default_rng(s)) for s in (seed, seed + 1))
    np.testing.assert_allclose((a @ b).matrix, a.matrix @ b.matrix, atol=1e-14)
    np.testing.assert_allclose((a @ a.inverse()).matrix, np.eye(4), atol=1e-14)
    np.testing.assert_allclose((a @ b).shift, a.shift @ b.shift, atol=1e-13)


@given(seed=seeds)
def test_shift_moves_forces_inward_and_velocities_outward(seed):
    rng = np.random.default_rng(seed)
    X, V_A, f_B = random_pose(rng), rng.standard_normal(6), rng.standard_normal(6)
    np.testing.assert_allclose(X.shift_velocity(V_A), X.shift.T @ V_A, atol=1e-14)
    np.testing.assert_allclose(X.shift_force(f_B), X.shift @ f_B, atol=1e-14)
    power_at_b, power_at_a = f_B @ X.shift_velocity(V_A), X.shift_force(f_B) @ V_A
    np.testing.assert_allclose(power_at_b, power_at_a, atol=1e-13)


@given(seed=seeds, size=st.sampled_from([0.0, 1e-12, 1e-5, 1e-2, 0.5, 3.0]))
def test_pose_exponential_and_logarithm(seed, size):
    twist = np.random.default_rng(seed).standard_normal(6)
    twist[:3] *= size / np.linalg.norm(twist[:3])
    np.testing.assert_allclose(rigid.log(rigid.exp(twist)), twist, atol=1e-13)


@given(seed=seeds)
def test_pose_exponential_against_the_matrix_series(seed):
    twist = np.random.default_rng(seed).standard_normal(6)
    generator = np.zeros((4, 4))
    generator[:3, :3], generator[:3, 3] = rotation.skew(twist[:3]), twist[3:]
    series, term = np.eye(4), np.eye(4)
    for k in range(1, 60):
        term = term @ generator / k
        series = series + term
    np.testing.assert_allclose(rigid.exp(twist).matrix, series, atol=1e-12)


def test_leading_axes_of_poses():
    rng = np.random.default_rng(4)
    a, b = random_pose(rng, (5,)), random_pose(rng, (5,))
    V = rng.standard_normal((5, 6))
    for i in range(5):
        np.testing.assert_allclose((a @ b)[i].matrix, (a[i] @ b[i]).matrix)
        np.testing.assert_allclose(a.shift[i], a[i].shift)
        np.testing.assert_allclose(a.shift_velocity(V)[i], a[i].shift_velocity(V[i]))
        np.testing.assert_allclose(a.inverse()[i].matrix, a[i].inverse().matrix)
        np.testing.assert_allclose(rigid.exp(V)[i].matrix, rigid.exp(V[i]).matrix)


# ---------------------------------------------------------------------------- six-vectors


@given(seed=seeds)
def test_spatial_cross_products(seed):
    rng = np.random.default_rng(seed)
    X, V, W, f = rng.standard_normal((4, 6))
    np.testing.assert_allclose(
        vector.cross_velocity_matrix(V) @ W, vector.cross_velocity(V, W), atol=1e-14
    )
    np.testing.assert_allclose(
        vector.cross_force_matrix(V) @ f, vector.cross_force(V, f), atol=1e-14
    )
    # Negative adjoints of each other, antisymmetric, and Jacobi's identity.
    np.testing.assert_allclose(vector.cross_force_matrix(V), -vector.cross_velocity_matrix(V).T)
    np.testing.assert_allclose(vector.cross_velocity(V, V), 0.0, atol=1e-15)
    x = vector.cross_velocity
    jacobi = x(X, x(V, W)) + x(V, x(W, X)) + x(W, x(X, V))
    np.testing.assert_allclose(jacobi, 0.0, atol=1e-12)


@given(seed=seeds)
def test_cross_is_the_derivative_of_the_shift(seed):
    """A velocity fixed in a frame that moves with V changes by V × W (seen from outside)."""
    rng = np.random.default_rng(seed)
    V, W = rng.standard_normal((2, 6))
    h = 1e-5
    ahead, behind = (rigid.exp(s * V).inverse().shift_velocity(W) for s in (h, -h))
    np.testing.assert_allclose(vector.cross_velocity(V, W), (ahead - behind) / (2 * h), atol=1e-8)


# ------------------------------------------------------------------------------- inertias


@given(seed=seeds)
def test_inertia_moves_as_phi_m_phi(seed):
    rng = np.random.default_rng(seed)
    M, X = random_inertia(rng), random_pose(rng)
    np.testing.assert_allclose(M.moved(X).matrix, X.shift @ M.matrix @ X.shift.T, atol=1e-11)
    np.testing.assert_allclose(M.moved(X).moved(X.inverse()).matrix, M.matrix, atol=1e-11)
    np.testing.assert_allclose(M.matrix, M.matrix.T)


@given(seed=seeds)
def test_inertia_of_points_is_the_sum_over_points(seed):
    """½ V·M V is the kinetic energy of the points."""
    rng = np.random.default_rng(seed)
    points, masses, V = rng.standard_normal((5, 3)), rng.random(5), rng.standard_normal(6)
    total, energy = SpatialInertia.zero(), 0.0
    for point, mass in zip(points, masses, strict=True):
        total = total + SpatialInertia.point(mass, point)
        speed = V[3:] + np.cross(V[:3], point)
        energy += 0.5 * mass * speed @ speed
    np.testing.assert_allclose(0.5 * V @ total.matrix @ V, energy)
    np.testing.assert_allclose(total.apply(V), total.matrix @ V, atol=1e-13)
    np.testing.assert_allclose(total.com, masses @ points / masses.sum(), atol=1e-13)
    assert total.findings() == []


def by_cells(inside, half, mass, n=60):
    """Inertia of a solid from the cells of a grid whose centres are inside it."""
    axes = [(np.arange(n) + 0.5) / n * 2 * h - h for h in half]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    points = grid[inside(grid)]
    second = points.T @ points / len(points) * mass
    return np.trace(second) * np.eye(3) - second


@pytest.mark.parametrize(
    ("solid", "inside", "half"),
    [
        (SpatialInertia.solid_box(2.0, (1.0, 0.6, 0.4)), lambda x: x[:, 0] < 9, (0.5, 0.3, 0.2)),
        (
            SpatialInertia.solid_sphere(2.0, 0.5),
            lambda x: np.linalg.norm(x, axis=1) < 0.5,
            (0.5, 0.5, 0.5),
        ),
        (
            SpatialInertia.solid_ellipsoid(2.0, (0.5, 0.3, 0.2)),
            lambda x: np.linalg.norm(x / [0.5, 0.3, 0.2], axis=1) < 1,
            (0.5, 0.3, 0.2),
        ),
        (
            SpatialInertia.solid_cylinder(2.0, 0.3, 1.0),
            lambda x: np.hypot(x[:, 0], x[:, 1]) < 0.3,
            (0.3, 0.3, 0.5),
        ),
        (
            SpatialInertia.solid_capsule(2.0, 0.3, 1.0),
            lambda x: (
                np.linalg.norm(x - np.clip(x * [0, 0, 1], [0, 0, -0.5], [0, 0, 0.5]), axis=1) < 0.3
            ),
            (0.3, 0.3, 0.8),
        ),
    ],
    ids=["box", "sphere", "ellipsoid", "cylinder", "capsule"],
)
def test_solids_against_a_grid_of_cells(solid, inside, half):
    np.testing.assert_allclose(solid.J, by_cells(inside, half, 2.0), rtol=4e-3, atol=1e-12)
    assert solid.findings() == []


def test_parallel_axis():
    M = SpatialInertia.from_com(3.0, (0.0, 0.0, 2.0), (1.0, 1.0, 1.0))
    np.testing.assert_allclose(np.diag(M.J), [13.0, 13.0, 1.0])
    np.testing.assert_allclose(M.J_com, np.eye(3))


@pytest.mark.parametrize(
    ("inertia", "code"),
    [
        (SpatialInertia.from_com(-1.0), "mass"),
        (SpatialInertia.from_com(0.0, J_com=(1.0, 1.0, 1.0)), "mass"),
        (SpatialInertia.from_com(1.0, J_com=(0.1, 0.1, 0.3)), "triangle"),
        (SpatialInertia.from_com(1.0, J_com=(0.1, -0.1, 0.1)), "positive"),
        (
            SpatialInertia.from_com(1.0, J_com=((1, 0.2, 0), (0, 1, 0), (0, 0, 1))),
            "symmetry",
        ),
        (SpatialInertia(np.array(0.0), np.ones(3), np.zeros((3, 3))), "first-moment"),
    ],
)
def test_impossible_inertias(inertia, code):
    assert [result for result, _ in inertia.findings()] == [code]


@given(seed=seeds)
def test_nearest_possible_is_possible_and_leaves_the_possible_alone(seed):
    rng = np.random.default_rng(seed)
    broken = SpatialInertia.from_com(1.0, rng.standard_normal(3), np.diag(rng.uniform(-1, 3, 3)))
    assert broken.nearest_possible().findings() == []
    good = random_inertia(rng)
    np.testing.assert_allclose(good.nearest_possible().matrix, good.matrix, atol=1e-11)


def test_principal_axes_are_a_rotation():
    M = random_inertia(np.random.default_rng(1))
    moments, axes = M.principal()
    np.testing.assert_allclose(axes @ np.diag(moments) @ axes.T, M.J_com, atol=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1.0)


# --------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Pose.translation((1, 2)), r"shape \(2,\); it must have shape \(3,\)"),
        (lambda: Pose.translation((1, 2, np.inf)), "must be finite"),
        (lambda: Pose.rotation(2 * np.eye(3)), "is not a rotation"),
        (lambda: Pose(2 * np.eye(3), np.zeros(3)), r"differs from 1 by 3, det = 8"),
        (lambda: Pose(np.diag([1, 1, -1.0]), np.zeros(3)), "det = -1"),
        (lambda: Pose(np.eye(3) + 1e-3, np.zeros(3)), r"Pose.nearest\(rot, p\)"),
        (lambda: Pose(np.eye(3) * 1e300, np.zeros(3)), "entries up to 1e[+]300"),
        (lambda: Pose(np.eye(3) * np.nan, np.zeros(3)), "must be finite"),
        (lambda: Pose(np.stack([np.eye(3), -np.eye(3)]), np.zeros((2, 3))), "matrix 1 of the"),
        (lambda: Pose(np.eye(3), np.zeros(4)), r"origin of a pose has shape \(4,\)"),
        (lambda: Pose(np.eye(3), np.full(3, np.inf)), "origin of a pose must be finite"),
        (lambda: Pose.nearest(np.diag([1, 1, -1.0])), "no rotation near it"),
        (lambda: dataclasses.replace(Pose.identity(), rot=2 * np.eye(3)), "is not a rotation"),
        (lambda: quaternion.to_matrix(np.array([2.0, 0, 0, 0])), "length 2"),
        (lambda: quaternion.to_matrix(np.zeros(4)), "length 0"),
        (lambda: quaternion.normalise(np.zeros((2, 4))), "zero quaternion is not a rotation"),
        (lambda: SpatialInertia(1.0, np.zeros(2), np.eye(3)), r"h of a spatial inertia has shape"),
        (lambda: SpatialInertia(np.ones(2), np.zeros((2, 3)), np.eye(3)), "J of a spatial"),
        (lambda: SpatialInertia(np.nan, np.zeros(3), np.eye(3)), "must be finite"),
        (lambda: SpatialInertia.solid_box(1.0, (1, -1, 1)), "none may be negative"),
        (lambda: SpatialInertia.solid_cylinder(1.0, -0.1, 1.0), "radius of a cylinder"),
        (lambda: SpatialInertia.solid_sphere("1", 1.0), "it must be a single number"),
        (lambda: Pose.rotation(np.diag([1, 1, -1.0])), "det = -1"),
        (lambda: Pose.of(np.zeros((2, 2))), "give a Pose, a translation"),
        (lambda: Pose.from_matrix(np.zeros((4, 4))), "last row"),
        (lambda: Pose.of("abc"), "a pose must be made of real numbers.*found 'abc'"),
        (lambda: Pose.translation([[1], [1, 2]]), "rows of equal length"),
        (lambda: Pose.translation((1j, 0, 0)), "real numbers"),
        (lambda: SpatialInertia.solid_capsule(1.0, 0.0, 0.0), "no volume to fill"),
        (lambda: SpatialInertia.from_com(np.nan), "mass must be finite"),
        (lambda: SpatialInertia.from_com(1.0, J_com=np.zeros((2, 2))), "rotational inertia has"),
    ],
)
def test_wrong_shapes_and_values(make, text):
    with pytest.raises((ShapeError, ModelError), match=text):
        make()


def test_constants_are_read_only():
    pose = Pose.translation((1.0, 2.0, 3.0))
    with pytest.raises(ValueError, match="read-only"):
        pose.p[0] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        SpatialInertia.solid_sphere(1.0, 0.1).J[0, 0] = 1.0


def test_the_log_of_one_rotation_is_that_of_a_stack():
    rng = np.random.default_rng(11)
    turns = [
        rotation.exp(w)
        for w in rng.normal(size=(50, 3)) * rng.choice([1e-9, 1e-3, 1, 3], 50)[:, None]
    ]
    turns += [np.eye(3), *(np.diag(d) for d in ([1.0, -1, -1], [-1.0, 1, -1], [-1.0, -1, 1]))]
    stacked = rotation.log(np.stack(turns))
    for one, expected in zip(turns, stacked, strict=True):
        assert rotation.log(one) == pytest.approx(expected, rel=1e-14, abs=1e-300)


def test_the_nearest_rotation_of_six_digits():
    rot = rotation.random_rotation(np.random.default_rng(3))
    printed = np.round(rot, 6)
    assert rotation.deviation(printed) > rotation.ROUNDING
    near = Pose.nearest(printed, (1, 2, 3))
    assert rotation.deviation(near.rot) < 1e-14
    assert 1e-9 < np.abs(near.rot - rot).max() < 1e-6
    stack = rotation.nearest(np.stack([printed, np.eye(3)]))
    np.testing.assert_allclose(stack, [near.rot, np.eye(3)], atol=1e-15)


def test_a_pose_keeps_its_own_copy():
    rot, p = np.eye(3), np.zeros(3)
    pose = Pose(rot, p)
    rot[0, 0] = 2.0
    assert pose.rot[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        pose.rot[0, 0] = 2.0


@pytest.mark.parametrize("question", ["findings", "nearest_possible"])
def test_a_stack_of_inertias_is_asked_one_by_one(question: str):
    stack = lw.models.puma560().inertias
    with pytest.raises(lw.LinkwiseError, match=r"a stack of inertias of shape \(6,\); index it"):
        getattr(stack, question)()
    getattr(stack[0], question)()


def test_symbols_of_a_traced_formula_make_a_pose():
    """A hinge of one's own builds its pose from them; other objects are refused."""
    graph = Graph()
    p = np.array([Scalar(graph, graph.input(f"p{i}")) for i in range(3)])
    assert Pose(np.eye(3), p).p is p
    for odd in (None, "x"):
        with pytest.raises(ShapeError, match="origin of a pose must be"):
            Pose(np.eye(3), np.array([1.0, odd, 2.0], dtype=object))
