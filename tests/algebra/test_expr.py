"""Expressions: one object for one structure, the laws of adjoint and inverse, spaces, printing."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from linkwise.algebra import (
    BODY,
    JOINT,
    NODE,
    VOCABULARY,
    B,
    D,
    E_phi,
    E_psi,
    Expr,
    G,
    H,
    I,
    J,
    K,
    M,
    Omega,
    P,
    R,
    Upsilon,
    Xi,
    a,
    b,
    bias,
    f,
    mass,
    memoryless,
    named,
    phi,
    phi_tilde,
    psi,
    shift,
    tau,
    v,
    vector,
)
from linkwise.algebra.derivation import random_dense
from linkwise.algebra.expr import ANY, Identity, Product, Sum, identity, product, total, zero
from linkwise.algebra.normal_form import normal_form, opened
from linkwise.algebra.words import count, expand, factored, flat, left_factored
from linkwise.errors import ExpressionError
from linkwise.pipeline import derive, plan
from tests.algebra import trees
from tests.algebra.expressions import random_expression
from tests.algebra.test_derive import balanced
from tests.effort import at_most

RANDOM = [random_expression(np.random.default_rng(seed)) for seed in range(150)]


# ------------------------------------------------------------------------------ hash-consing


def test_equal_structure_is_the_same_object():
    assert H @ phi @ M is (H @ phi) @ M is H @ (phi @ M)
    assert M + P is P + M
    assert (M + P) + R is M + (R + P) is total([(1.0, R), (1.0, M), (1.0, P)])
    assert M + M is 2.0 * M is M * 2
    assert M - M is zero(BODY, BODY) is 0.0 * M
    assert -(M - P) is P - M
    assert (2.0 * M) @ (3.0 * P) is 6.0 * (M @ P)
    assert M / 2 + M / 2 is M
    assert hash(H @ phi) == hash(H @ phi)
    assert memoryless("Q", BODY, BODY) is memoryless("Q", BODY, BODY)
    assert memoryless("Q", BODY, BODY) is not memoryless("Q", BODY, BODY, symmetric=True)


def test_the_table_forgets_what_nobody_holds():
    from linkwise.algebra import expr

    gc.collect()
    before = len(expr._TABLE)
    built = [vector(f"x{i}", BODY) + M @ vector(f"x{i}", BODY) for i in range(200)]
    assert len(expr._TABLE) > before + 200
    del built
    gc.collect()
    assert len(expr._TABLE) <= before + 50


def test_expressions_cannot_be_changed():
    for attribute in ("range", "domain", "name"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(M, attribute, JOINT)


def test_identity_takes_its_space():
    assert I @ H is H is H @ I
    assert I + M is M + I
    assert (I + M).domain is BODY
    assert (I + D).domain is JOINT
    assert I - E_phi is not I - E_psi
    assert I.T is I and I.inv is I
    assert (I + I).inv @ M is 0.5 * M
    assert (I @ I) is I and isinstance(I + 0.0 * M, Identity)
    assert (I + 0.0 * M).range is BODY
    assert product([M, I, P]) is M @ P
    assert identity().range is ANY


def test_inverses_cancel_where_they_meet():
    assert M @ M.inv is identity(BODY) is M.inv @ M
    assert phi.inv @ phi @ M is M
    assert (M @ P).inv @ M @ P is not None
    assert mass @ mass.inv @ tau is tau


# ------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("seed", range(0, 150, 3))
def test_adjoint_laws(seed):
    one, other = RANDOM[seed], RANDOM[(seed * 7 + 1) % 150]
    assert one.T.T is one
    assert (one.T.range, one.T.domain) == (one.domain, one.range)
    assert (2.5 * one).T is 2.5 * one.T
    assert (one @ one.T).symmetric
    if one.domain is other.range:
        assert (one @ other).T is other.T @ one.T
    if (one.range, one.domain) == (other.range, other.domain):
        assert (one + other).T is one.T + other.T
    mirrored = {"causal": "anticausal", "anticausal": "causal"}
    assert one.T.causality == mirrored.get(one.causality, one.causality)


@pytest.mark.parametrize("expr", [M, D, phi, psi, mass, I - E_phi, I + H @ phi @ K, M @ phi])
def test_inverse_laws(expr):
    assert expr.inv.inv is expr
    assert expr.inv.T is expr.T.inv
    if not isinstance(expr, Sum):
        assert (2.0 * expr).inv is 0.5 * expr.inv
    if not isinstance(expr, Product):  # whose factors stand by themselves
        assert expr @ expr.inv is identity(expr.range)
    assert expr.inv.range is expr.range and expr.inv.domain is expr.domain


def test_symmetry_and_definiteness():
    for expr in (M, P, R, D, mass, M.inv, Omega, Upsilon, Xi, phi @ M @ phi.T, M + P, 2.0 * M):
        assert expr.symmetric, expr
    for expr in (M, P, R, D, mass, mass.inv, phi @ M @ phi.T, M + P, M.inv, H @ P @ H.T, I):
        assert expr.definite, expr
    for expr in (phi, H, K, E_phi, M @ P, phi @ M, M + phi):
        assert not expr.symmetric and not expr.definite, expr
    for expr in (Xi, M - P, -M, phi_tilde @ M @ phi_tilde.T, G @ D @ G.T, B @ B.T):
        assert not expr.definite, expr


def test_definite_expressions_are_definite():
    """What the form shows is true of the matrices."""
    for seed in range(4):
        mech = trees.branched(seed)
        dense = random_dense(mech, RANDOM, seed, [mech.bodies[-1].name])
        for expr in (*VOCABULARY.values(), *RANDOM, mass + D, phi @ M @ phi.T, H @ P @ H.T):
            if expr.range is ANY or expr.is_vector or expr.range is NODE:
                continue
            if expr.symmetric:
                matrix = dense.matrix(expr)
                assert np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-9 * np.abs(matrix).max())
            if expr.definite:
                assert np.linalg.eigvalsh(dense.matrix(expr)).min() > 0.0, expr


@pytest.mark.parametrize(
    ("expr", "causality"),
    [
        (M, "memoryless"),
        (H @ M, "memoryless"),
        (phi, "causal"),
        (H @ psi @ K, "causal"),
        (phi.T, "anticausal"),
        (K.T, "anticausal"),
        (J, "anticausal"),
        (phi.inv, "causal"),
        (mass, "mixed"),
        (mass.inv, "mixed"),
        (phi @ M @ phi.T, "mixed"),
        (I - H @ psi @ K, "causal"),
        (phi + phi.T, "mixed"),
        (Xi, "mixed"),
    ],
)
def test_causality(expr, causality):
    assert expr.causality == causality


def test_causality_is_what_the_matrices_show():
    """Causal operators have no block from a body to one farther out, and so on."""
    mech = trees.branched(6)
    dense = random_dense(mech, RANDOM, 6, [])
    above = np.eye(mech.n_bodies, dtype=bool)  # above[i, j]: i is j or inboard of it
    for k, p in enumerate(mech.parent.tolist()):
        if p >= 0:
            above[:, k] |= above[:, p]
    for expr in (*VOCABULARY.values(), *RANDOM):
        if not {expr.range, expr.domain} <= {BODY, JOINT} or expr.causality == "mixed":
            continue
        allowed = {"causal": above, "anticausal": above.T}.get(expr.causality, np.eye(len(above)))
        matrix = dense.matrix(expr)
        for i, rows in enumerate(dense.slices(expr.range)):
            for j, columns in enumerate(dense.slices(expr.domain)):
                if not allowed[i, j]:
                    small = np.abs(matrix[rows, columns]).max(initial=0.0)
                    assert small <= 1e-12 * np.abs(matrix).max(initial=0.0), expr


# ----------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda: H @ H, ["cannot multiply", "H  and  H", "BODY", "JOINT", "adjoint"]),
        (lambda: M @ H, ["cannot multiply", "M  and  H", "JOINT", "BODY"]),
        (lambda: (H @ phi) @ (D @ tau), ["H φ  and  D τ", "BODY", "JOINT"]),
        (lambda: H + phi, ["cannot add", "H  and  φ", "BODY to JOINT", "BODY to BODY"]),
        (lambda: H @ phi + (psi + M), ["H φ  and  M + ψ"]),
        (lambda: tau - f, ["cannot add", "JOINT", "NODE"]),
        (lambda: mass.inv @ (tau - b), ["cannot add", "τ", "BODY"]),
        (lambda: H - I, ["identity is square"]),
        (lambda: H.inv, ["H maps BODY to JOINT", "inverse"]),
        (lambda: E_phi.inv, ["nilpotent", "(I - E_φ)"]),
        (lambda: phi_tilde.inv, ["nilpotent"]),
        (lambda: Xi.inv, ["not known to have an inverse"]),
        (lambda: (0.0 * M).inv, ["zero operator has no inverse"]),
        (lambda: M * P, ["@"]),
        (lambda: M * "2", ["only a number"]),
        (lambda: M @ 3.0, ["3.0 is not an operator"]),
        (lambda: M + 1.0, ["1.0 is not an operator"]),
        (lambda: bool(M), ["no truth value"]),
        (lambda: v.inv, ["inverse"]),
        (lambda: memoryless("Q", NODE, BODY), ["cannot be memoryless", "node", "body"]),
        (lambda: memoryless("H", BODY, BODY), ["H is a quantity of the mechanism"]),
        (lambda: vector("a", JOINT), ["a is a quantity of the mechanism"]),
        (lambda: float("nan") * M, ["nan"]),
        (lambda: float("inf") * M, ["inf", "finite"]),
        (lambda: Upsilon.inv, ["not known to have an inverse"]),
    ],
)
def test_errors_are_mathematics_with_both_sides(make, parts):
    with pytest.raises(ExpressionError) as caught:
        make()
    for part in parts:
        assert part in str(caught.value)


def test_a_bare_identity_between_two_hides_neither():
    with pytest.raises(ExpressionError):
        product([H, I, tau])


# ---------------------------------------------------------------------------------- pickling


@pytest.mark.parametrize("expr", [*RANDOM[:60], *VOCABULARY.values(), mass.inv @ (tau - bias)])
def test_pickling_gives_the_same_object(expr):
    assert pickle.loads(pickle.dumps(expr)) is expr
    assert copy.deepcopy(expr) is expr and copy.copy(expr) is expr


def test_pickling_into_another_process():
    """Spaces and own symbols meet what is there, and the sum is still the same object there."""
    ours = memoryless("Q", BODY, BODY, definite=True)
    expr = H @ phi @ ours @ phi.T @ H.T @ vector("u", JOINT) + mass @ tau
    code = (
        "import pickle, sys\n"
        "expr = pickle.load(sys.stdin.buffer)\n"
        "from linkwise.algebra import BODY, JOINT, H, M, mass, memoryless, phi, tau, vector\n"
        "own = memoryless('Q', BODY, BODY, definite=True)\n"
        "assert expr is H @ phi @ own @ phi.T @ H.T @ vector('u', JOINT) + mass @ tau\n"
        "assert (mass @ expr).range is JOINT\n"
        "print(expr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(expr), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode("utf-8", "replace").strip()


def test_programs_and_derivations_are_pickled():
    derivation = derive(mass.inv @ (tau - bias))
    again = pickle.loads(pickle.dumps(derivation))
    assert again == derivation and again.result is derivation.result
    program = plan(derivation.result)
    assert pickle.loads(pickle.dumps(program)) == program


# ------------------------------------------------------------------------------ large ones


def test_deep_products():
    expr = product([M, phi, psi.T, phi.T] * 50)
    assert len(str(expr).split()) == 200
    assert expr.T.T is expr and expr.size == 200
    assert expr.causality == "mixed" and not expr.symmetric
    assert len(expand(expr)) == 1
    assert pickle.loads(pickle.dumps(expr)) is expr
    balanced(expr.latex())


def test_deep_nesting_prints_in_time():
    """Sums in products in sums, thirty deep."""
    expr = M
    with at_most(1e5):
        for _ in range(30):
            expr = phi @ (expr + psi) @ M + R
        assert len(str(expr)) < 2000 and expr.T.T is expr


def test_exponential_growth_is_refused():
    expr = M
    with pytest.raises(ExpressionError, match="leaves"):
        for _ in range(60):
            expr = (expr + phi) @ (expr + psi)


def test_endless_nesting_is_refused():
    expr = M
    with pytest.raises(ExpressionError, match="deep"):
        for _ in range(1000):
            expr = phi @ (expr + psi)
    assert expr.depth > 100 and plan(expr @ a) is not None and expr.T.T is expr


def test_long_words_with_common_letters():
    """Sums of long words are collected to a depth, and no further."""
    powers = total((1.0, product([phi @ M] * n)) for n in range(1, 120))
    for expr in (powers @ a, product([M, phi.T] * 150) @ (phi + psi) @ a):
        words = expand(expr)
        again = left_factored(words, expr.range, expr.domain)
        assert flat(expand(again), expr.range, expr.domain) is flat(words, expr.range, expr.domain)
        assert again.depth <= 200
        assert derive(expr).replay()


def test_threads_share_one_table():
    def build(i: int) -> list[Expr]:
        return [vector(f"t{j}", BODY) + M @ vector(f"t{j}", BODY) for j in range(300)]

    with ThreadPoolExecutor(8) as pool:
        built = list(pool.map(build, range(8)))
    assert all(x is y for other in built[1:] for x, y in zip(built[0], other, strict=True))


@pytest.mark.parametrize("seed", [s for s in range(0, 150, 3) if count(RANDOM[s], opened) < 200])
def test_words_and_back(seed):
    """Multiplying out and collecting again changes the form and nothing else."""
    expr = RANDOM[seed]
    assert count(expr) < 2000, "a smaller draw is wanted"
    words = expand(expr)
    spaces = (expr.range, expr.domain)
    for again in (factored(words, *spaces), left_factored(words, *spaces)):
        assert flat(expand(again), *spaces) is flat(words, *spaces)
        assert (again.range, again.domain) == spaces
    if len(words) < 40:
        form = normal_form(expr)
        assert normal_form(flat(form, *spaces)) == form, "the normal form of a normal form"


# -------------------------------------------------------------------------------- printing


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (H @ phi @ M @ phi.T @ H.T, "H φ M φ* H*"),
        (mass.inv @ (tau - bias), "𝓜⁻¹ (τ - C)"),
        ((I - H @ psi @ K).T @ D.inv, "(I - H ψ K)* D⁻¹"),
        (2.0 * M - P, "2 M - P"),
        (-(M @ a), "-M a"),
        (phi.T.inv, "φ⁻*"),
        ((M + P).inv, "(M + P)⁻¹"),
        (0.5 * (M + P), "0.5 M + 0.5 P"),
        (0.0 * M, "0"),
        (phi_tilde.T, "φ̃*"),
        (B.T @ psi.T @ H.T, "B* ψ* H*"),
        ((M @ P).inv @ a, "(M P)⁻¹ a"),
    ],
)
def test_unicode(expr, text):
    assert str(expr) == text == repr(expr)


@pytest.mark.parametrize("expr", [*RANDOM, *VOCABULARY.values()])
def test_latex_is_well_formed(expr):
    balanced(expr.latex())


def test_own_names_print():
    inner = named("Q", M + P, tex=r"\mathcal{Q}")
    assert str(inner @ a) == "Q a" and (inner @ a).latex() == r"\mathcal{Q} \mathfrak{a}"
    assert str(inner.inv) == "Q⁻¹"
    assert inner.symmetric and inner.definite and isinstance(inner, Expr)
    assert str(shift("F")) == "F"
