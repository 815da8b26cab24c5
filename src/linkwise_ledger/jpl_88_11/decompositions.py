"""JPL 88-11, Appendix A from Lemma A.1 on: decompositions, and the proofs made of them."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.symbols import (
    D,
    E_phi,
    H,
    M,
    P,
    phi,
    psi,
)
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.jpl_88_11.innovations import GIVEN
from linkwise_ledger.jpl_88_11.links import body_axes, diagonal, rows
from linkwise_ledger.jpl_88_11.section_4 import filter_steps, rigid_steps, triangle
from linkwise_ledger.jpl_88_11.sweeps import Blocks, riccati
from linkwise_ledger.recursion import paths
from linkwise_ledger.section import Section

PROJECTED = P @ H.T @ D.inv @ H @ P
THETA = E_phi @ PROJECTED @ E_phi.T
"""Θ of (a.49)."""

# -------------------------------------------------------------------------------- Lemma A.1


def _any(case: Case) -> Blocks:
    """Arbitrary steps: they only have to make a causal semigroup."""
    rng = np.random.default_rng(case.seed + 200)
    return {k: rng.standard_normal((6, 6)) / 3.0 for k in case.outward}


def _lyapunov(case: Case, left: Blocks, right: Blocks) -> Array:
    """(a.44): r(k+1) = ψ(k+1,k) r(k) φ*(k+1,k) + M(k+1), as diag[r(1), ..., r(N)]."""
    r: Blocks = {}
    for k in case.inward:
        r[k] = case.block(M, k)
        for c in case.children(k):
            r[k] = r[k] + left[c] @ r[c] @ right[c].T
    return diagonal([r[k] for k in case.outward])


def _decomposed(case: Case, left: Blocks, right: Blocks) -> float:
    """(a.45) for any two semigroups."""
    r = _lyapunov(case, left, right)
    psi_, phi_ = triangle(case, left), triangle(case, right)
    one = np.eye(len(r))
    expected = r + (psi_ - one) @ r + r @ (phi_ - one).T
    return apart(psi_ @ case.matrix(M) @ phi_.T, expected)


def _summed(case: Case, first: Blocks, last: Blocks) -> Array:
    """Σ_j x(k,j) M(j) y*(k,j) over the links j at k and beyond, as a diagonal."""
    x, y = triangle(case, first), triangle(case, last)
    r = {k: np.zeros((6, 6)) for k in case.outward}
    for k, j in paths(case):
        r[k] = r[k] + x[rows(k), rows(j)] @ case.block(M, j) @ y[rows(k), rows(j)].T
    return diagonal([r[k] for k in case.outward])


# --------------------------------------------------------------------------- (a.46) to (a.49)


DECOMPOSITIONS = Section({**GIVEN, "Θ": THETA, "π": M - THETA})


@DECOMPOSITIONS("""(a.44)  recursion of r
    printed  r(0) = 0; r(k+1) = ψ(k+1,k) r(k) φᵀ(k+1,k) + M(k+1)
    holds    r_k = Σ_c ψ(k,c) r_c φ*(k,c) + M_k, the diagonal of ψ M φ*
""")
def _(case: Case) -> float:
    r = _lyapunov(case, filter_steps(case), rigid_steps(case))
    matrix = case.matrix(psi @ M @ phi.T)
    return apart(r, diagonal([matrix[rows(k), rows(k)] for k in case.outward]))


DECOMPOSITIONS("""(a.45)  decomposition of ψ M φ*
    printed  ψ M φᵀ = r + ψ̃ r + r φ̃ᵀ
    holds    the same, with r of (a.44)
""")(lambda case: _decomposed(case, filter_steps(case), rigid_steps(case)))
DECOMPOSITIONS("""Lemma A.1  decomposition of ψ M φ*, for any causal semigroup ψ
    printed  (a.45) for r of (a.44)
    holds    the same, for a ψ whose steps are drawn at random
    note     Stated for the ψ of the filter; the proof of Corollary A.1 asks no more of it than
             this.
""")(lambda case: _decomposed(case, _any(case), rigid_steps(case)))


@DECOMPOSITIONS("""App. A, r(k) in the proof of Lemma A.1  r summed
    printed  r(k) = Σ_{j=1..k} φ(k,j) M(j) ψᵀ(k,j), the diagonal of R = ψ M φᵀ
    holds    r(k) = Σ_{j=1..k} φ(k,j) M(j) ψ*(k,j) = Σ_{j=1..k} ψ(k,j) M(j) φ*(k,j) obeys (a.44)
    note     The two sums are transposes of each other, and equal for the ψ of the filter, since r =
             P is symmetric. For any other ψ, as in Lemma A.1, only the second obeys (a.44).
""")
def _(case: Case) -> Errors:
    rigid = rigid_steps(case)
    for steps in (filter_steps(case), _any(case)):
        yield _summed(case, steps, rigid), _lyapunov(case, steps, rigid)
    steps = filter_steps(case)
    yield _summed(case, rigid, steps), _lyapunov(case, steps, rigid)


@DECOMPOSITIONS("""App. A, blocks of R in the proof of Lemma A.1  off the diagonal
    printed  R(k,l) = ψ(k,l) r(l) for k ≥ l; R(k,l) = r(k) φᵀ(l,k) for k ≤ l
    holds    the same where one body is beyond the other; zero between branches
""")
def _(case: Case) -> Errors:
    r = _lyapunov(case, filter_steps(case), rigid_steps(case))
    matrix = case.matrix(psi @ M @ phi.T)
    for k, m in paths(case):
        below = case.block(psi, k, m) @ r[rows(m), rows(m)]
        above = r[rows(m), rows(m)] @ case.block(phi, k, m).T
        yield matrix[rows(k), rows(m)], below
        yield matrix[rows(m), rows(k)], above


@DECOMPOSITIONS("""Corollary A.1  Lemma A.1 for ψ = φ
    printed  φ M φᵀ = r + φ̃ r + r φ̃ᵀ, r(k+1) = φ(k+1,k) r(k) φᵀ(k+1,k) + M(k+1)
    holds    the same, for any one semigroup on both sides; r = R with φ
""")
def _(case: Case) -> float:
    same_twice = (rigid_steps(case), filter_steps(case), _any(case))
    return max(_decomposed(case, steps, steps) for steps in same_twice)


DECOMPOSITIONS.algebra("""(a.46)  Identities A.5: mixed decomposition
    holds    ψ M φᵀ = P + ψ̃ P + P φ̃ᵀ
(a.47)  Identities A.5: articulated decomposition
    holds    ψ M ψᵀ = P + ψ̃ P + P ψ̃ᵀ
""")


@DECOMPOSITIONS("""App. A, P in the proof of A.5  five forms of the Riccati equation
    printed  P(k+1) = φ [P - P Hᵀ D⁻¹ H P] φᵀ + M = φ [I - G H] P φᵀ + M = [φ - L H] P φᵀ + M = φ [I
             - G H] P [I - G H]ᵀ φᵀ + M = ψ P ψᵀ + M
    holds    the same, summed over children
""")
def _(case: Case) -> Errors:
    links = body_axes(case)
    at = riccati(links)
    for k in links.inward:
        forms = [links.M[k]] * 5
        for c in links.children(k):
            out, P_c, G_c, H_c = links.phi[c], at.P[c], at.G[c], links.H[c]
            bar = np.eye(6) - G_c @ H_c
            added = (
                out @ (P_c - P_c @ H_c.T @ at.D_inv[c] @ H_c @ P_c) @ out.T,
                out @ bar @ P_c @ out.T,
                (out - at.L[c] @ H_c) @ P_c @ out.T,
                out @ bar @ P_c @ bar.T @ out.T,
                at.psi[c] @ P_c @ at.psi[c].T,
            )
            forms = [x + y for x, y in zip(forms, added, strict=True)]
        yield from ((case.block(P, k), form) for form in forms)


DECOMPOSITIONS.algebra("""App. A, a product that vanishes in the proof of A.5  why both sides
             may be articulated
    printed  [I - G H] P Hᵀ Gᵀ = 0
    holds    P H* G* = G H P H* G*
(a.48)  Identity A.6: articulated inertia and innovations
    holds    φ M φᵀ = P + φ̃ P + P φ̃ᵀ + φ̃ P Hᵀ D⁻¹ H P φ̃ᵀ
""")


@DECOMPOSITIONS("""(a.49)  Riccati as a Lyapunov equation
    printed  P(k+1) = φ(k+1,k) P(k) φᵀ(k+1,k) + π(k+1); π = M - Θ; Θ(k+1) = φ(k+1,k) P(k) Hᵀ(k)
             D⁻¹(k) H(k) P(k) φᵀ(k+1,k)
    holds    P = E_φ P E_φ* + M - Θ, Θ = E_φ P H* D⁻¹ H P E_φ* = K D K*
""")
def _(case: Case) -> Errors:
    links = body_axes(case)
    at = riccati(links)
    for k in links.inward:
        computed, theta = links.M[k], np.zeros((6, 6))
        for c in links.children(k):
            out, H_c = links.phi[c], links.H[c]
            computed = computed + out @ at.P[c] @ out.T
            projected = at.P[c] @ H_c.T @ at.D_inv[c] @ H_c @ at.P[c]
            theta = theta + out @ projected @ out.T
        yield case.block(P, k), computed - theta
        yield case.block(M, k) - case.block(THETA, k), links.M[k] - theta


DECOMPOSITIONS.algebra("""App. A, π and Θ in the proof of A.6  from (a.49) and Corollary A.1
    holds    φ π φᵀ = P + φ̃ P + P φ̃ᵀ; φ M φᵀ = P + φ̃ P + P φ̃ᵀ + φ Θ φᵀ; φ Θ φᵀ = φ̃ P Hᵀ D⁻¹ H P
             φ̃ᵀ
(a.50)  Identity A.7: bias accelerations through filter and smoother
    holds    (I - H Ψ L)ᵀ D⁻¹ H ψ M φᵀ = (I - H Ψ L)ᵀ D⁻¹ H ψ̃ P + Lᵀ Ψᵀ (I - G H)ᵀ + Gᵀ
App. A, first step of the proof of A.7  ψ M φ* decomposed
    printed  (I - H Ψ L)ᵀ D⁻¹ H (ψ M φᵀ) = (I - H Ψ L)ᵀ D⁻¹ H (P + ψ̃ P + P φᵀ)
    instead  (I - H Ψ L)ᵀ D⁻¹ H ψ M φᵀ = (I - H Ψ L)ᵀ D⁻¹ H (P + ψ̃ P + P φ̃ᵀ)
    note     From (a.46). The tilde of φ̃ is lost, by the printer or the scan; the line after has it,
             and (a.45) is cited.
App. A, second step of the proof of A.7  multiplied out
    holds    (I - H Ψ L)ᵀ D⁻¹ H ψ M φᵀ = (I - H Ψ L)ᵀ D⁻¹ H ψ̃ P + (I - H Ψ L)ᵀ D⁻¹ H P + (I - H Ψ
             L)ᵀ D⁻¹ H P φ̃ᵀ
(a.51)  what is left to show of (a.50)
    holds    (I - H Ψ L)ᵀ D⁻¹ H P + (I - H Ψ L)ᵀ D⁻¹ H P φ̃ᵀ = Lᵀ Ψᵀ (I - G H)ᵀ + Gᵀ
App. A, steps of the proof of (a.51)  by (a.13) and (a.25)
    holds    Lᵀ Ψᵀ (I - G H)ᵀ + Gᵀ = (I - H Ψ L)ᵀ Gᵀ + (I - H Ψ L)ᵀ Gᵀ φ̃ᵀ = (I - H Ψ L)ᵀ Gᵀ + (I -
             H Ψ L)ᵀ Lᵀ Φᵀ = (I - H Ψ L)ᵀ Gᵀ + [Φ (I - L H Ψ) L]ᵀ = (I - H Ψ L)ᵀ Gᵀ + Lᵀ Ψᵀ
App. A, proof of Fact 4.1  by (a.13) and (a.48)
    holds    H φ M φᵀ Hᵀ = (I + H φ̃ G) D (I + H φ̃ G)ᵀ = H P Hᵀ + H φ̃ P Hᵀ + H P φ̃ᵀ Hᵀ + H φ̃ P
             Hᵀ D⁻¹ H P φ̃ᵀ Hᵀ = H (P + φ̃ P + P φ̃ᵀ + φ̃ P Hᵀ D⁻¹ H P φ̃ᵀ) Hᵀ
App. A, proof of Fact 4.2  by (a.16)
    holds    (I + H Φ L) (I - H Ψ L) = I + H (Φ - Ψ - Ψ L H Φ) L = I
    note     Multiplied out it is Φ L H Ψ, which is Ψ L H Φ by (a.27).
App. A, proof of FD4  by Theorem 4.1, (a.35) and (a.50)
    holds    θ̈ = (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L) T - (I - H Ψ L)ᵀ D⁻¹ H ψ [b + B f(0)] - (I - H Ψ L)ᵀ
             D⁻¹ H ψ M φᵀ a =  (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L) T - (I - H Ψ L)ᵀ D⁻¹ H ψ [b + B f(0)] -
             [(I - H Ψ L)ᵀ D⁻¹ H ψ̃ P + Lᵀ Ψᵀ (I - G H)ᵀ + Gᵀ] a
""")
