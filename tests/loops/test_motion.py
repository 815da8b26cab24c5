"""Closed chains in motion: order of the steps, loops kept, margins watched, bad input."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ClosureError, ModelError
from linkwise.simulation.loop_keeper import baumgarte_closing


def swinging():
    """A four-bar linkage with its crank turning."""
    mech = lw.models.four_bar()
    q = mech.neutral()
    return mech, q, lw.loops.project_velocity(mech, q, np.array([3.0, 0.0, 0.0]))


# ---------------------------------------------------------------------------------------- one step


# ----------------------------------------------------------------------------------- loops are kept


def test_projection_keeps_loops_closed_and_baumgarte_nearly():
    mech, q, v = swinging()
    runs = {
        keep: lw.simulate(mech, q, v, duration=0.4, step=4e-3, stabilization=keep, passive=False)
        for keep in ("projection", "baumgarte", "none")
    }
    worst = {keep: run.report.loop[0] for keep, run in runs.items()}
    assert worst["projection"] < 1e-11 and runs["projection"]["loop.rate"].max() < 1e-12
    # What a step adds is what projection has to take away, and what is left without it.
    added = runs["projection"].report.notes.added_loop[0]
    assert 1e-9 < added < 1e-6
    assert f"kept by projection; one step adds {added:.1e} m" in str(runs["projection"])
    assert 1e-11 < worst["baumgarte"] < worst["none"] / 2.0
    assert runs["none"]["loop.rate"].max() > 1e-9
    for run in runs.values():
        assert run.report.loop_place == "coupler_rocker"
        assert len(run) == 101 and run.t[-1] == pytest.approx(0.4, abs=1e-15)


def test_energy_is_kept_to_fourth_order():
    mech, q, v = swinging()
    drifts = [
        lw.simulate(mech, q, v, duration=0.2, step=h, passive=False).report.drift
        for h in (8e-3, 4e-3)
    ]
    assert drifts[0] / drifts[1] > 12.0
    assert drifts[1] < 1e-4


def test_four_bar_moves_like_its_one_freedom():
    """Against the equation of motion in the crank angle alone, by energy: ½ I(θ) θ̇² + U(θ) = E."""
    mech, q, v = swinging()
    run = lw.simulate(mech, q, v, duration=0.15, step=1e-3, passive=False)
    # dt = dθ / θ̇(θ) with θ̇ from the energy, summed over the recorded angles by Simpson's rule on
    # positions that are assembled anew from the crank angle.
    theta = np.linspace(q[0], run.q[-1, 0], 81)
    total, rates, guess = run["energy.total"][0], [], q
    for angle in theta:
        guess = crank_at(mech, guess, angle)
        unit = lw.loops.project_velocity(mech, guess, np.array([1.0, 0.0, 0.0]))
        unit = unit / unit[0]
        inertia = 2.0 * lw.dynamics.kinetic_energy(mech, guess, unit)
        rates.append(np.sqrt(2.0 * (total - lw.dynamics.potential_energy(mech, guess)) / inertia))
    weights = np.ones(81)
    weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
    elapsed = (theta[1] - theta[0]) / 3.0 * (weights / np.array(rates)).sum()
    assert elapsed == pytest.approx(0.15, abs=1e-6)


def crank_at(mech, guess, angle):
    """The closed configuration with a given crank angle, by Newton on the other two."""
    q = np.array([angle, *guess[1:]])
    for _ in range(20):
        J = lw.loops.constraint_jacobian(mech, q)[:, 1:]
        q[1:] -= np.linalg.lstsq(J, lw.loops.constraint_error(mech, q), rcond=None)[0]
    return q


def test_forces_are_held_over_a_step():
    """A force that changes is the same as a force held from step to step, where it is asked for."""
    mech, q, v = swinging()
    request = []

    def ramp(t, q, v):
        request.append(t)
        assert np.abs(lw.loops.constraint_error(mech, q)).max() < 1e-11  # closed loops only
        return np.array([20.0 * t, 0.0, 0.0])

    run = lw.simulate(mech, q, v, controller=ramp, control_step=1e-2, duration=0.05, step=1e-2)
    np.testing.assert_allclose(request, 1e-2 * np.arange(5), atol=1e-15)
    for i in range(5):  # step by step, with a constant force each
        one = lw.simulate(
            mech, run.q[i], run.v[i], tau=[0.2 * i, 0.0, 0.0], duration=1e-2, step=1e-2
        )
        np.testing.assert_allclose(one.q[-1], run.q[i + 1], atol=1e-12)
        np.testing.assert_allclose(one.v[-1], run.v[i + 1], atol=1e-11)


def test_margins_of_held_forces_are_lost_at_the_samples():
    """A margin of the force itself: it jumps where the force is asked anew, not in between."""
    mech, q, v = swinging()
    run = lw.simulate(
        mech, q, v, controller=lambda t, q, v: [20.0 * t, 0.0, 0.0], control_step=1e-2,
        duration=0.1,
        watch={"strong": lambda t, q, v, tau: 0.9 - tau[0]},
    )  # fmt: skip
    assert run.events[0].t == pytest.approx(0.05, abs=1e-9) and run.tau[-1, 0] == 1.0
    # Without holding it is when the force itself gets there.
    run = lw.simulate(
        mech, q, v, tau=lambda t, q, v: [20.0 * t, 0.0, 0.0], duration=0.1, step=1e-2,
        passive=False,
        watch={"strong": lambda t, q, v, tau: 0.9 - tau[0]},
    )  # fmt: skip
    assert run.events[0].t == pytest.approx(0.045, abs=2e-9)


def test_couplings_are_kept():
    """Two pendulums that turn against each other: the motion of one with the inertia of both."""
    b = lw.Builder("geared")
    rod = lw.SpatialInertia.from_com(1.0, (0.0, 0.0, -0.3), (0.02, 0.02, 0.001))
    for name in ("one", "two"):
        b.body(name, hinge=lw.hinges.Pin((0.0, 1.0, 0.0)), inertia=rod)
    b.couple("gear", "two", {"one": -2.0})
    mech = b.build()
    q = mech.couple(np.array([0.4, 0.0]))
    run = lw.simulate(mech, q, np.zeros(2), duration=0.5, step=5e-3)
    assert run.report.loop[1] < 1e-12 and run.report.drift < 1e-7
    np.testing.assert_allclose(run.q[:, 1], -2.0 * run.q[:, 0], atol=1e-12)
    assert np.ptp(run.q[:, 0]) > 0.3


# ----------------------------------------------------------------------------------------- watching


def test_a_known_instant():
    """A margin of time alone, with a jump in it and another one later in the same step."""
    mech, q, v = swinging()
    watch = {
        "later": lambda t, q, v, tau: 0.0123456999 - t,
        "jump": lambda t, q, v, tau: 1.0 if t < 0.0123456789 else -3.0,
    }
    run = lw.simulate(mech, q, v, duration=0.1, step=5e-3, watch=watch)
    assert [c.name for c in run.events] == ["jump"]
    assert 0.0 <= run.events[0].t - 0.0123456789 <= 1e-9
    run = lw.simulate(mech, q, v, duration=0.03, step=5e-3, watch=watch, stop=False)
    assert [c.name for c in run.events] == ["jump", "later"]
    assert 0.0 <= run.events[1].t - 0.0123456999 <= 1e-9
    assert not run.stopped and run.t[-1] == pytest.approx(0.03, abs=1e-15)
    assert "0.012346 s: watch 'jump', is lost" in str(run)
    assert set(run.t) >= {event.t for event in run.events}  # the states there are recorded


def test_a_margin_that_is_no_number_is_refused():
    mech, q, v = swinging()
    for bad in (np.nan, None, "high", [1.0, 2.0]):
        with pytest.raises(ModelError, match="watch 'odd' gave"):
            lw.simulate(mech, q, v, duration=0.1, watch={"odd": lambda t, q, v, tau, bad=bad: bad})


# ---------------------------------------------------------------------------------------- bad input


def test_open_loops_and_pulling_velocities_are_refused():
    mech, q, v = swinging()
    with pytest.raises(ClosureError, match=r"'coupler_rocker' is open by .* lw\.loops\.assemble"):
        lw.simulate(mech, q + np.array([1e-3, 0.0, 0.0]), v, duration=0.1)
    with pytest.raises(ClosureError, match=r"pull its loops apart.*lw\.loops\.project_velocity"):
        lw.simulate(mech, q, np.array([1.0, 0.0, 0.0]), duration=0.1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stabilization": "glue"}, "'projection', 'baumgarte', 'none'"),
        ({"drift_limit": np.nan}, "drift_limit is nan"),
        ({"drift_limit": 0.0}, "drift_limit is 0.0"),
        ({"baumgarte": (-5.0, 1.0)}, "baumgarte is .*not negative and finite"),
        ({"baumgarte": (5.0, np.nan)}, "baumgarte is .*not negative and finite"),
        ({"baumgarte": 20.0}, "two rates"),
    ],
)
def test_options_that_mean_nothing(options, words):
    mech, q, v = swinging()
    with pytest.raises(ModelError, match=words):
        lw.simulate(mech, q, v, **{"duration": 0.1, **options})


def test_errors_of_couplings_are_told_in_their_unit():
    """A slide coupled to a pin, with steps that are never put right: metres, and no angle."""
    b = lw.Builder("rack")
    b.body(
        "wheel", hinge=lw.hinges.Pin((0, 1, 0)), inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1)
    )
    b.body(
        "rack",
        hinge=lw.hinges.Prismatic((0, 0, 1)),
        inertia=lw.SpatialInertia.solid_sphere(2.0, 0.1),
    )
    b.couple("mesh", "rack", {"wheel": 0.1})
    rack = b.build()
    q = rack.couple(np.array([0.2, 0.0])) + np.array([0.0, 3e-7])
    run = lw.simulate(rack, q, np.zeros(2), duration=0.01, stabilization="none")
    assert run.report.loop == (pytest.approx(3e-7, rel=1e-6), 0.0)
    assert "3.0e-07 m, 0.0e+00 rad at most, at 'mesh'" in str(run)


def test_a_loop_is_closed_in_a_mechanism_only():
    with pytest.raises(ModelError, match="mech is a str"):
        lw.loops.close_loop("arm", [0.0], "grasp", "hand", "ball")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------- records and report


def test_the_report_counts_steps_that_were_made():
    """A step that was cut short by a margin is not there as a whole, and none is told as none."""
    mech, q, v = swinging()
    watch = {"far": lambda t, q, v, tau: 0.0437 - t}
    run = lw.simulate(mech, q, v, duration=1.0, step=1e-2, watch=watch)
    assert run.stopped and run.t[-1] == pytest.approx(0.0437, abs=2e-9)
    rec = lw.simulate(mech, q, v, duration=0.05, step=1e-2)
    # The whole fifth step is the worst one; of the part of it, in (0.04, 0.0437], less is left.
    added = [x.report.notes.added_loop[0] for x in (run, rec)]
    assert 0.0 < added[0] < 0.99 * added[1]
    none = lw.simulate(mech, q, v, duration=1.0, watch={"no": lambda t, q, v, tau: -1.0})
    assert none.steps == 0 and none.report.notes.added_loop == (0.0, 0.0)


# ------------------------------------------------------------------------------------ what acts


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tau": lambda t: 0.0}, r"tau is a function of \(t\); it is called with \(t, q, v\)"),
        ({"tau": {"crank": [1.0, 2.0]}}, r"tau\['crank'\] has shape \(2,\)"),
        ({"tau": {"crnk_pin": 1.0}}, "did you mean 'crank_pin'"),
        ({"forces": lambda q, v: {}}, r"forces is a function of \(q, v\); it is called"),
        ({"forces": lambda t, q, v: 3.0}, "forces at t = 0 s is 3.0; .* by node"),
        ({"forces": [1.0]}, "by node"),
        ({"watch": [1.0]}, r"watch is a list; .*grasp\.watch\(\)"),
        ({"watch": {"low": 1.0}}, "watch 'low' is 1.0; it must be a function"),
        ({"watch": {"low": lambda t, q, v: 1.0}}, r"called with \(t, q, v, tau\)"),
    ],
)
def test_what_acts_or_is_watched_is_told_if_it_means_nothing(options, words):
    mech, q, v = swinging()
    with pytest.raises(lw.LinkwiseError, match=words):
        lw.simulate(mech, q, v, duration=0.1, **options)


def test_loops_built_in_do_not_move_by_themselves():
    mech, q, _ = swinging()
    with pytest.raises(ModelError, match=r"embedded\.mech, 'four_bar' itself"):
        lw.simulate(lw.loops.embed(mech), q, [1.0], duration=0.1)


def test_baumgarte_is_a_damped_spring_of_the_error():
    """ë + 2 a ė + b² e = 0: ë by differences along the acceleration that it asks for."""
    mech, rates = lw.models.four_bar(), (3.0, 40.0)
    q = mech.neutral() + np.array([1e-4, -2e-4, 3e-4])
    v = lw.loops.project_velocity(mech, q, np.array([0.5, 0.0, 0.0]))
    closing = baumgarte_closing(mech, q, v, rates)
    vdot = lw.forward_dynamics(mech, q, v, np.zeros(3), closing=closing)
    h = 1e-4
    before, now, after = (
        lw.loops.constraint_error(mech, q + s * v + 0.5 * s * s * vdot) for s in (-h, 0.0, h)
    )
    second, first = (after - 2.0 * now + before) / h**2, (after - before) / (2.0 * h)
    spring = rates[1] ** 2 * now
    assert np.abs(spring).max() > 0.1, "the linkage is open"
    np.testing.assert_allclose(
        second + 2.0 * rates[0] * first, -spring, atol=1e-2 * np.abs(spring).max()
    )
