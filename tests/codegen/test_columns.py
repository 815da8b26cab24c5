"""Columns A⁻¹ B side by side in vector registers: against dense matrices, in both kinds of code."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.cpu import llvm
from linkwise.dynamics.derivative_formula import (
    FORWARD_DERIVATIVES,
    INVERSE_DERIVATIVES,
    LINEARIZED,
)


@pytest.fixture(params=[False, True], ids=["straight", "loops"])
def looped(request, monkeypatch):
    monkeypatch.setattr(llvm, "LOOPED", 0 if request.param else 10**9)
    return request.param


def states(mech, count, kind):
    rng = np.random.default_rng(0)
    q = np.array([mech.random(rng) for _ in range(count)])
    return [x.astype(kind) for x in (q, *rng.standard_normal((2, count, mech.nv)))]


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("name", [pytest.param("quadruped", marks=pytest.mark.prove), "puma560"])
def test_derivatives_of_forward_dynamics(name, kind, looped):
    mech = getattr(lw.models, name)()
    nv, tolerance = mech.nv, 1e-12 if kind is np.float64 else 2e-3
    forward = lw.compile(FORWARD_DERIVATIVES, mech, dtype=kind, cache=False)
    source = forward.device.source
    assert "columns_1" in source
    q, v, tau = states(mech, 19, kind)  # two registers of states or one, and some alone
    result = forward(q, v, tau)
    A = lw.compile(LINEARIZED, mech, dtype=kind, cache=False)(q, v, tau)
    inverse = lw.compile(INVERSE_DERIVATIVES, mech, cache=False)
    vdot = lw.forward_dynamics(mech, *(x.astype(np.float64) for x in (q, v, tau)))
    there = inverse(q.astype(np.float64), v.astype(np.float64), vdot)
    for i in range(19):
        one = forward(q[i], v[i], tau[i])
        minus = -np.linalg.inv(there["vdot"][i])
        expected = {
            "q": minus @ there["q"][i],
            "v": minus @ there["v"][i],
            "tau": -minus,
        }
        for key, x in expected.items():
            assert np.abs(x).max() > 0.1
            for value in (one[key], result[key][i]):
                assert np.abs(value - x).max() < tolerance * np.abs(x).max()
        linear = np.hstack([result["q"][i], result["v"][i]])
        assert np.abs(A["A"][i][nv:] - linear).max() < tolerance * np.abs(linear).max()
        assert np.array_equal(A["A"][i][:nv, nv:], np.eye(nv)) and not A["B"][i][:nv].any()


@pytest.mark.few(1)
def test_states_without_a_result(looped):
    mech = lw.models.quadruped()
    forward = lw.compile(FORWARD_DERIVATIVES, mech, cache=False)
    q, v, tau = states(mech, 17, np.float64)
    v[3, 2], tau[16, 0], v[9, 8] = np.nan, np.inf, 1e200
    codes = np.zeros(17, np.int32)
    result = forward(q, v, tau, status=codes)
    assert np.flatnonzero(codes).tolist() == [3, 9, 16] and codes[3] == codes[16] == 1
    fine = np.isfinite(result["q"]).all(axis=(1, 2))
    assert np.flatnonzero(~fine).tolist() == [3, 9, 16]
    with pytest.raises(lw.LinkwiseError):
        forward(q[9], v[9], tau[9])


def test_zeros_of_results_are_filled():
    """A regressor has blocks of zeros; memory of results is not."""
    mech, out = lw.models.quadruped(), None
    q, v, vdot = states(mech, 11, np.float64)
    for fill in (np.nan, 7.0):
        kernel = lw.dynamics.regressor
        out = np.full((11, mech.nv, 10 * mech.n_bodies), fill)
        result = kernel(mech, q, v, vdot, out=out)
        one = np.stack([kernel(mech, *x) for x in zip(q, v, vdot, strict=True)])
        assert (one == 0.0).sum() > 100 * 11
        assert np.abs(result - one).max() < 1e-12 * np.abs(one).max()
