"""The innovations factorisation of the mass operator, its inverse, and what relates φ to ψ."""

from linkwise.algebra.rule import rule
from linkwise.algebra.symbols import D, H, I, K, M, N, mass, phi, psi

W = I - H @ psi @ K  # whitening
C = I + H @ phi @ K  # coloring

FACTORISATION = (
    rule(
        "Newton-Euler factorisation",
        mass,
        H @ phi @ M @ phi.T @ H.T + N,
        "000 3.2, with N",
        kind="definition",
    ),
    rule("ψ K H φ", psi @ K @ H @ phi, phi - psi, "001 a.18", kind="axiom"),
    rule("φ K H ψ", phi @ K @ H @ psi, phi - psi, "001 a.28", kind="axiom"),
    rule("ψ⁻¹ = φ⁻¹ + K H", psi.inv, phi.inv + K @ H, "000 Lemma A.1"),
    rule("mass operator by innovations", mass, C @ D @ C.T, "000 Lemma 4.1"),
    rule(
        "innovations factorisation",
        H @ phi @ M @ phi.T @ H.T,
        C @ D @ C.T - N,
        "000 Lemma 4.1, with N",
    ),
    rule("whitening inverts coloring", C.inv, W, "000 Lemma 4.2"),
    rule("coloring whitened", W @ C, I, "004 Lemma 6"),
    rule("whitened coloring", C @ W, I, "001 Fact 4.2"),
    rule("inverse of the mass operator", mass.inv, W.T @ D.inv @ W, "000 Lemma 4.3"),
    rule("whitened propagation", W @ H @ phi, H @ psi, "000 Lemma 5.1"),
    rule("colored propagation", C @ H @ psi, H @ phi, "001 a.32"),
    rule("gain through whitening", phi @ K @ W, psi @ K, "001 a.41"),
    rule("gain through coloring", psi @ K @ C, phi @ K, "001 a.39"),
    rule("(I - ψ K H) φ", (I - psi @ K @ H) @ phi, psi, "001 a.15"),
    rule("(I + φ K H) ψ", (I + phi @ K @ H) @ psi, phi, "001 a.22"),
    rule("K L = L K", H @ phi @ K @ H @ psi @ K, H @ psi @ K @ H @ phi @ K, "004 Lemma 6"),
    rule("K = L + K L", H @ phi @ K, H @ psi @ K + H @ phi @ K @ H @ psi @ K, "004 Lemma 6"),
)
