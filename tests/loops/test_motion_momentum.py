"""Momentum while a free-floating pair of arms passes an object from one to the other."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, UnknownNameError

MOMENTUM = 1e-10  # [kg m²/s, kg m/s]; the error of the steps, of fourth order, is below at these


def pair():
    """A base in free flight with two arms of one link, and a ball held by the left one."""
    b = lw.Builder("pair", gravity=(0.0, 0.0, 0.0))
    b.body(
        "base", hinge=lw.hinges.Free(), inertia=lw.SpatialInertia.solid_box(8.0, (0.4, 0.5, 0.3))
    )
    link = lw.SpatialInertia.from_com(0.7, (0.4, 0.0, 0.0), (0.004, 0.02, 0.02))
    for side, y, axis in (("left", 0.25, (0.0, 0.6, 0.8)), ("right", -0.25, (0.0, 1.0, 0.0))):
        b.body(f"{side}_arm", "base", lw.hinges.Pin(axis), inboard=(0.2, y, 0.0), inertia=link)
        b.node(f"{side}_hand", f"{side}_arm", (0.9, 0.0, 0.0))
    b.body(
        "ball",
        hinge=lw.hinges.Free(),
        inboard=(1.1, 0.25, 0.0),
        inertia=lw.SpatialInertia.from_com(1.5, (0.01, 0.02, 0.0), (0.01, 0.012, 0.009)),
    )
    mech = b.build()
    return lw.loops.close_loop(mech, mech.neutral(), "left_grasp", "left_hand", "ball")


def torques(mech, size):
    """Joint forces of the arms that swing; nothing acts on what flies."""
    rng = np.random.default_rng(5)
    push = size * rng.standard_normal(mech.nv)
    for k, body in enumerate(mech.bodies):
        if isinstance(body.hinge, lw.hinges.Free):
            push[mech.v_start[k] : mech.v_start[k + 1]] = 0.0
    return lambda t, q, v: push * np.cos(9.0 * t)


def passed_on(mech, right_hand, thing, *, duration, step, size):
    """Left holds, both hold, right holds: the momentum of every record, and the three runs."""
    q = mech.neutral()
    v = lw.loops.project_velocity(mech, q, 0.3 * np.random.default_rng(0).standard_normal(mech.nv))
    runs, momenta, t = [], [], 0.0
    for phase in ("left", "both", "right"):
        if phase == "both":
            mech = lw.loops.close_loop(mech, q, "right_grasp", right_hand, thing)
            v = lw.loops.project_velocity(mech, q, v)  # the hand catches what moves past it
        elif phase == "right":
            mech = mech.without("left_grasp")
        run = lw.simulate(
            mech, q, v, tau=torques(mech, size), duration=duration, step=step, start=t
        )
        q, v, t = run.q[-1], run.v[-1], float(run.t[-1])
        runs.append(run)
        momenta.append(lw.momentum(mech, run.q, run.v, about="world"))
    return runs, np.concatenate(momenta)


@pytest.mark.prove
def test_momentum_is_kept_while_an_object_is_passed():
    runs, momenta = passed_on(pair(), "right_hand", "ball", duration=0.05, step=1.25e-3, size=0.5)
    assert np.abs(momenta[0]).max() > 1.0
    assert np.abs(momenta - momenta[0]).max() < MOMENTUM
    # The arms did move, and to catch took energy.
    assert np.abs(runs[0].q[-1] - runs[0].q[0]).max() > 1e-2
    assert runs[1]["energy.total"][0] < runs[0]["energy.total"][-1] - 1e-3
    for run in runs:
        assert max(run.report.loop) < 1e-11


@pytest.mark.slow
def test_momentum_of_the_flyer_that_hands_over_its_cargo():
    mech = lw.models.handover()
    _, momenta = passed_on(mech, "right_hand", "cargo", duration=0.1, step=1e-3, size=2.0)
    assert np.abs(momenta[0]).max() > 5.0
    assert np.abs(momenta - momenta[0]).max() < MOMENTUM


def test_a_force_from_outside_changes_momentum_by_its_impulse():
    """The check above can fail, and `forces` act."""
    mech = pair()
    q, v = mech.neutral(), np.zeros(mech.nv)
    run = lw.simulate(
        mech, q, v, duration=0.05, step=2.5e-3,
        forces={"left_hand": [0.0, 0.0, 0.0, 2.0, -1.0, 0.5]}, forces_frame="world",
    )  # fmt: skip
    change = lw.momentum(mech, run.q[-1], run.v[-1], about="world")
    np.testing.assert_allclose(change[3:], 0.05 * np.array([2.0, -1.0, 0.5]), atol=1e-11)


# -------------------------------------------------------------------------------------- close_loop


def test_a_loop_is_closed_as_things_stand():
    mech = pair()
    q = mech.integrate(mech.neutral(), 0.1 * mech.random_velocity(seed=1))
    both = lw.loops.close_loop(mech, q, "right_grasp", "right_hand", "ball", lw.hinges.Spherical())
    gap = lw.loops.constraint_error(both, q, per="loop")[1]
    assert np.abs(gap).max() < 1e-14
    assert both.loop("right_grasp").rows == 3
    again = both.without("right_grasp")
    assert again.nodes == mech.nodes and again.loops == mech.loops


def test_loops_that_mean_nothing_are_refused():
    mech = pair()
    q = mech.neutral()
    with pytest.raises(ModelError, match="loop, node or body of that name"):
        lw.loops.close_loop(mech, q, "left_grasp", "right_hand", "ball")
    with pytest.raises(ModelError, match="both on 'left_arm'"):
        lw.loops.close_loop(mech, q, "new", "left_hand", "left_arm")
    with pytest.raises(UnknownNameError, match="'right_hand'"):
        lw.loops.close_loop(mech, q, "new", "right_hnd", "ball")
    with pytest.raises(ModelError, match="one configuration"):
        lw.loops.close_loop(mech, np.stack([q, q]), "new", "right_hand", "ball")
