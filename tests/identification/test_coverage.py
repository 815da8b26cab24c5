"""Intervals contain the true value as often as they say, over many seeds."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.identification import model
from linkwise.identification.rollout_windows import Windows
from linkwise.identification.rows import base_of
from linkwise.spatial.array import Array
from tests.identification.test_correlated import KINDS, arm, recorded


def agreement(fits: list[lw.identification.Identification], truth: Array) -> tuple[float, float]:
    """Share of 95 % intervals with the true value, and the mean square error in deviations."""
    off = np.array([(fit.estimate - truth) / fit.deviation for fit in fits])
    return float(np.mean(np.abs(off) < 1.96)), float(np.mean(off**2))


@pytest.mark.prove
@pytest.mark.parametrize("outliers", [0.0, 0.1])
def test_robust_fits(outliers: float) -> None:
    m, clean, truth = recorded()
    fits = list[lw.identification.Identification]()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        tau = clean + np.array([0.3, 0.05]) * rng.standard_normal(clean.shape)
        tau += (rng.random(tau.shape) < outliers) * 5.0 * rng.standard_normal(tau.shape)
        fits.append(lw.identify(arm(), m.q, m.v, m.vdot, tau, parameters=KINDS, robust=True))
    inside, square = agreement(fits, truth)
    assert 0.93 <= inside <= 0.98
    assert 0.8 < square < 1.2


def test_no_noise_of_rollouts_counts_twice() -> None:
    """Deviations are those of estimates that noise of each sample moves, to first order."""
    mech, steps, h, window = arm(), 150, 0.01, 5
    t = h * np.arange(steps + 1)
    tau = np.stack([10.0 + 8.0 * np.sin(3.0 * t), 3.0 * np.sin(5.0 * t)], axis=-1)
    run = lw.rollout(mech, [-1.2, 0.4], tau=tau[:-1], duration=steps * h, step=h)
    problem = Windows.of(mech, KINDS, t, run.q, tau, window, "rk4")
    first = [int(np.abs(run.q - q[0]).sum(axis=1).argmin()) for q in problem.q]
    states = np.concatenate([run.q[first], run.v[first]], axis=1)
    free = model.FreeNumbers.of(mech, KINDS)
    n = len(free.first)
    miss, J = problem.linear(free, free.first, states)
    assert np.abs(miss).max() < 1e-3
    covariance = np.linalg.pinv(J.T @ J + 1e-12 * np.diag(np.arange(J.shape[1]) < n))
    # rows of the equations and the noise of samples that enters them
    samples = np.concatenate([np.arange(k, k + window + 1) for k in first])
    enters = np.zeros((len(miss), steps + 1, mech.nv))
    for i, k in enumerate(samples):
        enters[mech.nv * i : mech.nv * (i + 1), k] = np.eye(mech.nv)
    rows = base_of(mech, KINDS, [0, 1]).matrix @ free.numbers(free.first)[1]
    moved = rows @ (covariance @ J.T @ enters.reshape(len(miss), -1))[:n]
    claimed = np.einsum("ij,jk,ik->i", rows, covariance[:n, :n], rows)
    assert np.allclose((moved**2).sum(axis=1), claimed, rtol=0.01)
