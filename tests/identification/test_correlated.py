"""Noise correlated in time: covariances against dense ones, and confidence after filters."""

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.identification import correlated, model
from linkwise.identification.rows import base_of
from linkwise.spatial.array import Array

KINDS = ("inertia", "damping")


def test_rows_of_correlated_noise_have_the_dense_covariance() -> None:
    """Q* R Q with R from its definition, a matrix of all pairs of samples."""
    rng, n, taps = np.random.default_rng(0), 400, np.array([1.0, 0.8, 0.5, 0.2])
    Q = np.linalg.qr(rng.standard_normal((n, 3)))[0]
    R = np.array([taps[: 4 - k] @ taps[k:] for k in range(4)])
    given = np.zeros(60)
    given[:4] = R
    g = correlated.root(given, 30)  # a flat top up to lag 30: the window changes nothing
    lags = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    dense = Q.T @ np.where(lags < 4, given[np.minimum(lags, 59)], 0.0) @ Q
    assert np.abs(dense - R[0] * np.eye(3)).max() > 0.1
    assert np.allclose(correlated.spread(Q, g), dense, rtol=1e-3, atol=1e-3)
    white = correlated.root(given[:1], 0)
    assert np.allclose(correlated.spread(Q, white), R[0] * np.eye(3))


def test_memory_of_noise() -> None:
    rng, n = np.random.default_rng(1), 4000
    x = rng.standard_normal(n + 20)
    known = np.ones(n)
    assert correlated.memory(correlated.autocovariance(x[:n], known), n) == 0
    mean = np.convolve(x, np.ones(8) / 8, mode="valid")[:n]
    R = correlated.autocovariance(mean, known)
    assert np.allclose(R[:8], (1.0 - np.arange(8) / 8) / 8, atol=0.02)
    assert 6 <= correlated.memory(R, n) <= 9
    # samples that are missing neither count nor shift the others
    known[rng.choice(n, n // 3, replace=False)] = 0.0
    assert np.allclose(correlated.autocovariance(mean, known)[:8], R[:8], atol=0.02)


@cache
def arm() -> lw.Mechanism:
    mech = lw.models.pendulum(2)
    for i, body in enumerate(mech.bodies):
        mech = mech.with_drive(body.hinge_name, damping=0.3 + 0.1 * i)
    return mech


@cache
def recorded() -> tuple[lw.identification.SmoothMotion, Array, Array]:
    """A motion, its forces, and the true base parameters."""
    mech = arm()
    m = lw.identification.exciting_motion(
        mech, duration=10.0, step=0.01, parameters=KINDS, tries=20, rounds=0
    )
    tau = lw.inverse_dynamics(mech, m.q, m.v, m.vdot) + mech.damping * m.v
    base = base_of(mech, KINDS, [0, 1])
    return m, tau, base.matrix @ model.nominal(mech, KINDS)


@pytest.mark.prove
def test_confidence_holds_after_a_filter() -> None:
    """The documented way: positions and forces with noise, smoothed, identified, on 20 seeds."""
    m, tau, truth = recorded()
    inside, off = 0, list[float]()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        q = m.q + 1e-5 * rng.standard_normal(m.q.shape)
        force = tau + 0.05 * rng.standard_normal(tau.shape)
        made = lw.identification.smoothed(arm(), m.t, q, force, bandwidth=5.0)
        assert made.tau is not None
        fit = lw.identify(arm(), made.q, made.v, made.vdot, made.tau, parameters=KINDS)
        low, high = fit.interval().T
        inside += int(((low <= truth) & (truth <= high)).sum())
        off.append(float(np.mean(((fit.estimate - truth) / fit.deviation) ** 2)))
    assert 0.9 <= inside / (20 * len(truth)) <= 1.0
    assert 0.7 < np.mean(off) < 1.4


@pytest.mark.prove
def test_confidence_holds_for_forces_through_a_filter() -> None:
    """Sensors of forces with a low-pass filter of their own; 20 seeds."""
    signal = pytest.importorskip("scipy.signal")
    m, tau, truth = recorded()
    low_pass = signal.butter(4, 5.0, fs=100.0, output="sos")
    inside, wide, off = 0, list[int](), list[float]()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        noise = rng.standard_normal((len(tau) + 400, 2))
        noise = signal.sosfiltfilt(low_pass, noise, axis=0)[200:-200]
        fit = lw.identify(arm(), m.q, m.v, m.vdot, tau + 0.1 * noise, parameters=KINDS)
        low, high = fit.interval().T
        inside += int(((low <= truth) & (truth <= high)).sum())
        off.append(float(np.mean(((fit.estimate - truth) / fit.deviation) ** 2)))
        wide.append(int(fit.memory.min()))
    assert min(wide) > 3
    assert 0.9 <= inside / (20 * len(truth)) <= 1.0
    assert 0.7 < np.mean(off) < 1.4
