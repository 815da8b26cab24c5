"""Loops and couplings in implicit steps: against steps one by one, formulas, and balances."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ClosureError, ModelError
from linkwise.simulation import ContactPoint, Ground


def moved(mech, q, v=None, **options):
    return lw.rollout(mech, q, v, integrator="implicit", **options)


def parallelogram(**crank):
    """A crank and a rocker of 0.5 m with a bar between them, in the x-z plane, hanging."""
    pin, half = lw.hinges.Pin((0, 1, 0)), lw.Pose.translation((0.0, 0.0, -0.5))
    b = lw.Builder("parallelogram")
    bar = lw.SpatialInertia.from_com(2.0, (0.15, 0.0, 0.0), (1e-4, 0.015, 0.015))
    arm = lw.SpatialInertia.from_com(1.0, (0.0, 0.0, -0.25), (0.02, 0.02, 1e-4))
    b.body("crank", "world", pin, inertia=arm, drive=lw.Drive(**crank))
    b.body("bar", "crank", pin, inboard=half, inertia=bar)
    far = lw.Pose.translation((0.3, 0.0, 0.0))
    b.body("rocker", "world", pin, inboard=far, inertia=arm)
    b.node("bar_end", "bar", far)
    b.node("rocker_end", "rocker", half)
    b.loop("loop", "bar_end", "rocker_end", pin)
    return b.build()


def closed_at(angle):
    return np.array([angle, -angle, angle])


def test_a_pin_with_redundant_rows_moves_as_its_one_freedom():
    """Three of the five rows of the pin say nothing new. Errors are of order one."""
    mech = parallelogram()
    far = lw.simulate(mech, closed_at(1.2), np.zeros(3), duration=1.0, step=1e-3, passive=False)
    offs = list[float]()
    for h in (4e-3, 2e-3, 1e-3):
        runs = moved(mech, closed_at(1.2), duration=1.0, step=h)
        offs.append(float(np.abs(runs.q[-1] - far.q[-1]).max()))
        assert np.abs(lw.loops.constraint_error(mech, runs.q)).max() < 300.0 * h**3
    assert np.ptp(far.q[:, 0]) > 2.0
    np.testing.assert_allclose([offs[0] / offs[1], offs[1] / offs[2]], 2.0, rtol=0.1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_loops_stay_closed_for_a_minute(dtype):
    """A crank that goes round passes the two flat positions, where the linkage is singular."""
    mech, v = parallelogram(), np.array([15.0, -15.0, 15.0])
    runs = moved(mech, closed_at(0.3), v, duration=60.0, step=1e-3, record_every=100, dtype=dtype)
    q = np.asarray(runs.q, np.float64)
    assert np.abs(q[-1]).max() > 100.0
    assert np.abs(lw.loops.constraint_error(mech, q)).max() < 1e-4
    energy = lw.energy(mech, q, np.asarray(runs.v, np.float64)).total
    assert energy.max() < energy[0] + 0.05 * abs(energy[0])


def test_gears_hold_to_rounding_and_carry_both_inertias():
    b = lw.Builder("geared")
    rod = lw.SpatialInertia.from_com(1.0, (0.0, 0.0, -0.3), (0.02, 0.02, 0.001))
    for name in ("one", "two"):
        b.body(name, hinge=lw.hinges.Pin((0.0, 1.0, 0.0)), inertia=rod)
    mech = b.couple("gear", "two", {"one": -2.0}).build()
    h, (a, v) = 1e-3, (0.4, 0.0)
    runs = moved(mech, [a, -2.0 * a], duration=0.3, step=h)
    inertia = (0.02 + 0.3**2) * (1.0 + 4.0)
    for i in range(300):
        v -= h * 9.81 * 0.3 * (np.sin(a) - 2.0 * np.sin(-2.0 * a)) / inertia
        a += h * v
        np.testing.assert_allclose(runs.q[i + 1], [a, -2.0 * a], rtol=0, atol=1e-13)


def test_a_stop_holds_a_linkage_against_a_force_behind_the_loop():
    """The rocker is pushed, the crank has the stop: it bears the virtual work of all forces."""
    mech, tau, h = parallelogram(lower=-0.2), np.array([0.0, 0.0, -30.0]), 1e-3
    runs = moved(mech, closed_at(0.3), tau=tau, duration=1.0, step=h)
    assert np.abs(runs.v[-1]).max() < 1e-9
    np.testing.assert_allclose(runs.q[-1], closed_at(-0.2), atol=1e-9)
    last = runs.kernel.run(runs.q[-1:], runs.v[-1:], {"tau": tau}, h, 1, 1).records[0, 0]
    gravity = 9.81 * 1.5 * np.sin(-0.2)
    np.testing.assert_allclose(last[6] / h, 30.0 + gravity, rtol=1e-8)


def test_the_ground_carries_a_linkage():
    """By virtual work: N z' = V', with z = −½ cos a of the bar and V = −1.5 g cos a."""
    ground = Ground(point=(0.0, 0.0, -0.5 * np.cos(0.3)), friction=0.0)
    mech, point = parallelogram(damping=0.5), ContactPoint("c", "bar", (0.15, 0, 0), ground=ground)
    runs = moved(mech, closed_at(0.8), duration=2.0, contacts=[point])
    np.testing.assert_allclose(runs.q[-1], closed_at(0.3), atol=1e-6)
    np.testing.assert_allclose(runs.contact_forces[-1, 0], [0.0, 0.0, 3 * 9.81], atol=1e-6)


def test_loops_are_internal_so_momentum_is_kept():
    """A linkage in free flight, whose crank hits a stop on the way."""
    linkage = parallelogram(lower=-0.3)
    b = lw.Builder("flying", gravity=(0.0, 0.0, 0.0))
    b.body("base", hinge=lw.hinges.Free(), inertia=lw.SpatialInertia.solid_sphere(3.0, 0.2))
    for body in linkage.bodies:
        parent = "base" if body.parent == "world" else body.parent
        b.body(body.name, parent, body.hinge, inboard=body.inboard, inertia=body.inertia,
               drive=body.drive)  # fmt: skip
    for node in linkage.nodes:
        b.node(node.name, node.body, node.pose)
    mech = b.loop("loop", "bar_end", "rocker_end", lw.hinges.Pin((0, 1, 0))).build()
    q = np.concatenate([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], closed_at(0.3)])
    v = np.array([0.1, 0.0, 0.2, 0.3, 0.0, 0.0, -4.0, 4.0, -4.0])
    drift = list[float]()
    for h in (2e-3, 1e-3):
        runs = moved(mech, q, v, duration=0.5, step=h)
        p = lw.momentum(mech, runs.q, runs.v)
        drift.append(float(np.abs(p - p[0]).max() / np.abs(p[0]).max()))
        assert runs.q[:, 7].min() > -0.3 - 1e-9 and runs.v[-1, 6] > -0.5
    assert drift[1] < 0.02 and drift[1] < 0.6 * drift[0]


def test_what_cannot_begin_or_has_no_formula_is_refused():
    mech = parallelogram()
    with pytest.raises(ClosureError, match=r"motion 1 of 'parallelogram' .*'loop\[.\]' is open"):
        moved(mech, [closed_at(0.3), [0.3, -0.31, 0.3]], duration=0.1)
    with pytest.raises(ClosureError, match=r"velocities pull 'loop\[.\]' apart"):
        moved(mech, closed_at(0.3), [1.0, 0.0, 0.0], duration=0.1)
    b = lw.Builder("screwed")
    b.body("nut", hinge=lw.hinges.Free(), inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1))
    two = lw.hinges.Screws(((0, 0, 1, 0, 0, 0.01), (1, 0, 0, 0, 0, 0)))
    b.loop("thread", "world", "nut", two)
    screwed = b.build()
    with pytest.raises(ModelError, match="loop 'thread' has a hinge of kind Screws"):
        moved(screwed, screwed.neutral(), duration=0.1)
