"""Steps of time in plain NumPy: their order on the manifold, and the coordinates they work in."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError
from linkwise.simulation.integrators import INTEGRATORS, integrator
from linkwise.simulation.rates import (
    in_rates,
    moved,
    rate_acceleration,
    rates,
    turning,
    velocities,
)
from tests.simulation.moving import distance, other_hinges, reference, tumbling

FIXED = [name for name, x in INTEGRATORS.items() if x.step and x.takes == "acceleration"]


def stepped(mech, name, q, v, duration, steps, force=None):
    """The state after some steps of the same length."""

    def accelerate(t, q, v):
        tau = np.zeros(mech.nv) if force is None else force(t, q, v)
        return lw.forward_dynamics(mech, q, v, tau)

    f, u, h = in_rates(mech, accelerate), rates(mech, q, v), duration / steps
    for i in range(steps):
        q, u = INTEGRATORS[name].step(mech, f, i * h, q, u, h)
    return q, velocities(mech, q, u)


def orders(mech, name, scale, force=None):
    """By which power of the step the error against a plain reference falls."""
    q, v = mech.random(seed=1), scale * mech.random_velocity(seed=2)
    exact = reference(mech, q, v, 0.4, force)
    counts = (20, 40, 80)
    errors = [distance(mech, stepped(mech, name, q, v, 0.4, n, force), exact) for n in counts]
    return np.log2(np.array(errors[:-1]) / np.array(errors[1:]))


@pytest.mark.parametrize("name", FIXED)
def test_orders_on_quaternions(name):
    """A free body with a ball joint tumbles under forces that change with time."""

    def force(t, q, v):
        return np.cos(3.0 * t + np.arange(10.0)) - 0.1 * v

    # The next order adds some percent at these steps; a whole order less would be off by one.
    expected = INTEGRATORS[name].order
    assert orders(tumbling(), name, 3.0, force) == pytest.approx(expected, abs=0.15)


@pytest.mark.parametrize("name", FIXED)
def test_orders_on_plain_coordinates(name):
    expected = INTEGRATORS[name].order
    assert orders(lw.models.seven_dof_arm(), name, 1.0) == pytest.approx(expected, abs=0.2)


@pytest.mark.parametrize("name", ["euler", "rk4"])
def test_orders_with_a_planar_hinge_and_a_rolling_ball(name):
    assert orders(other_hinges(), name, 2.0) == pytest.approx(INTEGRATORS[name].order, abs=0.25)


def test_both_runge_kutta_methods_are_one_on_plain_coordinates():
    mech = lw.models.puma560()
    q, v = mech.random(seed=3), mech.random_velocity(seed=4)
    a, b = (stepped(mech, name, q, v, 0.2, 20) for name in ("rk4", "rk4_mujoco"))
    # The same sums in another order.
    assert a[0] == pytest.approx(b[0], rel=1e-12) and a[1] == pytest.approx(b[1], rel=1e-12)


# ------------------------------------------------------------------------------------------- rates


def test_rates_are_the_velocities_of_positions():
    """ṗ is what the position of a free hinge changes by, in its own fixed axes."""
    mech = tumbling()
    q, v = mech.random(seed=5), mech.random_velocity(seed=6)
    u = rates(mech, q, v)
    assert u[3:6] == pytest.approx(mech.qdot(q, v)[4:7], abs=1e-14)
    assert np.array_equal(u[:3], v[:3]) and np.array_equal(u[6:], v[6:])
    assert velocities(mech, q, u) == pytest.approx(v, abs=1e-14)


def test_accelerations_of_rates_are_their_derivatives():
    """u̇ against the difference of u along the motion that has v̇."""
    mech, h = tumbling(), 1e-5
    q, v = mech.random(seed=7), mech.random_velocity(seed=8)
    vdot = mech.random_velocity(seed=9)

    def u(s):
        later = mech.integrate(q, v + 0.5 * s * vdot, s)
        return rates(mech, later, v + s * vdot)

    # Central differences: an error of h² times third derivatives, and rounding over h.
    result = (u(h) - u(-h)) / (2.0 * h)
    assert rate_acceleration(mech, q, v, vdot) == pytest.approx(result, abs=1e-8)


def test_retracting_is_integrating_where_there_is_no_free_hinge():
    mech = other_hinges()
    q, v = mech.random(seed=1), mech.random_velocity(seed=2)
    assert moved(mech, q, v, 0.3) == pytest.approx(mech.integrate(q, v, 0.3), abs=1e-15)


def test_retracting_a_free_body_moves_it_straight():
    mech = tumbling()
    q, v = mech.random(seed=1), mech.random_velocity(seed=2)
    u = rates(mech, q, v)
    later = moved(mech, q, u, -0.3)
    assert later[4:7] == pytest.approx(q[4:7] - 0.3 * u[3:6], abs=1e-15)
    turned = mech.integrate(q, v, -0.3)
    assert later[:4] == pytest.approx(turned[:4], abs=1e-15)
    assert np.linalg.norm(later[7:11]) == pytest.approx(1.0, abs=1e-15)
    assert moved(mech, q, np.zeros(10), 0.1) == pytest.approx(q, abs=1e-15)


def test_a_free_body_without_forces_flies_straight_in_any_step():
    """In rates the centre of mass of one free body moves exactly, however it turns."""
    build = lw.Builder("stone", gravity=(0.0, 0.0, -9.81))
    inertia = lw.SpatialInertia.from_com(2.0, (0.0, 0.0, 0.0), (0.3, 0.2, 0.1))
    build.body("stone", hinge=lw.hinges.Free(), inertia=inertia)
    mech = build.build()
    q, v = mech.neutral(), np.array([5.0, -3.0, 4.0, 1.0, 2.0, 3.0])
    q, _ = stepped(mech, "rk4", q, v, 1.0, 4)
    assert q[4:] == pytest.approx([1.0, 2.0, 3.0 - 0.5 * 9.81], abs=1e-13)


@pytest.mark.parametrize("size", [1e-6, 0.02, 0.5, 3.0, 6.0])
def test_turning_is_the_rate_of_rotation_vectors(size):
    """q₀ ⊕ (θ + s θ̇) moves as q₀ ⊕ θ does with u, to first order in s; a full turn away, too."""
    mech, s = tumbling(), 1e-5
    q, u = mech.random(seed=1), mech.random_velocity(seed=2)
    theta = mech.random_velocity(seed=3)
    theta *= size / np.linalg.norm(theta[:3])
    theta[6:9] *= min(1.0, size / np.linalg.norm(theta[6:9]))
    rate = turning(mech, theta, u)

    def apart(s):
        a, b = (
            moved(mech, q, theta + s * rate, 1.0),
            moved(mech, moved(mech, q, theta, 1.0), u, s),
        )
        return np.abs(mech.difference(a, b)).max()

    # Second derivatives grow near a full turn, as 1/(2π - |θ|)², so that the difference is of
    # order s² = 1e-10 times some tens; an error of θ̇ would show as s = 1e-5.
    assert apart(s) < 1e-8


def test_an_integrator_that_there_is_not():
    with pytest.raises(ModelError, match=r"integrator='rk5' is unknown; .* 'euler', 'rk4'"):
        integrator("rk5", INTEGRATORS)
    with pytest.raises(ModelError, match="integrator=4 is unknown"):
        integrator(4, INTEGRATORS)
    assert str(INTEGRATORS["rk4"]) == "rk4: Runge-Kutta, commutator-free, of order 4"


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "theirs"), [("euler", "EULER"), ("rk4_mujoco", "RK4")])
def test_steps_are_those_of_mujoco(name, theirs, tmp_path):
    """Two steps of a quadruped, whose base is free, give MuJoCo's numbers to rounding."""
    mujoco = pytest.importorskip("mujoco", minversion="4.0")
    lw.save(lw.models.quadruped(), tmp_path / "quadruped.xml")
    mech = lw.load(tmp_path / "quadruped.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "quadruped.xml"))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{theirs}")
    model.opt.timestep = 0.03
    layout, data = lw.convert.mujoco_layout(mech, model), mujoco.MjData(model)
    q, v = mech.random(seed=1), 2.0 * mech.random_velocity(seed=2)
    data.qpos, data.qvel = layout.q_to(q), layout.v_to(q, v)
    for _ in range(2):
        mujoco.mj_step(model, data)
    q, v = stepped(mech, name, q, v, 0.06, 2, lambda t, q, v: -mech.damping * v)
    # Measured 3e-16 and 3e-14; the commutator-free method is 1e-10 away, k = u even 1e-6.
    assert layout.q_to(q) == pytest.approx(data.qpos, abs=1e-13)
    assert layout.v_to(q, v) == pytest.approx(data.qvel, abs=1e-12)
