"""Exciting motions with loops held: they obey, keep limits, and show what they should."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.identification import SmoothMotion, exciting_motion, model
from linkwise.spatial.array import Array
from tests.filtering.test_closed import swing
from tests.identification.test_closed import reduced, true_base

KINDS = ("inertia", "damping")


@cache
def linkage() -> lw.Mechanism:
    """A four-bar linkage with limits."""
    mech = lw.models.four_bar()
    last = mech.bodies[-1].hinge_name
    mech = mech.with_drive("crank_pin", damping=0.05, lower=-1.0, upper=1.4, velocity=6.0)
    return mech.with_drive(last, lower=-0.25, upper=0.25)


@cache
def motion(seed: int = 0) -> SmoothMotion:
    return exciting_motion(
        linkage(), duration=4.0, step=0.01, harmonics=3, tries=15, rounds=2, parameters=KINDS,
        seed=seed, driven=["crank_pin"],
    )  # fmt: skip


def check_obeys(mech: lw.Mechanism, m: SmoothMotion, step: float) -> None:
    """Loops, and rates against differences in time."""
    assert np.abs(lw.loops.constraint_error(mech, m.q)).max() < 1e-8
    for x, rate in ((m.q, m.v), (m.v, m.vdot)):
        # of a periodic motion, by four neighbours
        near = [np.roll(x, -k, axis=0) for k in (-2, -1, 1, 2)]
        slope = (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * step)
        assert np.abs(slope - rate).max() < 2e-3 * np.abs(rate).max()
    J, gamma = lw.loops.constraint_jacobian(mech, m.q), lw.loops.constraint_bias(mech, m.q, m.v)
    assert np.abs((J @ m.vdot[..., None])[..., 0] + gamma).max() < 1e-8 * np.abs(gamma).max()
    low, high = mech.lower, mech.upper
    assert ((m.q > low) & (m.q < high)).all()
    assert (np.abs(m.v) <= mech.velocity_limit).all()


def information(mech: lw.Mechanism, m: Any) -> float:
    """log det of the columns of X* τ, X by independent coordinates at each sample."""
    q, v, vdot = m.q[::8], m.v[::8], m.vdot[::8]
    W = model.design(lw.dynamics.tree_of(mech), KINDS, q, v, vdot)
    rows = [
        lw.loops.independent_coordinates(mech, x, prefer=["crank_pin"]).map.T @ w
        for x, w in zip(q, W, strict=True)
    ]
    values = np.linalg.svd(np.concatenate(rows), compute_uv=False)
    return float(np.sum(np.log(values[values > 1e-9 * values[0]])))


def test_a_linkage_moves_within_its_limits() -> None:
    mech, m = linkage(), motion()
    check_obeys(mech, m, 0.01)
    assert np.ptp(m.q[:, 0]) > 0.5  # and it does move
    same = exciting_motion(
        mech, duration=4.0, step=0.01, harmonics=3, tries=15, rounds=2, parameters=KINDS,
        driven=["crank_pin"],
    )  # fmt: skip
    assert np.array_equal(same.q, m.q) and not np.array_equal(motion(1).q, m.q)


def test_it_shows_more_than_one_of_a_few_and_all_that_there_is() -> None:
    mech, m = linkage(), motion()
    first = exciting_motion(
        mech, duration=4.0, step=0.01, harmonics=3, tries=1, rounds=0, parameters=KINDS,
        driven=["crank_pin"],
    )  # fmt: skip
    assert information(mech, m) > information(mech, first) + 0.5
    tau = reduced(mech, (m.q, m.v, m.vdot), 1)
    names, truth = true_base(mech, KINDS, (m.q, m.v, m.vdot), [0])
    off = list[Array]()
    for seed in range(4):
        noise = 0.02 * np.std(tau[:, 0]) * np.random.default_rng(seed).standard_normal(len(tau))
        noisy = tau + np.outer(noise, [1.0, 0.0, 0.0])
        fit = lw.identify(mech, m.q, m.v, m.vdot, noisy, parameters=KINDS)
        assert fit.names == names and fit.error.max() < 0.05
        off.append((fit.estimate - truth) / fit.deviation)
    assert np.abs(off).max() < 4.0 and 0.5 < np.mean(np.square(off)) < 2.0


def test_limits_of_force_are_those_of_the_independent_hinge() -> None:
    most = 0.3
    mech = linkage().with_drive("crank_pin", damping=0.05, effort=most)
    free = motion()
    assert np.abs(reduced(mech, (free.q, free.v, free.vdot), 1)).max() > most
    m = exciting_motion(
        mech, duration=4.0, step=0.01, harmonics=3, tries=15, rounds=1, parameters=KINDS,
        driven=["crank_pin"],
    )  # fmt: skip
    force = np.abs(reduced(mech, (m.q, m.v, m.vdot), 1)).max()
    assert 0.1 * most < force <= most
    check_obeys(mech, m, 0.01)


def test_couplings_are_held() -> None:
    rod = lw.SpatialInertia.solid_box(0.4, (0.04, 0.04, 0.3)).moved(
        lw.Pose.translation((0.0, 0.0, -0.15))
    )
    b = lw.Builder("geared").body("a", "world", lw.hinges.Pin((0, 1, 0)), inertia=rod)
    b = b.body("b", "a", lw.hinges.Pin((0, 1, 0)), inboard=(0, 0, -0.3), inertia=rod)
    b = b.body("c", "b", lw.hinges.Pin((1, 0, 0)), inboard=(0, 0, -0.3), inertia=rod)
    mech = b.couple("gear", "b", {"a": (0.7, 0.3)}).build().with_drive("b", lower=-0.5, upper=0.5)
    m = exciting_motion(mech, duration=4.0, step=0.01, harmonics=3, tries=6, rounds=1)
    check_obeys(mech, m, 0.01)
    assert np.ptp(m.q, axis=0).min() > 0.2


def test_what_is_refused_names_what_to_do() -> None:
    with pytest.raises(lw.ModelError, match=r"which is spherical; .*driven="):
        exciting_motion(swing(), tries=1, rounds=0)
    with pytest.raises(lw.ModelError, match="driven is for loops"):
        exciting_motion(lw.models.pendulum(2), driven=["pin_1"])
    with pytest.raises(lw.ModelError, match=r"tried \(2, of crank_pin\).*driven=.*raise tries"):
        weak = linkage().with_drive("crank_pin", effort=1e-6)
        exciting_motion(weak, tries=2, rounds=0, driven=["crank_pin"])
