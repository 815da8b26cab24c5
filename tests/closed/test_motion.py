"""Closed chains in motion: order of the steps, loops kept, margins watched, bad input."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from linkwise.closed.motion import rk4_step
from linkwise.closed.motion.keep import baumgarte_closing
from linkwise.closed.motion.step import free_held
from linkwise.errors import ClosureError, ModelError


def swinging():
    """A four-bar linkage with its crank turning."""
    mech = lw.models.four_bar()
    q = mech.neutral()
    return mech, q, lw.project_velocity(mech, q, np.array([3.0, 0.0, 0.0]))


# ---------------------------------------------------------------------------------------- one step


def test_a_step_is_of_fourth_order_on_quaternions():
    """A free body that tumbles: halving the step divides the error by 16."""
    b = lw.Builder("tumbling", gravity=(0.0, 0.0, 0.0))
    inertia = lw.SpatialInertia.from_com(2.0, (0.1, -0.2, 0.05), (0.3, 0.2, 0.1))
    b.body("body", hinge=lw.Free(), inertia=inertia)
    b.body("arm", "body", hinge=lw.Spherical(), inboard=(0.3, 0.0, 0.1), inertia=inertia)
    mech = b.build()
    v0 = np.array([1.0, 2.0, -1.5, 0.3, 0.1, -0.2, -1.0, 0.5, 2.0])

    def end(steps):
        q, v = mech.neutral(), v0
        for i in range(steps):
            q, v = rk4_step(mech, accelerate, i / steps, q, v, 1.0 / steps)
        return q, v

    def accelerate(t, q, v):
        return lw.forward_dynamics(mech, q, v, np.zeros(9))

    exact = end(512)
    errors = []
    for steps in (16, 32, 64):
        q, v = end(steps)
        errors.append([np.abs(mech.difference(exact[0], q)).max(), np.abs(v - exact[1]).max()])
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    # 16 with what the next order adds; a method of third order would give 8.
    assert (ratios > 13.0).all() and (ratios < 20.0).all(), ratios


def test_a_step_is_the_classical_method_for_plain_coordinates():
    mech = lw.models.pendulum(3)
    q, v, h = mech.random(seed=1), mech.random_velocity(seed=2), 0.05

    def f(t, q, v):
        return lw.forward_dynamics(mech, q, v, np.full(3, t))

    def slope(t, y):
        return np.concatenate([y[3:], f(t, y[:3], y[3:])])

    y = np.concatenate([q, v])
    k1 = slope(0.2, y)
    k2 = slope(0.2 + h / 2, y + h / 2 * k1)
    k3 = slope(0.2 + h / 2, y + h / 2 * k2)
    k4 = slope(0.2 + h, y + h * k3)
    y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    np.testing.assert_allclose(np.concatenate(rk4_step(mech, f, 0.2, q, v, h)), y, rtol=1e-13)


@pytest.mark.parametrize("size", [0.0, 1e-9, 9e-5, 1.1e-4, 0.1, 3.0])
def test_a_free_hinge_in_plain_numbers(size):
    hinge, rng = lw.Free(), np.random.default_rng(3)
    for _ in range(5):
        q = hinge.random(rng, np.full(7, -np.inf), np.full(7, np.inf))
        v = rng.standard_normal(6)
        np.testing.assert_allclose(
            free_held(q, v, size), hinge.integrate(q, v, size), rtol=0.0, atol=4e-15
        )


# ----------------------------------------------------------------------------------- loops are kept


def test_projection_keeps_loops_closed_and_baumgarte_nearly():
    mech, q, v = swinging()
    runs = {
        keep: lw.constrained_motion(mech, q, v, duration=0.4, step=4e-3, keep=keep)
        for keep in ("projection", "baumgarte", "nothing")
    }
    assert runs["projection"].worst.distance < 1e-11
    assert runs["projection"].velocity_error.max() < 1e-12
    # What a step adds is what projection has to take away, and what is left without it.
    assert 1e-9 < runs["projection"].worst_before.distance < 1e-6
    assert 1e-11 < runs["baumgarte"].worst.distance < runs["nothing"].worst.distance / 2.0
    for run in runs.values():
        assert run.worst.where == "coupler_rocker"
        assert len(run) == 101 and run.t[-1] == pytest.approx(0.4, abs=1e-15)


def test_energy_is_kept_to_fourth_order():
    mech, q, v = swinging()
    drifts = [
        lw.constrained_motion(mech, q, v, duration=0.2, step=h).energy_drift for h in (8e-3, 4e-3)
    ]
    assert drifts[0] / drifts[1] > 12.0
    assert drifts[1] < 1e-4


def test_four_bar_moves_like_its_one_freedom():
    """Against the equation of motion in the crank angle alone, by energy: ½ I(θ) θ̇² + U(θ) = E."""
    mech, q, v = swinging()
    run = lw.constrained_motion(mech, q, v, duration=0.15, step=1e-3)
    # dt = dθ / θ̇(θ) with θ̇ from the energy, summed over the recorded angles by Simpson's rule on
    # positions that are assembled anew from the crank angle.
    theta = np.linspace(q[0], run.q[-1, 0], 81)
    total, rates, guess = run.energy[0], [], q
    for angle in theta:
        guess = crank_at(mech, guess, angle)
        unit = lw.project_velocity(mech, guess, np.array([1.0, 0.0, 0.0]))
        unit = unit / unit[0]
        inertia = 2.0 * lw.kinetic_energy(mech, guess, unit)
        rates.append(np.sqrt(2.0 * (total - lw.potential_energy(mech, guess)) / inertia))
    weights = np.ones(81)
    weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
    elapsed = (theta[1] - theta[0]) / 3.0 * (weights / np.array(rates)).sum()
    assert elapsed == pytest.approx(0.15, abs=1e-6)


def crank_at(mech, guess, angle):
    """The closed configuration with a given crank angle, by Newton on the other two."""
    q = np.array([angle, *guess[1:]])
    for _ in range(20):
        J = lw.constraint_jacobian(mech, q)[:, 1:]
        q[1:] -= np.linalg.lstsq(J, lw.constraint_error(mech, q), rcond=None)[0]
    return q


def test_tau_acts_and_its_potential_counts():
    """A spring on the crank: energy with its own is kept, without it not."""
    mech, q, v = swinging()

    def spring(t, q, v):
        return np.array([-8.0 * q[0], 0.0, 0.0])

    options = {"tau": spring, "duration": 0.2, "step": 2e-3}
    kept = lw.constrained_motion(mech, q, v, potential=lambda q: 4.0 * q[0] ** 2, **options)
    bare = lw.constrained_motion(mech, q, v, **options)
    assert kept.energy_drift < 1e-6 < 1e-2 < bare.energy_drift
    np.testing.assert_allclose(kept.tau[:, 0], -8.0 * kept.q[:, 0])


def test_forces_are_held_over_a_step():
    """A force that changes is the same as a force held from step to step, where it is asked for."""
    mech, q, v = swinging()
    asked = []

    def ramp(t, q, v):
        asked.append(t)
        assert np.abs(lw.constraint_error(mech, q)).max() < 1e-11  # closed loops only
        return np.array([20.0 * t, 0.0, 0.0])

    run = lw.constrained_motion(mech, q, v, tau=ramp, duration=0.05, step=1e-2, hold=True)
    np.testing.assert_allclose(asked, 1e-2 * np.arange(6), atol=1e-15)
    for i in range(5):  # step by step, with a constant force each
        one = lw.constrained_motion(
            mech, run.q[i], run.v[i], tau=[0.2 * i, 0.0, 0.0], duration=1e-2, step=1e-2
        )
        np.testing.assert_allclose(one.q[-1], run.q[i + 1], atol=1e-12)
        np.testing.assert_allclose(one.v[-1], run.v[i + 1], atol=1e-11)


def test_margins_of_held_forces_are_lost_at_the_samples():
    """A margin of the force itself: it jumps where the force is asked anew, not in between."""
    mech, q, v = swinging()
    run = lw.constrained_motion(
        mech, q, v, tau=lambda t, q, v: [20.0 * t, 0.0, 0.0], duration=0.1, step=1e-2, hold=True,
        watch={"strong": lambda t, q, v, tau: 0.9 - tau[0]},
    )  # fmt: skip
    assert run.crossings[0].t == pytest.approx(0.05, abs=1e-9) and run.tau[-1, 0] == 1.0
    # Without holding it is when the force itself gets there.
    run = lw.constrained_motion(
        mech, q, v, tau=lambda t, q, v: [20.0 * t, 0.0, 0.0], duration=0.1, step=1e-2,
        watch={"strong": lambda t, q, v, tau: 0.9 - tau[0]},
    )  # fmt: skip
    assert run.crossings[0].t == pytest.approx(0.045, abs=2e-9)


def test_a_tree_moves_as_well():
    mech = lw.models.pendulum(2)
    run = lw.constrained_motion(mech, [0.3, 0.1], [0.0, 0.0], duration=0.1, step=1e-3)
    assert run.worst.where == "" and run.energy_drift < 1e-9
    assert "there is no loop" in str(run)


def test_couplings_are_kept():
    """Two pendulums that turn against each other: the motion of one with the inertia of both."""
    b = lw.Builder("geared")
    rod = lw.SpatialInertia.from_com(1.0, (0.0, 0.0, -0.3), (0.02, 0.02, 0.001))
    for name in ("one", "two"):
        b.body(name, hinge=lw.Pin((0.0, 1.0, 0.0)), inertia=rod)
    b.couple("gear", "two", {"one": -2.0})
    mech = b.build()
    q = mech.couple(np.array([0.4, 0.0]))
    run = lw.constrained_motion(mech, q, np.zeros(2), duration=0.5, step=5e-3)
    assert run.worst.angle < 1e-12 and run.energy_drift < 1e-7
    np.testing.assert_allclose(run.q[:, 1], -2.0 * run.q[:, 0], atol=1e-12)
    assert np.ptp(run.q[:, 0]) > 0.3


# ----------------------------------------------------------------------------------------- watching


def test_the_instant_is_found_to_a_nanosecond():
    """A pendulum that falls: the instant does not depend on the step, far beyond its length."""
    mech, q, v = swinging()
    watch = {"far enough": lambda t, q, v, tau: 0.8 - q[0]}
    runs = [
        lw.constrained_motion(mech, q, v, duration=1.0, step=h, watch=watch) for h in (1e-3, 5e-4)
    ]
    for run in runs:
        (crossing,) = run.crossings
        assert run.stopped and crossing.name == "far enough"
        assert -1e-7 < crossing.margin < 0.0  # 1e-9 s at some 10 rad/s, and a little
        assert run.t[-1] == crossing.t
        np.testing.assert_array_equal(run.q[-1], crossing.q)
        assert run.worst.distance < 1e-11
    # The runs differ by the error of the steps themselves, of fourth order.
    assert runs[0].crossings[0].t == pytest.approx(runs[1].crossings[0].t, abs=5e-9)


def test_a_known_instant():
    """A margin of time alone, with a jump in it and another one later in the same step."""
    mech, q, v = swinging()
    watch = {
        "later": lambda t, q, v, tau: 0.0123456999 - t,
        "jump": lambda t, q, v, tau: 1.0 if t < 0.0123456789 else -3.0,
    }
    run = lw.constrained_motion(mech, q, v, duration=0.1, step=5e-3, watch=watch)
    assert [c.name for c in run.crossings] == ["jump"]
    assert 0.0 <= run.crossings[0].t - 0.0123456789 <= 1e-9
    run = lw.constrained_motion(mech, q, v, duration=0.03, step=5e-3, watch=watch, stop=False)
    assert [c.name for c in run.crossings] == ["jump", "later"]
    assert 0.0 <= run.crossings[1].t - 0.0123456999 <= 1e-9
    assert not run.stopped and run.t[-1] == pytest.approx(0.03, abs=1e-15)
    assert "'jump' at 0.01234567" in str(run)


def test_a_margin_lost_from_the_start_stops_at_once():
    mech, q, v = swinging()
    run = lw.constrained_motion(
        mech, q, v, duration=1.0, watch={"never": lambda t, q, v, tau: -1.0}
    )
    assert run.steps == 0 and run.stopped and run.crossings[0].t == 0.0


def test_a_margin_that_is_no_number_is_refused():
    mech, q, v = swinging()
    for bad in (np.nan, None, "high", [1.0, 2.0]):
        with pytest.raises(ModelError, match="watch 'odd' gave"):
            lw.constrained_motion(
                mech, q, v, duration=0.1, watch={"odd": lambda t, q, v, tau, bad=bad: bad}
            )


# ---------------------------------------------------------------------------------------- bad input


def test_open_loops_and_pulling_velocities_are_refused():
    mech, q, v = swinging()
    with pytest.raises(ClosureError, match=r"'coupler_rocker' is open by .* lw\.assemble"):
        lw.constrained_motion(mech, q + np.array([1e-3, 0.0, 0.0]), v, duration=0.1)
    with pytest.raises(ClosureError, match=r"pull its loops apart.*lw\.project_velocity"):
        lw.constrained_motion(mech, q, np.array([1.0, 0.0, 0.0]), duration=0.1)


def test_a_motion_that_diverges_says_when_and_where():
    mech, q, v = swinging()

    def wild(t, q, v):
        return np.array([1e4 * v[0], 0.0, 0.0])

    with pytest.raises(ClosureError, match=r"'four_bar' (at|after) t = 0\.\d+ s: "):
        lw.constrained_motion(mech, q, v, tau=wild, duration=1.0, step=5e-3)
    with pytest.raises(ClosureError, match=r"'coupler_rocker' opened to .*drift_limit"):
        lw.constrained_motion(mech, q, v, duration=2.0, step=0.2, keep="nothing")


def test_forces_that_are_no_numbers_say_when():
    mech, q, v = swinging()

    def failing(t, q, v):
        return np.full(3, np.nan if t > 0.01 else 0.0)

    with pytest.raises(ModelError, match=r"joint forces at t = 0\.01\d* s: tau is not finite"):
        lw.constrained_motion(mech, q, v, tau=failing, duration=0.1, step=2e-3)
    with pytest.raises(lw.ShapeError, match="tau has shape"):
        lw.constrained_motion(mech, q, v, tau=[1.0, 2.0], duration=0.1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keep": "glue"}, "'projection', 'baumgarte', 'nothing'"),
        ({"step": 0.0}, "is no motion"),
        ({"duration": -1.0}, "is no motion"),
        ({"duration": np.inf}, "is no motion"),
        ({"record_every": 0}, "at least 1"),
        ({"start": np.nan}, "start is nan"),
        ({"start": "now"}, "start is 'now'"),
        ({"drift_limit": np.nan}, "drift_limit is nan"),
        ({"drift_limit": 0.0}, "drift_limit is 0.0"),
        ({"baumgarte": (-5.0, 1.0)}, "baumgarte is .*not negative and finite"),
        ({"baumgarte": (5.0, np.nan)}, "baumgarte is .*not negative and finite"),
        ({"baumgarte": 20.0}, "two rates"),
        ({"potential": lambda q: np.nan}, "potential gave nan at t = 0 s"),
        ({"potential": lambda q: None}, "potential gave None"),
        ({"potential": 3.0}, "potential is 3.0"),
        ({"potential": lambda t, q: 0.0}, "it is called with"),
    ],
)
def test_options_that_mean_nothing(options, words):
    mech, q, v = swinging()
    with pytest.raises(ModelError, match=words):
        lw.constrained_motion(mech, q, v, **{"duration": 0.1, **options})


def test_errors_of_couplings_are_told_in_their_unit():
    """A slide coupled to a pin, with steps that are never put right: metres, and no angle."""
    b = lw.Builder("rack")
    b.body("wheel", hinge=lw.Pin((0, 1, 0)), inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1))
    b.body("rack", hinge=lw.Prismatic((0, 0, 1)), inertia=lw.SpatialInertia.solid_sphere(2.0, 0.1))
    b.couple("mesh", "rack", {"wheel": 0.1})
    rack = b.build()
    q = rack.couple(np.array([0.2, 0.0])) + np.array([0.0, 3e-7])
    run = lw.constrained_motion(rack, q, np.zeros(2), duration=0.01, keep="nothing")
    assert run.worst.angle == 0.0 and run.angle_error.max() == 0.0
    assert run.worst.distance == pytest.approx(3e-7, rel=1e-6)
    assert "3.0e-07 m, 0.0e+00 rad; at 'mesh'" in str(run)


def test_a_loop_is_closed_in_a_mechanism_only():
    with pytest.raises(ModelError, match="mech is a str"):
        lw.close_loop("arm", [0.0], "grasp", "hand", "ball")  # type: ignore[arg-type]


def test_a_batch_is_refused():
    mech, q, v = swinging()
    with pytest.raises(ModelError, match="begins with one state"):
        lw.constrained_motion(mech, np.stack([q, q]), np.stack([v, v]), duration=0.1)


# ------------------------------------------------------------------------------- records and report


def test_records_and_progress():
    mech, q, v = swinging()
    seen = []
    run = lw.constrained_motion(
        mech, q, v, duration=0.0105, step=1e-3, record_every=4, start=2.0, progress=seen.append
    )
    np.testing.assert_allclose(run.t, [2.0, 2.004, 2.008, 2.0105], atol=1e-14)
    assert run.steps == 11 and len(seen) == 11 and seen[-1] == pytest.approx(2.0105)
    text = str(run)
    assert "0.0105 s in 11 steps of 0.001 s, loops kept by projection" in text
    assert "energy drift" in text and "one step adds" in text
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.t = None


def test_the_report_counts_steps_that_were_made():
    """A step that was cut short by a margin is not there as a whole, and none is told as none."""
    mech, q, v = swinging()
    watch = {"far": lambda t, q, v, tau: 0.0437 - t}
    run = lw.constrained_motion(mech, q, v, duration=1.0, step=1e-2, watch=watch)
    assert run.stopped and run.t[-1] == pytest.approx(0.0437, abs=2e-9)
    whole = lw.constrained_motion(mech, q, v, duration=0.05, step=1e-2)
    # The whole fifth step is the worst one; of the part of it, in (0.04, 0.0437], nothing is left.
    assert whole.worst_before.t == pytest.approx(0.05)
    assert run.worst.t <= run.t[-1] and run.worst_before.t <= run.t[-1]
    none = lw.constrained_motion(mech, q, v, duration=1.0, watch={"no": lambda t, q, v, tau: -1.0})
    assert "one step adds   nothing, no step was made" in str(none)
    assert "there is no loop" not in str(none)


# ------------------------------------------------------------------------------------ what acts


def test_the_energy_of_driven_motions_changes_and_does_not_drift():
    mech, q, v = swinging()
    options = {"duration": 0.02, "step": 2e-3}
    pull = {"crank": [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]}
    for acts in ({"tau": [2.0, 0.0, 0.0]}, {"tau": lambda t, q, v: {"crank_pin": t}},
                 {"forces": pull}, {"forces": lambda t, q, v: pull}):  # fmt: skip
        run = lw.constrained_motion(mech, q, v, **acts, **options)
        assert run.driven and "energy change" in str(run) and "drift" not in str(run)
    for idle in ({}, {"tau": lambda t, q, v: 0.0}, {"forces": {"crank": np.zeros(6)}}):
        run = lw.constrained_motion(mech, q, v, **idle, **options)
        assert not run.driven and "energy drift" in str(run)
    spring = {"tau": lambda t, q, v: [-8.0 * q[0], 0, 0], "potential": lambda q: 4.0 * q[0] ** 2}
    assert "energy drift" in str(lw.constrained_motion(mech, q, v, **spring, **options))


def test_forces_may_be_a_function():
    """A spring at the tip of a pendulum, as forces in world axes: energy with its own is kept."""
    mech = lw.models.pendulum(2)
    tip = mech.bodies[-1].name
    q = np.array([0.4, 0.2])

    def pull(t, q, v):
        return {tip: [0.0, 0.0, 0.0, *(-30.0 * mech.pose(q, tip).p)]}

    def stored(q):
        return 15.0 * float(mech.pose(q, tip).p @ mech.pose(q, tip).p)

    run = lw.constrained_motion(
        mech, q, [0.0, 1.0], duration=0.3, step=2e-3, forces=pull, frame="world", potential=stored
    )
    bare = lw.constrained_motion(
        mech, q, [0.0, 1.0], duration=0.3, step=2e-3, forces=pull(0.0, q, None), frame="world",
        potential=stored,
    )  # fmt: skip
    assert run.energy_drift < 1e-6 < 1e-2 < bare.energy_drift  # a constant force is another one


def test_joint_forces_by_name():
    mech, q, v = swinging()
    options = {"duration": 0.01, "step": 1e-3}
    named = lw.constrained_motion(mech, q, v, tau={"crank_pin": 2.0}, **options)
    given = lw.constrained_motion(mech, q, v, tau=[2.0, 0.0, 0.0], **options)
    np.testing.assert_array_equal(named.q, given.q)
    np.testing.assert_array_equal(named.tau, given.tau)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tau": lambda t: 0.0}, r"tau is a function of \(t\); it is called with \(t, q, v\)"),
        ({"tau": None}, "tau is None; it is a number, an array"),
        ({"tau": {"crank": [1.0, 2.0]}}, r"tau\['crank'\] has shape \(2,\)"),
        ({"tau": {"crnk_pin": 1.0}}, "did you mean 'crank_pin'"),
        ({"forces": lambda q, v: {}}, r"forces is a function of \(q, v\); it is called"),
        ({"forces": lambda t, q, v: 3.0}, "forces at t = 0 s is 3.0; .* by node"),
        ({"forces": [1.0]}, "by node"),
        ({"watch": [1.0]}, r"watch is a list; .*lw\.grasp_watch\(grasp\)"),
        ({"watch": {"low": 1.0}}, "watch 'low' is 1.0; it must be a function"),
        ({"watch": {"low": lambda t, q, v: 1.0}}, r"called with \(t, q, v, tau\)"),
    ],
)
def test_what_acts_or_is_watched_is_told_if_it_means_nothing(options, words):
    mech, q, v = swinging()
    with pytest.raises(lw.LinkwiseError, match=words):
        lw.constrained_motion(mech, q, v, duration=0.1, **options)


def test_loops_built_in_do_not_move_by_themselves():
    mech, q, _ = swinging()
    with pytest.raises(ModelError, match=r"embedded\.mech, 'four_bar' itself.*full_velocity"):
        lw.constrained_motion(lw.embed(mech), q, [1.0], duration=0.1)


def test_baumgarte_is_a_damped_spring_of_the_error():
    """ë + 2 a ė + b² e = 0: ë by differences along the acceleration that it asks for."""
    mech, rates = lw.models.four_bar(), (3.0, 40.0)
    q = mech.neutral() + np.array([1e-4, -2e-4, 3e-4])
    v = lw.project_velocity(mech, q, np.array([0.5, 0.0, 0.0]))
    closing = baumgarte_closing(mech, q, v, rates)
    vdot = lw.constrained_forward_dynamics(mech, q, v, np.zeros(3), closing=closing)
    h = 1e-4
    before, now, after = (
        lw.constraint_error(mech, q + s * v + 0.5 * s * s * vdot) for s in (-h, 0.0, h)
    )
    second, first = (after - 2.0 * now + before) / h**2, (after - before) / (2.0 * h)
    spring = rates[1] ** 2 * now
    assert np.abs(spring).max() > 0.1, "the linkage is open"
    np.testing.assert_allclose(
        second + 2.0 * rates[0] * first, -spring, atol=1e-2 * np.abs(spring).max()
    )
