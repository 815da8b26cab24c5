"""Matrices by velocities of mechanisms with hinges that reach more than their velocities span."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError
from tests.simulation.test_gradients_from_rest import STEP, rolling, slope

HINGES = [
    lw.hinges.RollingBall(0.5),
    lw.hinges.SoftFinger(),
    lw.hinges.SoftFinger((0.6, 0.0, 0.8)).reversed(),
]


@pytest.mark.parametrize("hinge", HINGES, ids=lambda hinge: hinge.kind)
def test_what_moves_on_such_a_hinge_has_no_matrices(hinge):
    mech = rolling(hinge)
    q, v, tau = mech.random(1), 3.0 * mech.random_velocity(1), np.zeros(mech.nv)
    words = f"body 'ball' moves on the {hinge.kind} hinge.*raw_q=True"
    for options in ({}, {"step": STEP}, {"step": STEP, "integrator": "euler"}):
        for count in (None, 3):
            state = (q, v, tau) if count is None else tuple(np.stack([x] * 3) for x in (q, v, tau))
            with pytest.raises(ModelError, match=words):
                lw.linearize(mech, *state, **options)
    with pytest.raises(ModelError, match=words):  # it falls over within the step
        lw.linearize(mech, q, 0 * v, tau + 1.0, step=STEP)
    # the reason: after a step, what has changed is no velocity
    end = lw.rollout(mech, q, v, tau=tau, duration=STEP, step=STEP).q[-1]
    N = np.stack([slope(lambda d: mech.integrate(end, d), e) for e in np.eye(mech.nv)], axis=-1)
    moved = slope(lambda d: end_of(mech, mech.integrate(q, d), v), np.eye(mech.nv)[0])
    assert np.abs(moved - N @ np.linalg.lstsq(N, moved, rcond=None)[0]).max() > 1e-3


def end_of(mech, q, v):
    return lw.rollout(mech, q, v, tau=0 * v, duration=STEP, step=STEP).q[-1]


def test_at_rest_there_are():
    """A ball whose mass is off its middle, in balance: it falls as A says."""
    mech = rolling(lw.hinges.RollingBall(0.5))
    q = mech.neutral()
    q[:4] = lw.spatial.quaternion.integrate(q[:4], np.array([0.0, -np.arctan2(0.02, 0.03), 0.0]))
    tau = lw.inverse_dynamics(mech, q, np.zeros(3), np.zeros(3))
    rest = (q, np.zeros(3), tau)
    model = lw.linearize(mech, *rest)
    step = lw.linearize(mech, *rest, step=STEP)
    for k, e in enumerate(np.eye(3)):
        by_q = slope(lambda d: lw.forward_dynamics(mech, mech.integrate(q, d), 0 * d, tau), e)
        np.testing.assert_allclose(model.A[3:, k], by_q, atol=1e-9)
        after = slope(
            lambda d: lw.rollout(
                mech, mech.integrate(q, d), 0 * d, tau=tau, duration=STEP, step=STEP
            ).v[-1],
            e,
        )
        np.testing.assert_allclose(step.A[3:, k], after, atol=1e-9)
    assert np.abs(model.A[3:, :3]).max() > 0.1
    assert np.abs(step.A - np.eye(6)).max() > 1e-2


def test_gradients_of_motions_are_those_of_differences():
    """What the error names instead."""
    mech = rolling(lw.hinges.RollingBall(0.5))
    q, v, w = mech.random(1), 3.0 * mech.random_velocity(1), np.arange(1.0, 1.0 + mech.nq)
    runs = lw.rollout(mech, q, v, tau=np.zeros(3), duration=STEP, step=STEP)
    by_q = runs.gradient(q=w).q
    expected = [
        w @ slope(lambda d: end_of(mech, mech.integrate(q, d), v), e) for e in np.eye(mech.nv)
    ]
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(by_q, expected, atol=1e-8)
