"""Group and consistency properties of every hinge, each against plain differentiation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import linkwise as lw
from linkwise.errors import LinkwiseError, ModelError
from linkwise.model.hinges import (
    CustomHinge,
    Gimbal,
    Helical,
    Hinge,
    Locked,
    Pin,
    Planar,
    PointOnPlane,
    RollingBall,
    Screws,
    SoftFinger,
    Spherical,
    Universal,
)
from linkwise.spatial import quaternion
from linkwise.spatial.rotation import unskew
from tests.model.hinge_cases import HINGES

every_hinge = pytest.mark.parametrize("hinge", HINGES.values(), ids=HINGES.keys())
seeds = st.integers(0, 2**32 - 1)
X = np.array([1.0, 0.0, 0.0])


def state(hinge: Hinge, seed: int, *, lead: tuple[int, ...] = ()):
    rng = np.random.default_rng(seed)
    lower, upper = np.full(hinge.nq, -np.inf), np.full(hinge.nq, np.inf)
    count = int(np.prod(lead))
    q = np.array([hinge.random(rng, lower, upper) for _ in range(count)]).reshape(*lead, hinge.nq)
    return q, rng.standard_normal((*lead, hinge.nv))


def velocity_by_differences(hinge: Hinge, q, v, h=1e-4):
    """(ω, v) of O in O's axes from central differences of the pose along the motion, O(h⁴)."""

    def pose(t):
        return hinge.pose(hinge.integrate(q, v, t))

    def slope(of):
        return (8 * (of(h) - of(-h)) - (of(2 * h) - of(-2 * h))) / (12 * h)

    back = np.swapaxes(hinge.pose(q).rot, -1, -2)
    w = unskew(back @ slope(lambda t: np.broadcast_to(pose(t).rot, back.shape)))
    u = back @ slope(lambda t: np.broadcast_to(pose(t).p, back.shape[:-1]))[..., None]
    return np.concatenate([w, u[..., 0]], axis=-1)


def same_configuration(hinge: Hinge, a, b):
    """Equal up to the sign of the quaternion and full turns of a planar hinge."""
    np.testing.assert_allclose(hinge.pose(a).rot, hinge.pose(b).rot, atol=1e-12)
    np.testing.assert_allclose(hinge.pose(a).p, hinge.pose(b).p, atol=1e-11)


@every_hinge
@given(seed=seeds)
def test_pose_is_rigid(hinge, seed):
    q, _ = state(hinge, seed)
    rot = hinge.pose(q).rot
    np.testing.assert_allclose(rot.T @ rot, np.eye(3), atol=1e-13)
    assert np.linalg.det(rot) > 0


@every_hinge
@given(seed=seeds)
def test_hinge_map_is_derivative_of_pose(hinge, seed):
    q, v = state(hinge, seed)
    V = hinge.hinge_map(q).T @ v
    np.testing.assert_allclose(V, velocity_by_differences(hinge, q, v), atol=2e-9, rtol=1e-8)


@every_hinge
@given(seed=seeds)
def test_bias_is_derivative_of_hinge_map(hinge, seed):
    q, v = state(hinge, seed)
    h = 1e-4

    def moving(t):
        return hinge.hinge_map(hinge.integrate(q, v, t)).T @ v

    slope = (8 * (moving(h) - moving(-h)) - (moving(2 * h) - moving(-2 * h))) / (12 * h)
    np.testing.assert_allclose(hinge.bias(q, v), slope, atol=2e-8, rtol=1e-7)


@every_hinge
@given(seed=seeds)
def test_rate_of_the_hinge_map(hinge, seed):
    """Ḣ whole, also in directions other than v, by differences along the motion; and its bias."""
    q, v = state(hinge, seed)
    h = 1e-4

    def moving(t):
        return hinge.hinge_map(hinge.integrate(q, v, t))

    slope = (8 * (moving(h) - moving(-h)) - (moving(2 * h) - moving(-2 * h))) / (12 * h)
    rate = hinge.hinge_map_rate(q, v)
    np.testing.assert_allclose(rate, slope, atol=2e-8, rtol=1e-7)
    np.testing.assert_allclose(rate.T @ v, hinge.bias(q, v), rtol=0, atol=1e-13 * (1 + v @ v))
    np.testing.assert_allclose(
        Hinge.hinge_map_rate(hinge, q, v), rate, rtol=0, atol=1e-12 * (1 + v @ v)
    )


@every_hinge
@given(seed=seeds)
def test_qdot_is_derivative_of_integrate(hinge, seed):
    q, v = state(hinge, seed)
    h = 1e-4

    def moving(t):
        return hinge.integrate(q, v, t)

    slope = (8 * (moving(h) - moving(-h)) - (moving(2 * h) - moving(-2 * h))) / (12 * h)
    np.testing.assert_allclose(hinge.qdot(q, v), slope, atol=1e-9)


@every_hinge
@given(seed=seeds)
def test_integrate_is_a_flow(hinge, seed):
    """Holding v for s and then for t is holding it for s + t."""
    q, v = state(hinge, seed)
    twice = hinge.integrate(hinge.integrate(q, v, 0.4), v, 0.3)
    same_configuration(hinge, twice, hinge.integrate(q, v, 0.7))
    same_configuration(hinge, hinge.integrate(q, v, 0.0), q)
    same_configuration(hinge, hinge.integrate(hinge.integrate(q, v), -v), q)


@every_hinge
@given(seed=seeds)
def test_integrate_after_difference(hinge, seed):
    q0, v = state(hinge, seed)
    q1, _ = state(hinge, seed + 1)
    if hinge.hull is not hinge:  # nonholonomic: only where one velocity leads can be reached
        q1 = hinge.integrate(q0, 3.0 * v / max(3.0, float(np.linalg.norm(v))))
    same_configuration(hinge, hinge.integrate(q0, hinge.difference(q0, q1)), q1)
    np.testing.assert_allclose(hinge.difference(q0, q0), np.zeros(hinge.nv), atol=1e-15)


@every_hinge
@given(seed=seeds)
def test_difference_after_integrate(hinge, seed):
    """For turns of less than a half."""
    q, v = state(hinge, seed)
    v = 2.0 * v / max(1.0, float(np.linalg.norm(v)))
    np.testing.assert_allclose(hinge.difference(q, hinge.integrate(q, v)), v, atol=1e-11)


@every_hinge
@given(seed=seeds, scale=st.sampled_from([1e-8, 1.0, 50.0, 1e6]))
def test_quaternion_stays_of_unit_length(hinge, seed, scale):
    q, v = state(hinge, seed)
    for _ in range(5):
        q = hinge.integrate(q, scale * v, 0.01)
    if hinge.quaternion is not None:
        assert abs(np.linalg.norm(q[hinge.quaternion]) - 1.0) < 4e-16
    np.testing.assert_allclose(hinge.normalise(q), q, atol=1e-15)


@every_hinge
def test_leading_axes(hinge):
    q, v = state(hinge, 3, lead=(2, 3))
    H, bias, rate = hinge.hinge_map(q), hinge.bias(q, v), hinge.qdot(q, v)
    after, back = hinge.integrate(q, v, 0.1), hinge.difference(q, hinge.integrate(q, v, 0.1))
    for i in np.ndindex(2, 3):
        pose = hinge.pose(q[i])
        stacked = hinge.pose(q)
        np.testing.assert_allclose(np.broadcast_to(stacked.rot, (2, 3, 3, 3))[i], pose.rot)
        np.testing.assert_allclose(np.broadcast_to(stacked.p, (2, 3, 3))[i], pose.p, atol=1e-15)
        np.testing.assert_allclose(H[i], hinge.hinge_map(q[i]), atol=1e-15)
        np.testing.assert_allclose(bias[i], hinge.bias(q[i], v[i]), atol=1e-14)
        np.testing.assert_allclose(rate[i], hinge.qdot(q[i], v[i]), atol=1e-15)
        np.testing.assert_allclose(after[i], hinge.integrate(q[i], v[i], 0.1), atol=1e-15)
        np.testing.assert_allclose(back[i], hinge.difference(q[i], after[i]), atol=1e-14)


class Symbol:
    """Counts nothing, knows nothing: a scalar that only allows + - × ÷ and a few functions."""

    def __init__(self, value):
        self.value = value

    def _of(self, other):
        return other.value if isinstance(other, Symbol) else float(other)

    def __add__(self, other):
        return Symbol(self.value + self._of(other))

    def __sub__(self, other):
        return Symbol(self.value - self._of(other))

    def __rsub__(self, other):
        return Symbol(self._of(other) - self.value)

    def __mul__(self, other):
        return Symbol(self.value * self._of(other))

    def __truediv__(self, other):
        return Symbol(self.value / self._of(other))

    def __rtruediv__(self, other):
        return Symbol(self._of(other) / self.value)

    def __neg__(self):
        return Symbol(-self.value)

    def sin(self):
        return Symbol(np.sin(self.value))

    def cos(self):
        return Symbol(np.cos(self.value))

    __radd__, __rmul__ = __add__, __mul__


def numbers(array):
    plain = [x.value if isinstance(x, Symbol) else float(x) for x in np.asarray(array).flat]
    return np.array(plain).reshape(np.shape(array))


@every_hinge
def test_formulas_can_be_traced(hinge):
    """pose, H, bias and q̇ run on arrays of dtype object, with nothing but arithmetic."""
    q, v = state(hinge, 7)
    q_s = np.array([Symbol(x) for x in q] + [None], dtype=object)[None, :-1]
    v_s = np.array([Symbol(x) for x in v] + [None], dtype=object)[None, :-1]
    pose, traced = hinge.pose(q), hinge.pose(q_s)
    np.testing.assert_allclose(numbers(traced.rot).reshape(3, 3), pose.rot, atol=1e-15)
    np.testing.assert_allclose(numbers(traced.p).reshape(3), pose.p, atol=1e-15)
    np.testing.assert_allclose(numbers(hinge.hinge_map(q_s))[0], hinge.hinge_map(q), atol=1e-15)
    np.testing.assert_allclose(numbers(hinge.bias(q_s, v_s))[0], hinge.bias(q, v), atol=1e-14)
    np.testing.assert_allclose(numbers(hinge.qdot(q_s, v_s))[0], hinge.qdot(q, v), atol=1e-15)


@every_hinge
def test_reversed_is_the_inverse_pose(hinge):
    q, v = state(hinge, 11)
    back = hinge.reversed()
    assert (back.nq, back.nv) == (hinge.nq, hinge.nv)
    both = hinge.pose(q) @ back.pose(q)
    np.testing.assert_allclose(both.matrix, np.eye(4), atol=1e-14)
    np.testing.assert_allclose(back.reversed().pose(q).matrix, hinge.pose(q).matrix, atol=1e-15)
    np.testing.assert_allclose(
        back.hinge_map(q).T @ v, velocity_by_differences(back, q, v), atol=2e-9, rtol=1e-8
    )


@every_hinge
def test_names_units_and_neutral(hinge):
    assert len(hinge.coordinates) == hinge.nq
    assert len(hinge.velocities) == hinge.nv
    assert hinge.neutral().shape == (hinge.nq,)
    assert hinge == hinge.reversed().reversed()
    assert hash(hinge) == hash(hinge.reversed().reversed())
    if hinge.quaternion is not None:
        np.testing.assert_array_equal(hinge.neutral()[hinge.quaternion], [1, 0, 0, 0])


@every_hinge
def test_q_and_v_are_broadcast(hinge):
    q, v = state(hinge, 2, lead=(4, 1))[0], state(hinge, 3, lead=(3,))[1]
    full = (np.broadcast_to(q, (4, 3, hinge.nq)), np.broadcast_to(v, (4, 3, hinge.nv)))
    for function in (hinge.bias, hinge.qdot, hinge.integrate):
        np.testing.assert_allclose(function(q, v), function(*full), atol=1e-14, strict=True)


def test_powers_of_a_coordinate_at_zero():
    for power in (0, 1, 1.0, 2, 3):
        hinge = CustomHinge("power", (("a", "m"),), lambda q, n=power: (np.eye(3), (q + q**n) * X))
        H, bias = hinge.hinge_map(np.zeros(1)), hinge.bias(np.zeros(1), np.ones(1))
        assert H[0, 3] == (2.0 if power == 1 else 1.0)
        assert bias[3] == (2.0 if power == 2 else 0.0)


@pytest.mark.parametrize("power", [2, 3, 0, -1, 0.5, -1.5])
def test_powers_are_compiled(power):
    """A slide along (q + 2)ⁿ: its equation of motion by hand."""
    one = lambda q: np.zeros((*q.shape[:-1], 3, 3)) + np.eye(3)  # noqa: E731
    placement = lambda q: (one(q), (q + (q + 2.0) ** power) * X)  # noqa: E731
    hinge, mass = CustomHinge("power", (("a", "m"),), placement), 1.5
    inertia = lw.SpatialInertia.solid_box(mass, (0.1, 0.2, 0.3))
    mech = lw.Builder("power").body("slide", "world", hinge, inertia=inertia).build()
    mech = mech.with_gravity((-9.0, 0.0, 0.0))
    q, v, tau = 0.4, 0.7, 0.3
    slope = 1.0 + power * (q + 2.0) ** (power - 1)
    curve = power * (power - 1) * (q + 2.0) ** (power - 2)
    expected = (tau / mass - 9.0 * slope - slope * curve * v * v) / slope**2
    vdot = lw.forward_dynamics(mech, np.array([q]), np.array([v]), np.array([tau]))
    assert vdot[0] == pytest.approx(expected, rel=1e-12)


@given(seed=seeds)
def test_random_respects_limits(seed):
    rng = np.random.default_rng(seed)
    lower, upper = np.array([-0.3, -np.inf, 1.0]), np.array([0.2, 5.0, np.inf])
    q = Planar().random(rng, lower, upper)
    assert np.all(q >= lower)
    assert np.all(q <= upper)


def test_soa_course_hinge_maps():
    """The matrices printed in document 002, with z as the axis (H* as columns there)."""
    q = np.zeros(1)
    np.testing.assert_array_equal(Pin().hinge_map(q), [[0, 0, 1, 0, 0, 0]])
    np.testing.assert_array_equal(HINGES["pin z"].hinge_map(q), [[0, 0, 1, 0, 0, 0]])
    np.testing.assert_array_equal(Helical(pitch=0.5).hinge_map(q), [[0, 0, 1, 0, 0, 0.5]])
    np.testing.assert_array_equal(Spherical().hinge_map(Spherical().neutral()), np.eye(3, 6))


def test_rolling_ball_does_not_slip():
    """The point of the ball that touches the plane has no velocity (002: Δv + Δω × l = 0)."""
    ball = RollingBall(0.25)
    q, v = state(ball, 5)
    rot = ball.pose(q).rot
    V = ball.hinge_map(q).T @ v
    omega, velocity = rot @ V[:3], rot @ V[3:]
    np.testing.assert_allclose(velocity + np.cross(omega, [0, 0, -0.25]), 0.0, atol=1e-15)


@every_hinge
def test_hull_has_the_same_poses_and_more_velocities(hinge):
    q, _ = state(hinge, 13)
    hull = hinge.hull
    assert hull.hull is hull or hull.hull == hull
    np.testing.assert_array_equal(hull.pose(q).matrix, hinge.pose(q).matrix)
    H, H_hull = hinge.hinge_map(q), hull.hinge_map(q)
    both = np.linalg.matrix_rank(np.concatenate([H_hull, H]))
    assert both == np.linalg.matrix_rank(H_hull) == hull.nv  # what moves here moves there
    if hull is not hinge:
        assert hull.nv > hinge.nv


def test_a_soft_finger_reaches_every_attitude():
    """001-II, Appendix A: no twist about the normal, and still all attitudes.

    Tipping by ±ε about x and then y in turn goes round a small square, which leaves a twist of
    about ε² about the normal: the bracket of the two allowed velocities.
    """
    finger, step = SoftFinger(), 1e-2
    q = finger.neutral()
    for move in ((step, 0.0), (0.0, step), (-step, 0.0), (0.0, -step)):
        q = finger.integrate(q, np.array(move))
    twist = quaternion.log(q)
    assert abs(twist[2] - step**2) < 2.0 * step**3  # the next bracket is of third order
    np.testing.assert_allclose(finger.hinge_map(q)[:, 2], 0.0)


def test_gimbal_matches_spherical():
    gimbal = Gimbal()
    q, v = state(gimbal, 8)
    quat = quaternion.from_matrix(gimbal.pose(q).rot)
    omega = gimbal.hinge_map(q)[:, :3].T @ v
    step = quaternion.to_matrix(Spherical().integrate(quat, omega, 1e-7))
    np.testing.assert_allclose(step, gimbal.pose(gimbal.integrate(q, v, 1e-7)).rot, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Pin((0, 0, 0)), "zero vector"),
        (lambda: Pin((0, 0, np.nan)), "must be finite"),
        (lambda: Pin((0, 1)), r"shape \(2,\)"),
        (lambda: Helical(pitch=np.inf), "finite m/rad"),
        (lambda: Pin("z"), "pin axis must be made of real numbers"),
        (lambda: Helical(pitch="a"), "pitch of a helical hinge must be"),
        (lambda: RollingBall(None), "radius of a rolling ball must be made of real"),
        (lambda: Gimbal(None), "axes of a gimbal hinge must be made of real numbers"),
        (lambda: Screws("abc"), "screws must be made of real numbers"),
        (lambda: Locked(Pin(), ("a",)), "q of a lock must be"),
        (lambda: Universal((1, 0, 0), (2, 0, 0)), "parallel"),
        (lambda: Gimbal(((1, 0, 0), (1, 0, 0), (0, 1, 0))), "axes 1 and 2"),
        (lambda: RollingBall(0.0), "positive"),
        (lambda: SoftFinger((0, 0, 0)), "zero vector"),
        (lambda: PointOnPlane(np.inf), "must be finite"),
        (lambda: Screws(((0, 0, 1, 0, 0, 0), (0, 0, 2, 0, 0, 0))), "only 1 are linearly"),
        (lambda: Screws(((0, 0, 1),)), r"shape \(1, 3\)"),
        (lambda: Locked(Pin(), (1.0, 2.0)), "give its 1 coordinates"),
        (lambda: Locked(Locked()), "cannot be locked again"),
        (lambda: Locked(q=(1.0,)), "not the hinge"),
        (lambda: CustomHinge("bad", (), lambda q: (np.eye(3), q)), "one to six"),
        (lambda: CustomHinge("bad", (("a", "deg"),), lambda q: (np.eye(3), q)), "'deg'"),
        (lambda: CustomHinge("bad", (("a", "m"),), lambda q: (np.eye(3), q)), "shapes"),
        (
            lambda: CustomHinge("sinh", (("a", "m"),), lambda q: (np.eye(3), np.sinh(q) * X)),
            "'sinh': its placement cannot be differentiated .*give both `map` and `map_rate`",
        ),
        (
            lambda: CustomHinge("idle", (("a", "m"),), lambda q: (np.eye(3), np.zeros(3))),
            "idle",
        ),
    ],
)
def test_impossible_hinges(make, text):
    with pytest.raises(LinkwiseError, match=text):
        make()


def test_a_placement_that_is_a_rotation_at_zero_only():
    def stretched(q):
        rot = np.broadcast_to(np.eye(3), (*q.shape[:-1], 3, 3)) * (1.0 + q[..., None])
        return rot, 0.0 * q * np.ones(3)

    with pytest.raises(ModelError, match=r"at q = \[0.1\], placement of custom hinge 'rubber'"):
        CustomHinge("rubber", (("stretch", "m"),), stretched)
