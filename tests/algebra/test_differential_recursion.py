"""Derivatives of P, D, G, K, ψ and other operators of recursions: tests made from the rules."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import BODY, JOINT, vector
from linkwise.algebra.dense import Dense
from linkwise.algebra.differential import differentiate
from linkwise.algebra.differential_recursion import RULES
from linkwise.algebra.space import INBOARD
from linkwise.algebra.symbols import D, H, I, K, L, M, P, Psi, bare_tree, mass, psi
from linkwise.dynamics.quantity import articulated_inertia_rate, diagonal_coriolis_force
from tests.algebra import long_dense
from tests.algebra.long_dense import LongDense
from tests.algebra.test_differential_rules import Varied, ways
from tests.cases import close

OPERANDS = {BODY: vector("xb", BODY), JOINT: vector("xj", JOINT), INBOARD: vector("xi", INBOARD)}
STEP = {"q": 2e-3, "v": 0.1, "inertia": 2e-3, "payload": 2e-3, "armature": 0.5}
WHITENED = (I - H @ psi @ K).T @ D.inv @ (I - H @ psi @ K) @ OPERANDS[JOINT]


def differences(state: Varied, exprs, wrt: str, way) -> list[np.ndarray]:
    """Derivatives of vectors along a direction, by differences of order eight, in long doubles."""
    if wrt not in ("inertia", "payload"):
        return long_dense.differences(lambda s: state.at(wrt, s * way, LongDense), exprs, STEP[wrt])
    here, up, down = (state.at(wrt, x, LongDense) for x in (0.0, way, -way))
    rows = here.slices(BODY)
    rate = 0.5 * (up.matrix(M) - down.matrix(M))  # M is linear in them

    def moved(s) -> Dense:
        dense, now = state.at(wrt, 0.0, LongDense), here.matrix(M) + s * rate
        dense.values["M"] = [now[x, x] for x in rows]
        return dense

    return long_dense.differences(moved, exprs, STEP[wrt])


def compiled(state: Varied, expr, derive: bool = True) -> np.ndarray:
    kernel = lw.compile(expr, state.mech, nodes=state.nodes, derive=derive)
    given = {"q": state.q, "v": state.v, **state.values}
    return kernel(*(given[name] for name in kernel.arguments))


CASES = [("branched", "armature"), ("branched", "q"), ("every hinge", "q"), ("floating", "q")]
CASES += [("branched", "inertia"), ("floating", "inertia"), ("branched", "payload")]


@pytest.mark.parametrize(
    "name, wrt", [CASES[0], *(pytest.param(*x, marks=pytest.mark.prove) for x in CASES[1:])]
)
def test_rules(name, wrt):
    """Each operator and its adjoint, also of the bare tree, against differences."""
    state = Varied(name)
    way, exprs = ways(state, wrt), list[lw.algebra.Expr]()
    leaves = [*(rule.leaf for rule in RULES), L, Psi, bare_tree.P, bare_tree.psi]
    for leaf in leaves:
        for x in (leaf, leaf.T):
            exprs.append(x @ OPERANDS[x.domain])
    here, moved = state.at(wrt), 0
    for expr, expected in zip(exprs, differences(state, exprs, wrt, way), strict=True):
        size = float(np.abs(expected).max())
        ours = here.matrix(differentiate(expr, wrt)) @ way
        assert np.abs(ours - expected).max() < 1e-12 * max(size, 1.0), f"{expr} on {name}"
        moved += size > 1e-6
    unmoved = 3 * 2 if wrt == "armature" else 0  # R, and what has no armature
    if name == "floating":  # two bodies: G, Π, Π̄, P⁺ and Ψ are the same in every position
        unmoved += {"q": 10, "inertia": 2}[wrt]
    assert moved == len(exprs) - unmoved


@pytest.mark.parametrize(
    "expr", [D @ OPERANDS[JOINT], pytest.param(WHITENED, marks=pytest.mark.prove)], ids=["D", "fd"]
)
def test_kernels(expr):
    """Along a direction by sweeps, as a matrix and in reverse by columns."""
    state, wrt = Varied("branched"), "q"
    A = differentiate(expr, wrt)
    u, w = vector("u", A.domain), vector("w", A.range)
    here = state.at(wrt)
    state.values |= {
        n: state.rng.standard_normal(here.size(x.range)) for n, x in (("u", u), ("w", w))
    }
    expected = here.matrix(A)
    close(compiled(state, A @ u), expected @ state.values["u"], 1e-12)
    close(compiled(state, A), expected, 1e-12)
    close(compiled(state, A.T @ w), expected.T @ state.values["w"], 1e-12)
    assert "Σ_c ψ(k,c)" in str(lw.plan(A @ u))
    if expr is WHITENED:
        textbook = differentiate(mass.inv @ OPERANDS[JOINT], wrt)
        close(expected, here.matrix(textbook), 1e-10)


@pytest.mark.prove
@pytest.mark.parametrize("wrt", ["inertia", "payload", "armature"])
def test_kernels_by_parameters(wrt):
    """The inverse of the mass matrix, written with ψ, and in its textbook form."""
    state = Varied("branched")
    textbook = differentiate(mass.inv @ OPERANDS[JOINT], wrt)
    expected = state.at(wrt).matrix(textbook)
    close(compiled(state, differentiate(WHITENED, wrt)), expected, 1e-10)


@pytest.mark.prove
@pytest.mark.parametrize("leaf", [P, psi, D], ids=str)
def test_second_derivatives(leaf):
    """Of a derivative along a direction that is held: a recursion whose core has recursions."""
    state, u, w = Varied("floating"), vector("u", JOINT), vector("w", JOINT)
    for name in ("u", "w"):
        state.values[name] = state.rng.standard_normal(state.mech.nv)
    once = differentiate(leaf @ OPERANDS[leaf.domain], "q") @ u
    way = state.values["w"]
    (expected,) = differences(state, [once], "q", way)
    assert np.abs(expected).max() > 1e-2
    ours = state.at("q").matrix(differentiate(once, "q")) @ way
    assert np.abs(ours - expected).max() < 1e-12 * np.abs(expected).max()
    if leaf is D:
        close(compiled(state, differentiate(once, "q") @ w), ours, 1e-12)


@pytest.mark.prove
def test_outward_recursions_compile():
    state = Varied("branched")
    upsilon = next(rule.leaf for rule in RULES if rule.leaf.ascii == "Upsilon")
    A = differentiate(upsilon @ OPERANDS[BODY], "q")
    u = vector("u", JOINT)
    state.values["u"] = state.rng.standard_normal(state.mech.nv)
    close(compiled(state, A @ u), state.at("q").matrix(A) @ state.values["u"], 1e-11)


@pytest.mark.parametrize("wrt", ["v", pytest.param("q", marks=pytest.mark.prove)])
def test_recursions_of_the_state(wrt):
    """Ṗ depends on v through A_V and B_V; so does the Coriolis force of diagonal velocities."""
    state = Varied("branched")
    way = ways(state, wrt)
    exprs = [articulated_inertia_rate() @ OPERANDS[BODY], diagonal_coriolis_force()]
    for expr, expected in zip(exprs, differences(state, exprs, wrt, way), strict=True):
        ours = state.at(wrt).matrix(differentiate(expr, wrt)) @ way
        assert np.abs(expected).max() > 1e-3
        assert np.abs(ours - expected).max() < 1e-12 * np.abs(expected).max()


def test_what_does_not_depend():
    for wrt in ("v", "tau", "gravity"):
        assert str(differentiate(P @ OPERANDS[BODY], wrt)) == "0"
    assert str(differentiate(M @ OPERANDS[BODY], "q")) == "0"


def test_parts_of_matrices_by_columns_are_refused():
    A = differentiate(D @ OPERANDS[JOINT], "q")
    with pytest.raises(lw.errors.ExpressionError, match="column by column; leave them out"):
        lw.compile(A, lw.models.pendulum(2), rows=[0])
    with pytest.raises(lw.errors.LoweringError, match=r"applied to a vector.*lw\.compile computes"):
        lw.plan(A)
