"""Compliant surfaces: geometry, forces, instants, energy, impacts."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError, UnknownNameError
from linkwise.spatial.rotation import exp
from linkwise.tasks.force.impact import impact_estimate, spring_impact
from linkwise.tasks.force.surface import CompliantSurface

OBLIQUE = (0.48, -0.36, 0.8)
POSTURE = np.array([0.3, -0.6, 2.4, 0.2, 0.9, -0.4])
ROUND = {
    "plane": CompliantSurface((0.3, 0.1, 0.2), OBLIQUE, 2e3, 5.0, 0.3),
    "sphere": CompliantSurface.sphere((0.1, 0.2, 0.3), 0.4, 2e3, 5.0, friction=0.3),
    "cylinder": CompliantSurface.cylinder((0.1, 0.2, 0.3), (1, 2, 2), 0.4, 2e3, 5.0, friction=0.3),
}


def slider(mass: float = 2.0) -> lw.Mechanism:
    """A block that slides along z, weightless; its node is its origin."""
    b = lw.Builder("slider")
    b.body(
        "block", "world", lw.hinges.Prismatic((0, 0, 1)),
        inertia=lw.SpatialInertia.from_com(mass, (0, 0, 0), (0.01, 0.01, 0.01)),
    )  # fmt: skip
    b.node("foot", "block")
    return b.build().with_gravity((0.0, 0.0, 0.0))


@pytest.fixture(scope="module")
def puma() -> lw.Mechanism:
    return lw.models.puma560()


def wall_at(mech, q, depth, *, normal=OBLIQUE, **kind):
    """A plane in which the flange is `depth` deep."""
    n = np.array(normal) / np.linalg.norm(normal)
    return CompliantSurface(mech.pose(q, "flange").p + depth * n, normal, **kind)


@pytest.mark.parametrize("shape", ROUND)
def test_normal_is_the_gradient_of_the_clearance(shape):
    surface, rng, h = ROUND[shape], np.random.default_rng(0), 1e-6
    assert surface.shape == shape
    for p in rng.normal(size=(5, 3)):
        gradient = [
            (surface.clearance(p + h * e) - surface.clearance(p - h * e)) / (2 * h)
            for e in np.eye(3)
        ]
        assert np.allclose(gradient, surface.normal_at(p), atol=1e-8)


@pytest.mark.parametrize("shape", ROUND)
def test_following_is_the_acceleration_of_a_point_that_keeps_its_distance(shape):
    """Second differences of the clearance along a straight line: it must be made up for."""
    surface, rng, h = ROUND[shape], np.random.default_rng(1), 1e-4
    for p, v in rng.normal(size=(5, 2, 3)):
        rise = sum(w * surface.clearance(p + s * h * v) for s, w in ((-1, 1), (0, -2), (1, 1)))
        assert np.isclose(surface.following(p, v), -rise / h**2, atol=1e-5)


def test_a_point_that_is_pushed_by_spring_damper_and_friction():
    mech = slider()
    surface = CompliantSurface((0, 0, 0), (0, 0, 3.0), 1000.0, 20.0)
    touch = surface.touch(mech, [-0.01], [-0.1], "foot")
    assert touch.penetration == 0.01 and touch.rate == pytest.approx(0.1)
    assert np.allclose(touch.force, (0, 0, 1000.0 * 0.01 + 20.0 * 0.1))
    assert not surface.touch(mech, [0.01], [-0.1], "foot").force.any()  # away
    assert not surface.touch(mech, [-0.01], [0.6], "foot").force.any()  # it never pulls
    assert "10 mm deep, 12 N" in str(touch)


def test_friction_is_against_the_sliding_and_goes_to_that_of_coulomb(puma):
    q, v = POSTURE, np.array([0.5, -0.2, 0.3, 0.4, 0.1, 0.2])
    n = np.array(OBLIQUE) / np.linalg.norm(OBLIQUE)
    velocity = lw.node_velocity(puma, q, v, "flange", frame="world")[3:]
    slide = velocity - n * (n @ velocity)
    ratios = []
    for slip_speed in (1e-2, 1e-4):
        surface = wall_at(puma, q, 0.002, stiffness=1e4, friction=0.4, slip_speed=slip_speed)
        touch = surface.touch(puma, q, v, "flange")
        across = touch.force - touch.pressure * n
        assert np.allclose(np.cross(across, slide), 0.0, atol=1e-12) and across @ slide < 0.0
        ratios.append(np.linalg.norm(across) / touch.pressure)
    assert ratios[0] < ratios[1] < 0.4
    assert ratios[1] == pytest.approx(0.4, rel=1e-4)


def test_force_in_node_axes_is_the_force_in_the_world_and_batches_are_rows(puma):
    rng = np.random.default_rng(2)
    q = POSTURE + 0.02 * rng.normal(size=(7, 6))
    v = rng.normal(size=(7, 6))
    surface = wall_at(puma, POSTURE, 0.004, stiffness=1e4, damping=20.0, friction=0.2)
    world = surface.force(puma, q, v, "flange", frame="world")
    ours = surface.force(puma, q, v, "flange")
    assert 0 < surface.touch(puma, q, v, "flange").touching.sum() < 7
    for i in range(7):
        rot = puma.pose(q[i], "flange").rot
        assert np.allclose(rot @ ours[i, 3:], world[i, 3:], atol=1e-10)
        assert np.allclose(surface.force(puma, q[i], v[i], "flange"), ours[i], atol=1e-12)
        assert not ours[i, :3].any()


def test_the_force_is_the_slope_of_the_stored_energy(puma):
    surface, h = wall_at(puma, POSTURE, 0.003, stiffness=1e4), 1e-6
    force = surface.force(puma, POSTURE, np.zeros(6), "flange", frame="world")
    tau = lw.jacobian(puma, POSTURE, "flange", frame="world").T @ force
    slope = [
        (surface.energy(puma, POSTURE + h * e, "flange")
         - surface.energy(puma, POSTURE - h * e, "flange")) / (2 * h)
        for e in np.eye(6)
    ]  # fmt: skip
    assert np.allclose(tau, -np.array(slope), atol=1e-6)
    assert surface.energy(puma, POSTURE, "flange") == pytest.approx(0.5 * 1e4 * 0.003**2)


@pytest.mark.parametrize("damping", [0.0, 20.0, 100.0, 300.0])
def test_a_free_mass_touches_and_leaves_when_it_should(damping):
    """A block of 2 kg at 0.3 m/s from 0.05 m: touches at 1/6 s, leaves as the formulas say."""
    mech, k = slider(2.0), 5000.0
    surface = CompliantSurface((0, 0, 0), (0, 0, 1), k, damping)
    acting = surface.forces(mech, "foot")
    free = lw.simulate(
        mech, [0.05], [-0.3], duration=1.0, step=0.01,
        watch={"touched": surface.touching(mech, "foot")},
    )  # fmt: skip
    assert free.stopped and abs(free.t[-1] - 0.05 / 0.3) < 2e-9
    guess = spring_impact(2.0, 0.3, k, damping)
    run = lw.simulate(
        mech, free.q[-1], free.v[-1], forces=acting, duration=0.2, step=2e-4,
        watch={"left": surface.leaving(mech, "foot")},
    )  # fmt: skip
    # RK4 in 1e-2 of a radian: (1e-2)^4 in places, and their slope for the instants.
    assert run.t[-1] == pytest.approx(guess.duration, abs=1e-8)
    assert run.v[-1, 0] == pytest.approx(guess.restitution * 0.3, rel=1e-6)
    push = k * -run.q[:, 0] - damping * run.v[:, 0]
    # Between two records the largest is missed by the square of half a step.
    assert push.max() <= guess.peak_force * (1 + 1e-7)
    assert push.max() == pytest.approx(guess.peak_force, rel=1e-4)
    if damping == 0.0:
        assert guess.peak_force == pytest.approx(np.sqrt(k * 2.0) * 0.3)
        assert guess.duration == pytest.approx(np.pi * np.sqrt(2.0 / k))


def test_extreme_damping_has_an_answer():
    for damping in (1e-9, 2.0 * np.sqrt(2e4), 1e9):
        guess = spring_impact(2.0, 0.3, 1e4, damping)
        assert np.isfinite([guess.peak_force, guess.duration, guess.restitution]).all()


def falling(puma, stiffness):
    """The arm meets a wall at 0.2 m/s, bias forces made up for; largest force and estimate."""
    n = np.array(OBLIQUE) / np.linalg.norm(OBLIQUE)
    J = lw.jacobian(puma, POSTURE, "flange", frame="world")
    v = np.linalg.solve(J, np.append(np.zeros(3), -0.2 * n))
    surface = wall_at(puma, POSTURE, 0.0, stiffness=stiffness)
    guess = impact_estimate(puma, POSTURE, v, "flange", surface)
    run = lw.simulate(
        puma, POSTURE, v, tau=lambda t, q, v: lw.bias_force(puma, q, v),
        forces=surface.forces(puma, "flange"), duration=guess.duration, step=guess.duration / 40,
    )  # fmt: skip
    push = surface.touch(puma, run.q, run.v, "flange").pressure
    # The largest lies between records: a parabola through the three around it.
    i = int(push.argmax())
    a, b, c = push[i - 1 : i + 2]
    return b + (a - c) ** 2 / (8.0 * (2.0 * b - a - c)), guess, J, n


def test_peak_force_of_an_impact_is_that_of_the_effective_mass(puma):
    """√(k m) v, the closer the shorter the impact: what is left goes with √(m/k)."""
    errors = []
    for stiffness in (1e4, 1e6, 1e8):
        peak, guess, J, n = falling(puma, stiffness)
        mass = 1.0 / (n @ J[3:] @ np.linalg.solve(lw.mass_matrix(puma, POSTURE), J[3:].T @ n))
        assert guess.mass == pytest.approx(mass, rel=1e-10)
        assert guess.peak_force == pytest.approx(np.sqrt(stiffness * mass) * 0.2)
        errors.append(abs(peak / guess.peak_force - 1.0))
    assert errors[0] < 1e-3
    assert errors[1] < 0.2 * errors[0] and errors[2] < 0.2 * errors[1]  # 0.1 each, of first order


def test_nothing_is_lost_in_an_impact_without_damping(puma):
    n = np.array(OBLIQUE) / np.linalg.norm(OBLIQUE)
    J = lw.jacobian(puma, POSTURE, "flange", frame="world")
    v = np.linalg.solve(J, np.append(np.zeros(3), -0.2 * n))
    surface = wall_at(puma, POSTURE, 0.0, stiffness=1e6)
    length = impact_estimate(puma, POSTURE, v, "flange", surface).duration
    run = lw.simulate(  # until it is about to leave, where the force has a kink
        puma, POSTURE, v, forces=surface.forces(puma, "flange"), duration=0.9 * length,
        step=length / 80,
    )  # fmt: skip
    assert run["energy.kinetic"].min() < 0.9 * run["energy.kinetic"][0]  # it did meet the wall
    # RK4 takes (ωh)⁶/72 of an oscillator's energy a step: 72 (π/80)⁶/72 = 4e-9.
    total = run["energy.total"] + [surface.energy(puma, q, "flange") for q in run.q]
    assert np.abs(total - total[0]).max() < 1e-8 * run.report.kinetic


def test_a_turned_sphere_is_the_same_sphere():
    rot = exp(np.array([0.3, -0.5, 0.2]))
    axis = np.array((1.0, 2.0, 2.0)) / 3.0
    one = CompliantSurface.cylinder((0, 0, 0), axis, 0.2, 1e3)
    turned = CompliantSurface.cylinder((0, 0, 0), rot @ axis, 0.2, 1e3)
    p = np.random.default_rng(3).normal(size=(6, 3))
    assert np.allclose(one.clearance(p), turned.clearance(p @ rot.T))
    assert np.allclose(one.normal_at(p) @ rot.T, turned.normal_at(p @ rot.T))


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stiffness": 0.0}, r"stiffness of a surface is 0\.0; .*above zero \[N/m\]"),
        ({"stiffness": -1.0}, "stiffness"),
        ({"stiffness": np.nan}, "stiffness"),
        ({"stiffness": "hard"}, "real numbers"),
        ({"damping": -1.0}, "damping of a surface .* not negative"),
        ({"friction": np.inf}, "friction"),
        ({"slip_speed": 0.0}, "slip_speed"),
        ({"normal": (0, 0, 0)}, "normal of a surface is the zero vector"),
        ({"normal": (0, 0)}, "shape"),
        ({"normal": None}, "a plane has a normal"),
        ({"radius": 1.0}, "a plane has a normal"),
        ({"point": (0, 0, np.inf)}, "finite"),
    ],
)
def test_surfaces_that_cannot_be(change, message):
    good = {"point": (0, 0, 0), "normal": (0, 0, 1), "stiffness": 1e3}
    with pytest.raises((ModelError, ShapeError), match=message):
        CompliantSurface(**{**good, **change})


def test_questions_without_an_answer(puma):
    surface = CompliantSurface((0, 0, 0), (0, 0, 1), 1e3)
    q, v = np.zeros(6), np.zeros(6)
    with pytest.raises(UnknownNameError, match=r"no node or body called 'flnge'.*'flange'"):
        surface.touch(puma, q, v, "flnge")
    for make in (surface.forces, surface.touching, surface.leaving):
        with pytest.raises(UnknownNameError, match="other_arm"):
            make(puma, "other_arm")
    with pytest.raises(ModelError, match="name of one node"):
        surface.forces(puma, 3)
    with pytest.raises(ModelError, match="away from the surface"):
        impact_estimate(puma, q, v, "flange", surface)
    with pytest.raises(ModelError, match="mech is a str"):
        impact_estimate("puma", q, v, "flange", surface)
    with pytest.raises(ModelError, match=r"surface is 3; it must be a lw\.tasks\.CompliantSurface"):
        impact_estimate(puma, q, v, "flange", 3)
    with pytest.raises(ModelError, match="one state"):
        impact_estimate(puma, np.zeros((2, 6)), v, "flange", surface)
    with pytest.raises(ModelError, match="at the centre of a sphere"):
        CompliantSurface.sphere((0, 0, 0), 1.0, 1e3).normal_at((0, 0, 0))
    with pytest.raises(ModelError, match="radius"):
        CompliantSurface.sphere((0, 0, 0), -1.0, 1e3)
