"""Document 001, section 1: what it announces of operational space."""

from linkwise.algebra.symbols import B, J, Omega, mass
from linkwise_ledger.entry import Entry, holds
from linkwise_ledger.literal import each

SECTION_1: tuple[Entry, ...] = (
    holds(
        "sec. 1, operational space",
        "compliance of the tip",
        "J 𝓜⁻¹ Jᵀ can be made by recursions; its inverse is the mass matrix of operational space",
        "J 𝓜⁻¹ J* = B* Ω B, Ω = ψ* H* D⁻¹ H ψ",
        each((J @ mass.inv @ J.T, B.T @ Omega @ B)),
    ),
)
