"""Motions that are made: within limits; and that are measured: outliers, gaps, rotations."""

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.identification import exciting_motion, smoothed
from linkwise.identification.model import design
from linkwise.identification.rows import base_of
from linkwise.spatial.array import Array

KINDS = ("inertia", "damping")


@cache
def arm(effort: float = np.inf) -> lw.Mechanism:
    """Two links in a vertical plane, with friction."""
    mech = lw.models.pendulum(2)
    for body in mech.bodies:
        mech = mech.with_drive(body.hinge_name, effort=effort, friction=0.2, damping=0.1)
    return mech


def effort(mech: lw.Mechanism, m: lw.identification.SmoothMotion) -> Array:
    clean = lw.inverse_dynamics(mech, m.q, m.v, m.vdot)
    return np.abs(clean + mech.damping * m.v + mech.friction * np.sign(m.v)).max(axis=0)


def size(mech: lw.Mechanism, m: lw.identification.SmoothMotion) -> float:
    columns = base_of(mech, KINDS, [0, 1]).columns
    A = design(mech, KINDS, m.q, m.v, m.vdot)[..., columns].reshape(-1, len(columns))
    return float(np.linalg.slogdet(A.T @ A)[1])


def test_exciting_motions_keep_force_limits() -> None:
    free = exciting_motion(arm(), duration=5.0, step=0.02, tries=10, rounds=0)
    assert effort(arm(), free).max() > 12.0
    weak = arm(12.0)
    for rounds in (0, 2):
        m = exciting_motion(weak, duration=5.0, step=0.02, tries=10, rounds=rounds)
        assert 3.0 < effort(weak, m).max() <= 12.0
        assert np.allclose(np.gradient(m.q, 0.02, axis=0)[1:-1], m.v[1:-1], atol=0.05)
    slow = weak.with_drive(weak.bodies[0].hinge_name, velocity=0.5)
    m = exciting_motion(slow, duration=5.0, step=0.02, tries=10, rounds=0)
    assert 0.1 < np.abs(m.v[:, 0]).max() <= 0.5 and effort(slow, m).max() <= 12.0


def test_joints_that_cannot_hold_their_weight() -> None:
    """Level between two limits, the arm cannot rest within 0.1 N m."""
    level = arm(0.1)
    for body in level.bodies:
        level = level.with_drive(body.hinge_name, lower=1.4, upper=1.7)
    with pytest.raises(lw.ModelError, match=r"cannot hold itself.*its limit is 0\.1"):
        exciting_motion(level, duration=5.0, step=0.02, tries=4)


@pytest.mark.prove
def test_a_search_improves_a_motion() -> None:
    few = {"duration": 5.0, "step": 0.02, "tries": 3, "parameters": KINDS}
    random, better = (exciting_motion(arm(12.0), rounds=n, **few) for n in (0, 5))  # pyright: ignore
    assert size(arm(), better) > size(arm(), random) + 0.1


def test_loops_are_not_opened_silently() -> None:
    closed = lw.models.four_bar()
    q = np.zeros((50, closed.nq))
    t, v = np.linspace(0.0, 0.49, 50), np.zeros((50, closed.nv))
    q[:, 1] = 0.4
    calls = [
        lambda: smoothed(closed, t, q, bandwidth=20.0),
        lambda: lw.identify(closed, q, v, v, v),
        lambda: lw.identification.cross_validate(closed, q, v, v, v),
    ]
    for call in calls:
        with pytest.raises(lw.ClosureError, match="break its loops"):
            call()
    assert exciting_motion(closed, loops="open", tries=2, rounds=0).q.shape[1] == closed.nq


def test_one_wrong_position_changes_nothing_else() -> None:
    t: Array = 0.01 * np.arange(400.0)
    clean = np.stack([np.sin(2 * t) + 0.3 * np.cos(7 * t), 0.5 * np.sin(5 * t)], axis=1)
    rng = np.random.default_rng(0)
    q = clean + 1e-4 * rng.standard_normal(clean.shape)
    bad = q.copy()
    bad[200, 0] += 0.5
    bad[120:122, 1] -= 0.1
    without, repaired = (
        smoothed(arm(), t, q, bandwidth=10.0),
        smoothed(arm(), t, bad, bandwidth=10.0),
    )
    assert not without.outliers.any()
    assert np.argwhere(repaired.outliers).tolist() == [[120, 1], [121, 1], [200, 0]]
    assert np.abs(repaired.vdot - without.vdot).max() < 0.2  # 155 rad/s² if it were used
    # a fast motion without noise has none: not a sine, nor a motion that starts and stops
    ramp = np.clip(np.cumsum(np.clip(t - 1.5, 0.0, 0.5) * 0.02), 0.0, 1.0)
    for x in (np.sin(2 * np.pi * 5.0 * t), ramp, np.zeros_like(t)):
        assert not smoothed(arm(), t, np.stack([x, x], axis=1), bandwidth=10.0).outliers.any()


def test_long_gaps_are_gaps_of_the_motion() -> None:
    """Next to a gap nothing is claimed; farther away the motion is that without a gap."""
    t: Array = 0.01 * np.arange(600.0)
    q = np.stack([np.sin(2 * t) + 0.3 * np.cos(7 * t), 0.5 * np.sin(5 * t)], axis=1)
    holes = q.copy()
    holes[200:230, 0] = np.nan
    holes[:5, 1] = holes[-2:, 1] = np.nan
    holes[400:402, 1] = np.nan  # short: filled
    full, some = (smoothed(arm(), t, x, bandwidth=10.0) for x in (q, holes))
    known = np.isfinite(some.q).all(axis=1)
    assert np.array_equal(known, np.isfinite(some.vdot).all(axis=1))
    at = np.arange(600)[some.kept]
    assert not known[(at >= 200) & (at < 230)].any() and known[(at >= 395) & (at < 410)].all()
    assert 0.7 < known.mean() < 0.9
    for ours, theirs in ((some.q, full.q), (some.v, full.v), (some.vdot, full.vdot)):
        assert np.abs(ours - theirs)[known].max() < 2e-3 * np.abs(theirs).max()
    with pytest.raises(lw.ModelError, match="gaps leave none"):
        holes[np.arange(600) % 40 < 10] = np.nan
        smoothed(arm(), t, holes, bandwidth=4.0)


def test_derivatives_of_rotations() -> None:
    """Against a motion that obeys the equations of a free body: from a rollout."""
    b = lw.Builder("flyer")
    box = lw.SpatialInertia.solid_box(3.0, (0.4, 0.3, 0.5))
    mech = b.body("base", "world", lw.hinges.Free(), inertia=box).build()
    rng, h = np.random.default_rng(1), 2e-3
    q0, v0 = mech.random(rng), 0.8 * rng.standard_normal(6)
    run = lw.rollout(mech, q0, v0, duration=2.0, step=h)
    q = run.q.copy()
    q[::2, :4] *= -1.0  # the same rotations
    made = smoothed(mech, run.t, q, bandwidth=20.0)
    vdot = lw.forward_dynamics(mech, run.q, run.v, np.zeros_like(run.v))[made.kept]
    assert np.abs(vdot).max() > 1.0
    inner = slice(100, -100)
    assert np.allclose(made.v[inner], run.v[made.kept][inner], rtol=1e-6, atol=1e-6)
    assert np.allclose(made.vdot[inner], vdot[inner], rtol=1e-5, atol=1e-4)


def test_exciting_rotations() -> None:
    mech = lw.models.random_tree(4, 3, floating=True, hinges=("pin", "spherical"))
    for body in mech.bodies:
        mech = mech.with_drive(body.hinge_name, effort=np.inf, velocity=np.inf)
    m = exciting_motion(mech, duration=4.0, step=0.01, tries=2, rounds=0, parameters=["inertia"])
    ahead = mech.integrate(m.q[100], 0.01 * m.v[100] + 0.5e-4 * m.vdot[100])
    assert np.allclose(ahead, m.q[101], atol=1e-4)
    assert np.allclose(
        m.vdot[2:-2], (m.v[3:-1] - m.v[1:-3]) / 0.02, atol=2e-2 * np.abs(m.vdot).max()
    )
    assert np.abs(m.vdot).max() > 1.0
