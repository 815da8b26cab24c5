"""Momentum is claimed to be kept where nothing pushes from outside, and only there."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw


def stone(**options) -> lw.Mechanism:
    build = lw.Builder("stone", **options)
    build.body(
        "stone", hinge=lw.hinges.Free(),
        inertia=lw.SpatialInertia.from_com(1.0, (0, 0, 0), (0.1, 0.2, 0.3)),
    )  # fmt: skip
    return build.node("corner", "stone").build()


def satellite() -> lw.Mechanism:
    """A body in flight with an arm that reaches the end of its range."""
    build = lw.Builder("satellite")
    hull = lw.SpatialInertia.from_com(3.0, (0.1, 0, 0), (0.3, 0.2, 0.25))
    build.body("hull", hinge=lw.hinges.Free(), inertia=hull)
    arm = lw.SpatialInertia.from_com(1.0, (0.3, 0, 0), (0.02, 0.04, 0.04))
    build.body(
        "arm", parent="hull", hinge=lw.hinges.Pin((0, 1, 0)), inboard=(0.2, 0, 0.1), inertia=arm,
        drive=lw.Drive(lower=-0.1, upper=0.1),
    )  # fmt: skip
    return build.build()


def claimed(rec: lw.Recording) -> bool:
    """Whether a drift is told; if so it has to be one of rounding and of the method."""
    message = not np.isnan(rec.report.momentum_drift).any()
    assert ("forces from outside act on it" in str(rec)) is not message
    if message:
        assert max(rec.report.momentum_drift) < 1e-8  # RK4 at 1 ms, velocities of order one
    return message


@pytest.mark.parametrize("integrator", ["rk4", "adaptive"])
def test_a_stone_at_rest_on_the_ground(integrator):
    """The ground carries it and does no work: m g t is not what it has."""
    ground = lw.tasks.CompliantSurface((0, 0, 0), (0, 0, 1), stiffness=1e4, damping=50.0)
    mech = stone()
    q = mech.neutral()
    q[-1] = -9.81 / 1e4
    options = {"duration": 0.1, "integrator": integrator, "contacts": ("corner", ground)}
    assert not claimed(lw.simulate(mech, q, **options))
    q[-1] = 1.0
    assert claimed(lw.simulate(mech, q, **options))  # it does not fall so far


def test_a_touch_between_records():
    ground = lw.tasks.CompliantSurface((0, 0, 0), (0, 0, 1), stiffness=1e4)
    mech = stone(gravity=(0, 0, 0))
    q = mech.neutral()
    q[-1] = 0.05
    v = [0, 0, 0, 0, 0, -1.0]
    rec = lw.simulate(mech, q, v, duration=0.2, contacts=("corner", ground), record_every=200)
    assert rec.v[-1, -1] == pytest.approx(1.0, abs=1e-6) and not claimed(rec)


@pytest.mark.parametrize("how", ["tau", "controller", "held", "forces"])
@pytest.mark.parametrize("integrator", ["rk4", "adaptive"])
def test_a_push_between_records(how, integrator):
    def push(t):
        return 5.0 if 0.02 < t < 0.0299 else 0.0

    def tau(t, q, v):
        return [0, 0, 0, push(t), 0, 0]

    given = {
        "tau": {"tau": tau},
        "controller": {"controller": tau},
        "held": {"controller": tau, "control_step": 2e-3},
        "forces": {"forces": lambda t, q, v: {"corner": tau(t, q, v)}},
    }[how]
    options = {"duration": 0.08, "record_every": 40, "integrator": integrator, "rtol": 1e-9}
    assert claimed(lw.simulate(stone(), **options))
    # It spins, so that the steps of the adaptive method are too short to pass over the push.
    start = stone().random_velocity(seed=1) * 30.0
    rec = lw.simulate(stone(), v=start, **options, **given)
    assert not rec.tau.any() and not claimed(rec)


def test_forces_inside_push_nothing():
    """Motors between bodies and the ends of joint ranges keep momentum, and it is told."""
    mech = satellite()
    rec = lw.simulate(
        mech, v=0.3 * mech.random_velocity(seed=3), duration=0.3, limits="spring",
        tau=lambda t, q, v: [0, 0, 0, 0, 0, 0, 1.0 + np.sin(40.0 * t)],
    )  # fmt: skip
    assert rec.events and rec["work.limits"].any()
    assert claimed(rec)
