"""The variational step: its derivation by differences, its two-form, momentum and energy."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import SimulationError
from linkwise.model.hinges import (
    Free,
    Hinge,
    Pin,
    Planar,
    PointOnPlane,
    Prismatic,
    RollingBall,
    SoftFinger,
    Spherical,
)
from linkwise.simulation.integrators import variational
from linkwise.simulation.variational.coordinates import Coordinates, coordinates
from linkwise.simulation.variational.equations import at_the_middle
from linkwise.simulation.variational.step import (
    LAGRANGIAN_FORCE,
    _momentum_and_force,  # pyright: ignore[reportPrivateUsage]
    enter,
    leave,
    step,
)
from linkwise.spatial import SpatialInertia, quaternion, rotation

KINDS = ("pin", "prismatic", "spherical", "free", "planar", "universal", "helical")


def tree(seed: int) -> lw.Mechanism:
    """Every second one floats; drives bring armature, but where its axes turn and slide."""
    mech = lw.models.random_tree(5, seed, hinges=KINDS, floating=seed % 2 == 0)
    bare = [x.name for x in mech.bodies if isinstance(x.hinge, Free | Planar)]
    return mech.with_drive(bare, armature=0.0, rotor_inertia=0.0) if bare else mech


def sliding() -> lw.Mechanism:
    """What random trees do not deal: a point on a plane, hinges from their other side."""
    inertia = SpatialInertia.from_com(2.0, (0.1, 0.05, -0.02), np.diag([0.02, 0.03, 0.04]))
    b = lw.Builder("sliding")
    b.body("puck", "world", PointOnPlane(0.2, (0.3, -0.2, 1.0)), inertia=inertia)
    b.body("ball", "puck", Spherical().reversed(), inboard=(0.2, 0.1, 0.0), inertia=inertia)
    b.body("loose", "ball", Free().reversed(), inboard=(0.1, 0.0, 0.2), inertia=inertia)
    b.body("cart", "loose", Planar((0.1, 0.2, 1.0)), inertia=inertia)
    return b.build()


def lagrangian(coords: Coordinates, q: np.ndarray, u: np.ndarray) -> float:
    mech, v = coords.mech, coords.velocities(q, u)
    return float(
        np.sum(lw.dynamics.kinetic_energy(mech, q, v) - lw.dynamics.potential_energy(mech, q))
    )


def between(coords: Coordinates, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
    """The u with q0 ⊕ u = q1."""
    out = np.empty(coords.mech.nv)
    out[coords.plain_v] = (q1 - q0)[coords.plain_q]
    for turn in coords.turns:
        at = slice(turn.q, turn.q + 4)
        step = quaternion.multiply(quaternion.conjugate(q0[at]), q1[at])
        out[turn.v : turn.v + 3] = quaternion.log(step)
    return out


def gradient(f, nv: int, e: float = 1e-4) -> np.ndarray:
    """Derivatives along each rate, by four points: errors of e⁴ and 1e-16/e."""
    out = np.empty(nv)
    for i, d in enumerate(np.eye(nv)):
        out[i] = (8 * (f(e * d) - f(-e * d)) - f(2 * e * d) + f(-2 * e * d)) / (12 * e)
    return out


MECHANISMS = [*(pytest.param(tree(i), id=f"tree_{i}") for i in range(6)), sliding()]


@pytest.mark.parametrize("mech", MECHANISMS, ids=lambda m: m.name)
def test_derivatives_of_the_lagrangian(mech: lw.Mechanism):
    coords = coordinates(mech)
    q, u = mech.random(seed=1), mech.random_velocity(seed=2)
    v = coords.velocities(q, u)
    force, momentum = at_the_middle(coords, q, v, *_momentum_and_force(mech, q, v))
    by_q = gradient(lambda d: lagrangian(coords, coords.retract(q, d, 1.0), u), mech.nv)
    by_u = gradient(lambda d: lagrangian(coords, q, u + d), mech.nv)
    assert np.abs(force - by_q).max() < 1e-9 * np.abs(by_q).max()
    assert np.abs(momentum - by_u).max() < 1e-9 * np.abs(by_u).max()


@pytest.mark.parametrize("mech", MECHANISMS, ids=lambda m: m.name)
def test_momenta_are_derivatives_of_the_discrete_lagrangian(mech: lw.Mechanism):
    coords, h = coordinates(mech), 0.02
    q, v = mech.random(seed=3), mech.random_velocity(seed=4)
    p = enter(mech, q, v)
    after = step(mech, None, 0.0, q, p, h)

    def action(q0: np.ndarray, q1: np.ndarray) -> float:
        w = between(coords, q0, q1) / h
        return h * lagrangian(coords, coords.retract(q0, w, 0.5 * h), w)

    by_first = gradient(lambda d: action(coords.retract(q, d, 1.0), after.q), mech.nv)
    by_last = gradient(lambda d: action(q, coords.retract(after.q, d, 1.0)), mech.nv)
    size = np.abs(p).max()
    # The action is divided by h² by the derivative: 1e-16/(h e) remains of rounding.
    assert np.abs(p + by_first).max() < 1e-8 * size
    assert np.abs(after.p - by_last).max() < 1e-8 * size
    assert after.residual < 1e-13


def two_form(coords: Coordinates, p: np.ndarray) -> np.ndarray:
    """dθ of θ = p · η on left-trivialised variations (η, δp): δ₁·η₂ − δ₂·η₁ − p·[η₁, η₂]."""
    n = coords.mech.nv
    out = np.block([[np.zeros((n, n)), -np.eye(n)], [np.eye(n), np.zeros((n, n))]])
    for turn in coords.turns:
        at = slice(turn.v, turn.v + 3)
        out[at, at] = rotation.skew(p[at])
    return out


@pytest.mark.parametrize(
    "mech",
    [*(pytest.param(tree(i), marks=pytest.mark.prove) for i in (1, 2)), sliding()],
    ids=lambda m: m.name,
)
def test_the_two_form_is_kept(mech: lw.Mechanism):
    coords, h, n = coordinates(mech), 0.01, mech.nv
    q, v = mech.random(seed=5), mech.random_velocity(seed=6)
    p = enter(mech, q, v)

    def moved(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        result = step(mech, None, 0.0, coords.retract(q, x[:n], 1.0), p + x[n:], h)
        return result.q, result.p

    after_q, after_p = moved(np.zeros(2 * n))

    def chart(x: np.ndarray) -> np.ndarray:
        found_q, found_p = moved(x)
        return np.concatenate([between(coords, after_q, found_q), found_p - after_p])

    e = 1e-3
    columns = [
        (8 * (chart(e * d) - chart(-e * d)) - chart(2 * e * d) + chart(-2 * e * d)) / (12 * e)
        for d in np.eye(2 * n)
    ]
    jac = np.stack(columns, axis=1)
    before, after = two_form(coords, p), jac.T @ two_form(coords, after_p) @ jac
    assert np.abs(after - before).max() < 1e-8 * max(1.0, np.abs(p).max())
    # It is no accident: the step changes the state by much more.
    assert np.abs(jac - np.eye(2 * n)).max() > 1e-2


def test_momentum_of_a_free_flyer_is_kept():
    """Forces inside the mechanism, too: only they act on the arms of a satellite."""
    mech = lw.models.free_flyer()
    rng = np.random.default_rng(0)
    q, v = mech.neutral(), 0.5 * rng.standard_normal(mech.nv)
    p = enter(mech, q, v)
    before = lw.momentum(mech, q, v, about="world")
    tau = np.zeros((200, mech.nv))
    tau[:, 6:] = rng.standard_normal((200, mech.nv - 6))
    for i in range(200):
        result = step(mech, lambda t, q, v, i=i: tau[i], 0.01 * i, q, p, 0.01)
        q, p = result.q, result.p
    v = leave(mech, q, p)
    assert np.abs(v).max() > 1.0
    # 200 steps with rounding of 1e-16 in each.
    assert (
        np.abs(lw.momentum(mech, q, v, about="world") - before).max() < 1e-12 * np.abs(before).max()
    )


def test_a_step_back_undoes_a_step():
    mech = tree(2)
    q, v = mech.random(seed=7), mech.random_velocity(seed=8)
    p = enter(mech, q, v)
    there = step(mech, None, 0.0, q, p, 0.01)
    back = step(mech, None, 0.01, there.q, there.p, -0.01)
    assert np.abs(mech.difference(q, back.q)).max() < 1e-12
    assert np.abs(back.p - p).max() < 1e-12 * np.abs(p).max()


def test_energy_of_an_arm_has_no_trend():
    """Thirty seconds of free fall from rest: the error swings by h², and does not go anywhere."""
    mech = lw.models.seven_dof_arm()
    q, h = mech.neutral() + 0.3, 0.01
    p = enter(mech, q, np.zeros(mech.nv))
    energy, w = list[float](), None
    for i in range(3000):
        result = step(mech, None, h * i, q, p, h, guess=w)
        q, p, w = result.q, result.p, result.w
        v = leave(mech, q, p)
        w = 2.0 * v - w  # the rates of the next middle, by a straight line
        energy.append(
            float(lw.dynamics.kinetic_energy(mech, q, v) + lw.dynamics.potential_energy(mech, q))
        )
    parts = np.abs(np.array(energy) - energy[0]).reshape(3, -1).max(axis=1)
    assert parts.max() < 2.0 * parts[0]


def test_damping_acts_at_the_middle():
    """ẍ = −c ẋ of one mass: the midpoint rule multiplies by (1 − ½hc)/(1 + ½hc)."""
    b = lw.Builder("cart", gravity=(0.0, 0.0, 0.0))
    b.body(
        "cart", "world", Prismatic((1.0, 0.0, 0.0)), inertia=SpatialInertia.solid_sphere(2.0, 0.1)
    )
    mech, c, h = b.build(), 3.0, 0.1
    q, v = variational.step(mech, lambda t, q, v: -2.0 * c * v, 0.0, np.zeros(1), np.ones(1), h)
    factor = (1.0 - 0.5 * h * c) / (1.0 + 0.5 * h * c)
    assert v == pytest.approx([factor], rel=1e-14)
    assert q == pytest.approx([0.5 * h * (1.0 + factor)], rel=1e-14)


def test_the_force_is_two_passes():
    plan = lw.plan(lw.derive(LAGRANGIAN_FORCE).result)
    assert len(plan.passes) == 2


@pytest.mark.parametrize("hinge", [RollingBall(), SoftFinger()], ids=lambda x: x.kind)
def test_nonholonomic_hinges_are_refused(hinge: Hinge):
    b = lw.Builder("toy")
    b.body("ball", "world", hinge, inertia=SpatialInertia.solid_sphere(1.0, 1.0))
    mech = b.build()
    with pytest.raises(lw.ModelError, match=rf"'ball' hangs on a {hinge.kind} hinge.*Use 'rk4'"):
        enter(mech, mech.neutral(), np.zeros(mech.nv))


def test_loops_are_refused():
    mech = lw.models.four_bar()
    with pytest.raises(lw.ModelError, match=r"which has loops: it is for trees\. Use 'rk4'"):
        enter(mech, mech.neutral(), np.zeros(mech.nv))


def test_steps_that_are_too_long_are_told():
    b = lw.Builder("spinner", gravity=(0.0, 0.0, 0.0))
    b.body("top", "world", Spherical(), inertia=SpatialInertia.solid_sphere(1.0, 0.1))
    mech = b.build()
    p = enter(mech, mech.neutral(), np.array([0.0, 0.0, 4.0]))
    with pytest.raises(SimulationError, match="body 'top' of 'spinner' turns by 4 rad in one"):
        step(mech, None, 0.0, mech.neutral(), p, 1.0)
    arm = lw.models.seven_dof_arm()
    q, v = arm.random(seed=1), 20.0 * arm.random_velocity(seed=1)
    with pytest.raises(SimulationError, match=r"has no solution after .* rounds"):
        step(arm, None, 0.0, q, enter(arm, q, v), 1.0)


def test_pin_turns_as_often_as_it_likes():
    """Only quaternions have a largest turn: an angle of a pin is a number."""
    b = lw.Builder("wheel", gravity=(0.0, 0.0, 0.0))
    b.body("wheel", "world", Pin((0.0, 0.0, 1.0)), inertia=SpatialInertia.solid_sphere(1.0, 0.1))
    mech = b.build()
    result = step(mech, None, 0.0, np.zeros(1), enter(mech, np.zeros(1), np.full(1, 10.0)), 1.0)
    assert result.q == pytest.approx([10.0], rel=1e-14)
