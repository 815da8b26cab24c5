"""The budget of energy of a recording, its momentum and loops, and what its report tells."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.simulation import Event, Recording
from linkwise.simulation.work import energy_lost, integrated
from tests.simulation.moving import rk4_step


def run(mech, force, *, duration, h, every=1, forces=None, hold=1, seed=2):
    """t, q, v, tau at every so many steps; forces are asked at each stage, or held for steps."""
    q, v, rows = mech.random(seed), 0.3 * mech.random_velocity(seed), []
    rest = np.concatenate([b.drive.array("rest", b.hinge) for b in mech.bodies])
    for k in range(round(duration / h) + 1):
        if k % hold == 0:
            tau = force(k * h, q, v)
        if k % every == 0:
            rows.append((k * h, q, v, tau))

        def acceleration(t, q, v, held=tau):
            applied = held if hold > 1 else force(t, q, v)
            springs = mech.stiffness * (q - rest) if mech.stiffness.any() else 0.0
            passive = -mech.damping * v - springs
            outside = forces(t) if forces else None
            return lw.forward_dynamics(mech, q, v, applied + passive, forces=outside)

        q, v = rk4_step(mech, acceleration, k * h, q, v, h)
    return tuple(np.array(x) for x in zip(*rows, strict=True))


def test_quadrature_is_of_fourth_order_and_knows_its_error():
    """∫ sin 3t e^−t dt has a closed form; cubics are exact for cubics."""

    def exact(t):
        return (3.0 - np.exp(-t) * (np.sin(3.0 * t) + 3.0 * np.cos(3.0 * t))) / 10.0

    errors = []
    for count in (81, 161):
        t = np.linspace(0.0, 2.0, count)
        work = integrated(t, np.sin(3.0 * t) * np.exp(-t))
        off = np.abs(work.values - exact(t)).max()
        assert off < work.error < 100.0 * off
        errors.append(off)
    assert np.log2(errors[0] / errors[1]) > 3.7
    rough = np.sort(np.random.default_rng(0).random(20))
    cubic = integrated(rough, 4.0 * rough**3 - 1.0).values
    assert np.allclose(cubic, rough**4 - rough - (rough[0] ** 4 - rough[0]), atol=1e-13)


def test_quadrature_survives_records_that_nearly_coincide():
    """An event 1 ns before a record; the cubics skip it, and nothing is divided by 1e-9."""
    t = np.sort(np.append(np.linspace(0.0, 1.0, 21), [0.4 - 1e-9, 1.0 - 1e-9]))
    work = integrated(t, np.cos(t))
    assert np.abs(work.values - np.sin(t)).max() < 1e-7  # h⁴/100 at h = 0.05
    few = integrated(np.array([0.0, 0.5]), np.array([1.0, 3.0]))
    assert few.values[-1] == pytest.approx(1.0)


def test_quadrature_of_a_jump_admits_its_error():
    t = np.linspace(0.0, 1.0, 101)
    work = integrated(t, np.where(t < 0.503, 1.0, 0.0))
    off = abs(work.values[-1] - 0.503)
    assert off > 1e-4 and work.error > off


def springy():
    mech = lw.models.pendulum(3)
    hinges = [body.hinge_name for body in mech.bodies]
    return mech.with_drive(hinges, damping=0.05, stiffness=0.4, rest=0.2)


def push(t):
    return {"tip": np.array([0.0, 0.02, 0.0, 0.5 * np.sin(4.0 * t), 0.0, 0.3])}


def swing(t, q, v):
    return np.array([1.0, -0.5, 0.2]) * np.cos(5.0 * t)


@pytest.fixture(scope="module")
def pushed():
    """A chain with dampers and springs, smooth joint forces and a force at its tip."""
    mech = springy()
    t, q, v, tau = run(mech, swing, duration=1.0, h=1e-3, forces=push)
    return mech, t, q, v, tau, {"tip": np.array([push(x)["tip"] for x in t])}


def test_works_balance_the_energy_and_each_is_right(pushed):
    """Works by quadrature against sums over every step, of another rule (Simpson)."""
    mech, t, q, v, tau, acting = pushed
    rec = Recording.of(mech, t[::10], q[::10], v[::10], tau[::10],
                       forces={"tip": acting["tip"][::10]})  # fmt: skip

    def simpson(power):
        return 1e-3 / 3.0 * (power[0] + power[-1] + 4.0 * power[1:-1:2].sum()
                             + 2.0 * power[2:-1:2].sum())  # fmt: skip

    rates = np.stack([lw.node_velocity(mech, *state, "tip") for state in zip(q, v, strict=True)])
    springs = mech.stiffness * (q - 0.2)
    expected = {
        "joints": simpson((tau * v).sum(-1)),
        "passive": simpson(-((mech.damping * v + springs) * v).sum(-1)),
        "forces": simpson((acting["tip"] * rates).sum(-1)),
    }
    error = rec.report.notes.work_error
    assert error < 1e-2 * abs(expected["joints"])
    for name, work in expected.items():
        assert abs(work) > 0.01  # each of them counts
        assert rec.report.works[name] == pytest.approx(work, abs=error)
    # What is left over is no more than the quadrature admits.
    assert rec.report.drift < error
    assert rec.report.drift < 1e-3 * rec.report.kinetic
    gained = rec["energy.total"][-1] - rec["energy.total"][0]
    parts = sum(rec.report.works.values()) + rec["energy.balance"][-1]
    assert gained == pytest.approx(parts)


def test_a_force_that_is_not_told_shows_as_drift(pushed):
    mech, t, q, v, tau, acting = pushed
    rec = Recording.of(mech, t, q, v, tau)
    full = Recording.of(mech, t, q, v, tau, forces=acting)
    assert rec.report.drift > 100.0 * full.report.drift
    off = Recording.of(mech, t, q, v, tau, forces=acting, passive=False)
    assert off["work.passive"].any() == False and off.report.drift > 0.01  # noqa: E712
    assert "passive=False" in str(off)


def test_held_forces_do_exact_work():
    """Forces held over each record: τ · Δq, where cubics would be off by the jumps."""
    mech = lw.models.pendulum(2)
    rng = np.random.default_rng(4)

    def kick(t, q, v):
        return rng.normal(size=2)

    t, q, v, tau = run(mech, kick, duration=0.5, h=1e-3, every=10, hold=10)
    exact = Recording.of(mech, t, q, v, tau, held=True)
    smooth = Recording.of(mech, t, q, v, tau)
    assert exact.report.drift < 1e-9 * exact.report.kinetic + 1e-11  # error of rk4 at 1 ms
    assert smooth.report.drift > 1e4 * exact.report.drift
    assert smooth.report.notes.work_error > smooth.report.drift  # and it says so
    assert "works are known to" in str(smooth)


def test_works_that_are_given_are_taken():
    mech = lw.models.pendulum(1)
    t, q, v, _ = run(mech, lambda t, q, v: np.zeros(1), duration=0.1, h=1e-3, every=10)
    works = {"joints": 2.0 + 0.0 * t, "contacts": t}
    rec = Recording.of(mech, t, q, v, works=works, work_error=1e-3)
    assert rec["work.joints"].max() == 0.0  # work counts from the first record
    assert np.allclose(rec["energy.balance"], -t, atol=1e-9)
    assert rec.report.notes.work_error == 1e-3
    unknown = Recording.of(mech, t, q, v, works={"forces": None})
    assert np.isnan(unknown.report.drift) and "work.forces" not in unknown
    assert "not known; work is not counted of forces" in str(unknown)


def test_what_stands_still_has_no_relative_drift():
    mech = lw.models.pendulum(1).with_drive(["pin_1"], damping=1.0)
    v = 1e-15 * np.ones((9, 1))  # rounding
    text = str(Recording.of(mech, np.arange(9.0), np.zeros((9, 1)), v))
    assert "nothing moved" in text and "work " not in text and "kinetic energy" in text
    slow = str(Recording.of(mech, np.arange(9.0), np.zeros((9, 1)), 1e12 * v))
    assert "of the largest kinetic energy" in slow and "by dampers and springs" in slow


def test_momentum_is_kept_in_flight_and_told_on_the_ground():
    mech = lw.models.quadruped()  # on a free base, with gravity
    inner = np.array([0.0] * 6 + [1.0] * (mech.nv - 6))
    t, q, v, tau = run(mech, lambda t, q, v: inner * np.cos(9.0 * t), duration=0.05, h=1e-3)
    rec = Recording.of(mech, t, q, v, tau)
    linear, angular = rec.report.momentum_drift
    # RK4 at 1 ms is off by about 1e-10 here; inner forces and dampers change no momentum.
    assert linear < 1e-7 and angular < 1e-7
    fallen = rec["momentum.linear"][-1] - rec["momentum.linear"][0]
    assert np.allclose(fallen, mech.total_mass * mech.gravity * t[-1], atol=1e-7)
    assert "drift" in str(rec).split("momentum")[1].splitlines()[0]
    tau[:, 0] = 1.0  # somebody turns the base: nothing is kept, and nothing is claimed
    turned = Recording.of(mech, t, q, v, tau)
    assert np.isnan(turned.report.momentum_drift).all()
    assert "not kept" in str(turned)


def test_loops_and_couplings_are_told_with_the_worst():
    mech = lw.models.four_bar()
    q = lw.loops.project_position(mech, mech.neutral()).required()
    q = np.stack([q, q + np.array([0.0, 0.01, 0.0])])
    rec = Recording.of(mech, [0.0, 0.1], q, np.zeros((2, 3)), stabilization="none")
    expected = np.linalg.norm(lw.loops.constraint_error(mech, q, per="loop")[1, 0, 3:])
    assert rec["loop.distance[coupler_rocker]"][1] == pytest.approx(expected)
    assert rec.report.loop[0] == pytest.approx(expected)
    assert "at 'coupler_rocker', not kept closed" in str(rec)
    worse = Recording.of(mech, [0.0, 0.1], q, np.zeros((2, 3)), worst_loop=(0.5, 0.1))
    assert worse.report.loop == (0.5, 0.1)  # between records it was worse than at any


def test_couplings_are_distances_where_they_slide_and_angles_where_they_turn():
    builder = lw.Builder("geared")
    rod = lw.SpatialInertia.from_com(1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder.body("a", hinge=lw.hinges.Pin((0, 0, 1)), inertia=rod)
    builder.body("b", "a", hinge=lw.hinges.Pin((0, 0, 1)), inertia=rod)
    builder.body("c", "b", hinge=lw.hinges.Prismatic((1, 0, 0)), inertia=rod)
    hinges = [body.hinge_name for body in builder.build().bodies]
    builder.couple("gear", hinges[1], {hinges[0]: 2.0})
    builder.couple("rack", hinges[2], {hinges[0]: 0.1})
    mech = builder.build()
    q = np.array([[0.5, 1.0, 0.05], [0.5, 1.3, 0.04]])
    rec = Recording.of(mech, [0.0, 1.0], q, np.zeros((2, 3)))
    assert np.allclose(rec["loop.angle[gear]"], [0.0, 0.3])
    assert np.allclose(rec["loop.distance[rack]"], [0.0, 0.01])
    assert (rec.channels["loop.angle"].unit, rec.channels["loop.distance"].unit) == ("rad", "m")
    assert rec.report.loop == pytest.approx((0.01, 0.3)) and rec.report.loop_place == "gear"


def test_a_limit_that_is_passed_by_rounding_is_not_passed():
    mech = lw.models.puma560().with_drive(["joint_1"], velocity=2.0)
    q, v, tau = np.zeros((2, 6)), np.zeros((2, 6)), np.zeros((2, 6))
    q[1, 2], v[1, 0] = mech.upper[2] + 6e-17 + 4e-16, np.nextafter(2.0, 3.0)
    tau[1, 1] = np.nextafter(mech.effort_limit[1], np.inf)
    text = str(Recording.of(mech, [0.0, 1.0], q, v, tau))
    assert "joint limits" not in text
    assert "effort limits (none was passed)" in text and "speed limits (none was passed)" in text
    q[1, 2] = mech.upper[2] + 1e-7
    text = str(Recording.of(mech, [0.0, 1.0], q, v, tau))
    assert "joint limits: passed by 'joint_3', at most by 1e-07 rad" in text


def test_the_report_tells_what_was_not_modelled():
    mech = lw.models.puma560()
    t, q, v = [0.0, 1.0], np.zeros((2, 6)), np.zeros((2, 6))
    q[1, 2], v[1, 0] = 10.0, 3.0
    tau = np.zeros((2, 6))
    tau[1, 1] = 1e4
    mech = mech.with_drive(["joint_1"], velocity=2.0)
    text = str(Recording.of(mech, t, q, v, tau, not_modelled=("wind",)))
    assert "wind" in text and "Coulomb friction of 'joint_1'" in text
    assert "effort limits: passed by 'joint_2', at most by" in text
    assert "speed limits: passed by 'joint_1', at most by 1 rad/s" in text
    assert "joint limits: passed by 'joint_3', at most by" in text
    assert "bodies pass through each other" in text
    stopped = Recording.of(
        mech, t, np.zeros((2, 6)), np.zeros((2, 6)), limits="stop", contacts=True,
        stopped="the tip slipped", events=[Event(0.5, "contact", "tip", "slips")],
    )  # fmt: skip
    text = str(stopped)
    assert "joint limits" not in text and "contacts but those given" in text
    assert "stopped       at 1 s: the tip slipped" in text
    assert "event         0.500000 s: contact 'tip', slips" in text


def test_energy_that_is_not_known_is_no_energy_lost():
    """A drift of NaN says that nobody knows; the same drift in numbers is told."""
    mech = lw.models.pendulum(2)
    report = lw.simulate(mech, [0.3, 0.2], duration=0.05).report
    assert energy_lost(replace(report, drift=float("nan")), mech) == ""
    assert "energy" in energy_lost(replace(report, drift=1e3), mech)
