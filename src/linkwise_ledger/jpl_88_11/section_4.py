"""JPL 88-11, section 4: the mass operator as a covariance, and the Riccati recursion."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.algebra.symbols import (
    D,
    H,
    L,
    M,
    P,
    Phi,
    Psi,
    S,
    mass,
    phi,
    psi,
)
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.jpl_88_11.links import body_axes, rows
from linkwise_ledger.jpl_88_11.sweeps import (
    Blocks,
    riccati,
)
from linkwise_ledger.recursion import drawn, split
from linkwise_ledger.section import Section
from linkwise_ledger.standard import check_definite_mass

# ------------------------------------------------------------------- the model of the mass


def root(case: Case, expr: Expr) -> Array:
    """What white noise of covariance I has to go through to get the covariance `expr`."""
    return np.asarray(np.linalg.cholesky(case.matrix(expr)), dtype=np.float64)


def stack(blocks: Blocks) -> Array:
    """Blocks of all links, one below the other."""
    return np.concatenate([blocks[k] for k in sorted(blocks)])


# --------------------------------------------------------------------------------- Riccati


def _start_error(case: Case, *, inverted: bool) -> float:
    """P(1), D(1) and L(1) at the tips; printed is D(1) where its inverse is meant."""
    links, errors = body_axes(case), list[float]()
    for k in links.inward:
        if not links.children(k):
            P_k, H_k = links.M[k], links.H[k]
            D_k = H_k @ P_k @ H_k.T
            last = np.linalg.inv(D_k) if inverted else D_k
            gain = links.phi[k] @ P_k @ H_k.T @ last
            errors += [apart(P_k, case.block(P, k)), apart(D_k, case.block(D, k))]
            errors.append(apart(gain, case.block(L, k)))
    return max(errors)


def _diagonals(case: Case, stop: int | None) -> float:
    """P, D of the recursion as (4.8) wants them; link `stop` is not reached and stays empty."""
    at = riccati(body_axes(case))
    P_all, D_all = np.zeros_like(case.matrix(P)), np.zeros_like(case.matrix(D))
    for k, s in enumerate(case.dense.slices(D.range)):
        if k != stop:
            P_all[rows(k), rows(k)], D_all[s, s] = at.P[k], at.D[k]
    return max(apart(P_all, case.matrix(P)), apart(D_all, case.matrix(D)))


def triangle(case: Case, steps: Blocks) -> Array:
    """(3.4), (5.1): products of steps, I on the diagonal."""
    n = case.mech.n_bodies
    matrix = np.zeros((6 * n, 6 * n))
    for j in range(n):
        block, i = np.eye(6), j
        while i >= 0:
            matrix[rows(i), rows(j)] = block
            block, i = steps[i] @ block, case.parent(i)
    return matrix


def strictly(case: Case, steps: Blocks) -> Array:
    """(4.9), (4.10): column j has φ(i, j+1), nothing on the diagonal and nothing above it."""
    products = triangle(case, steps)
    matrix = np.zeros_like(products)
    for j in range(case.mech.n_bodies):
        if case.parent(j) >= 0:
            matrix[:, rows(j)] = products[:, rows(case.parent(j))]
    return matrix


def rigid_steps(case: Case) -> Blocks:
    """φ(k+1, k)."""
    return dict(enumerate(body_axes(case).phi))


def filter_steps(case: Case) -> Blocks:
    """ψ(k+1, k) of (4.7)."""
    return riccati(body_axes(case)).psi


SECTION_4 = Section()
SECTION_4("""sec. 4, mass operator  it can be a covariance
    holds    𝓜 is symmetric positive definite
""")(check_definite_mass)


@SECTION_4("""(4.1)  a model with the covariance 𝓜
    means    Y = H φ W; E(W) = 0; E(W Wᵀ) = M
(4.2)  covariance of the model
    holds    E(Y Yᵀ) = H φ M φᵀ Hᵀ = 𝓜
    note     By W = M^½ w with orthonormal w.
""")
def _(case: Case) -> Errors:
    """E(Y Y*) of Y = H φ W: with W = M^½ w the columns of w are e₁, e₂, ..."""
    values, vectors = np.linalg.eigh(case.matrix(M))
    noise = vectors * np.sqrt(np.clip(values, 0.0, None))
    outcome = case.matrix(H @ phi) @ noise
    yield noise @ noise.T, case.matrix(M)
    yield outcome @ outcome.T, case.matrix(mass)


@SECTION_4("""(4.3)  the model as a loop
    printed  z(k) = φ(k,k-1) z(k-1) + w(k); y(k) = H(k) z(k); z(0) = 0
    holds    z_k = Σ_c φ(k,c) z_c + w_k; y = H z: y = H φ w
""")
def _(case: Case) -> float:
    links, w = body_axes(case), split(case, drawn(case, M.range), M.range)
    z: Blocks = {}
    y: Blocks = {}
    for k in links.inward:
        z[k] = w[k]
        for c in links.children(k):
            z[k] = z[k] + links.phi[c] @ z[c]
        y[k] = links.H[k] @ z[k]
    return apart(stack(y), case.matrix(H @ phi) @ np.concatenate(w))


SECTION_4("""(4.4)  start of the Riccati recursion
    printed  P(1) = M(1), D(1) = H(1) P(1) Hᵀ(1), L(1) = Φ(2,1) P(1) Hᵀ(1) D(1)
    instead  L(1) = φ(2,1) P(1) H*(1) D⁻¹(1); P(1), D(1) as printed
    note     D(1) for D⁻¹(1); compare (4.6). Φ(2,1) for φ(2,1) may be the scan's.
""")(lambda case: _start_error(case, inverted=True))
SECTION_4.as_printed(lambda case: _start_error(case, inverted=False))


@SECTION_4("""sec. 4, loop of the Riccati recursion  how far the loop of (4.5) and (4.6) goes
    printed  for k = 2 ... N-1
    instead  for k = 2 ... N
    note     P(N) and D(N) are wanted in (4.8), and D⁻¹(N) by FD1; the loop never makes them.
""")
def _all_bodies(case: Case) -> float:
    return _diagonals(case, stop=None)


SECTION_4.as_printed(lambda case: _diagonals(case, stop=0))


@SECTION_4("""(4.5)  articulated inertia
    printed  P(k) = φ(k,k-1) [P(k-1) - P(k-1) Hᵀ(k-1) D⁻¹(k-1) H(k-1) P(k-1)] φᵀ(k,k-1) + M(k)
    holds    P_k = Σ_c φ(k,c) (P_c - P_c H_c* D_c⁻¹ H_c P_c) φ*(k,c) + M_k
""")
def _(case: Case) -> Errors:
    """P(k) by the recursion: Linkwise's P, and the inertia that (a.47) says, ψ M ψ*, at k."""
    at, matrix = riccati(body_axes(case)), case.matrix(psi @ M @ psi.T)
    yield from ((at.P[k], case.block(P, k)) for k in at.P)
    yield from ((at.P[k], matrix[rows(k), rows(k)]) for k in at.P)


@SECTION_4("""(4.6)  hinge inertia and gain
    printed  D(k) = H(k) P(k) Hᵀ(k); L(k) = φ(k+1,k) P(k) Hᵀ(k) D⁻¹(k)
    holds    D = H P H*; L = Δ_φ P H* D⁻¹
""")
def _(case: Case) -> Errors:
    at = riccati(body_axes(case))
    yield from ((at.D[k], case.block(D, k)) for k in at.D)
    yield from ((at.L[k], case.block(L, k)) for k in at.L)


@SECTION_4("""sec. 4, P > 0  that the recursion can go on
    holds    P(k) = Pᵀ(k) > 0, so that D⁻¹(k) exists
    note     D(k) is a number at a joint with one axis, a small matrix at others.
""")
def _(case: Case) -> Errors:
    at = riccati(body_axes(case))
    for k in at.P:
        positive = min(np.linalg.eigvalsh(at.P[k]).min(), np.linalg.eigvalsh(at.D[k]).min()) > 0.0
        yield apart(at.P[k], at.P[k].T) if positive else float("inf")


@SECTION_4("""(4.7)  transitions of the filter
    printed  ψ(k,k) = I; ψ(k,k-1) = φ(k,k-1) - L(k-1) H(k-1); ψ(i,j) = ψ(i,i-1) ... ψ(j+1,j)
    means    ψ = (I - E_ψ)⁻¹, E_ψ = E_φ - K H
""")
def check_transitions(case: Case) -> float:
    """ψ(i,j) as products of ψ(k,k-1) = φ(k,k-1) - L(k-1) H(k-1), against ψ = (I - E_ψ)⁻¹."""
    return apart(triangle(case, filter_steps(case)), case.matrix(psi))


SECTION_4("""(4.8)  P, D and L, memoryless
    means    P, D, L = diag[...]
""")(_all_bodies)


@SECTION_4("""(4.9)  the operator Φ
    printed  Φ: φ(i,j+1) in row i > column j, zero elsewhere
    means    Φ = φ S: φ(i,p) in the column of a body with parent p
""")
def check_rigid(case: Case) -> float:
    """Φ of (4.9), written out, is φ S."""
    return apart(strictly(case, rigid_steps(case)), case.matrix(phi @ S))


@SECTION_4("""(4.10)  the operator Ψ
    printed  Ψ: ψ(i,j+1) in row i > column j, zero elsewhere
    means    Ψ = ψ S
""")
def check_of_filter(case: Case) -> float:
    """Ψ of (4.10), written out, is ψ S."""
    return apart(strictly(case, filter_steps(case)), case.matrix(psi @ S))


@SECTION_4("""sec. 4, Φ and Ψ  strictly causal
    printed  Φ, Ψ strictly lower block triangular, with I in the block below the diagonal
    holds    the same, with I between a body and its parent
    note     The reason is printed as ψ(k,k) = ψ(k,k) = I; φ(k,k) = ψ(k,k) = I is meant.
""")
def _(case: Case) -> Errors:
    for complete in (case.matrix(Phi), case.matrix(Psi)):
        for j in range(case.mech.n_bodies):
            p = case.parent(j)
            if p >= 0:
                yield complete[rows(p), rows(j)], np.eye(6)
            yield float(np.abs(complete[6 * j :, rows(j)]).max())
