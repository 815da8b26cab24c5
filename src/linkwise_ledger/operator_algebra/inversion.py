"""The operator algebra, sections 4 and 6 and appendix: the mass matrix inverted, and proofs."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.dense import Dense
from linkwise.algebra.space import BODY, JOINT, NODE
from linkwise.algebra.symbols import (
    B,
    D,
    E_phi,
    E_psi,
    H,
    I,
    J,
    K,
    M,
    P,
    a,
    b,
    bias,
    mass,
    phi,
    phi_tilde,
    psi,
)
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Check, Errors
from linkwise_ledger.operator_algebra.dynamics import newton_euler
from linkwise_ledger.recursion import (
    Blocks,
    diagonal,
    drawn,
    inward,
    kalman_filter,
    kinetic_energy,
    moved,
    outward,
    rate,
    rule_named,
    split,
    stacked,
    weightless,
)
from linkwise_ledger.section import Section
from linkwise_ledger.standard import check_definite_mass, check_products

WHITENING = I - H @ psi @ K
COLORING = I + H @ phi @ K


def _coloring_loop(case: Case, eps: Array) -> Array:
    """ẑ(k) = φ(k, k-1) ẑ(k-1) + K(k, k-1) ε(k-1), y(k) = H(k) ẑ(k) + ε(k)."""
    given, z, y = dict(enumerate(split(case, eps, JOINT))), dict[int, Array](), dict[int, Array]()
    for k in case.inward:
        z[k] = inward(case, E_phi, k, z) + inward(case, K, k, given)
        y[k] = case.block(H, k) @ z[k] + given[k]
    return stacked(case, y)


def whitening_loop(case: Case, y: Array) -> Array:
    """ẑ(k) = ψ(k, k-1) ẑ(k-1) + K(k, k-1) y(k-1), ε(k) = -H(k) ẑ(k) + y(k)."""
    given, z, eps = dict(enumerate(split(case, y, JOINT))), dict[int, Array](), dict[int, Array]()
    for k in case.inward:
        z[k] = inward(case, E_psi, k, z) + inward(case, K, k, given)
        eps[k] = -case.block(H, k) @ z[k] + given[k]
    return stacked(case, eps)


def _checkwhitening_loop(case: Case) -> float:
    """The loop undoes the loop of I + H φ K."""
    eps = drawn(case, JOINT)
    return apart(whitening_loop(case, _coloring_loop(case, eps)), eps)


def smoother_loop(case: Case, nu: Blocks) -> Array:
    """λ(k) = ψ*(k+1, k) λ(k+1) + H*(k) ν(k), θ̈(k) = ν(k) - K*(k+1, k) λ(k+1)."""
    costate, vdot = dict[int, Array](), dict[int, Array]()
    for k in case.outward:
        p = case.parent(k)
        costate[k] = outward(case, E_psi, k, costate) + case.block(H, k).T @ nu[k]
        vdot[k] = nu[k] if p < 0 else nu[k] - case.block(K, p, k).T @ costate[p]
    return stacked(case, vdot)


def _filter_loop(case: Case, moments: Array) -> Blocks:
    """The first loop of algorithm FD: ν from T'."""
    eps = split(case, whitening_loop(case, moments), JOINT)
    return {k: case.block(D.inv, k) @ eps[k] for k in case.outward}


def _each_of(*checks: Check) -> Check:
    return lambda case: max(check(case) for check in checks)


INVERSION = Section()
INVERSION("""sec. 4, 𝓜  the mass matrix is symmetric and positive definite
    printed  𝓜 = 𝓜* > 0
    holds    smallest eigenvalue of H φ M φ* H* > 0
""")(check_definite_mass)
INVERSION.algebra("""sec. 4, D  hinge inertia
    means    D = H P H* + N
sec. 4, G  Kalman gain
    means    G = P H* D⁻¹
sec. 4, E_φ  shift
    printed  E_φ has the blocks φ(k,k-1) below its diagonal, else zeros
    means    φ E_φ = φ - I
sec. 4, K  shifted gain
    means    K = E_φ G
    note     It has the blocks K(i,i-1) = φ(i,i-1) G(i-1).
""")


@INVERSION("""(4.1)  Riccati recursion
    printed  P(1) = M(1); for k = 2 … n: P(k) = ψ(k,k-1) P(k-1) ψ*(k,k-1) + M(k)
    holds    P(k) = Σ_c ψ(k,c) P(c) ψ*(k,c) + M(k) leaves 𝓜 = (I + H φ K) D (I + H φ K)*
""")
def _(case: Case) -> Errors:
    at = kalman_filter(case)
    unit = case.matrix(COLORING)
    yield diagonal(case, at.P, P), case.matrix(P)
    yield unit @ diagonal(case, at.D, D) @ unit.T, case.matrix(mass)


@INVERSION("""(4.2)  articulated shift between links
    printed  ψ(k,k-1) = φ(k,k-1) [I - G(k-1) H(k-1)]
    means    the blocks of E_ψ
""")
def _(case: Case) -> Errors:
    at = kalman_filter(case)
    below = [k for k in case.outward if case.parent(k) >= 0]
    yield max(apart(at.psi[k], case.block(E_psi, case.parent(k), k)) for k in below)
    yield max(apart(at.K[k], case.block(K, case.parent(k), k)) for k in below)


@INVERSION("""sec. 4, P(k) > 0  the recursion always goes on
    printed  P(k) = P*(k) > 0, so that D(k) = H(k) P(k) H*(k) is positive and D invertible
    holds    smallest eigenvalue of any P(k) and D(k) > 0
""")
def _(case: Case) -> float:
    at = kalman_filter(case)
    blocks = [*at.P.values(), *at.D.values()]
    smallest = min(float(np.linalg.eigvalsh(0.5 * (x + x.T)).min()) for x in blocks)
    crooked = max(apart(x, x.T) for x in blocks)
    return crooked if smallest > 0.0 else float("inf")


INVERSION("""sec. 4, ψ and E_ψ  articulated propagation and shift
    printed  ψ has the blocks ψ(i,j), I on the diagonal; E_ψ the blocks ψ(k,k-1)
    means    ψ = (I - E_ψ)⁻¹ has the products of steps as blocks
sec. 4, ψ(i, j)  blocks of ψ are products of steps
    printed  ψ(k,k) = I;  ψ(i,j) = ψ(i,i-1) ψ(i-1,i-2) ⋯ ψ(j+1,j)
    holds    ψ(i,j) is the product of the steps along the path from j to i
""")(check_products)
INVERSION.algebra("""(4.3)  articulated shift
    holds    E_ψ = E_φ (I - G H) = E_φ - K H
""")


@INVERSION("""sec. 4, loop of ψ  ψ as a recursion
    printed  z(0) = 0; for k = 1 … n: z(k) = ψ(k,k-1) z(k-1) + y(k)
    holds    the loop leaves ψ y
""")
def _(case: Case) -> float:
    y, z = drawn(case, BODY), dict[int, Array]()
    for k, y_k in reversed(list(enumerate(split(case, y, BODY)))):
        z[k] = inward(case, E_psi, k, z) + y_k
    return apart(stacked(case, z), case.matrix(psi) @ y)


INVERSION.algebra("""Lemma 4.1  innovations factorisation
    printed  𝓜 = (I + H φ K) D (I + H φ K)*
    holds    H φ M φ* H* = (I + H φ K) D (I + H φ K)*
(4.4)  innovations factorisation
    holds    𝓜 = (I + H φ K) D (I + H φ K)*
    note     Section 7 calls it (4.2).
""")


@INVERSION("""sec. 4, ε  innovations process
    printed  ε = diag[ε(1) … ε(n)],  y = (I + H φ K) ε
    instead  ε = col[ε(1) … ε(n)],  y = (I + H φ K) ε
    note     diag for col: y is a stacked vector, as the loop below shows.
""")
def _check_coloring_loop(case: Case) -> float:
    eps = drawn(case, JOINT)
    return apart(_coloring_loop(case, eps), case.matrix(COLORING) @ eps)


@INVERSION.as_printed
def _(case: Case) -> float:
    """(I + H φ K) diag[ε(1) … ε(n)] is a matrix; the loop leaves a vector."""
    eps = drawn(case, JOINT)
    return apart(case.matrix(COLORING) @ np.diag(eps), _coloring_loop(case, eps))


INVERSION("""sec. 4, loop of I + H φ K  innovations filter as a recursion
    printed  ẑ(0) = 0, ε(0) = 0; for k = 1 … n: ẑ(k) = φ(k,k-1) ẑ(k-1) + K(k,k-1) ε(k-1), y(k) =
             H(k) ẑ(k) + ε(k)
    holds    the loop leaves (I + H φ K) ε
""")(_check_coloring_loop)
INVERSION("""Lemma 4.2  causal inverse of the innovations filter
    printed  (I + H φ K) and (I - H ψ K) are inverses of each other
    holds    (I - H ψ K)(I + H φ K) = I, and the loops undo each other
""")(
    _each_of(rule_named("coloring whitened"), rule_named("whitened coloring"), _checkwhitening_loop)
)
INVERSION.algebra("""(4.5)  causal inverse of the innovations filter
    holds    (I + H φ K)⁻¹ = I - H ψ K
""")


@INVERSION("""sec. 4, loop of I - H ψ K  whitening filter as a recursion
    printed  ẑ(0) = 0, y(0) = 0; for k = 1 … n: ẑ(k) = ψ(k,k-1) ẑ(k-1) + K(k,k-1) y(k-1), ε(k) =
             -H(k) ẑ(k) + y(k)
    holds    the loop leaves (I - H ψ K) y
""")
def _(case: Case) -> float:
    y = drawn(case, JOINT)
    return apart(whitening_loop(case, y), case.matrix(WHITENING) @ y)


INVERSION.algebra("""Lemma 4.3  inverse of the mass matrix
    holds    𝓜⁻¹ = (I - H ψ K)* D⁻¹ (I - H ψ K)
(4.6)  inverse of the mass matrix
    printed  𝓜⁻¹ = (I - H ψ K)* D⁻¹ (I - H ψ K)
    holds    (I - H ψ K)* D⁻¹ (I - H ψ K) 𝓜 = I
""")


@INVERSION("""Algorithm FD  forward dynamics
    printed  (4.7) and (4.8)
    holds    𝓜⁻¹ (τ - C - J* f) gives back the v̇ that the Newton-Euler loops were given
""")
def _(case: Case) -> float:
    vdot, f = drawn(case, JOINT), drawn(case, NODE)
    moments = newton_euler(case, vdot, f) - case.matrix(bias) - case.matrix(J).T @ f
    return apart(case.matrix(WHITENING.T @ D.inv @ WHITENING) @ moments, vdot)


@INVERSION("""(4.7)  moments without bias
    printed  T′ = T - H φ [M φ* a + b + B f(0)]
    holds    τ of the Newton-Euler loops, less H φ [M φ* a + b + B f], = 𝓜 v̇
""")
def _(case: Case) -> float:
    vdot, f = drawn(case, JOINT), drawn(case, NODE)
    biases = case.matrix(H @ phi) @ (case.matrix(M @ phi.T @ a + b) + case.matrix(B) @ f)
    return apart(newton_euler(case, vdot, f) - biases, case.matrix(mass) @ vdot)


@INVERSION("""(4.8)  accelerations
    printed  θ̈ = (I - H ψ K)* D⁻¹ (I - H ψ K) T′
    holds    the two loops below solve 𝓜 v̇ = τ′
""")
def _check_forward_loops(case: Case) -> float:
    moments = drawn(case, JOINT)
    vdot = smoother_loop(case, _filter_loop(case, moments))
    return apart(case.matrix(mass) @ vdot, moments)


@INVERSION("""sec. 4, first loop of FD  filter: residuals from moments
    printed  ẑ(0), T′(0) = 0; for k = 1 … n: ẑ(k) = ψ(k,k-1) ẑ(k-1) + K(k,k-1) T′(k-1), ε(k) = T′(k)
             - H(k) ẑ(k), ν(k) = D⁻¹(k) ε(k)
    holds    the loop leaves D⁻¹ (I - H ψ K) τ′
""")
def _(case: Case) -> float:
    moments = drawn(case, JOINT)
    nu = stacked(case, _filter_loop(case, moments))
    return apart(nu, case.matrix(D.inv @ WHITENING) @ moments)


INVERSION("""sec. 4, second loop of FD  smoother: accelerations from residuals
    printed  λ(n+1) = 0; for k = n … 1: λ(k) = ψ*(k+1,k) λ(k+1) + H*(k) ν(k), θ̈(k) = ν(k) - K*(k+1)
             λ(k+1,k)
    instead  λ(n+1) = 0; for k = n … 1: λ(k) = ψ*(k+1,k) λ(k+1) + H*(k) ν(k), θ̈(k) = ν(k) -
             K*(k+1,k) λ(k+1)
    note     An index is at the wrong letter: no gain has one index, no costate two. The loop of
             application 1 has it right.
""")(_check_forward_loops)


@INVERSION.as_printed
def _(case: Case) -> float:
    """ν(k) - K*(k+1) λ(k+1, k): gains have two indices and costates one, not the other way."""
    return float("inf")


def _root(dense: Dense) -> Array:
    """D^½, symmetric, block by block."""
    matrix = dense(D)
    blocks: list[Array] = []
    for s in dense.slices(JOINT):
        squares, axes = np.linalg.eigh(matrix[s, s])
        blocks.append(axes * np.sqrt(squares) @ axes.T)
    return dense.diagonal(blocks, JOINT, JOINT)


def _innovations(dense: Dense, moments: Array) -> Array:
    """ε = D^-½ (I - H ψ K) T."""
    return np.linalg.inv(_root(dense)) @ dense(WHITENING) @ moments


def _to_residuals(dense: Dense) -> Array:
    """D^½ (I + H φ K)*, so that ν is this times θ̇."""
    return _root(dense) @ dense(COLORING).T


DIAGONAL = Section()


@DIAGONAL("""sec. 6, change of basis  a basis in which the inertia is D
    printed  (4.4) is a change of basis to the diagonal inertia D
    holds    ½ ξ* D ξ, ξ = (I + H φ K)* v, is the kinetic energy ½ Σ V*(k) M(k) V(k)
""")
def _(case: Case) -> float:
    xi = case.matrix(COLORING).T @ case.v
    return apart(0.5 * xi @ case.matrix(D) @ xi, kinetic_energy(case, case.v))


@DIAGONAL("""sec. 6, innovations  normalised innovations
    printed  ε = D^-½ (I - H ψ K) T
    means    ε* ε = τ* 𝓜⁻¹ τ
    note     For hinges with several axes D^½ is the symmetric root of each block.
""")
def _(case: Case) -> float:
    moments = drawn(case, JOINT)
    eps = _innovations(case.dense, moments)
    return apart(eps @ eps, moments @ np.linalg.inv(case.matrix(mass)) @ moments)


@DIAGONAL("""sec. 6, residuals  normalised residuals
    printed  ν = D^½ (I + H φ K)* θ̇
    means    ½ ν* ν is the kinetic energy ½ Σ V*(k) M(k) V(k)
""")
def _(case: Case) -> float:
    nu = _to_residuals(case.dense) @ case.v
    return apart(0.5 * nu @ nu, kinetic_energy(case, case.v))


@DIAGONAL("""sec. 6, diagonal equations  equations of motion with a unit mass matrix
    printed  ν̇ + C(θ, ν) = ε
    holds    ε - ν̇ is the same for all τ: a function C of q and v, for which ν* C = 0 without
             gravity
    note     D^½ (I + H φ K)* is differentiated along the motion by differences.
""")
def _(case: Case) -> float:
    """ε - ν̇ is the same whatever the moments are, and without gravity it does no work.

    ν̇ is the derivative along the motion that the moments cause, that of D^½ (I + H φ K)* in it by
    differences. The power ν* ε is that of the moments, θ̇* T: so ν* C = 0 is the balance of energy.
    """
    case = weightless(case)
    basis, turning = _to_residuals(case.dense), rate(lambda t: _to_residuals(moved(case, t)))

    def rest(moments: Array) -> Array:
        vdot = np.linalg.inv(case.matrix(mass)) @ (moments - case.matrix(bias))
        return _innovations(case.dense, moments) - (turning @ case.v + basis @ vdot)

    nu, moments = basis @ case.v, drawn(case, JOINT)
    first, second = rest(moments), rest(3.0 * drawn(case, JOINT, 1))
    work = abs(float(nu @ first)) / float(np.linalg.norm(nu) * np.linalg.norm(first))
    return max(apart(first, second), work)


_STATE = P + phi_tilde @ P + P @ phi_tilde.T + phi @ K @ D @ K.T @ phi.T

APPENDIX = Section()
APPENDIX.algebra("""Lemma A.1  what relates φ to ψ
    holds    ψ⁻¹ = φ⁻¹ + K H
Lemma A.1, proof  steps from ψ⁻¹ to φ⁻¹
    printed  φ⁻¹ = I - E_φ, ψ⁻¹ = I - E_ψ;  ψ⁻¹ = I - E_ψ = (I - E_φ) + K H = φ⁻¹ + K H
    holds    φ⁻¹ = I - E_φ, ψ⁻¹ = I - E_ψ = I - E_φ + K H
Lemma 4.1, proof: Riccati equation  the Riccati recursion as an equation
    holds    M = P - E_ψ P E_ψ*
    note     Follows from (4.1).
Lemma 4.1, proof: projection  the projected articulated inertia
    printed  τ̄ P τ̄* = τ̄ P,  τ̄ = I - G H
    holds    Π̄ P Π̄* = Π̄ P
Lemma 4.1, proof: φ̃  φ without the identity
    holds    φ̃ = φ - I = φ E_φ
Lemma 4.1, proof: M  two more forms of the Riccati equation
    holds    M = P - E_ψ P E_φ* = P - E_φ P E_φ* + K D K*
Lemma 4.1, proof: φ M φ*  from articulated inertia to the covariance of forces
    holds    φ M φ* = P + φ̃ P + P φ̃* + φ K D K* φ*
Lemma 4.1, proof: 𝓜  the factors collected
    printed  𝓜 = H φ M φ* H* = H [P + φ̃ P + P φ̃* + φ K D K* φ*] H* = D + H φ K D + D K* φ* H* + H
             φ K D K* φ* H* = [I + H φ K] D [I + H φ K]*
    holds    𝓜 = H [P + φ̃ P + P φ̃* + φ K D K* φ*] H* = D + H φ K D + D K* φ* H* + H φ K D K* φ* H*
             = (I + H φ K) D (I + H φ K)*
Lemma 4.2, proof  inverse by a matrix identity
    printed  [I + H φ K]⁻¹ = I - H φ [I + K H φ]⁻¹ K = I - H φ [ψ⁻¹ φ]⁻¹ K = I - H ψ K
    holds    (I + H φ K)⁻¹ = I - H φ (I + K H φ)⁻¹ K = I - H φ (ψ⁻¹ φ)⁻¹ K = I - H ψ K
Lemma 5.1, proof  the hinge map taken out
    holds    (I - H ψ K) H φ = H (I - ψ K H) φ;  I - ψ K H = ψ φ⁻¹
""")
