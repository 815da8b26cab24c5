"""RCCFD1 to RCCFD3 follow from the general solution: proved, with armature.

Π stands for Ω⁻¹, or for (b.7b): any symmetric operator between forces and motions of the tips. The
general solution (3.6), with a′ a vector over the tips and f(0) = Π (J 𝓜⁻¹ T′ − a′), is

    v̇ = 𝓜⁻¹ T′ − 𝓜⁻¹ J* Π (J 𝓜⁻¹ T′ − a′)
"""

from __future__ import annotations

import pytest

import linkwise as lw
from linkwise.algebra import NODE, B, H, I, J, mass
from linkwise.algebra.expr import Expr
from linkwise.algebra.symbols import articulated, memoryless, vector
from linkwise.grasp.multi_arm.equation import EQUAL, T_prime, multi_arm_expression

Pi_c = memoryless("Π_c", NODE, NODE, symmetric=True, ascii="Pi_c")
a_prime = vector("a′", NODE, ascii="a_prime")


def general() -> Expr:
    """(3.6a)."""
    force = Pi_c @ (J @ mass.inv @ T_prime - a_prime)
    return mass.inv @ (T_prime - J.T @ force)


def rccfd1() -> Expr:
    """(6.11), with f(0) from α_f(0) − a(C) + ... = J v̇_f − a′."""
    F = articulated
    free = F.whitening.T @ F.D.inv @ F.whitening @ T_prime
    force = Pi_c @ (J @ free - a_prime)
    return free - F.whitening.T @ F.D.inv @ H @ F.psi @ B @ force


def rccfd2() -> Expr:
    """(6.18)."""
    F = articulated
    filtered = B.T @ F.psi.T @ H.T @ F.D.inv @ F.whitening @ T_prime
    force = Pi_c @ (filtered - a_prime)
    return F.whitening.T @ F.D.inv @ (T_prime - H @ F.psi @ (F.K @ T_prime + B @ force))


def rccfd3() -> Expr:
    """(6.22)."""
    F = articulated
    gain = F.D.inv @ H @ F.psi @ B
    first = F.whitening.T @ (F.D.inv - gain @ Pi_c @ gain.T) @ F.whitening @ T_prime
    return first + F.whitening.T @ gain @ Pi_c @ a_prime


ALGORITHMS = {"RCCFD1": rccfd1, "RCCFD2": rccfd2, "RCCFD3": rccfd3}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithms_are_the_general_solution(name):
    proof = lw.prove(general(), ALGORITHMS[name]())
    assert proof.proved and proof.on_trees < 1e-10, proof.verdict


@pytest.mark.parametrize("name", EQUAL)
def test_each_equation_is_proved(name):
    left = multi_arm_expression(EQUAL[name])
    proof = lw.prove(left, multi_arm_expression(name))
    assert proof.proved and proof.on_trees < 1e-10, proof.verdict


def test_derivation_reaches_them_without_being_told():
    """The cheapest forms that are found by themselves are those of RCCFD2."""
    F = articulated
    compliance = B.T @ F.psi.T @ H.T @ F.D.inv @ H @ F.psi @ B
    assert lw.derive(J @ mass.inv @ J.T).result == compliance
    filtered = B.T @ F.psi.T @ H.T @ F.D.inv @ (I - H @ F.psi @ F.K) @ T_prime
    assert lw.derive(J @ mass.inv @ T_prime).result == filtered
    derivation = lw.derive(general())
    assert len(lw.plan(derivation.result).passes) <= len(lw.plan(rccfd2()).passes)
    assert "φ" not in str(derivation.result)  # every rigid φ became ψ: nothing is swept twice


@pytest.mark.parametrize(
    "printed",
    [
        # (6.18e): the first factor without its star.
        lambda F, f: F.whitening @ F.D.inv @ (T_prime - H @ F.psi @ (F.K @ T_prime + B @ f)),
        # (6.11g) and (6.5a) lack H, which no expression can say: BODY does not meet JOINT. With H
        # and without the sign of (6.3):
        lambda F, f: (
            F.whitening.T @ F.D.inv @ F.whitening @ T_prime
            + F.whitening.T @ F.D.inv @ H @ F.psi @ B @ f
        ),
    ],
    ids=["6.18e", "6.11g"],
)
def test_misprints_are_not_equal(printed):
    f = vector("f", NODE)
    proof = lw.prove(mass.inv @ (T_prime - J.T @ f), printed(articulated, f))
    assert not proof.proved and proof.on_trees > 1e-3 and proof.on_chains > 1e-3
