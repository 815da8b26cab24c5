"""Document 000, appendix: proofs, line by line."""

from __future__ import annotations

from linkwise.algebra.rules import BY_NAME
from linkwise.algebra.symbols import (
    D,
    E_phi,
    E_psi,
    H,
    I,
    K,
    M,
    P,
    Pi_bar,
    mass,
    phi,
    phi_tilde,
    psi,
)
from linkwise_ledger.entry import Entry, holds
from linkwise_ledger.literal import each, rule_named
from linkwise_ledger.operator_algebra.inversion import COLORING, WHITENING

_STATE = P + phi_tilde @ P + P @ phi_tilde.T + phi @ K @ D @ K.T @ phi.T

APPENDIX: tuple[Entry, ...] = (
    holds(
        "Lemma A.1",
        "what relates φ to ψ",
        "ψ⁻¹ = φ⁻¹ + K H",
        "ψ⁻¹ = φ⁻¹ + K H",
        rule_named("ψ⁻¹ = φ⁻¹ + K H"),
    ),
    holds(
        "Lemma A.1, proof",
        "steps from ψ⁻¹ to φ⁻¹",
        "φ⁻¹ = I - E_φ, ψ⁻¹ = I - E_ψ;  ψ⁻¹ = I - E_ψ = (I - E_φ) + K H = φ⁻¹ + K H",
        "φ⁻¹ = I - E_φ, ψ⁻¹ = I - E_ψ = I - E_φ + K H",
        each((phi.inv, I - E_phi), (psi.inv, I - E_psi), (psi.inv, I - E_phi + K @ H)),
    ),
    holds(
        "Lemma 4.1, proof: Riccati equation",
        "the Riccati recursion as an equation",
        "M = P - E_ψ P E_ψ*",
        "M = P - E_ψ P E_ψ*",
        rule_named("Riccati, both articulated"),
        note="Follows from (4.1).",
    ),
    holds(
        "Lemma 4.1, proof: projection",
        "the projected articulated inertia",
        "τ̄ P τ̄* = τ̄ P,  τ̄ = I - G H",
        "Π̄ P Π̄* = Π̄ P",
        each((Pi_bar @ P @ Pi_bar.T, Pi_bar @ P)),
    ),
    holds(
        "Lemma 4.1, proof: φ̃",
        "φ without the identity",
        "φ̃ = φ - I = φ E_φ",
        "φ̃ = φ - I = φ E_φ",
        each((phi_tilde, phi - I), (phi_tilde, phi @ E_phi)),
    ),
    holds(
        "Lemma 4.1, proof: M",
        "two more forms of the Riccati equation",
        "M = P - E_ψ P E_φ* = P - E_φ P E_φ* + K D K*",
        "M = P - E_ψ P E_φ* = P - E_φ P E_φ* + K D K*",
        each((M, P - E_psi @ P @ E_phi.T), (M, P - E_phi @ P @ E_phi.T + K @ D @ K.T)),
    ),
    holds(
        "Lemma 4.1, proof: φ M φ*",
        "from articulated inertia to the covariance of forces",
        "φ M φ* = P + φ̃ P + P φ̃* + φ K D K* φ*",
        "φ M φ* = P + φ̃ P + P φ̃* + φ K D K* φ*",
        each((phi @ M @ phi.T, _STATE)),
    ),
    holds(
        "Lemma 4.1, proof: 𝓜",
        "the factors collected",
        "𝓜 = H φ M φ* H* = H [P + φ̃ P + P φ̃* + φ K D K* φ*] H* "
        "= D + H φ K D + D K* φ* H* + H φ K D K* φ* H* = [I + H φ K] D [I + H φ K]*",
        "𝓜 = H [P + φ̃ P + P φ̃* + φ K D K* φ*] H* "
        "= (I + H φ K) D (I + H φ K)*, and the line between",
        each(
            (mass, H @ _STATE @ H.T),
            (
                mass,
                D + H @ phi @ K @ D + D @ K.T @ phi.T @ H.T + H @ phi @ K @ D @ K.T @ phi.T @ H.T,
            ),
            (mass, COLORING @ D @ COLORING.T),
        ),
    ),
    holds(
        "Lemma 4.2, proof",
        "inverse by a matrix identity",
        "[I + H φ K]⁻¹ = I - H φ [I + K H φ]⁻¹ K = I - H φ [ψ⁻¹ φ]⁻¹ K = I - H ψ K",
        "(I + H φ K)⁻¹ = I - H φ (I + K H φ)⁻¹ K = I - H φ (ψ⁻¹ φ)⁻¹ K = I - H ψ K",
        each(
            (BY_NAME["whitening inverts coloring"].left, I - H @ phi @ (I + K @ H @ phi).inv @ K),
            (COLORING.inv, I - H @ phi @ (psi.inv @ phi).inv @ K),
            (COLORING.inv, WHITENING),
        ),
    ),
    holds(
        "Lemma 5.1, proof",
        "the hinge map taken out",
        "(I - H ψ K) H φ = H (I - ψ K H) φ;  I - ψ K H = ψ φ⁻¹",
        "(I - H ψ K) H φ = H (I - ψ K H) φ;  I - ψ K H = ψ φ⁻¹",
        each(
            (WHITENING @ H @ phi, H @ (I - psi @ K @ H) @ phi),
            (I - psi @ K @ H, psi @ phi.inv),
        ),
    ),
)
