"""Nothing is recognised by its name: the same forms are found when every symbol has another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from linkwise.algebra import (
    BODY,
    JOINT,
    NODE,
    ONE,
    B,
    E_phi,
    Expr,
    H,
    I,
    J,
    M,
    N,
    Omega,
    P,
    R,
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
    role,
    shift,
    tau,
    v,
    vector,
)
from linkwise.algebra.armature import without_armature
from linkwise.algebra.derivation import random_dense
from linkwise.algebra.expr import Symbol, substituted, symbol
from linkwise.algebra.family import (
    HINGE_MAP,
    RIGID_SHIFT,
    SPATIAL_INERTIA,
    Family,
    lyapunov,
    resolvent,
    riccati,
)
from linkwise.algebra.prove import prove
from linkwise.algebra.symbols import articulated
from linkwise.pipeline import derive, plan
from linkwise.sweeps.cost import cost
from tests.algebra import trees
from tests.algebra.test_derive import ACCELERATION, CHEAPEST, FORWARD, GIVEN, INNOVATIONS
from tests.effort import at_most

PARTS = (
    *("P", "P_plus", "D", "G", "K", "Pi", "Pi_bar", "E_psi", "psi", "psi_tilde"),
    *("Upsilon", "Xi", "E", "M", "H", "phi"),
)


@dataclass(frozen=True)
class Language:
    """Every symbol of the vocabulary under another name."""

    change: dict[Symbol, Expr]

    def of(self, expr: Expr) -> Expr:
        return substituted(expr, self.change.get)

    def back(self, expr: Expr) -> Expr:
        there = {new: old for old, new in self.change.items() if isinstance(new, Symbol)}
        return substituted(expr, there.get)


def language(
    E: Symbol, core: Symbol, projection: Symbol, noise: Symbol, pick: Symbol, *, of_the_state: bool
) -> Language:
    family: Family = riccati(E, core, projection, noise)
    change: dict[Symbol, Expr] = {getattr(articulated, n): getattr(family, n) for n in PARTS}
    change[phi_tilde] = resolvent(E, strict=True)
    change[R] = lyapunov(E, core)
    change[B], change[N] = pick, noise
    vectors = {tau: "in", v: "rate", a: "push", b: "pull", f: "load"}
    for old, name in vectors.items():
        change[old] = (
            symbol(name, old.range, ONE, old.role) if of_the_state else vector(name, old.range)
        )
    for i, old in enumerate((mass, bias, J, INNOVATIONS, Omega)):
        change[old] = named(f"n{i}", substituted(old.role.definition, change.get))
    return Language(change)


OTHER_NAMES = language(  # the same roles, so the values of the mechanism too
    symbol("step", BODY, BODY, RIGID_SHIFT),
    symbol("lump", BODY, BODY, SPATIAL_INERTIA),
    symbol("door", JOINT, BODY, HINGE_MAP),
    symbol("gear", JOINT, JOINT, N.role),
    symbol("grip", BODY, NODE, role.PickOff()),
    of_the_state=True,
)
OTHER_OPERATORS = language(  # nothing of a mechanism at all, but for where the nodes are
    shift("F"),
    memoryless("Q", BODY, BODY, definite=True),
    memoryless("C", JOINT, BODY, independent=True),
    memoryless("S", JOINT, JOINT, definite=True),
    symbol("Z", BODY, NODE, role.PickOff()),
    of_the_state=False,
)
each_language = pytest.mark.parametrize(
    "other", [OTHER_NAMES, OTHER_OPERATORS], ids=["names", "operators"]
)


def test_no_symbol_is_left():
    for other in (OTHER_NAMES, OTHER_OPERATORS):
        for expr in (FORWARD, ACCELERATION):
            standard = set(str(derive(expr).result).replace("(", " ").replace(")", " ").split())
            renamed = set(str(other.of(expr)).replace("(", " ").replace(")", " ").split())
            assert not standard & renamed - {"-", "+"}


@each_language
@pytest.mark.parametrize("name", CHEAPEST)
def test_cheapest_form(name, other):
    expr, form, passes = CHEAPEST[name]
    with at_most(2e6):
        derivation = derive(other.of(expr))
    assert other.back(derivation.result) is form
    assert derivation.replay()
    assert len(plan(derivation.result).passes) <= passes


@pytest.mark.few(10)
@each_language
@pytest.mark.parametrize("name", GIVEN)
def test_to_a_given_form(name, other):
    expr, form = GIVEN[name]
    with at_most(2e6):
        derivation = derive(other.of(expr), to=other.of(form))
    assert other.back(derivation.result) is form
    assert derivation.replay()


def test_forward_dynamics_in_three_passes():
    result = derive(OTHER_NAMES.of(FORWARD)).result
    assert OTHER_NAMES.back(result) is derive(FORWARD).result
    assert len(plan(result).passes) == 3


def test_forward_dynamics_with_given_biases_is_fd4_in_two_passes():
    """Where a and b are given, nothing is left for a first sweep: 001 (5.16), (5.17)."""
    derivation = derive(OTHER_OPERATORS.of(FORWARD))
    assert len(plan(derivation.result).passes) == 2
    assert derive(OTHER_OPERATORS.back(derivation.result), to=GIVEN["FD4"][1]).replay()
    assert cost(plan(derivation.result)) <= cost(plan(OTHER_OPERATORS.of(GIVEN["FD4"][1])))


def test_other_names_give_the_same_numbers():
    for expr in (FORWARD, mass.inv, J @ mass.inv @ J.T):
        renamed = OTHER_NAMES.of(expr)
        mech = trees.branched(5)
        dense = random_dense(mech, [expr, tau, f], 5, [mech.bodies[-1].name])
        assert np.allclose(dense(renamed), dense(expr), rtol=1e-12, atol=1e-12)


def test_other_operators_hold_numerically():
    for name in ("FD3", "FD4", "operational space", "composite body", "sum of squares"):
        expr, form = GIVEN[name]
        derivation = derive(OTHER_OPERATORS.of(expr), to=OTHER_OPERATORS.of(form))
        assert derivation.check(trees.branched(6), seed=6) < 1e-8


# -------------------------------------------------------------------------------- armature


def test_the_bare_tree_has_a_family_of_its_own():
    """(H φ M φ* H*)⁻¹ by the Riccati recursion with D₀ = H P₀ H*; 𝓜⁻¹ by that with armature."""
    bare, inertia = riccati(E_phi, M, H), H @ phi @ M @ phi.T @ H.T
    assert bare.P is not P and bare.psi is not psi and phi is bare.phi
    for F, mass_of in ((bare, inertia), (articulated, mass), (articulated, inertia + N)):
        derivation = derive(J @ mass_of.inv @ J.T)
        assert derivation.result is B.T @ F.psi.T @ H.T @ F.D.inv @ H @ F.psi @ B
        assert derivation.replay()
        assert len(plan(derivation.result).passes) == 2
        for seed in range(6):
            assert derivation.check(trees.branched(seed), seed=seed) < 1e-10
    assert prove((inertia + N).inv @ mass, I).proved
    assert without_armature(derive(mass.inv).result) is derive(inertia.inv).result


def test_more_noise_than_armature_has_a_family_of_its_own():
    derivation = derive((mass + N).inv @ tau)
    assert derivation.replay() and len(plan(derivation.result).passes) == 2
    assert max(derivation.check(trees.branched(seed), seed=seed) for seed in range(4)) < 1e-10
