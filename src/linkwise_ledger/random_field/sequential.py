"""Document 004, section 8: sequential estimation."""

from __future__ import annotations

from linkwise.algebra.expr import identity
from linkwise.algebra.space import JOINT
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
    mass,
    phi,
    phi_tilde,
    psi,
)
from linkwise_ledger.case import Case
from linkwise_ledger.entry import Errors
from linkwise_ledger.literal import (
    diagonal,
    each,
    unformed,
)
from linkwise_ledger.random_field.field import ELL, KAPPA
from linkwise_ledger.recursion import kalman_filter
from linkwise_ledger.section import Section
from linkwise_ledger.standard import check_products

SEQUENTIAL = Section()
SEQUENTIAL.algebra("""(8.1)  innovations factorisation
    printed  𝓜 = (I + 𝒦) D (I + 𝒦*)
    holds    𝓜 = (I + H φ K) D (I + H φ K)*
    note     The sentence below it prints K for 𝒦.
""")
SEQUENTIAL.algebra("""sec. 8, inverse of the factor  inverse of the causal factor
    printed  (I + 𝒦)⁻¹ = I - ℒ
    holds    (I + H φ K)⁻¹ = I - H ψ K
""")
SEQUENTIAL.algebra("""(8.2)  factored inverse
    printed  𝓜⁻¹ = (I - ℒ*) D⁻¹ (I - ℒ)
    holds    𝓜⁻¹ = (I - H ψ K)* D⁻¹ (I - H ψ K)
""")


@SEQUENTIAL("""sec. 8, Kalman filter  Riccati recursion
    printed  P(0) = 0; for k = 1 … N: P(k) = ψ(k,k-1) P(k-1) ψ*(k,k-1) + M(k);  D = H P H*;  G = P
             H* D⁻¹;  K(k+1,k) = φ(k+1,k) G(k);  τ = G H;  τ̄ = I - τ;  ψ(k+1,k) = φ(k+1,k) τ̄(k)
    holds    the loop, with k-1 the children, leaves P, D, G, K, Π, Π̄, E_ψ with 𝓜 = (I + H φ K) D
             (I + H φ K)*
    note     Our Π is the document's τ.
""")
def _(case: Case) -> Errors:
    """The loop against the innovations factors of 𝓜, which know nothing of it: D, and I + H φ K."""
    at = kalman_filter(case)
    unit = case.matrix(I + KAPPA)
    found = unit @ diagonal(case, at.D, D) @ unit.T
    yield found, case.matrix(mass)
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
""")
SEQUENTIAL.algebra("""sec. 8, E_ψ  articulated shift
    printed  E_ψ = E_φ τ̄
    means    E_ψ = E_φ Π̄
""")
SEQUENTIAL("""sec. 8, ψ  articulated propagation
    means    ψ = (I - E_ψ)⁻¹
""")(check_products)
SEQUENTIAL("""sec. 8, ψ(k, m)  blocks of ψ are products of steps
    printed  ψ(k,m) = Π ψ(i+1,i), i = m … k-1
    holds    ψ(k,m) = ψ(k,k-1) ⋯ ψ(m+1,m)
    note     The order of the factors is not printed: the one with the largest i stands left.
""")(check_products)
SEQUENTIAL.algebra("""Lemma 3  state covariance from articulated inertia
    printed  S = P + φ̃ P + P φ̃* + φ K D K* φ*
    holds    φ M φ* = P + φ̃ P + P φ̃* + φ K D K* φ*
""")
SEQUENTIAL.algebra("""(8.3)  state covariance from articulated inertia
    printed  S = P + φ̃ P + P φ̃* + φ K D K* φ*
    holds    φ M φ* = P + φ̃ P + P φ̃* + φ K D K* φ*
""")
SEQUENTIAL.algebra("""Lemma 3, proof: projection  the projected covariance
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
SEQUENTIAL("""Lemma 4  innovations factorisation
    printed  𝓜 = [I + 𝒦] D [I + 𝒦]*,  𝒦 = H φ̃ G = H φ K
    holds    𝓜 = (I + H φ K) D (I + H φ K)*,  H φ̃ G = H φ K
""")(
    each(
        (mass, (I + H @ phi_tilde @ G) @ D @ (I + H @ phi_tilde @ G).T),
        (H @ phi_tilde @ G, KAPPA),
    )
)
SEQUENTIAL.algebra("""Lemma 4, proof  from the state covariance to the factors
    printed  H (8.3) H*, with D = H P H*
    holds    H [P + φ̃ P + P φ̃* + φ K D K* φ*] H* = (I + H φ K) D (I + H φ K)*
""")
SEQUENTIAL.algebra("""Lemma 5  what relates φ to ψ
    holds    ψ⁻¹ = φ⁻¹ + K H
""")
SEQUENTIAL.algebra("""Lemma 5, proof  steps from ψ⁻¹ to φ⁻¹
    printed  ψ⁻¹ = I - E_ψ = I - E_φ τ̄ = φ⁻¹ + E_φ τ = φ⁻¹ + K H
    holds    ψ⁻¹ = I - E_ψ = I - E_φ Π̄ = φ⁻¹ + E_φ Π = φ⁻¹ + K H
""")
SEQUENTIAL.algebra("""Lemma 6  inverse of the causal factor
    printed  (I + 𝒦)⁻¹ = I - ℒ,  ℒ = H ψ K
    holds    (I + H φ K)⁻¹ = I - H ψ K
""")
SEQUENTIAL("""Lemma 6, consequences  the factor and its inverse commute
    printed  𝒦 = ℒ + 𝒦 ℒ,  𝒦 = ℒ + ℒ 𝒦,  ℒ 𝒦 = 𝒦 ℒ
    holds    H φ K = H ψ K + H φ K H ψ K = H ψ K + H ψ K H φ K
""")(each((KAPPA, ELL + KAPPA @ ELL), (KAPPA, ELL + ELL @ KAPPA), (ELL @ KAPPA, KAPPA @ ELL)))
SEQUENTIAL("""Lemma 6, proof  the inverse, multiplied out
    printed  φ - ψ = ψ K H φ;  (I - ℒ)(I + 𝒦) = I - H ψ K + (I - H ψ K) H φ K = I
    holds    φ - ψ = ψ K H φ;  (I - H ψ K)(I + H φ K) = I
""")(
    each(
        (phi - psi, psi @ K @ H @ phi),
        ((I - ELL) @ (I + KAPPA), I - ELL + (I - ELL) @ H @ phi @ K),
        (I - ELL + (I - ELL) @ H @ phi @ K, identity(JOINT)),
    )
)
