"""Shifts and their resolvents: φ = (I - E_φ)⁻¹ = I + E_φ + E_φ² + ..., and the same for ψ."""

from linkwise.algebra.rule import rule
from linkwise.algebra.symbols import E_phi, E_psi, H, I, K, phi, phi_tilde, psi, psi_tilde

RESOLVENT = (
    rule("φ is the resolvent of E_φ", phi.inv, I - E_phi, "002 3.36", kind="definition"),
    rule("ψ is the resolvent of E_ψ", psi.inv, I - E_psi, "000 App. A", kind="definition"),
    rule("φ̃ is φ without I", phi_tilde, phi - I, "002 3.40", kind="definition"),
    rule("ψ̃ is ψ without I", psi_tilde, psi - I, "001 5.11", kind="definition"),
    rule("φ E_φ", phi @ E_phi, phi - I, "002 3.41", kind="axiom"),
    rule("E_φ φ", E_phi @ phi, phi - I, "002 3.41", kind="axiom"),
    rule("φ̃ = φ E_φ", phi_tilde, phi @ E_phi, "002 3.41"),
    rule("φ̃ = E_φ φ", phi_tilde, E_phi @ phi, "002 3.41"),
    rule("ψ̃ = ψ E_ψ", psi_tilde, psi @ E_psi, "004 sec. 8"),
    rule("ψ̃ = E_ψ ψ", psi_tilde, E_psi @ psi, "004 sec. 8"),
    rule("ψ E_φ", psi @ E_phi, psi - I + psi @ K @ H, "000 4.3", kind="axiom"),
    rule("E_φ ψ", E_phi @ psi, psi - I + K @ H @ psi, "000 4.3", kind="axiom"),
)
