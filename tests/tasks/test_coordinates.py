"""Tasks in coordinates: rates by differences, dynamics by Lagrange, control of angles.

Rates are checked by (8 (f₁ − f₋₁) − (f₂ − f₋₂)) / 12 h with h = 1e-3: its own error is h⁴ times a
fifth derivative, and rounding over h, together below 1e-9 for velocities of about one.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError, TroubleWarning, UnknownNameError
from linkwise.spatial import quaternion, rotation
from linkwise.tasks.representation import ORIENTATIONS, Representation
from tests.cases import close, states

STEP = 1e-3


def slope(f):
    """f'(0), by four values."""
    at = {k: np.asarray(f(k * STEP)) for k in (-2, -1, 1, 2)}
    return (8.0 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12.0 * STEP)


@cache
def puma() -> lw.Mechanism:
    return lw.models.puma560()


@cache
def flyer() -> lw.Mechanism:
    """Four freedoms on a floating base: a reference that moves, and rows that know of it."""
    return lw.models.random_tree(4, 9, hinges=("pin",), floating=True, branching=0.0)


def state(mech: lw.Mechanism, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return mech.random(rng), mech.random_velocity(rng)


HAND = lw.Task.pose("link_6")


@pytest.mark.few(8)
@pytest.mark.parametrize("position", ["cartesian", "cylindrical", "spherical"])
@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_rates_of_a_pose(orientation, position):
    """ẋ is how x changes, J̇ v how ẋ changes while v is constant, and J = E J_t."""
    mech, (q, v) = puma(), state(puma())
    options = {"orientation": orientation, "position": position}
    here = lw.tasks.task_coordinates(mech, q, v, HAND, **options)

    def at(t):
        return lw.tasks.task_coordinates(mech, mech.integrate(q, t * v), v, HAND, **options)

    close(here.velocity, slope(lambda t: here.error(at(t).x)), 1e-9)
    dynamics = lw.tasks.coordinate_dynamics(mech, q, v, HAND, **options)
    close(dynamics.bias, slope(lambda t: at(t).velocity), 1e-8)
    close(dynamics.jacobian @ v, here.velocity, 1e-13)
    close(here.inverse @ here.matrix, np.eye(6), 1e-12)
    close(here.basic_velocity(here.velocity), lw.tasks.task_velocity(mech, q, v, HAND), 1e-12)


def test_rates_of_everything_else():
    """Seen from a body that moves: orientation, position, part of one, a direction, joints."""
    mech, (q, v) = flyer(), state(flyer())
    tasks = (
        lw.Task.orientation("body_4", relative_to="body_2", coordinates="quaternion"),
        lw.Task.position("body_4", relative_to="body_2"),
        lw.Task.position("body_3", along=[[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]]),
        lw.Task.direction("body_4", axis=(1.0, 2.0, -2.0), relative_to="body_2"),
        lw.Task.direction("body_3"),
        lw.Task.joints("body_2", "body_3"),
    )
    here = lw.tasks.task_coordinates(mech, q, v, tasks, position="spherical")
    assert here.x.shape == (4 + 3 + 2 + 3 + 3 + 2,) and here.matrix.shape == (
        17,
        3 + 3 + 2 + 2 + 2 + 2,
    )

    def at(t):
        return lw.tasks.task_coordinates(
            mech, mech.integrate(q, t * v), v, tasks, position="spherical"
        )

    close(here.velocity, slope(lambda t: here.error(at(t).x)), 1e-9)
    bias = lw.tasks.task_bias(mech, q, v, tasks)
    close(here.matrix @ bias + here.rate, slope(lambda t: at(t).velocity), 1e-8)
    close(here.inverse @ here.matrix, np.eye(14), 1e-12)
    close(here.x[9:12], lw.tasks.task_position(mech, q, tasks[3]), 1e-14)
    close(here.x[-2:], lw.tasks.task_position(mech, q, tasks[-1]), 1e-15)


@pytest.mark.parametrize(
    "orientation", ["euler_zyx", "euler_zxz", "quaternion", "direction_cosines"]
)
def test_inertia_and_forces(orientation):
    """003 (7), (8): against (J 𝓜⁻¹ J*)⁻¹ of the Jacobian J = ∂x/∂q itself, and by power."""
    mech, (q, v) = puma(), state(puma())
    dynamics = lw.tasks.coordinate_dynamics(mech, q, v, HAND, orientation=orientation)
    J, mass = dynamics.jacobian, lw.mass_matrix(mech, q)
    yielding = J @ np.linalg.solve(mass, J.T)
    close(dynamics.inertia, np.linalg.pinv(yielding, rcond=1e-9), 1e-9)
    close(dynamics.consistent_inverse, np.linalg.solve(mass, J.T) @ dynamics.inertia, 1e-9)
    at = dynamics.coordinates
    assert at.velocity @ dynamics.inertia @ at.velocity == pytest.approx(v @ mass @ v, rel=1e-11)
    force = np.random.default_rng(0).standard_normal(len(at.x))
    basic = at.basic_force(force)
    close(basic @ lw.tasks.task_velocity(mech, q, v, HAND), force @ at.velocity, 1e-12)
    close(J.T @ force, lw.tasks.task_jacobian(mech, q, HAND).T @ basic, 1e-12)


@pytest.mark.parametrize("position", ["cartesian", "spherical"])
@pytest.mark.parametrize("orientation", ["euler_zyx", "euler_zyz", "euler_xzy"])
def test_coriolis_forces_are_those_of_lagrange(orientation, position):
    """Six freedoms, six coordinates: x are generalised coordinates, 003 section 2. Then

        μ_i = Σ_jk (∂_k Λ_ij − ½ ∂_i Λ_jk) ẋ_j ẋ_k,      p_i = ∂U/∂x_i

    with ∂_i along q + t J⁻¹ e_i. Differences of Λ lose what J⁻¹ adds to the step.
    """
    mech, (q, v) = puma(), state(puma())
    options = {"orientation": orientation, "position": position}
    dynamics = lw.tasks.coordinate_dynamics(mech, q, v, HAND, **options)
    back, xdot = np.linalg.inv(dynamics.jacobian), dynamics.coordinates.velocity

    def inertia(way):
        moved = lw.tasks.coordinate_dynamics(mech, q + way, v, HAND, **options)
        return moved.inertia

    rates = np.stack([slope(lambda t, i=i: inertia(0.1 * t * back[:, i])) / 0.1 for i in range(6)])
    expected = np.einsum("kij,j,k->i", rates, xdot, xdot)
    expected -= 0.5 * np.einsum("ijk,j,k->i", rates, xdot, xdot)
    terms = np.abs(rates).max() * (xdot @ xdot)
    close(dynamics.coriolis, expected, 1e-9, scale=terms)
    assert np.abs(expected).max() > 1e-4 * terms
    energy = [
        slope(lambda t, i=i: lw.dynamics.potential_energy(mech, q + t * back[:, i]))
        for i in range(6)
    ]
    close(dynamics.gravity, np.array(energy), 1e-8)


@pytest.mark.parametrize("orientation", ["euler_zyx", "euler_yxy", "quaternion"])
def test_angles_accelerate_as_they_are_told(orientation):
    """The torque of E⁺ (ẍ − Ė ϑ) gives ẍ, by forward dynamics; and it is J* (Λ ẍ + μ + p)."""
    mech, (q, v) = puma(), state(puma())
    dynamics = lw.tasks.coordinate_dynamics(mech, q, v, HAND, orientation=orientation)
    at = dynamics.coordinates
    expected = np.linspace(-1.0, 2.0, len(at.x))
    if orientation == "quaternion":  # one that keeps the length: along what E gives, and its rate
        expected = at.matrix @ (at.inverse @ expected) + at.rate
    tau = lw.tasks.task_torque(mech, q, v, HAND, at.acceleration(expected))
    vdot = lw.forward_dynamics(mech, q, v, tau)
    close(dynamics.jacobian @ vdot + dynamics.bias, expected, 1e-11)
    close(dynamics.jacobian.T @ dynamics.force(expected), tau, 1e-11)


def test_a_redundant_arm_in_angles():
    """Seven freedoms, six coordinates: Γ0 moves no angle, and μ, p are those of 003 (24), (25)."""
    mech = lw.models.seven_dof_arm()
    q, v = state(mech)
    task = lw.Task.pose("hand", coordinates="euler_zyx")
    dynamics = lw.tasks.coordinate_dynamics(mech, q, v, task)
    J, J_bar = dynamics.jacobian, dynamics.consistent_inverse
    bias, gravity = lw.bias_force(mech, q, v), lw.gravity_force(mech, q)
    close(J @ J_bar, np.eye(6), 1e-11)
    close(dynamics.coriolis, J_bar.T @ (bias - gravity) - dynamics.inertia @ dynamics.bias, 1e-10)
    close(dynamics.gravity, J_bar.T @ gravity, 1e-10)
    expected = np.ones(6)
    tau = lw.tasks.task_torque(
        mech, q, v, task, dynamics.coordinates.acceleration(expected), tau0=np.linspace(-5, 5, 7)
    )
    close(J @ lw.forward_dynamics(mech, q, v, tau) + dynamics.bias, expected, 1e-10)


def test_a_batch_is_its_states():
    mech = puma()
    q, v, _ = states(mech, 3)
    options = {"orientation": "euler_xyz", "position": "cylindrical"}
    full = lw.tasks.coordinate_dynamics(mech, q, v, HAND, **options)
    for i in range(3):
        one = lw.tasks.coordinate_dynamics(mech, q[i], v[i], HAND, **options)
        for name in ("x", "velocity", "matrix", "inverse", "rate"):
            close(getattr(full.coordinates, name)[i], getattr(one.coordinates, name), 1e-14)
        for name in ("jacobian", "inertia", "coriolis", "gravity", "bias"):
            close(getattr(full, name)[i], getattr(one, name), 1e-11)
        target = np.zeros(6)
        close(full.coordinates.error(target)[i], one.coordinates.error(target), 1e-14)
        close(full.force(np.ones(6))[i], one.force(np.ones(6)), 1e-11)
    same_place = lw.tasks.task_coordinates(mech, q[0], v, HAND, **options)
    assert same_place.x.shape == same_place.velocity.shape == (3, 6)
    assert "3 states" in str(full.coordinates)


class GibbsVector(Representation):
    """Coordinates of one's own: c = tan(θ/2) along the axis of the turn, singular at half turns.

    With ω in the axes of the reference ċ = ½ (1 − c̃ + c c*) ω, so c̈ = E ω̇ + ½ (ċ (c · ω) +
    c (ċ · ω) + ω × ċ).
    """

    labels = ("a", "b", "c")

    def of(self, place):
        quat = quaternion.from_matrix(place)
        return quat[..., 1:] / quat[..., :1]

    def place(self, x):
        return quaternion.to_matrix(
            quaternion.normalise(np.concatenate([np.ones_like(x[..., :1]), x], axis=-1))
        )

    def matrix(self, x):
        return 0.5 * (np.eye(3) - rotation.skew(x) + x[..., :, None] * x[..., None, :])

    def rate(self, x, w):
        xdot = (self.matrix(x) @ w[..., None])[..., 0]
        along, along_dot = ((y * w).sum(axis=-1, keepdims=True) for y in (x, xdot))
        return 0.5 * (xdot * along + x * along_dot + np.cross(w, xdot))


def test_coordinates_of_ones_own():
    """Their rates, the dynamics in them by the kinetic energy, and a torque."""
    mech, (q, v) = puma(), state(puma())
    ours = GibbsVector()
    here = lw.tasks.coordinate_dynamics(mech, q, v, HAND, orientation=ours, position="spherical")
    at = here.coordinates

    def moved(t):
        there = mech.integrate(q, t * v)
        return lw.tasks.task_coordinates(
            mech, there, v, HAND, orientation=ours, position="spherical"
        )

    close(at.velocity, slope(lambda t: at.error(moved(t).x)), 1e-9)
    close(here.bias, slope(lambda t: moved(t).velocity), 1e-8)
    close(at.inverse @ at.matrix, np.eye(6), 1e-12)
    energy = v @ lw.mass_matrix(mech, q) @ v
    assert at.velocity @ here.inertia @ at.velocity == pytest.approx(energy, rel=1e-11)
    tau = lw.tasks.task_torque(mech, q, v, HAND, at.acceleration(np.arange(6.0)))
    result = here.jacobian @ lw.forward_dynamics(mech, q, v, tau) + here.bias
    close(result, np.arange(6.0), 1e-10)


def turned(angle: float) -> np.ndarray:
    """The PUMA with its hand turned about y, by the fifth joint alone."""
    return np.array([0.0, 0.0, 0.0, 0.0, angle, 0.0])


def test_gimbal_lock_is_told():
    """The angle, why, and what to do; what is proposed works."""
    mech, q, v = puma(), turned(np.pi / 2), np.ones(6)
    with pytest.raises(ModelError, match="gimbal lock") as caught:
        lw.tasks.task_coordinates(mech, q, v, HAND, orientation="euler_zyx")
    message = str(caught.value)
    assert "'pose of link_6'" in message and "90°" in message and "quaternion" in message
    proposed = [w.strip("',:") for w in message.split() if w.startswith("'euler_")][-1]
    assert proposed != "euler_zyx"
    result = lw.tasks.task_coordinates(mech, q, v, HAND, orientation=proposed)
    assert np.abs(result.matrix).max() < 2.0
    with pytest.raises(ModelError, match="0°"):
        lw.tasks.coordinate_dynamics(mech, turned(0.0), v, HAND, orientation="euler_zyz")
    for orientation in ("quaternion", "direction_cosines"):
        lw.tasks.coordinate_dynamics(mech, q, v, HAND, orientation=orientation)


def test_near_gimbal_lock_the_numbers_are_right():
    """At 0.02 rad from it E is fifty: it is still what differences give, of smaller steps."""
    mech, v = puma(), 0.1 * np.array([1.0, -2.0, 3.0, 1.0, -1.0, 2.0])
    q = turned(np.pi / 2 - 0.02)
    here = lw.tasks.task_coordinates(mech, q, v, HAND, orientation="euler_zyx")
    assert 40.0 < np.abs(here.matrix).max() < 60.0

    def at(t):
        there = mech.integrate(q, 0.1 * t * v)
        return lw.tasks.task_coordinates(mech, there, v, HAND, orientation="euler_zyx")

    close(here.velocity, 10.0 * slope(lambda t: here.error(at(t).x)), 1e-7)
    bias = here.matrix @ lw.tasks.task_bias(mech, q, v, HAND) + here.rate
    close(bias, 10.0 * slope(lambda t: at(t).velocity), 1e-6)


def test_a_batch_with_a_singular_state():
    """Its row is NaN and a warning tells; the others are what they are alone."""
    mech, v = puma(), np.ones((3, 6))
    q = np.stack([turned(0.3), turned(np.pi / 2), turned(-0.5)])
    with pytest.warns(TroubleWarning, match=r"1 of 3 states.*state 1.*gimbal lock"):
        dynamics = lw.tasks.coordinate_dynamics(mech, q, v, HAND, orientation="euler_zyx")
    assert np.isnan(dynamics.inertia[1]).all() and np.isnan(dynamics.coordinates.x[1]).all()
    for i in (0, 2):
        one = lw.tasks.coordinate_dynamics(mech, q[i], v[i], HAND, orientation="euler_zyx")
        close(dynamics.inertia[i], one.inertia, 1e-11)
        close(dynamics.coriolis[i], one.coriolis, 1e-11)


def test_the_error_of_angles_brings_them_there():
    """e = target − x the short way round; a servo on it is a spring in these angles."""
    mech, v = puma(), np.zeros(6)
    at = lw.tasks.task_coordinates(mech, turned(0.3), v, HAND, orientation="euler_zyx")
    target = at.x + np.array([2 * np.pi + 0.1, 0.2, -2 * np.pi - 0.3, 0.1, 0.0, 0.0])
    close(at.error(target), np.array([0.1, 0.2, -0.3, 0.1, 0.0, 0.0]), 1e-12)


def test_a_motion_in_cylindrical_coordinates():
    """The hand goes round the base: φ at a constant rate, ρ and z stay; a second of it.

    The law is exact, so what is left is the error of the integration, a step of 5 ms with RK4.
    """
    mech = lw.models.seven_dof_arm()
    task = lw.Task.position("hand")
    q = np.array([0.1, 0.7, 0.2, 1.2, -0.3, 0.8, 0.1])
    start = lw.tasks.task_coordinates(mech, q, np.zeros(7), task, position="cylindrical")
    rate = np.array([0.0, 0.6, 0.0])
    v = lw.tasks.task_space(mech, q, task).consistent_inverse @ start.basic_velocity(rate)

    def tau(t, q, v):
        at = lw.tasks.task_coordinates(mech, q, v, task, position="cylindrical")
        expected = 100.0 * at.error(start.x + rate * t) + 20.0 * (rate - at.velocity)
        return lw.tasks.task_torque(mech, q, v, task, at.acceleration(expected), tau0=-2.0 * v)

    run = lw.simulate(mech, q, v, tau=tau, duration=0.2, step=0.005, passive=False)
    end = lw.tasks.task_coordinates(mech, run.q[-1], run.v[-1], task, position="cylindrical")
    close(end.x, start.x + 0.2 * rate, 1e-9)
    close(end.velocity, rate, 1e-8)


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (HAND, {}, "coordinates of the orientation of task .* are not given"),
        (lw.Task.pose("link_6", axes="node"), {}, "axes='reference'"),
        (lw.Task.position("link_6", axes="node"), {}, "axes='reference'"),
        (
            lw.Task.orientation("link_6", about="xy"),
            {"orientation": "quaternion"},
            "Task.direction",
        ),
        (HAND, {"orientation": "euler_xyx", "position": "polar"}, "spherical"),
        (HAND, {"orientation": "euler_xxy"}, "did you mean 'euler_zxy'"),
        (HAND, {"orientation": ["quaternion"]}, "coordinates of orientations"),
        (lw.Task.position("link_9"), {}, "link_6"),
        ("link_6", {}, "lw.Task"),
    ],
)
def test_what_cannot_be(task, options, message):
    mech, (q, v) = puma(), state(puma())
    with pytest.raises(ModelError, match=message):
        lw.tasks.task_coordinates(mech, q, v, task, **options)
    with pytest.raises(ModelError, match=message):
        lw.tasks.coordinate_dynamics(mech, q, v, task, **options)


def test_the_axis_of_a_cylinder_is_told():
    mech, q = puma(), np.zeros(6)
    with pytest.raises(ModelError, match=r"z axis of the reference.*cartesian"):
        lw.tasks.task_coordinates(mech, q, q, lw.Task.position("link_1"), position="cylindrical")


def test_hinges_with_quaternions_have_no_coordinates():
    mech, (q, v) = flyer(), state(flyer())
    with pytest.raises(ModelError, match=r"7 positions, for 6 velocities.*orientation task"):
        lw.tasks.task_coordinates(mech, q, v, lw.Task.joints("body_1"))


def test_wrong_sizes_and_names():
    mech, (q, v) = puma(), state(puma())
    at = lw.tasks.task_coordinates(mech, q, v, HAND, orientation="quaternion")
    for ask in (at.error, at.acceleration, at.basic_force, at.basic_velocity):
        with pytest.raises(ShapeError, match=r"shape \(6,\); it must have shape \(7,\)"):
            ask(np.zeros(6))
    with pytest.raises(UnknownNameError, match="euler_zyx"):
        lw.Task.pose("link_6", coordinates="euler_zxyx")
    assert "pose of link_6: w" in str(at) and "rate" in str(at)
    dynamics = lw.tasks.coordinate_dynamics(mech, q, v, HAND, orientation="quaternion")
    assert "7 coordinates" in str(dynamics) and "rank 6" in str(dynamics)
