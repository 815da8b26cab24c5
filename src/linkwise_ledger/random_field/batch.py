"""Random fields, sections 6 and 7: covariance is inertia; conditional means of all at once.

Random fields, section 8: sequential estimation.
"""

from __future__ import annotations

import numpy as np

from linkwise.algebra.space import BODY, JOINT
from linkwise.algebra.symbols import (
    D,
    E_phi,
    E_psi,
    G,
    H,
    I,
    K,
    M,
    P,
    Pi,
    Pi_bar,
    R,
    mass,
    phi,
    phi_tilde,
)
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.random_field.model import (
    GAIN,
    KAPPA,
    OUTPUT,
    RANDOM,
    S_OF_X,
    SMOOTHER_ERROR,
    STATE,
    check_simulated_covariance,
    check_simulated_state,
    covariance,
    simulated,
)
from linkwise_ledger.recursion import (
    accelerations,
    diagonal,
    drawn,
    each,
    forces,
    inward_both,
    kalman_filter,
    paths,
    stacked,
    unformed,
)
from linkwise_ledger.section import Section
from linkwise_ledger.standard import check_products


def _solved(case: Case) -> tuple[Array, Array]:
    """Joint moments, and the accelerations 𝓜⁻¹ T they cause."""
    moments = drawn(case, JOINT)
    return moments, np.linalg.inv(case.matrix(mass)) @ moments


BATCH = Section(RANDOM)
BATCH("""Lemma 1  covariance of the state
    printed  S = E[X X*] = φ M φ*
    holds    covariance of the X of loop (5.1), over all values of W, = φ M φ*
""")(check_simulated_state)
BATCH.algebra("""(6.1)  state covariance as a sum
    printed  S = R + φ̃ R + R φ̃*
    holds    φ M φ* = R + φ̃ R + R φ̃*
sec. 6, φ̃  φ without the identity
    means    φ̃ = φ - I
""")


@BATCH("""(6.2)  composite inertia by recursion
    printed  R(0) = 0; for k = 1 … N: R(k) = φ(k,k-1) R(k-1) φ*(k,k-1) + M(k)
    holds    R(k) = Σ_c φ(k,c) R(c) φ*(k,c) + M(k) are the diagonal blocks of φ M φ*
""")
def _(case: Case) -> float:
    blocks: dict[int, Array] = {}
    for k in case.inward:
        blocks[k] = inward_both(case, E_phi, k, blocks) + case.block(M, k)
    rows = case.dense.slices(BODY)
    matrix = case.matrix(S_OF_X)
    expected = {k: matrix[rows[k], rows[k]] for k in case.outward}
    return apart(diagonal(case, blocks, M), diagonal(case, expected, M))


BATCH.algebra("""Lemma 1, proof: Lyapunov equation  recursion of R as an equation
    holds    M = R - E_φ R E_φ*
""")
BATCH("""Lemma 1, proof: expansion  state covariance from the Lyapunov equation
    printed  S = φ R φ* - φ E_φ R E_φ* φ* = (φ̃ + I) R (φ̃ + I)* - φ̃ R φ̃*
    holds    φ M φ* = φ R φ* - φ E_φ R E_φ* φ* = (φ̃ + I) R (φ̃ + I)* - φ̃ R φ̃*
""")(
    lambda case: max(
        case.residual(S_OF_X, phi @ R @ phi.T - phi @ E_phi @ R @ E_phi.T @ phi.T),
        case.residual(
            S_OF_X,
            (phi_tilde + I) @ R @ (phi_tilde + I).T - phi_tilde @ R @ phi_tilde.T,
        ),
    )
)


@BATCH("""sec. 6, elements of S  typical element of the state covariance
    printed  R(k,j) = φ(k,j) R(j) for j ≤ k,  R(k) φ*(j,k) for j ≥ k
    holds    block (k,j) of φ M φ* is φ(k,j) R(j) for j outboard of k; zero for bodies of two
             branches
""")
def _(case: Case) -> float:
    rows = case.dense.slices(BODY)
    expected = np.zeros_like(case.matrix(S_OF_X))
    for k, j in paths(case):
        block = case.block(phi, k, j) @ case.block(R, j)
        expected[rows[k], rows[j]], expected[rows[j], rows[k]] = block, block.T
    return apart(case.matrix(S_OF_X), expected)


BATCH("""sec. 6, mean and covariance of T  covariance of the output
    printed  E(T) = 0;  E[T T*] = 𝓜
    holds    covariance of the T of loops (5.1), (5.2), over all values of W, = 𝓜
Lemma 2  covariance is inertia
    printed  E[T T*] = 𝓜
    holds    covariance of the T of loops (5.1), (5.2), over all values of W, = 𝓜
(6.3)  covariance is inertia
    printed  E[T T*] = 𝓜
    holds    covariance of the T of loops (5.1), (5.2), over all values of W, = 𝓜
""")(check_simulated_covariance)
BATCH.algebra("""sec. 6, factorisation  a covariance has causal factors
    printed  𝓜 = (I + 𝒦) D (I + 𝒦*)
    holds    𝓜 = (I + H φ K) D (I + H φ K)*
""")


@BATCH("""(7.1)  conditional mean of the state
    printed  E(X/T) = 𝒢 T
    holds    E[(X - 𝒢 T) T*] = 0, with 𝒢 = S H* 𝓜⁻¹
(7.2)  gain of the conditional mean
    printed  𝒢 = S H* M⁻¹
    holds    𝒢 = S H* 𝓜⁻¹
    note     Scan: the script of 𝓜 is lost. The sentence below it speaks of 𝓜, and M⁻¹ does not fit
             behind H*.
""")
def _(case: Case) -> float:
    return case.residual(covariance(SMOOTHER_ERROR, OUTPUT), 0.0 * covariance(STATE, OUTPUT))


@BATCH("""(7.3)  joint accelerations
    printed  θ̈ = 𝓜⁻¹ T
    holds    v̇ = 𝓜⁻¹ τ gives back τ through the loops of section 4
""")
def _(case: Case) -> float:
    moments, vdot = _solved(case)
    f = forces(case, accelerations(case, vdot))
    return apart(np.concatenate([case.block(H, k) @ f[k] for k in case.outward]), moments)


@BATCH("""(7.4)  spatial accelerations
    printed  α = φ* H* θ̈
    holds    φ* H* 𝓜⁻¹ τ is the α of the loop of section 4
""")
def _(case: Case) -> float:
    moments, vdot = _solved(case)
    alpha = accelerations(case, vdot)
    return apart(stacked(case, alpha), case.matrix(phi.T @ H.T @ mass.inv) @ moments)


@BATCH("""sec. 7, f  the estimate is the force
    printed  E[X/T] = φ M α = f
    holds    𝒢 τ = f of the loops of section 4
""")
def _(case: Case) -> float:
    moments, vdot = _solved(case)
    f = forces(case, accelerations(case, vdot))
    return apart(stacked(case, f), case.matrix(GAIN) @ moments)


@BATCH("""sec. 7, e_s  error of the estimate
    printed  e_s = X - f = (I - 𝒢 H) φ W
    holds    X of loop (5.1), less f of the loops of section 4 for the T of (5.2), = (I - 𝒢 H) φ W
    note     From Lemma 8 on, e_s is the name of X - z, and this one is e_f.
""")
def _(case: Case) -> float:
    noise = drawn(case, BODY)
    X, moments = simulated(case, noise)
    vdot = np.linalg.inv(case.matrix(mass)) @ moments
    f = stacked(case, forces(case, accelerations(case, vdot)))
    return apart(X - f, case.matrix((I - GAIN @ H) @ phi) @ noise)


BATCH.algebra("""(7.5)  covariance of the error
    printed  𝒫 = E[e_s e_s*] = (I - 𝒢 H) S (I - 𝒢 H)*
    holds    E[(X - f)(X - f)*] = (I - 𝒢 H) S (I - 𝒢 H)* = ψ M ψ* - P Ω P
sec. 7, 𝒫 otherwise  covariance of the error, three forms
    printed  𝒫 = (I - 𝒢 H) S = S (I - 𝒢 H)* = S - S H* 𝓜⁻¹ H S
    holds    E[(X - f)(X - f)*] = (I - 𝒢 H) S = S (I - 𝒢 H)* = S - S H* 𝓜⁻¹ H S
sec. 7, H 𝒫  no error at the joints
    printed  H 𝒫 = 0,  𝒫 H* = 0,  H 𝒫 H* = 0
    holds    H (ψ M ψ* - P Ω P) = 0, (ψ M ψ* - P Ω P) H* = 0, H (ψ M ψ* - P Ω P) H* = 0
sec. 7, Ŵ  conditional mean of the inertial forces
    printed  E(W/T) = Ŵ = M φ* H* 𝓜⁻¹ T
    holds    E[(W - Ŵ) T*] = 0
""")


@BATCH("""sec. 7, Ŵ by accelerations  inertial forces are inertia times acceleration
    printed  Ŵ = M α
    holds    M φ* H* 𝓜⁻¹ τ = M α of the loop of section 4
""")
def _(case: Case) -> float:
    moments, vdot = _solved(case)
    alpha = accelerations(case, vdot)
    blocks_at = {k: case.block(M, k) @ alpha[k] for k in case.outward}
    return apart(stacked(case, blocks_at), case.matrix(M @ phi.T @ H.T @ mass.inv) @ moments)


BATCH.algebra("""sec. 7, W - Ŵ  error of the inertial forces
    printed  W - Ŵ = [I - M φ* H* 𝓜⁻¹ H φ] W
    holds    E[(W - Ŵ) f*] = 0
sec. 7, Q  covariance of the error of the inertial forces
    printed  Q = M - M φ* H* 𝓜⁻¹ H φ M
    holds    E[(W - Ŵ)(W - Ŵ)*] = M - M φ* H* 𝓜⁻¹ H φ M
""")


SEQUENTIAL = Section(RANDOM)
SEQUENTIAL.algebra("""(8.1)  innovations factorisation
    printed  𝓜 = (I + 𝒦) D (I + 𝒦*)
    holds    𝓜 = (I + H φ K) D (I + H φ K)*
    note     The sentence below it prints K for 𝒦.
sec. 8, inverse of the factor  inverse of the causal factor
    printed  (I + 𝒦)⁻¹ = I - ℒ
    holds    (I + H φ K)⁻¹ = I - H ψ K
(8.2)  factored inverse
    printed  𝓜⁻¹ = (I - ℒ*) D⁻¹ (I - ℒ)
    holds    𝓜⁻¹ = (I - H ψ K)* D⁻¹ (I - H ψ K)
""")


@SEQUENTIAL("""sec. 8, Kalman filter  Riccati recursion
    printed  P(0) = 0; for k = 1 … N: P(k) = ψ(k,k-1) P(k-1) ψ*(k,k-1) + M(k);  D = H P H*;  G = P
             H* D⁻¹;  K(k+1,k) = φ(k+1,k) G(k);  τ = G H;  τ̄ = I - τ;  ψ(k+1,k) = φ(k+1,k) τ̄(k)
    holds    the loop, with k-1 the children, leaves P, D, G, K, Π, Π̄, E_ψ with 𝓜 = (I + H φ K) D
             (I + H φ K)*
    note     Our Π is the paper's τ.
""")
def _(case: Case) -> Errors:
    """The loop against the innovations factors of 𝓜, which know nothing of it: D, and I + H φ K."""
    at = kalman_filter(case)
    unit = case.matrix(I + KAPPA)
    computed = unit @ diagonal(case, at.D, D) @ unit.T
    yield computed, case.matrix(mass)
    for blocks, expr in ((at.P, P), (at.G, G), (at.Pi, Pi), (at.Pi_bar, Pi_bar)):
        yield diagonal(case, blocks, expr), case.matrix(expr)
    for blocks, expr in ((at.K, K), (at.psi, E_psi)):
        below = [k for k in case.outward if case.parent(k) >= 0]
        yield from ((blocks[k], case.block(expr, case.parent(k), k)) for k in below)


SEQUENTIAL("""sec. 8, D, G, τ, τ̄  the recursion's quantities as operators
    printed  D = H P H,  G = P H* D⁻¹,  τ = G H,  τ̄ = I - τ
    instead  D = H P H*,  G = P H* D⁻¹,  Π = G H,  Π̄ = I - Π
    note     A star is missing: H P H cannot be formed. The loop above it prints it right.
""")(each((D, H @ P @ H.T), (G, P @ H.T @ D.inv), (Pi, G @ H), (Pi_bar, I - Pi)))
SEQUENTIAL.as_printed(unformed(lambda: H @ P @ H))
SEQUENTIAL.algebra("""sec. 8, K  shifted gain
    means    K = E_φ G
sec. 8, E_ψ  articulated shift
    printed  E_ψ = E_φ τ̄
    means    E_ψ = E_φ Π̄
""")
SEQUENTIAL("""sec. 8, ψ  articulated propagation
    means    ψ = (I - E_ψ)⁻¹
sec. 8, ψ(k, m)  blocks of ψ are products of steps
    printed  ψ(k,m) = Π ψ(i+1,i), i = m … k-1
    holds    ψ(k,m) = ψ(k,k-1) ⋯ ψ(m+1,m)
    note     The order of the factors is not printed: the one with the largest i stands left.
""")(check_products)
SEQUENTIAL.algebra("""Lemma 3  state covariance from articulated inertia
    printed  S = P + φ̃ P + P φ̃* + φ K D K* φ*
    holds    φ M φ* = P + φ̃ P + P φ̃* + φ K D K* φ*
(8.3)  state covariance from articulated inertia
    printed  S = P + φ̃ P + P φ̃* + φ K D K* φ*
    holds    φ M φ* = P + φ̃ P + P φ̃* + φ K D K* φ*
Lemma 3, proof: projection  the projected covariance
    printed  τ̄ P τ̄* = τ̄ P
    holds    Π̄ P Π̄* = Π̄ P
""")
SEQUENTIAL("""Lemma 3, proof: Riccati equation  Riccati equation, two forms
    printed  P = E_ψ P E_ψ* + M = E_φ P E_φ* + M - K D K
    instead  P = E_ψ P E_ψ* + M = E_φ P E_φ* + M - K D K*
    note     A star is missing: K D K cannot be formed.
""")(
    each(
        (P, E_psi @ P @ E_psi.T + M),
        (P, E_phi @ P @ E_phi.T + M - K @ D @ K.T),
    )
)
SEQUENTIAL.as_printed(unformed(lambda: E_phi @ P @ E_phi.T + M - K @ D @ K))
SEQUENTIAL.algebra("""Lemma 4  innovations factorisation
    printed  𝓜 = [I + 𝒦] D [I + 𝒦]*,  𝒦 = H φ̃ G = H φ K
    holds    𝓜 = (I + H φ̃ G) D (I + H φ̃ G)*,  H φ̃ G = H φ K
Lemma 4, proof  from the state covariance to the factors
    printed  H (8.3) H*, with D = H P H*
    holds    H [P + φ̃ P + P φ̃* + φ K D K* φ*] H* = (I + H φ K) D (I + H φ K)*
Lemma 5  what relates φ to ψ
    holds    ψ⁻¹ = φ⁻¹ + K H
Lemma 5, proof  steps from ψ⁻¹ to φ⁻¹
    printed  ψ⁻¹ = I - E_ψ = I - E_φ τ̄ = φ⁻¹ + E_φ τ = φ⁻¹ + K H
    holds    ψ⁻¹ = I - E_ψ = I - E_φ Π̄ = φ⁻¹ + E_φ Π = φ⁻¹ + K H
Lemma 6  inverse of the causal factor
    printed  (I + 𝒦)⁻¹ = I - ℒ,  ℒ = H ψ K
    holds    (I + H φ K)⁻¹ = I - H ψ K
Lemma 6, consequences  the factor and its inverse commute
    printed  𝒦 = ℒ + 𝒦 ℒ,  𝒦 = ℒ + ℒ 𝒦,  ℒ 𝒦 = 𝒦 ℒ
    holds    𝒦 = ℒ + 𝒦 ℒ = ℒ + ℒ 𝒦,  ℒ 𝒦 = 𝒦 ℒ
    note     𝒦 = H φ K, ℒ = H ψ K.
Lemma 6, proof  the inverse, multiplied out
    printed  φ - ψ = ψ K H φ;  (I - ℒ)(I + 𝒦) = I - H ψ K + (I - H ψ K) H φ K = I
    holds    φ - ψ = ψ K H φ;  (I - ℒ)(I + 𝒦) = I - H ψ K + (I - H ψ K) H φ K = I
    note     𝒦 = H φ K, ℒ = H ψ K.
""")
