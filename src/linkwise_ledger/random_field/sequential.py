"""Document 004, section 8: sequential estimation."""

from __future__ import annotations

from linkwise.algebra.expr import identity
from linkwise.algebra.rules import BY_NAME
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
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Entry, definition, holds, misprint, same
from linkwise_ledger.literal import (
    diagonal,
    each,
    rule_named,
    unformed,
)
from linkwise_ledger.random_field.field import ELL, KAPPA
from linkwise_ledger.recursion import kalman_filter
from linkwise_ledger.standard import check_products


def _check_filter(case: Case) -> float:
    """The loop against the innovations factors of 𝓜, which know nothing of it: D, and I + H φ K."""
    at = kalman_filter(case)
    unit = case.matrix(I + KAPPA)
    found = unit @ diagonal(case, at.D, D) @ unit.T
    errors = [apart(found, case.matrix(mass))]
    for blocks, expr in ((at.P, P), (at.G, G), (at.Pi, Pi), (at.Pi_bar, Pi_bar)):
        errors.append(apart(diagonal(case, blocks, expr), case.matrix(expr)))
    for blocks, expr in ((at.K, K), (at.psi, E_psi)):
        below = [k for k in case.outward if case.parent(k) >= 0]
        errors += [apart(blocks[k], case.block(expr, case.parent(k), k)) for k in below]
    return max(errors)


SEQUENTIAL: tuple[Entry, ...] = (
    holds(
        "(8.1)",
        "innovations factorisation",
        "𝓜 = (I + 𝒦) D (I + 𝒦*)",
        "𝓜 = (I + H φ K) D (I + H φ K)*",
        same(mass, BY_NAME["innovations factorisation"].right),
        note="The sentence below it prints K for 𝒦.",
    ),
    holds(
        "sec. 8, inverse of the factor",
        "inverse of the causal factor",
        "(I + 𝒦)⁻¹ = I - ℒ",
        "(I + H φ K)⁻¹ = I - H ψ K",
        rule_named("whitening inverts coloring"),
    ),
    holds(
        "(8.2)",
        "factored inverse",
        "𝓜⁻¹ = (I - ℒ*) D⁻¹ (I - ℒ)",
        "𝓜⁻¹ = (I - H ψ K)* D⁻¹ (I - H ψ K)",
        same(mass.inv, BY_NAME["inverse of the mass operator"].right),
    ),
    holds(
        "sec. 8, Kalman filter",
        "Riccati recursion",
        "P(0) = 0; for k = 1 … N: P(k) = ψ(k,k-1) P(k-1) ψ*(k,k-1) + M(k);  D = H P H*;  "
        "G = P H* D⁻¹;  K(k+1,k) = φ(k+1,k) G(k);  τ = G H;  τ̄ = I - τ;  "
        "ψ(k+1,k) = φ(k+1,k) τ̄(k)",
        "the loop, with k-1 the children, leaves P, D, G, K, Π, Π̄, E_ψ with "
        "𝓜 = (I + H φ K) D (I + H φ K)*",
        _check_filter,
        note="Our Π is the document's τ.",
    ),
    misprint(
        "sec. 8, D, G, τ, τ̄",
        "the recursion's quantities as operators",
        "D = H P H,  G = P H* D⁻¹,  τ = G H,  τ̄ = I - τ",
        "D = H P H*,  G = P H* D⁻¹,  Π = G H,  Π̄ = I - Π",
        each((D, H @ P @ H.T), (G, P @ H.T @ D.inv), (Pi, G @ H), (Pi_bar, I - Pi)),
        unformed(lambda: H @ P @ H),
        note="A star is missing: H P H cannot be formed. The loop above it prints it right.",
    ),
    definition("sec. 8, K", "shifted gain", "K = E_φ G", check=same(K, E_phi @ G)),
    definition(
        "sec. 8, E_ψ",
        "articulated shift",
        "E_ψ = E_φ τ̄",
        "E_ψ = E_φ Π̄",
        same(E_psi, E_phi @ Pi_bar),
    ),
    definition("sec. 8, ψ", "articulated propagation", "ψ = (I - E_ψ)⁻¹", check=check_products),
    holds(
        "sec. 8, ψ(k, m)",
        "blocks of ψ are products of steps",
        "ψ(k,m) = Π ψ(i+1,i), i = m … k-1",
        "ψ(k,m) = ψ(k,k-1) ⋯ ψ(m+1,m)",
        check_products,
        note="The order of the factors is not printed: the one with the largest i stands left.",
    ),
    holds(
        "Lemma 3",
        "state covariance from articulated inertia",
        "S = P + φ̃ P + P φ̃* + φ K D K* φ*",
        "φ M φ* = P + φ̃ P + P φ̃* + φ K D K* φ*",
        rule_named("articulated and innovations"),
    ),
    holds(
        "(8.3)",
        "state covariance from articulated inertia",
        "S = P + φ̃ P + P φ̃* + φ K D K* φ*",
        "φ M φ* = P + φ̃ P + P φ̃* + φ K D K* φ*",
        rule_named("articulated and innovations"),
    ),
    holds(
        "Lemma 3, proof: projection",
        "the projected covariance",
        "τ̄ P τ̄* = τ̄ P",
        "Π̄ P Π̄* = Π̄ P",
        rule_named("Π̄ P Π̄* = Π̄ P"),
    ),
    misprint(
        "Lemma 3, proof: Riccati equation",
        "Riccati equation, two forms",
        "P = E_ψ P E_ψ* + M = E_φ P E_φ* + M - K D K",
        "P = E_ψ P E_ψ* + M = E_φ P E_φ* + M - K D K*",
        each(
            (P, E_psi @ P @ E_psi.T + M),
            (P, E_phi @ P @ E_phi.T + M - K @ D @ K.T),
        ),
        unformed(lambda: E_phi @ P @ E_phi.T + M - K @ D @ K),
        note="A star is missing: K D K cannot be formed.",
    ),
    holds(
        "Lemma 4",
        "innovations factorisation",
        "𝓜 = [I + 𝒦] D [I + 𝒦]*,  𝒦 = H φ̃ G = H φ K",
        "𝓜 = (I + H φ K) D (I + H φ K)*,  H φ̃ G = H φ K",
        each(
            (mass, (I + H @ phi_tilde @ G) @ D @ (I + H @ phi_tilde @ G).T),
            (H @ phi_tilde @ G, KAPPA),
        ),
    ),
    holds(
        "Lemma 4, proof",
        "from the state covariance to the factors",
        "H (8.3) H*, with D = H P H*",
        "H [P + φ̃ P + P φ̃* + φ K D K* φ*] H* = (I + H φ K) D (I + H φ K)*",
        each(
            (
                H @ BY_NAME["articulated and innovations"].right @ H.T,
                BY_NAME["innovations factorisation"].right,
            )
        ),
    ),
    holds(
        "Lemma 5",
        "what relates φ to ψ",
        "ψ⁻¹ = φ⁻¹ + K H",
        "ψ⁻¹ = φ⁻¹ + K H",
        rule_named("ψ⁻¹ = φ⁻¹ + K H"),
    ),
    holds(
        "Lemma 5, proof",
        "steps from ψ⁻¹ to φ⁻¹",
        "ψ⁻¹ = I - E_ψ = I - E_φ τ̄ = φ⁻¹ + E_φ τ = φ⁻¹ + K H",
        "ψ⁻¹ = I - E_ψ = I - E_φ Π̄ = φ⁻¹ + E_φ Π = φ⁻¹ + K H",
        each(
            (psi.inv, I - E_psi),
            (psi.inv, I - E_phi @ Pi_bar),
            (psi.inv, phi.inv + E_phi @ Pi),
            (psi.inv, phi.inv + K @ H),
        ),
    ),
    holds(
        "Lemma 6",
        "inverse of the causal factor",
        "(I + 𝒦)⁻¹ = I - ℒ,  ℒ = H ψ K",
        "(I + H φ K)⁻¹ = I - H ψ K",
        rule_named("whitening inverts coloring"),
    ),
    holds(
        "Lemma 6, consequences",
        "the factor and its inverse commute",
        "𝒦 = ℒ + 𝒦 ℒ,  𝒦 = ℒ + ℒ 𝒦,  ℒ 𝒦 = 𝒦 ℒ",
        "H φ K = H ψ K + H φ K H ψ K = H ψ K + H ψ K H φ K",
        each((KAPPA, ELL + KAPPA @ ELL), (KAPPA, ELL + ELL @ KAPPA), (ELL @ KAPPA, KAPPA @ ELL)),
    ),
    holds(
        "Lemma 6, proof",
        "the inverse, multiplied out",
        "φ - ψ = ψ K H φ;  (I - ℒ)(I + 𝒦) = I - H ψ K + (I - H ψ K) H φ K = I",
        "φ - ψ = ψ K H φ;  (I - H ψ K)(I + H φ K) = I",
        each(
            (phi - psi, psi @ K @ H @ phi),
            ((I - ELL) @ (I + KAPPA), I - ELL + (I - ELL) @ H @ phi @ K),
            (I - ELL + (I - ELL) @ H @ phi @ K, identity(JOINT)),
        ),
    ),
)
