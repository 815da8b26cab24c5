"""The adaptive integrator: its tolerance, charts, dense output, ticks and events."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import MissingExtraError, SimulationError
from linkwise.simulation.adaptive import Chart
from linkwise.simulation.rates import moved, rates
from tests.simulation.moving import (
    distance,
    mass_on_spring,
    other_hinges,
    pendulum,
    reference,
    tumbling,
)


@pytest.mark.few(1)
@pytest.mark.parametrize("make", [tumbling, other_hinges])
def test_errors_follow_the_tolerance(make):
    """Balls, a free body, a plane and a rolling ball, against quaternions as plain numbers."""
    mech = make()
    q, v = mech.random(seed=1), 3.0 * mech.random_velocity(seed=2)
    exact = reference(mech, q, v, 0.6)
    errors = []
    for tolerance in (1e-5, 1e-8, 1e-11):
        rec = lw.simulate(
            mech, q, v, duration=0.6, integrator="adaptive", rtol=tolerance, atol=tolerance
        )
        errors.append(distance(mech, (rec.q[-1], rec.v[-1]), exact))
    # States are of size ten; each step errs by the tolerance, and there are some tens of steps.
    assert errors[0] < 1e-2 and errors[1] < 1e-5 and errors[2] < 1e-8
    assert errors[2] < errors[1] < errors[0]


def test_it_takes_few_steps_and_tells_so():
    mech = tumbling()
    q, v = mech.random(seed=1), mech.random_velocity(seed=2)
    rec = lw.simulate(mech, q, v, duration=1.0, integrator="adaptive")
    assert 3 < rec.steps < 60 and np.isnan(rec.step) and len(rec) == 1001
    assert rec.report.relative_drift < 1e-7
    assert "steps, adaptive" in str(rec)


def test_dense_output_is_as_good_as_the_steps():
    mech = tumbling()
    q, v = mech.random(seed=1), 3.0 * mech.random_velocity(seed=2)
    options = {"integrator": "adaptive", "rtol": 1e-11, "atol": 1e-11, "record_every": 1000}
    rec = lw.simulate(mech, q, v, duration=0.6, **options)
    assert len(rec) == 2
    for t in (0.0, 0.1234, 0.377, 0.6):
        q_t, v_t = rec.at(t)
        exact = reference(mech, q, v, t) if t else (q, v)
        # The interpolant is of order seven, one less than the steps.
        assert distance(mech, (q_t, v_t), exact) < 1e-7


def test_a_chart_goes_to_rates_and_back():
    """ẋ is the rate of x: q(x + s ẋ) is where u leads, to first order."""
    for mech in (tumbling(), other_hinges()):
        q, v, s = mech.random(seed=1), mech.random_velocity(seed=2), 1e-6
        chart = Chart(mech, mech.random(seed=3) if mech.nq > 12 else q)
        x = chart.begin()
        x[: mech.nv] += 0.3 * mech.random_velocity(seed=4) if mech.nq > 12 else 0.0
        here = chart.q(x)
        u = rates(mech, here, v)
        later = chart.q(x + s * chart.rate(x, here, u))
        assert (
            np.abs(mech.difference(moved(mech, here, u, s), later)).max() < 1e-10
        )  # s² of second derivatives


def test_a_chart_is_left_before_it_ends():
    """A top that turns ten times: rotation vectors from the beginning would pass 2π."""
    build = lw.Builder("top", gravity=(0, 0, 0))
    build.body(
        "top",
        hinge=lw.hinges.Spherical(),
        inertia=lw.SpatialInertia.from_com(1, (0, 0, 0), (1, 1, 2)),
    )
    mech = build.build()
    rec = lw.simulate(mech, v=[0.0, 0.0, 20.0 * np.pi], duration=1.0, integrator="adaptive")
    assert rec.q[-1] == pytest.approx([1.0, 0, 0, 0], abs=1e-7)
    turned = np.abs(rec.at(0.025)[0])
    assert turned == pytest.approx([np.cos(np.pi / 4), 0, 0, np.sin(np.pi / 4)], abs=1e-7)


def test_loops_are_kept_closed():
    mech = lw.models.four_bar()
    q = mech.neutral()
    v = lw.loops.project_velocity(mech, q, np.array([3.0, 0.0, 0.0]))
    rec = lw.simulate(mech, q, v, duration=0.1, integrator="adaptive", record_every=20)
    fine = lw.simulate(mech, q, v, duration=0.1, step=5e-4)
    assert rec.q[-1] == pytest.approx(fine.q[-1], abs=1e-7)
    assert rec.report.loop[0] < 1e-10
    assert rec.report.steps < 40


def test_controllers_are_held_between_ticks():
    """Each tick is a motion of its own; for a mass with a constant force it is exact."""
    mech, seen = mass_on_spring(), list[float]()

    def controller(t, q, v):
        seen.append(t)
        return -40.0 * q - 5.0 * v

    options = {"duration": 0.3, "step": 5e-3, "controller": controller, "control_step": 0.02}
    rec = lw.simulate(mech, [0.2], integrator="adaptive", **options)
    assert seen == pytest.approx(0.02 * np.arange(15), abs=1e-12)
    plain = lw.simulate(mech, [0.2], **options)
    assert rec.t == pytest.approx(plain.t, abs=1e-12)
    assert rec.q == pytest.approx(plain.q, abs=1e-9)
    assert rec["tau"] == pytest.approx(plain["tau"], abs=1e-7)
    assert rec["work.joints"] == pytest.approx(plain["work.joints"], abs=1e-8)


@pytest.mark.few(3)
@pytest.mark.parametrize(("step", "every"), [(0.1 / 7.0, 3), (0.07, 1), (5e-3, 10), (0.3 / 7.0, 2)])
@pytest.mark.parametrize("ticks", [1, 3])
def test_each_record_is_made_once(ticks, step, every):
    """Sums and products of steps differ by a rounding; the fixed steps say what times there are."""
    options = {
        "duration": 1.7, "step": step, "controller": lambda t, q, v: [np.sin(9.0 * t)],
        "control_step": ticks * step, "record_every": every,
    }  # fmt: skip
    for start in (0.0, 0.1, 1e6):
        rec = lw.simulate(pendulum(), [0.1], integrator="adaptive", start=start, **options)
        plain = lw.simulate(pendulum(), [0.1], start=start, **options)
        assert np.array_equal(rec.t, plain.t)


@pytest.mark.prove
def test_many_bounces_within_what_is_recorded():
    """A stiff floor gives back all: tens of bounces in the time of one long `step`."""
    floor = lw.tasks.CompliantSurface((0, 0, 0), (0, 0, 1), stiffness=1e8)
    mass, g, speed = 2.0, 9.81, 0.01
    rec = lw.simulate(
        mass_on_spring(mass), v=[speed], duration=0.2, step=0.2, integrator="adaptive",
        contacts=("foot", floor), rtol=1e-10, atol=1e-13,
    )  # fmt: skip
    w = np.sqrt(1e8 / mass)
    period = 2.0 * speed / g + 2.0 * (np.pi - np.arctan(speed * w / g)) / w  # as in test_events
    touches = [event.t for event in rec.events if "touches" in event.text]
    assert len(touches) == int((0.2 - 2.0 * speed / g) / period) + 1 > 50
    # Each instant is found to 1e-9 s, and what that changes in a speed of 1e-2 m/s adds up.
    expected = 2.0 * speed / g + period * np.arange(len(touches))
    assert touches == pytest.approx(expected, abs=1e-4)


def test_what_chatters_is_told():
    """A floor so hard that a mass at rest on it bounces by atoms: it would never come to an end."""
    floor = lw.tasks.CompliantSurface((0, 0, 0), (0, 0, 1), stiffness=1e14)
    with pytest.raises(SimulationError, match=r"chatters at t = 1?\d\.?\d*e-0[56] s.*of 'foot'"):
        lw.simulate(
            mass_on_spring(), v=[1e-6], duration=0.2, integrator="adaptive",
            contacts=("foot", floor),
        )  # fmt: skip


def test_no_times_are_no_states():
    rec = lw.simulate(tumbling(), duration=0.1, integrator="adaptive")
    q, v = rec.at([])
    assert q.shape == (0, tumbling().nq) and v.shape == (0, tumbling().nv)


def test_margins_that_come_back_within_a_long_step():
    """A step of free fall is as long as the run; it is looked at in parts."""
    watch = {"high": lambda t, q, v, tau: 0.4 - q[0]}
    rec = lw.simulate(
        mass_on_spring(), v=[3.0], duration=0.6, integrator="adaptive", watch=watch,
        record_every=600,
    )  # fmt: skip
    expected = (3.0 - np.sqrt(9.0 - 2.0 * 9.81 * 0.4)) / 9.81
    assert rec.t[-1] == pytest.approx(expected, abs=2e-9)


def test_without_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.integrate", None)
    with pytest.raises(MissingExtraError, match=r"adaptive.*scipy.*linkwise\[simulate\]"):
        lw.simulate(mass_on_spring(), duration=0.1, integrator="adaptive")


def test_a_body_that_tumbles_very_fast():
    """Charts are made anew many times from one record to the next."""
    build = lw.Builder("stone", gravity=(0, 0, 0))
    lump = lw.SpatialInertia.from_com(1.0, (0, 0, 0), (0.1, 0.2, 0.25))
    build.body("stone", hinge=lw.hinges.Spherical(), inertia=lump)
    mech, v = build.build(), np.array([3e3, 4e3, -5e3])
    rec = lw.simulate(mech, v=v, duration=0.01, step=5e-3, integrator="adaptive", rtol=1e-10)
    exact = reference(mech, mech.neutral(), v, 0.01)
    assert len(rec) == 3 and rec.steps > 30  # some ten turns
    assert np.abs(mech.difference(exact[0], rec.q[-1])).max() < 1e-6
    assert rec.v[-1] == pytest.approx(exact[1], abs=1e-3)  # of 7e3 rad/s
