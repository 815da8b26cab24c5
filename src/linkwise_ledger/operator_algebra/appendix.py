"""Document 000, appendix: proofs, line by line."""

from __future__ import annotations

from linkwise.algebra.symbols import (
    D,
    H,
    K,
    P,
    mass,
    phi,
    phi_tilde,
)
from linkwise_ledger.literal import each
from linkwise_ledger.operator_algebra.inversion import COLORING
from linkwise_ledger.section import Section

_STATE = P + phi_tilde @ P + P @ phi_tilde.T + phi @ K @ D @ K.T @ phi.T

APPENDIX = Section()
APPENDIX.algebra("""Lemma A.1  what relates φ to ψ
    holds    ψ⁻¹ = φ⁻¹ + K H
""")
APPENDIX.algebra("""Lemma A.1, proof  steps from ψ⁻¹ to φ⁻¹
    printed  φ⁻¹ = I - E_φ, ψ⁻¹ = I - E_ψ;  ψ⁻¹ = I - E_ψ = (I - E_φ) + K H = φ⁻¹ + K H
    holds    φ⁻¹ = I - E_φ, ψ⁻¹ = I - E_ψ = I - E_φ + K H
""")
APPENDIX.algebra("""Lemma 4.1, proof: Riccati equation  the Riccati recursion as an equation
    holds    M = P - E_ψ P E_ψ*
    note     Follows from (4.1).
""")
APPENDIX.algebra("""Lemma 4.1, proof: projection  the projected articulated inertia
    printed  τ̄ P τ̄* = τ̄ P,  τ̄ = I - G H
    holds    Π̄ P Π̄* = Π̄ P
""")
APPENDIX.algebra("""Lemma 4.1, proof: φ̃  φ without the identity
    holds    φ̃ = φ - I = φ E_φ
""")
APPENDIX.algebra("""Lemma 4.1, proof: M  two more forms of the Riccati equation
    holds    M = P - E_ψ P E_φ* = P - E_φ P E_φ* + K D K*
""")
APPENDIX.algebra("""Lemma 4.1, proof: φ M φ*  from articulated inertia to the covariance of forces
    holds    φ M φ* = P + φ̃ P + P φ̃* + φ K D K* φ*
""")
APPENDIX("""Lemma 4.1, proof: 𝓜  the factors collected
    printed  𝓜 = H φ M φ* H* = H [P + φ̃ P + P φ̃* + φ K D K* φ*] H* = D + H φ K D + D K* φ* H* + H
             φ K D K* φ* H* = [I + H φ K] D [I + H φ K]*
    holds    𝓜 = H [P + φ̃ P + P φ̃* + φ K D K* φ*] H* = (I + H φ K) D (I + H φ K)*, and the line
             between
""")(
    each(
        (mass, H @ _STATE @ H.T),
        (
            mass,
            D + H @ phi @ K @ D + D @ K.T @ phi.T @ H.T + H @ phi @ K @ D @ K.T @ phi.T @ H.T,
        ),
        (mass, COLORING @ D @ COLORING.T),
    )
)
APPENDIX.algebra("""Lemma 4.2, proof  inverse by a matrix identity
    printed  [I + H φ K]⁻¹ = I - H φ [I + K H φ]⁻¹ K = I - H φ [ψ⁻¹ φ]⁻¹ K = I - H ψ K
    holds    (I + H φ K)⁻¹ = I - H φ (I + K H φ)⁻¹ K = I - H φ (ψ⁻¹ φ)⁻¹ K = I - H ψ K
""")
APPENDIX.algebra("""Lemma 5.1, proof  the hinge map taken out
    holds    (I - H ψ K) H φ = H (I - ψ K H) φ;  I - ψ K H = ψ φ⁻¹
""")
