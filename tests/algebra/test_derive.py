"""From plain physics to the published forms, found by search; each step replays and checks."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from linkwise.algebra import (
    NODE,
    B,
    D,
    E_phi,
    Expr,
    G,
    H,
    I,
    J,
    K,
    M,
    N,
    Omega,
    P,
    Pi_bar,
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
    psi_tilde,
    tau,
    v,
)
from linkwise.algebra.budget import Budget
from linkwise.algebra.derivation import random_dense, residual
from linkwise.algebra.normal_form import opened
from linkwise.algebra.prove import prove
from linkwise.algebra.search import MOST_WORDS
from linkwise.algebra.words import count
from linkwise.errors import ExpressionError
from linkwise.pipeline import derive, plan
from linkwise.sweeps.cost import cost
from tests.algebra import trees
from tests.algebra.expressions import random_expression
from tests.effort import at_most

W = I - H @ psi @ K  # whitening
C = I + H @ phi @ K  # coloring
FORWARD = mass.inv @ (tau - bias - J.T @ f)
ACCELERATION = phi.T @ H.T @ FORWARD + phi.T @ a
BIAS_FREE = tau - H @ phi @ (M @ phi.T @ a + b + B @ f)
INNOVATIONS = named("ν", C.T @ v, ascii="nu", tex=r"\nu")

FD1 = W.T @ D.inv @ W @ BIAS_FREE  # 001 (4.17), (4.18); 000 (4.7), (4.8)
FD2 = psi.T @ H.T @ D.inv @ W @ BIAS_FREE + phi.T @ a  # 001 (5.5), (5.6)
FD3 = W.T @ D.inv @ (tau - H @ psi @ (K @ tau + M @ phi.T @ a + b + B @ f))  # 001 (5.8) - (5.10)
FD4 = (  # 001 (5.14), (5.15)
    W.T @ D.inv @ (W @ tau - H @ psi_tilde @ P @ a - H @ psi @ (b + B @ f))
    - K.T @ psi.T @ Pi_bar.T @ a
    - G.T @ a
)
COMPOSITE = H @ R @ H.T + H @ phi_tilde @ R @ H.T + H @ R @ phi_tilde.T @ H.T + N

GIVEN: dict[str, tuple[Expr, Expr]] = {
    "FD1": (FORWARD, FD1),
    "FD2": (ACCELERATION, FD2),
    "FD3": (FORWARD, FD3),
    "FD4": (FORWARD, FD4),
    "FD1 without tip force": (
        mass.inv @ (tau - bias),
        W.T @ D.inv @ W @ (tau - H @ phi @ (M @ phi.T @ a + b)),
    ),
    "tip-force acceleration (5.2)": (-(mass.inv @ J.T @ f), -(W.T @ D.inv @ W @ H @ phi @ B @ f)),
    "tip-force acceleration (5.3)": (-(mass.inv @ J.T @ f), -(W.T @ D.inv @ H @ psi @ B @ f)),
    "operational space": (J @ mass.inv @ J.T, B.T @ psi.T @ H.T @ D.inv @ H @ psi @ B),
    "operational space by Omega": (J @ mass.inv @ J.T, B.T @ Omega @ B),
    "composite body": (mass, COMPOSITE),
    "composite covariance": (phi @ M @ phi.T, R + phi_tilde @ R + R @ phi_tilde.T),
    "sum of squares": (0.5 * (v.T @ mass @ v), 0.5 * (INNOVATIONS.T @ D @ INNOVATIONS)),
    "innovations factorisation": (mass, C @ D @ C.T),
    "a cheap form back to plain physics": (W.T @ D.inv @ H @ psi @ B, mass.inv @ J.T),
}

CHEAPEST: dict[str, tuple[Expr, Expr, int]] = {
    "J mass⁻¹ J*": (J @ mass.inv @ J.T, B.T @ psi.T @ H.T @ D.inv @ H @ psi @ B, 2),
    "mass⁻¹ J*": (mass.inv @ J.T, W.T @ D.inv @ H @ psi @ B, 2),
    "tip-force acceleration": (-(mass.inv @ J.T @ f), -(W.T @ D.inv @ H @ psi @ B @ f), 2),
    "φ M φ*": (phi @ M @ phi.T, R + phi_tilde @ R + R @ phi_tilde.T, 2),
    "coloring and whitening": (C @ W @ tau, tau, 1),
    "mass⁻¹ mass": (mass.inv @ (mass @ v), v, 1),
}
"""What is written, what the search finds by itself, and the passes it takes."""


def balanced(tex: str) -> None:
    """Braces, \\left and \\right, environments: what a compiler would stumble over."""
    depth = 0
    for char in tex.replace(r"\{", "").replace(r"\}", ""):
        depth += {"{": 1, "}": -1}.get(char, 0)
        assert depth >= 0, tex
    assert depth == 0, tex
    assert tex.count(r"\left") == tex.count(r"\right"), tex
    opened = re.findall(r"\\begin\{(\w+)\}", tex)
    assert sorted(opened) == sorted(re.findall(r"\\end\{(\w+)\}", tex)), tex
    assert not re.search(r"\^\{[^{}]*\}\^|_\{[^{}]*\}_", tex), f"double script in {tex}"
    text = re.sub(r"\\text\{(?:[^{}]|\{[^{}]*\})*\}", "", tex)
    assert not re.search(r"[^\x00-\x7f]", text), f"not ASCII outside of text: {text}"


def sound(derivation, *, seeds=(0, 4, 9)) -> None:
    """It replays, holds numerically on trees and on a floating one, and prints."""
    assert derivation.replay()
    for seed in seeds:
        for draw in (trees.branched, trees.floating):
            dense = random_dense(draw(seed), [derivation.start], seed)
            if trees.condition(dense) < 1e4:
                assert derivation.check(draw(seed), seed=seed) < 1e-10
    text = str(derivation)
    assert len(text.splitlines()) == 1 + 2 * len(derivation)
    balanced(derivation.latex())


@pytest.mark.parametrize("name", GIVEN)
def test_to_a_given_form(name):
    expr, form = GIVEN[name]
    with at_most(2e6):
        derivation = derive(expr, to=form)
    assert derivation.start is expr and derivation.result is form
    sound(derivation)


@pytest.mark.parametrize("name", CHEAPEST)
def test_cheapest_form(name):
    expr, form, passes = CHEAPEST[name]
    with at_most(2e6):
        derivation = derive(expr)
    assert derivation.result is form
    assert len(plan(derivation.result).passes) <= passes
    sound(derivation)


@pytest.mark.parametrize("with_tip_force", [False, True])
def test_forward_dynamics_takes_three_passes_by_default(with_tip_force):
    expr = FORWARD if with_tip_force else mass.inv @ (tau - bias)
    with at_most(2e6):
        derivation = derive(expr)
    program = plan(derivation.result)
    assert [p.direction for p in program.passes] == ["base_to_tip", "tip_to_base", "base_to_tip"]
    assert "whitened propagation" in {step.identity for step in derivation}
    sound(derivation)


def test_acceleration_of_bodies_takes_three_passes():
    derivation = derive(ACCELERATION)
    assert len(plan(derivation.result).passes) == 3
    sound(derivation)


def test_kinetic_energy_is_a_sum_of_squares():
    """½ v* 𝓜 v = ½ ν* D ν with ν = (I + H φ K)* v, and D has a block for each hinge."""
    proof = prove(0.5 * (v.T @ mass @ v), 0.5 * (INNOVATIONS.T @ D @ INNOVATIONS))
    assert proof.proved and "innovations factorisation" in {s.identity for s in proof.derivation}
    mech = trees.branched(2)
    dense = random_dense(mech, [INNOVATIONS], 2)
    nu, D_matrix, mass_matrix = dense(INNOVATIONS), dense.matrix(D), dense.matrix(mass)
    squares = [nu[s] @ D_matrix[s, s] @ nu[s] for s in dense.slices(D.range)]
    assert min(squares) >= 0.0
    assert np.isclose(0.5 * sum(squares), 0.5 * dense.v @ mass_matrix @ dense.v, rtol=1e-11)


# ----------------------------------------------------------------------------- the rewriter


@pytest.mark.parametrize("expr", [e for e, *_ in CHEAPEST.values()] + [FORWARD, mass, bias])
def test_deriving_twice_changes_nothing(expr):
    once = derive(expr).result
    twice = derive(once).result
    assert twice is once or cost(plan(twice)) == cost(plan(once))


@pytest.mark.few(5)
@pytest.mark.parametrize("seed", range(40))
def test_derived_forms_of_random_expressions(seed):
    """Value preserved, trace replays, never dearer than what was written, and idempotent."""
    expr = random_expression(np.random.default_rng(1000 + seed), 7, sums=2)
    derivation = derive(expr)
    form = derivation.result
    assert derivation.start is expr and derivation.replay()
    assert cost(plan(form)) <= cost(plan(expr))
    again = derive(form).result
    assert cost(plan(again)) <= cost(plan(form))
    balanced(derivation.latex())
    mech = trees.branched(seed)
    dense = random_dense(mech, [expr], seed, [mech.bodies[-1].name])
    if trees.condition(dense) < 1e4:
        apart = np.abs(dense.matrix(expr) - dense.matrix(form)).max(initial=0.0)
        size = trees.magnitude(dense, expr).max(initial=0.0)
        assert apart <= 1e-9 * np.abs(dense.matrix(expr)).max(initial=0.0) + 2e-13 * size


def test_a_search_without_budget_still_ends_with_a_form():
    derivation = derive(FORWARD, budget=Budget(0, 0))
    assert derivation.replay()
    sound(derivation, seeds=(1,))


def test_no_path_says_whether_the_two_agree():
    with pytest.raises(ExpressionError, match="not equal"):
        derive(mass, to=D)
    with pytest.raises(ExpressionError, match="serial chains"):
        derive(Omega, to=Upsilon + psi_tilde.T @ Upsilon + Upsilon @ psi_tilde)
    with pytest.raises(ExpressionError, match="cannot be equal"):
        derive(mass, to=phi)


# ---------------------------------------------------------------------------------- proving


def test_prove_says_where_an_identity_holds():
    on_chains = prove(Omega, Upsilon + psi_tilde.T @ Upsilon + Upsilon @ psi_tilde)
    assert on_chains.proved and on_chains.derivation.where == "serial chains"
    on_trees = prove(
        Omega, Upsilon + psi_tilde.T @ Upsilon + Upsilon @ psi_tilde + psi.T @ Xi @ psi
    )
    assert on_trees.proved and on_trees.derivation.where == "any tree"
    wrong = prove(phi @ M @ psi.T, psi @ M @ phi.T)
    assert not wrong.proved and "not equal" in wrong.verdict


def test_prove_sides_that_are_zero():
    assert prove(H @ Pi_bar, 0.0 * H).proved
    assert prove(C @ W - I, 0.0 * D).proved
    assert not prove(H @ Pi_bar, H).proved


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((phi @ M).inv @ phi, M.inv),
        (M @ (phi @ M).inv, phi.inv),
        (psi, phi - phi @ K @ H @ psi),
        ((I - E_phi).inv, phi),
        (mass.inv @ mass @ mass.inv, mass.inv),
        (W @ mass, D @ C.T),
        (mass @ W.T, C @ D),
        (C.T @ mass.inv @ C, C.T @ W.T @ D.inv),
        (phi.T @ H.T @ mass.inv @ H @ phi, Omega),
        (J @ mass.inv @ mass, J),
    ],
)
def test_prove_equations_that_are_not_in_the_table(left, right):
    proof = prove(left, right)
    assert proof.proved, proof.verdict
    sound(proof.derivation, seeds=(3,))


def test_prove_refuses_different_spaces():
    with pytest.raises(ExpressionError):
        prove(H @ phi, phi)
    with pytest.raises(ExpressionError):
        prove(H @ phi, I)


def test_almost_equal_is_not_equal():
    """A coefficient that is wrong by a millionth is not taken for round-off."""
    proof = prove(phi @ M @ phi.T, R + phi_tilde @ R + 1.000001 * (R @ phi_tilde.T))
    assert not proof.proved


def test_what_is_no_expression_is_said():
    for call in (derive, plan):
        with pytest.raises(ExpressionError, match="'J M' is not an expression"):
            call("J M")
    with pytest.raises(ExpressionError, match="3 is not an"):
        prove(M, 3)
    with pytest.raises(ExpressionError, match="identity is square"):
        derive(H @ phi, to=I)


def test_a_bare_identity_as_a_target():
    assert derive(C @ W, to=I).replay()
    assert derive(mass.inv @ (H @ phi @ M @ phi.T @ H.T + N), to=I).replay()


def test_numbers_are_equal_up_to_round_off():
    assert 0.1 * M + 0.2 * M - 0.3 * M is 0.0 * M
    x = phi @ M
    assert prove(0.1 * x + 0.2 * x, 0.3 * x).proved
    assert prove((0.1 * phi) @ (3.0 * M), 0.3 * x).proved
    assert prove(phi @ (M / 3.0 + M / 3.0) @ phi.T, 2.0 / 3.0 * (phi @ M @ phi.T)).proved
    assert not prove(0.1 * x + 0.2 * x, 0.3000001 * x).proved


def test_own_operators_in_derivations():
    weight = memoryless("W", NODE, NODE, definite=True)
    expr = J.T @ weight @ J @ mass.inv @ J.T
    derivation = derive(expr)
    assert "ψ" in str(derivation.result)
    mech = trees.branched(1)
    dense = random_dense(mech, [expr], 1, [mech.bodies[-1].name])
    assert residual(dense, expr, derivation.result) < 1e-10


# ------------------------------------------------------------------------ what must not pass


def test_a_wrong_step_is_caught():
    """Replaying and checking find a step that does not follow, whatever it claims."""
    honest = derive(J @ mass.inv @ J.T)
    last = honest.steps[-1]
    for wrong in (B.T @ psi.T @ H.T @ D @ H @ psi @ B, B.T @ psi.T @ H.T @ D.inv @ H @ phi @ B):
        step = replace(last, after=wrong)
        forged = replace(honest, steps=(*honest.steps[:-1], step))
        assert not forged.replay()
        assert forged.check(trees.branched(1), seed=1) > 1e-3
    gap = replace(honest, steps=honest.steps[:1] + honest.steps[2:])
    assert not gap.replay()


@pytest.mark.few(8)
@pytest.mark.parametrize("seed", range(3000, 3020))
def test_prove_random_expressions(seed):
    """A derived form is proved, or too long to be; one and a half times it is not."""
    expr = random_expression(np.random.default_rng(seed), 8, sums=2)
    form = derive(expr).result
    with at_most(2e7):
        proof = prove(expr, form)
    assert proof.proved or max(count(expr, opened), count(form, opened)) > MOST_WORDS
    if normal_form_is_not_zero(expr):
        assert not prove(expr, 1.5 * form).proved


def normal_form_is_not_zero(expr: Expr) -> bool:
    mech = trees.branched(1)
    dense = random_dense(mech, [expr], 1, [mech.bodies[-1].name, mech.bodies[1].name])
    size = trees.magnitude(dense, expr).max(initial=0.0)
    return float(np.abs(dense.matrix(expr)).max(initial=0.0)) > 1e-10 * size


@pytest.mark.parametrize("expr", [J @ mass.inv @ J.T, mass.inv @ (tau - bias)], ids=str)
def test_each_step_goes_on_where_the_last_one_ended(expr):
    derivation = derive(expr)
    steps = list(derivation)
    assert len(steps) >= 3 and steps[0].before is expr and steps[-1].after is derivation.result
    assert all(x.after is y.before for x, y in pairwise(steps))


def test_an_inverse_of_very_many_words_stays_as_it_is():
    """Multiplied out it would be millions; it is answered soon all the same."""
    full = I - P @ phi
    for _ in range(5):
        full = full @ full.T @ full
    with at_most(2e6):
        derivation = derive((I + full).inv @ P)
    assert derivation.result.size > 10
