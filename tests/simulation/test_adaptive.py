"""The adaptive integrator: its tolerance, charts, dense output, ticks and events."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import MissingExtraError
from linkwise.simulation.chart import Chart
from linkwise.simulation.rates import rates, retract
from tests.simulation.moving import distance, mass_on_spring, other_hinges, reference, tumbling


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
        moved = chart.q(x + s * chart.rate(x, here, u))
        wanted = retract(mech, here, u, s)
        assert np.abs(mech.difference(wanted, moved)).max() < 1e-10  # s² of second derivatives


def test_a_chart_is_left_before_it_ends():
    """A top that turns ten times: rotation vectors from the beginning would pass 2π."""
    build = lw.Builder("top", gravity=(0, 0, 0))
    build.body(
        "top", hinge=lw.Spherical(), inertia=lw.SpatialInertia.from_com(1, (0, 0, 0), (1, 1, 2))
    )
    mech = build.build()
    rec = lw.simulate(mech, v=[0.0, 0.0, 20.0 * np.pi], duration=1.0, integrator="adaptive")
    assert rec.q[-1] == pytest.approx([1.0, 0, 0, 0], abs=1e-7)
    turned = np.abs(rec.at(0.025)[0])
    assert turned == pytest.approx([np.cos(np.pi / 4), 0, 0, np.sin(np.pi / 4)], abs=1e-7)


def test_loops_are_kept_closed():
    mech = lw.models.four_bar()
    q = mech.neutral()
    v = lw.project_velocity(mech, q, np.array([3.0, 0.0, 0.0]))
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


def test_margins_that_come_back_within_a_long_step():
    """A step of free fall is as long as the run; it is looked at in parts."""
    watch = {"high": lambda t, q, v, tau: 0.4 - q[0]}
    rec = lw.simulate(
        mass_on_spring(), v=[3.0], duration=0.6, integrator="adaptive", watch=watch,
        record_every=600,
    )  # fmt: skip
    wanted = (3.0 - np.sqrt(9.0 - 2.0 * 9.81 * 0.4)) / 9.81
    assert rec.t[-1] == pytest.approx(wanted, abs=2e-9)


def test_without_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.integrate", None)
    with pytest.raises(MissingExtraError, match=r"adaptive.*scipy.*linkwise\[simulate\]"):
        lw.simulate(mass_on_spring(), duration=0.1, integrator="adaptive")


def test_a_body_that_tumbles_very_fast():
    """Charts are made anew many times from one record to the next."""
    build = lw.Builder("stone", gravity=(0, 0, 0))
    lump = lw.SpatialInertia.from_com(1.0, (0, 0, 0), (0.1, 0.2, 0.25))
    build.body("stone", hinge=lw.Spherical(), inertia=lump)
    mech, v = build.build(), np.array([3e3, 4e3, -5e3])
    rec = lw.simulate(mech, v=v, duration=0.01, step=5e-3, integrator="adaptive", rtol=1e-10)
    exact = reference(mech, mech.neutral(), v, 0.01)
    assert len(rec) == 3 and rec.steps > 30  # some ten turns
    assert np.abs(mech.difference(exact[0], rec.q[-1])).max() < 1e-6
    assert rec.v[-1] == pytest.approx(exact[1], abs=1e-3)  # of 7e3 rad/s
