"""Filter, smoother and covariances on many random trees of every hinge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from linkwise.estimation import COVARIANCES, RandomField
from tests.dynamics.test_random_trees import trees
from tests.estimation.fields import close, measurement
from tests.estimation.reference import Reference


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(trees(), st.integers(0, 1000), st.sampled_from(["armature", None, 0.1]))
def test_estimates_and_covariances(mech, seed, noise):
    """All against conditioning; digits are lost with the condition number of the mass matrix."""
    here = RandomField(mech, mech.random(seed), noise=noise)
    ref, T = Reference(mech, here.q, here.noise), measurement(mech, seed)
    limit = 1e-13 * max(10.0, ref.condition())
    smoother = here.smooth(T)
    vdot = np.linalg.solve(ref.covariance(ref.T, ref.T), T)
    close(smoother.vdot, vdot, limit)
    close(smoother.f.ravel(), ref.phi @ ref.M @ ref.phi.T @ ref.H.T @ vdot, limit)
    for key, entry in COVARIANCES.items():
        vector = ref.vectors[key]
        of = {"X": ref.X, "f": ref.X, "W": ref.W}.get(key[0], vector)
        scale = float(np.abs(ref.covariance(of, of)).max(initial=0.0))
        expected = ref.covariance(vector, vector)
        close(here.covariance(key), expected, limit, scale)
        close(here.numbers.matrix(entry.sum), expected, limit, scale)
