"""Document 000, section 4: operator inversion of the mass matrix, and forward dynamics."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.space import BODY, JOINT, NODE
from linkwise.algebra.symbols import (
    B,
    D,
    E_phi,
    E_psi,
    G,
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
    psi,
)
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Check, Errors
from linkwise_ledger.literal import (
    diagonal,
    drawn,
    each,
    inward,
    outward,
    rule_named,
    split,
    stacked,
)
from linkwise_ledger.operator_algebra.newton_euler import newton_euler
from linkwise_ledger.recursion import Blocks, kalman_filter
from linkwise_ledger.section import Section, same
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
""")
INVERSION.algebra("""sec. 4, G  Kalman gain
    means    G = P H* D⁻¹
""")
INVERSION.algebra("""sec. 4, E_φ  shift
    printed  E_φ has the blocks φ(k,k-1) below its diagonal, else zeros
    means    φ E_φ = φ - I
""")
INVERSION("""sec. 4, K  shifted gain
    means    K = E_φ G, with the blocks K(i,i-1) = φ(i,i-1) G(i-1)
""")(each((K, E_phi @ G)))


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
""")(check_products)
INVERSION("""sec. 4, ψ(i, j)  blocks of ψ are products of steps
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
""")
INVERSION.algebra("""(4.4)  innovations factorisation
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
""")
INVERSION("""(4.6)  inverse of the mass matrix
    printed  𝓜⁻¹ = (I - H ψ K)* D⁻¹ (I - H ψ K)
    holds    (I - H ψ K)* D⁻¹ (I - H ψ K) 𝓜 = I
""")(same(WHITENING.T @ D.inv @ WHITENING @ mass @ D, D))


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
    note     An index stands at the wrong letter: no gain has one index, no costate two. The loop of
             application 1 has it right.
""")(_check_forward_loops)


@INVERSION.as_printed
def _(case: Case) -> float:
    """ν(k) - K*(k+1) λ(k+1, k): gains have two indices and costates one, not the other way."""
    return float("inf")
