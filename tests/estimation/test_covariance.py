"""Every covariance of document 004, section 10: by explicit Gaussians, on every tree."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.algebra import M, Omega, Upsilon, psi_tilde
from linkwise.algebra.armature import without_armature
from linkwise.algebra.dense import Dense
from linkwise.estimation import COVARIANCES
from tests.estimation.fields import MECHANISMS, NOISES, bound, close, field, reference


@pytest.mark.few(2)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_covariances_are_those_of_the_vectors(name, noise):
    """Products, sums and diagonal blocks against E[x x*] of vectors found by conditioning."""
    here, ref = field(name, noise), reference(name, noise)
    for key, entry in COVARIANCES.items():
        vector = ref.vectors[key]
        expected = ref.covariance(vector, vector)
        # A difference is as good as what it is the difference of.
        of = {"X": ref.X, "f": ref.X, "W": ref.W}.get(key[0], vector)
        scale = float(np.abs(ref.covariance(of, of)).max(initial=0.0))
        limit = 10 * bound(name, noise)
        close(here.covariance(key), expected, limit, scale)
        close(here.numbers.matrix(entry.sum), expected, limit, scale)
        places = here.numbers.places(entry.space)
        for block, s in zip(here.covariance_blocks(key), places, strict=True):
            close(block, expected[s, s], limit, scale)
        spread = here.deviation(key)
        close(spread.ravel() ** 2, np.maximum(np.diag(expected), 0.0), limit, scale)


def test_names_are_those_of_section_10():
    printed = ["W", "X", "T", "z", "X - z", "eps", "nu", "alpha", "vdot", "f", "X - f", "f - z"]
    assert list(COVARIANCES) == [*printed, "W_hat", "W - W_hat"]


def test_branches_need_the_cross_term():
    """The printed decomposition of E[α α*] holds on chains and fails where siblings are."""
    apart = {}
    for name in ("pendulum", "pins that branch"):
        here = field(name, "no noise")
        dense = Dense(here.mech, here.q)
        printed = dense.matrix(Upsilon + Upsilon @ psi_tilde + psi_tilde.T @ Upsilon)
        exact = here.covariance("alpha")
        apart[name] = np.abs(printed - exact).max() / np.abs(exact).max()
    assert apart["pendulum"] < 1e-12
    assert apart["pins that branch"] > 1e-2


def test_printed_covariance_of_inertial_forces_is_that_of_their_error():
    """E[Ŵ Ŵ*] is printed as M - M Ω M, which belongs to W - Ŵ; the two add up to M."""
    here = field("puma560", "no noise")
    printed = Dense(here.mech, here.q).matrix(without_armature(M - M @ Omega @ M))
    close(here.covariance("W - W_hat"), printed, 1e-12)
    exact = here.covariance("W_hat")
    assert np.abs(printed - exact).max() > np.abs(exact).max()
    close(exact + here.covariance("W - W_hat"), here.covariance("W"), 1e-12)
