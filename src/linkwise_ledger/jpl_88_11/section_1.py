"""Document 001, section 1: what it announces of operational space."""

from linkwise.algebra.symbols import B, J, Omega, mass
from linkwise_ledger.literal import each
from linkwise_ledger.section import Section

SECTION_1 = Section()
SECTION_1("""sec. 1, operational space  compliance of the tip
    printed  J 𝓜⁻¹ Jᵀ can be made by recursions; its inverse is the mass matrix of operational space
    holds    J 𝓜⁻¹ J* = B* Ω B, Ω = ψ* H* D⁻¹ H ψ
""")(each((J @ mass.inv @ J.T, B.T @ Omega @ B)))
