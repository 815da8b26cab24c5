"""Draws have the covariances they should have, within what chance allows.

An average of n products x_i x_j of a Gaussian vector with covariance C has variance
(C_ij² + C_ii C_jj) / n (Wishart). Seeds are fixed; a bound of six standard deviations would be
crossed by chance less than once in 100,000 runs with the thousands of entries compared here.
"""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.estimation import COVARIANCES, OPERATORS, RandomField
from tests.estimation.fields import MECHANISMS, bare_tip, close, field, reference

COUNT = 20_000
SIGMAS = 6.0


def score(sample: np.ndarray, exact: np.ndarray, scale: float | None = None) -> float:
    """Largest deviation of the average of x x* from what is exact, in standard deviations."""
    average = sample.T @ sample / len(sample)
    size = np.maximum(np.diag(exact), 0.0)
    deviation = np.sqrt((exact**2 + np.outer(size, size)) / len(sample))
    floor = 1e-10 * (np.abs(exact).max(initial=0.0) if scale is None else scale)
    return float((np.abs(average - exact) / (deviation + floor)).max(initial=0.0))


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("name", "noise"),
    [
        *[(name, "armature") for name in MECHANISMS],
        ("pins that branch", "noise"),
        ("mass ratio of a million", "noise"),
    ],
)
def test_draws(name, noise):
    """W, X and T have the covariances of the model, and T = H X + n to the last digit."""
    here, ref = field(name, noise), reference(name, noise)
    draws = here.draw(4000, seed=5)
    flat = {"W": draws.W.reshape(4000, -1), "X": draws.X.reshape(4000, -1), "T": draws.T}
    for key, sample in flat.items():
        exact = ref.covariance(ref.vectors[key], ref.vectors[key])
        assert score(sample, exact) < SIGMAS
        spread = np.sqrt(np.diag(exact) / 4000)
        assert (np.abs(sample.mean(axis=0)) <= SIGMAS * spread).all()
    close(flat["X"], flat["W"] @ ref.phi.T, 1e-12)
    close(draws.T, flat["X"] @ ref.H.T + draws.n, 1e-12)
    assert (here.noise is None) == (not draws.n.any()) or not here.mech.nv


@pytest.mark.prove
@pytest.mark.parametrize(("name", "noise"), [("every hinge", "armature"), ("puma560", "no noise")])
def test_every_covariance_by_sampling(name, noise):
    """Estimates from drawn measurements scatter as the operators of section 10 say."""
    here = field(name, noise)
    draws = here.draw(COUNT, seed=2)
    W, X, T = draws.W.reshape(COUNT, -1), draws.X.reshape(COUNT, -1), draws.T
    sample = {"W": W, "X": X, "T": T}
    for key in ("z", "eps", "nu", "alpha", "vdot", "f", "W_hat"):
        sample[key] = T @ here.numbers.matrix(OPERATORS[key].form).T
    sample |= {"X - z": X - sample["z"], "X - f": X - sample["f"]}
    sample |= {"f - z": sample["f"] - sample["z"], "W - W_hat": W - sample["W_hat"]}
    assert set(sample) == set(COVARIANCES)
    for key, drawn in sample.items():
        scale = np.abs(here.covariance(key[0] if key[0] in "XfW" else key)).max()
        assert score(drawn, here.covariance(key), scale) < SIGMAS, key
    # The bound can fail: what is printed as the covariance of Ŵ is far outside.
    assert score(sample["W_hat"], here.covariance("W - W_hat")) > 10 * SIGMAS


@pytest.mark.parametrize("name", ["pendulum", "every hinge", "floating", "mass ratio of a million"])
def test_mass_matrix_emerges(name):
    """The error is inside a band of 1 - 1e-6 at the end, and its entries inside six sigmas."""
    here = field(name)
    sample = here.sample_mass_matrix(2**14, seed=7)
    lower, upper = sample.band(1 - 1e-6)
    assert lower[-1] < sample.error < upper[-1]
    assert (np.abs(sample.estimate - sample.exact) < SIGMAS * sample.deviation).all()
    close(sample.exact, reference(name).covariance(reference(name).T, reference(name).T), 1e-13)
    assert sample.counts.tolist() == [2**i for i in range(15)]
    # Four times the draws, half the error: from 2⁸ to 2¹⁴ it goes down by about 8.
    assert 4 < sample.errors[8] / sample.errors[14] < 16


def test_error_is_what_the_wishart_distribution_says():
    """The mean of error² is p (p + 1) / n, exactly; 400 experiments of 50 draws."""
    here, n = field("pendulum"), 50
    p, exact = here.mech.nv, here.covariance("T")
    T = here.draw_measurements(400 * n, seed=3).reshape(400, n, p)
    white = np.linalg.solve(np.linalg.cholesky(exact), np.swapaxes(T, 1, 2))
    squares = np.array([np.sum((w @ w.T / n - np.eye(p)) ** 2) for w in white])
    expected, spread = p * (p + 1) / n, squares.std(ddof=1) / np.sqrt(400)
    assert abs(squares.mean() - expected) < 4 * spread
    # The band of 90 % holds about 90 % of them; its χ² is that of many draws.
    sample = here.sample_mass_matrix(n, seed=0)
    lower, upper = (edge[-1] for edge in sample.band(0.9))
    inside = np.mean((lower < np.sqrt(squares)) & (np.sqrt(squares) < upper))
    assert 0.82 < inside < 0.96
    close(sample.expected[-1], np.sqrt(expected), 1e-15)


def test_seeds_and_chunks(monkeypatch):
    """The same seed gives the same draws, however they are cut into pieces."""
    here = field("pins that branch", "noise")
    draws = here.draw(300, seed=4)
    close(here.draw_measurements(300, seed=4), draws.T, 1e-13)
    assert np.abs(here.draw(300, seed=5).T - draws.T).max() > 0.1
    full = here.sample_mass_matrix(300, seed=4).estimate
    close(full, draws.T.T @ draws.T / 300, 1e-12)
    monkeypatch.setattr("linkwise.estimation.mass_matrix_sample.CHUNK", 1000)
    close(here.sample_mass_matrix(300, seed=4).estimate, full, 1e-13)


def test_progress():
    here = field("pendulum")
    seen = []
    last = here.sample_mass_matrix(100, seed=1, progress=seen.append)
    assert [x.count for x in seen] == [1, 2, 4, 8, 16, 32, 64, 100]
    assert seen[-1] is last and last.counts.tolist() == [x.count for x in seen]
    watched = [x.error for x in here.watch_mass_matrix(100, seed=1)]
    assert watched == last.errors.tolist()


def test_innovations_are_white():
    """The filter takes all correlation out of the measurements."""
    here = field("pendulum")
    T = here.draw_measurements(COUNT, seed=6)
    assert np.abs(np.corrcoef(T.T) - np.eye(3)).max() > 0.3  # they are correlated,
    assert score(here.filter(T).white, np.eye(3)) < SIGMAS  # and now they are not


def test_a_body_without_mass_feels_nothing():
    field_ = RandomField(bare_tip(), [0.3, 0.4])
    draws = field_.draw(10, seed=0)
    assert not draws.W[:, 1].any() and not draws.T[:, 1].any()
    assert draws.W[:, 0].all() and draws.T[:, 0].all()
