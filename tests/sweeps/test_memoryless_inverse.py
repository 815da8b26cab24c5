"""Inverses of products and of memoryless expressions, by sweeps against matrices."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import D, H, I, J, M, P, a, f, mass, phi, psi, tau
from linkwise.algebra.derivation import random_dense
from linkwise.errors import LoweringError
from linkwise.sweeps.interpret import run

EXPRESSIONS = {
    "product of mass operators": (mass @ mass).inv @ tau,
    "H H*": (H @ H.T).inv @ tau,
    "a sum": (H @ M @ H.T + 2 * D).inv @ tau,
    "nested": ((H @ P @ H.T).inv @ H @ H.T).inv @ tau,
    "with the identity of the joints": (I + H @ H.T + D).inv @ tau,
    "inside a recursion": H @ phi @ (2 * I + M).inv @ psi.T @ a,
    "small and dense": (J @ mass.inv @ J.T + J @ J.T + I).inv @ f,
}


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_inverse(name, seed):
    expr = EXPRESSIONS[name]
    mech = lw.models.random_tree(6, seed)
    dense = random_dense(mech, [expr], seed)
    nodes = [node.name for node in dense.nodes]
    program = lw.plan(expr)
    result = run(program, mech, dense.q, dense.v, nodes=nodes, values=dense.values)
    expected = dense(expr)
    # A product of two mass operators squares the condition number.
    bound = max(1e-9, 1e-14 * float(np.linalg.cond(dense(mass))) ** 2)
    assert np.abs(result - expected).max() < bound * np.abs(expected).max()
    derivation = lw.derive(expr)
    assert derivation.replay()
    assert derivation.check(mech) < bound


def test_what_stays_an_inverse_is_simplified_inside():
    derivation = lw.derive((J @ mass.inv @ J.T).inv)
    assert str(derivation.result) == "(B* ψ* H* D⁻¹ H ψ B)⁻¹"
    assert derivation.replay()


def test_an_inverse_that_no_recursion_gives_is_refused():
    with pytest.raises(LoweringError, match="cannot invert"):
        lw.plan((I + phi @ M).inv @ a)
