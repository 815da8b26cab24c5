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


def test_seeds():
    """The same seed gives the same draws."""
    here = field("pins that branch", "noise")
    draws = here.draw(300, seed=4)
    close(here.draw_measurements(300, seed=4), draws.T, 1e-13)
    assert np.abs(here.draw(300, seed=5).T - draws.T).max() > 0.1


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
