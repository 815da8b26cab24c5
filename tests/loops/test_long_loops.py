"""Rows of loops of long mechanisms, formed on numbers, against the kernels of short ones."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics import closure

MECHANISMS = (lw.models.four_bar, lw.models.dual_arm, lw.models.stewart)


@pytest.mark.parametrize("make", MECHANISMS)
def test_rows_and_bias(make, monkeypatch: pytest.MonkeyPatch) -> None:
    mech = make()
    q = np.stack([mech.random(seed=s) for s in range(2)])
    v = np.stack([mech.random_velocity(seed=s) for s in range(2)])
    rows, bias = lw.loops.constraint_jacobian(mech, q), lw.loops.constraint_bias(mech, q, v)
    monkeypatch.setattr(closure, "MOST_BODIES", 0)
    assert np.abs(bias).max() > 1e-2
    for i, one in enumerate(q):
        np.testing.assert_allclose(lw.loops.constraint_jacobian(mech, one), rows[i], atol=1e-12)
        np.testing.assert_allclose(lw.loops.constraint_bias(mech, one, v[i]), bias[i], atol=1e-12)
    np.testing.assert_allclose(lw.loops.constraint_jacobian(mech, q), rows, atol=1e-12)
    np.testing.assert_allclose(lw.loops.constraint_bias(mech, q, v), bias, atol=1e-12)
