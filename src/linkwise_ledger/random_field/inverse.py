"""Random fields, section 11: the inverse of the inertia matrix in closed form, and its elements."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.rules import BY_NAME, UPSILON_PLUS
from linkwise.algebra.space import BODY, JOINT
from linkwise.algebra.symbols import (
    D,
    E_phi,
    E_psi,
    H,
    I,
    K,
    Omega,
    Upsilon,
    mass,
    tau,
)
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.random_field.model import ELL
from linkwise_ledger.recursion import costate_blocks, each, outward_both, rule_named, step_to_parent
from linkwise_ledger.section import Section, same


def _gain(case: Case, k: int) -> Array:
    """K(k+1, k), zero where k hangs on the ground."""
    p = case.parent(k)
    return np.zeros((6, len(case.block(D, k)))) if p < 0 else case.block(K, p, k)


def _above(case: Case, computed: dict[int, Array], k: int) -> Array:
    """Υ(k+1), zero for the ground."""
    p = case.parent(k)
    return np.zeros((6, 6)) if p < 0 else computed[p]


def _elements(case: Case) -> Array:
    """The two loops of Lemma 13, with Υ of (10.2); on trees, k runs along the path below i.

    An element is 𝓜⁻¹(i, k), the adjoint of 𝓜⁻¹(k, i): the same for hinges with one axis.
    """
    rows, Upsilon_at = case.dense.slices(JOINT), costate_blocks(case)
    out = np.zeros((case.mech.nv, case.mech.nv))
    for i in case.outward:
        K_i, Upsilon_above = _gain(case, i), _above(case, Upsilon_at, i)
        local = case.block(D.inv, i) + K_i.T @ Upsilon_above @ K_i
        out[rows[i], rows[i]] = local
        costate = {i: K_i.T @ Upsilon_above @ step_to_parent(case, i) - local @ case.block(H, i)}
        for k in _below(case, i):
            p = case.parent(k)
            element = costate[p] @ _gain(case, k)
            out[rows[i], rows[k]], out[rows[k], rows[i]] = element, element.T
            costate[k] = costate[p] @ case.block(E_psi, p, k)
    return out


def _below(case: Case, i: int) -> list[int]:
    """Bodies that hang on body i, parents before children."""
    below = [i]
    for k in case.outward:
        if case.parent(k) in below:
            below.append(k)
    return below[1:]


INVERSE = Section()
INVERSE.chains("""Lemma 12  closed form of the inverse, two forms
    printed  𝓜⁻¹ = D⁻¹ + K* Υ K + K* ψ* (E_ψ* Υ K - H* D⁻¹) + (K* Υ E_ψ - D⁻¹ H) ψ K = D⁻¹ - K* Υ K
             + K* ψ* (Υ K - H* D⁻¹) + (K* Υ - D⁻¹ H) ψ K
    holds    𝓜⁻¹ = D⁻¹ - K* Υ K + K* ψ* (Υ K - H* D⁻¹) + (K* Υ - D⁻¹ H) ψ K, and the form by E_ψ
    note     On trees K* ψ* Ξ ψ K is to be added. The proof says (9.2) where (10.1) and (10.3) are
             used.
""")(
    each(
        (mass.inv, BY_NAME["closed form of the inverse by E_ψ"].right),
        (mass.inv, BY_NAME["closed form of the inverse"].right),
    )
)
INVERSE.chains("""Lemma 12, U  closed form of the inverse, between H and H*
    printed  𝓜⁻¹ = D⁻¹ H U H* D⁻¹,  U = P + P Υ⁺ P + P E_φ* ψ* (τ̄* Υ⁺ P - I) + (P Υ⁺ τ̄ - I) ψ E_φ
             P
    holds    𝓜⁻¹ = D⁻¹ H [P + P Υ⁺ P + P E_φ* ψ* (Π̄* Υ⁺ P - I) + (P Υ⁺ Π̄ - I) ψ E_φ P] H* D⁻¹
""")(rule_named("closed form of the inverse by U"))


@INVERSE("""Lemma 12, Υ⁺  Υ on the inboard side of the hinges
    printed  Υ⁺ = E_φ* Υ E_φ
    means    block k of E_φ* Υ E_φ is φ*(p,k) Υ(p) φ(p,k)
""")
def _(case: Case) -> Errors:
    plus, rows = case.matrix(UPSILON_PLUS), case.dense.slices(BODY)
    for k in case.outward:
        expected = outward_both(case, E_phi, k, costate_blocks(case))
        yield plus[rows[k], rows[k]], expected


INVERSE("""Lemma 12, proof  what is multiplied out
    printed  𝓜⁻¹ = (I - ℒ*) D⁻¹ (I - ℒ),  ℒ = H ψ K
    holds    𝓜⁻¹ = D⁻¹ - D⁻¹ H ψ K - K* ψ* H* D⁻¹ + K* Ω K
""")(
    each(
        (mass.inv, (I - ELL).T @ D.inv @ (I - ELL)),
        (mass.inv, D.inv - D.inv @ ELL - ELL.T @ D.inv + K.T @ Omega @ K),
    )
)
INVERSE("""sec. 11, equations of motion  equations of motion by the inverse
    printed  θ̈ = 𝓜⁻¹(θ) T, equivalent to 𝓜 θ̈ = T
    holds    𝓜 [closed form of 𝓜⁻¹] τ = τ
""")(same(mass @ BY_NAME["closed form of the inverse on trees"].right @ tau, tau))
INVERSE("""Lemma 13  Υ in the loop of the elements
    printed  Υ(i) = ψ*(i+1,i) Υ(i+1) ψ(i+1,i) + H(i) D⁻¹(i) H*(i)
    instead  Υ(i) = ψ*(i+1,i) Υ(i+1) ψ(i+1,i) + H*(i) D⁻¹(i) H(i)
    note     H and H* have changed places; (10.2) has them right.
""")(
    lambda case: max(
        apart(block, case.block(Upsilon, i)) for i, block in costate_blocks(case).items()
    )
)


@INVERSE.as_printed
def _(case: Case) -> float:
    """ψ* Υ ψ + H D⁻¹ H*: H* and H have changed places, and nothing fits."""
    blocks_at: dict[int, Array] = {}
    try:
        for i in case.outward:
            H_i, D_inv = case.block(H, i), case.block(D.inv, i)
            blocks_at[i] = outward_both(case, E_psi, i, blocks_at) + H_i @ D_inv @ H_i.T
    except ValueError:
        return float("inf")
    return max(apart(blocks_at[i], case.block(Upsilon, i)) for i in blocks_at)


@INVERSE("""Lemma 13, 𝓜⁻¹(i, i)  diagonal elements of the inverse
    printed  𝓜⁻¹(i,i) = D⁻¹(i) + K*(i+1,i) Υ(i+1) K(i+1,i)
    holds    𝓜⁻¹(i,i) = D⁻¹(i) + K*(p,i) Υ(p) K(p,i), p the parent of i
    note     On branched trees too.
""")
def _(case: Case) -> float:
    rows, inverse = case.dense.slices(JOINT), np.linalg.inv(case.matrix(mass))
    computed = _elements(case)
    return max(apart(computed[s, s], inverse[s, s]) for s in rows)


@INVERSE("""Lemma 13, λ(i)  how a vertical sweep starts
    printed  λ(i) = K*(i+1,i) Υ(i+1) φ(i+1,i) - H(i) 𝓜⁻¹(i,i)
    holds    λ(i) = K*(i+1,i) Υ(i+1) φ(i+1,i) - 𝓜⁻¹(i,i) H(i) = K*(i+1,i) Υ(i+1) ψ(i+1,i) - D⁻¹(i)
             H(i)
    note     As printed only for hinges with one axis, where 𝓜⁻¹(i,i) is a number: the paper has
             no others. For more, it stands before H(i).
""")
def _(case: Case) -> Errors:
    Upsilon_at = costate_blocks(case)
    for i in case.outward:
        K_i, Upsilon_above, H_i = _gain(case, i), _above(case, Upsilon_at, i), case.block(H, i)
        local = case.block(D.inv, i) + K_i.T @ Upsilon_above @ K_i
        computed = K_i.T @ Upsilon_above @ step_to_parent(case, i) - local @ H_i
        p = case.parent(i)
        psi_i = np.zeros((6, 6)) if p < 0 else case.block(E_psi, p, i)
        yield computed, K_i.T @ Upsilon_above @ psi_i - case.block(D.inv, i) @ H_i


INVERSE.chains("""Lemma 13, 𝓜⁻¹(k, i)  elements of the inverse by vertical sweeps
    printed  for i = N … 1: for k = i-1 … 1: 𝓜⁻¹(k,i) = λ(k+1) K(k+1,k), λ(k) = λ(k+1) ψ(k+1,k)
    holds    the loops leave 𝓜⁻¹(i,k) = λ(k+1) K(k+1,k), and 𝓜⁻¹(k,i) its adjoint
    note     Both loops are run, with Υ of (10.2). For hinges with one axis 𝓜⁻¹(k,i) and 𝓜⁻¹(i,k)
             are one number. On trees they leave elements of bodies on one path; those across
             branches are missing.
""")(lambda case: (_elements(case), np.linalg.inv(case.matrix(mass))))
