"""The identities, family by family. Each is data; its property test is generated."""

from linkwise.algebra.rule import Rule, rule
from linkwise.algebra.symbols import (
    D,
    Delta_phi,
    Delta_psi,
    E_phi,
    E_psi,
    G,
    H,
    I,
    K,
    L,
    M,
    N,
    Omega,
    P,
    P_plus,
    Phi,
    Pi,
    Pi_bar,
    Psi,
    R,
    S,
    Upsilon,
    Xi,
    mass,
    phi,
    phi_tilde,
    psi,
    psi_tilde,
)

W = I - H @ psi @ K  # whitening
C = I + H @ phi @ K  # coloring

# Shifts and their resolvents: φ = (I - E_φ)⁻¹ = I + E_φ + E_φ² + ..., and the same for ψ.

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

# The Riccati recursion as equations between its parts, and the Lyapunov equation of R.

RICCATI = (
    rule("D = H P H* + N", H @ P @ H.T, D - N, "000 sec. 4", kind="definition"),
    rule("gain", P @ H.T, G @ D, "000 sec. 4", kind="axiom"),
    rule("G = P H* D⁻¹", P @ H.T @ D.inv, G, "000 sec. 4"),
    rule("shifted gain", E_phi @ G, K, "000 sec. 4", kind="definition"),
    rule("H G", H @ G, I - N @ D.inv, "004 sec. 8, with N", kind="axiom"),
    rule("H G = I", H @ G, I, "004 sec. 8", needs="N = 0"),
    rule("projection", Pi, G @ H, "004 sec. 8", kind="definition"),
    rule("complement", Pi_bar, I - G @ H, "004 sec. 8", kind="definition"),
    rule("P⁺", P_plus, P - G @ H @ P, "004 9.4", kind="definition"),
    rule("articulated shift", E_psi, E_phi - K @ H, "000 4.3", kind="definition"),
    rule("E_ψ = E_φ Π̄", E_psi, E_phi @ Pi_bar, "000 4.3"),
    rule("Riccati equation", M, P - E_phi @ P @ E_phi.T + K @ D @ K.T, "004 Lemma 3", kind="axiom"),
    rule(
        "Riccati, both articulated",
        M,
        P - E_psi @ P @ E_psi.T - K @ N @ K.T,
        "000 App. A, with N",
    ),
    rule("Riccati, one articulated", M, P - E_psi @ P @ E_phi.T, "000 App. A"),
    rule("Riccati with P⁺", P, E_phi @ P_plus @ E_phi.T + M, "004 9.5"),
    rule("Lyapunov equation", M, R - E_phi @ R @ E_phi.T, "004 6.2", kind="axiom"),
    rule("Π is a projection", Pi @ Pi, Pi, "004 sec. 8", needs="N = 0"),
    rule("H Π̄ = 0", H @ Pi_bar, 0.0 * H, "004 sec. 8", needs="N = 0"),
    rule("Π̄ G = 0", Pi_bar @ G, 0.0 * G, "004 sec. 8", needs="N = 0"),
    rule("E_ψ G = 0", E_psi @ G, 0.0 * K, "004 sec. 8", needs="N = 0"),
    rule("Π̄ P Π̄* = Π̄ P", Pi_bar @ P @ Pi_bar.T, Pi_bar @ P, "000 App. A", needs="N = 0"),
    rule("φ G", phi @ G, G + phi @ K, "001 a.13", kind="axiom"),
    rule("ψ G", psi @ G, G + psi @ K @ N @ D.inv, "001 a.25, with N", kind="axiom"),
    rule("ψ G = G", psi @ G, G, "001 a.25", needs="N = 0"),
    rule(
        "costate equation",
        H.T @ D.inv @ H,
        Upsilon - E_psi.T @ Upsilon @ E_psi + Xi,
        "004 Lemma 9, with what is left between siblings",
        kind="axiom",
    ),
    rule("G* Υ", G.T @ Upsilon, D.inv @ H, "004 Lemma 9", kind="axiom", needs="N = 0"),
    rule(
        "G* Υ with armature",
        G.T @ Upsilon,
        D.inv @ H - D.inv @ N @ (D.inv @ H - K.T @ Upsilon @ E_psi) - G.T @ Xi,
        "004 Lemma 9, with N",
        kind="axiom",
    ),
    rule("H P Υ = H", H @ P @ Upsilon, H, "004 Lemma 9", needs="N = 0"),
)

# The innovations factorisation of the mass operator, its inverse, and what relates φ to ψ.

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

# Causal times memoryless times anticausal operators as sums of the three kinds.

DECOMPOSITION = (
    rule(
        "composite decomposition",
        phi @ M @ phi.T,
        R + phi_tilde @ R + R @ phi_tilde.T,
        "004 Lemma 1",
    ),
    rule(
        "composite mass operator",
        mass,
        H @ R @ H.T + H @ phi_tilde @ R @ H.T + H @ R @ phi_tilde.T @ H.T + N,
        "004 sec. 10, with N",
    ),
    rule("mixed decomposition", psi @ M @ phi.T, P + psi_tilde @ P + P @ phi_tilde.T, "001 a.46"),
    rule(
        "articulated decomposition",
        psi @ M @ psi.T,
        P + psi_tilde @ P + P @ psi_tilde.T - psi @ K @ N @ K.T @ psi.T,
        "001 a.47, with N",
    ),
    rule(
        "articulated and innovations",
        phi @ M @ phi.T,
        P + phi_tilde @ P + P @ phi_tilde.T + phi @ K @ D @ K.T @ phi.T,
        "004 Lemma 3",
    ),
    rule(
        "articulated and innovations, by G",
        phi @ M @ phi.T,
        P + phi_tilde @ P + P @ phi_tilde.T + phi_tilde @ P @ H.T @ D.inv @ H @ P @ phi_tilde.T,
        "001 a.48",
    ),
    rule(
        "smoothed bias",
        W.T @ D.inv @ H @ psi @ M @ phi.T,
        W.T @ D.inv @ H @ psi_tilde @ P + K.T @ psi.T @ Pi_bar.T + G.T,
        "001 a.50",
    ),
    rule(
        "costate covariance",
        psi.T @ H.T @ D.inv @ H @ psi,
        Upsilon + psi_tilde.T @ Upsilon + Upsilon @ psi_tilde + psi.T @ Xi @ psi,
        "004 Lemma 9, with the cross-branch term ψ* Ξ ψ",
    ),
    rule(
        "costate covariance of a chain",
        Omega,
        Upsilon + psi_tilde.T @ Upsilon + Upsilon @ psi_tilde,
        "004 10.1",
        where="serial chains",
    ),
    rule("no siblings", Xi, 0.0 * Xi, "002 serial chains", kind="axiom", where="serial chains"),
    rule("Ω from the mass operator", phi.T @ H.T @ mass.inv @ H @ phi, Omega, "000 5.5"),
)

# The covariances of document 004, section 10, and the closed form of the inverse (Lemma 12).

STATE = phi @ M @ phi.T
SMOOTHED = psi @ M @ psi.T - P @ Omega @ P
SMOOTHER = I - P @ psi.T @ H.T @ D.inv @ H

UPSILON_PLUS = E_phi.T @ Upsilon @ E_phi
INSIDE = (
    P
    + P @ UPSILON_PLUS @ P
    + P @ E_phi.T @ psi.T @ (Pi_bar.T @ UPSILON_PLUS @ P - I)
    + (P @ UPSILON_PLUS @ Pi_bar - I) @ psi @ E_phi @ P
)

COVARIANCE = (
    rule("covariance of the innovations", W @ mass @ W.T, D, "004 Lemma 7"),
    rule("covariance of the residuals", D.inv @ W @ mass @ W.T @ D.inv, D.inv, "004 sec. 10"),
    rule(
        "covariance of the filtered state",
        phi @ K @ D @ K.T @ phi.T,
        (R - P) + phi_tilde @ (R - P) + (R - P) @ phi_tilde.T,
        "004 sec. 10",
    ),
    rule(
        "covariance of the costate",
        phi.T @ H.T @ mass.inv @ mass @ mass.inv @ H @ phi,
        Omega,
        "004 Lemma 9",
    ),
    rule(
        "covariance of the smoothed state",
        STATE @ H.T @ mass.inv @ H @ STATE,
        STATE - psi @ M @ psi.T + P @ Omega @ P,
        "004 sec. 10",
        needs="N = 0",
    ),
    rule(
        "covariance of the smoothing error",
        STATE - STATE @ H.T @ mass.inv @ H @ STATE,
        SMOOTHED,
        "004 7.5, Lemma 11",
        needs="N = 0",
    ),
    rule(
        "smoothing error by Υ",
        SMOOTHED,
        (P - P @ Upsilon @ P)
        + (I - P @ Upsilon) @ psi_tilde @ P
        + P @ psi_tilde.T @ (I - Upsilon @ P),
        "004 Lemma 11",
        where="serial chains",
        needs="N = 0",
    ),
    rule(
        "smoothing error from the filtering error",
        SMOOTHED,
        SMOOTHER @ psi @ M @ psi.T @ SMOOTHER.T,
        "004 10.4",
        needs="N = 0",
    ),
    rule(
        "state from filtered state and costate",
        STATE @ H.T @ mass.inv,
        psi @ K + P @ phi.T @ H.T @ mass.inv,
        "004 sec. 4, f = z + P α",
    ),
    rule(
        "covariance of the correction",
        P @ psi.T @ H.T @ D.inv @ W @ mass @ W.T @ D.inv @ H @ psi @ P,
        P @ Omega @ P,
        "004 sec. 10",
    ),
    rule(
        "inertial force error by Υ",
        M - M @ Omega @ M,
        (M - M @ Upsilon @ M) - M @ (Upsilon @ psi_tilde + psi_tilde.T @ Upsilon) @ M,
        "004 sec. 10",
        where="serial chains",
    ),
    rule("smoothing error at the joints", H @ SMOOTHED, 0.0 * (H @ P), "004 10.6", needs="N = 0"),
    rule(
        "inertial force error",
        M - M @ phi.T @ H.T @ mass.inv @ H @ phi @ M,
        M - M @ Omega @ M,
        "004 sec. 10",
    ),
    rule(
        "closed form of the inverse",
        mass.inv,
        D.inv
        - K.T @ Upsilon @ K
        + K.T @ psi.T @ (Upsilon @ K - H.T @ D.inv)
        + (K.T @ Upsilon - D.inv @ H) @ psi @ K,
        "004 Lemma 12",
        where="serial chains",
    ),
    rule(
        "closed form of the inverse on trees",
        mass.inv,
        D.inv
        - K.T @ Upsilon @ K
        + K.T @ psi.T @ (Upsilon @ K - H.T @ D.inv)
        + (K.T @ Upsilon - D.inv @ H) @ psi @ K
        + K.T @ psi.T @ Xi @ psi @ K,
        "004 Lemma 12, with the cross-branch term",
    ),
    rule(
        "closed form of the inverse by U",
        mass.inv,
        D.inv @ H @ INSIDE @ H.T @ D.inv,
        "004 Lemma 12",
        where="serial chains",
        needs="N = 0",
    ),
    rule(
        "closed form of the inverse by E_ψ",
        mass.inv,
        D.inv
        + K.T @ Upsilon @ K
        + K.T @ psi.T @ (E_psi.T @ Upsilon @ K - H.T @ D.inv)
        + (K.T @ Upsilon @ E_psi - D.inv @ H) @ psi @ K,
        "004 Lemma 12",
        where="serial chains",
    ),
)

# JPL 88-11 in its symbols: E_φ = S Δ_φ, Φ = φ S, Ψ = ψ S, L = Δ_φ G (identities A.1 - A.7).

JPL88 = (
    rule("E_φ = S Δ_φ", S @ Delta_phi, E_phi, "001 a.11", kind="definition"),
    rule("E_ψ = S Δ_ψ", S @ Delta_psi, E_psi, "001 a.10"),
    rule("a.6", Phi, phi @ S, "001 a.6", kind="definition"),
    rule("a.7", Psi, psi @ S, "001 a.7", kind="definition"),
    rule("a.8", Psi @ Delta_psi, psi_tilde, "001 a.8"),
    rule("a.9", Phi @ Delta_phi, phi_tilde, "001 a.9"),
    rule("a.10", psi.inv, I - S @ Delta_psi, "001 a.10"),
    rule("a.11", phi.inv, I - S @ Delta_phi, "001 a.11"),
    rule("a.12", L, Delta_phi @ G, "001 a.12", kind="definition"),
    rule("a.13", phi_tilde @ G, Phi @ L, "001 a.13"),
    rule("K = S L", S @ L, K, "001 a.12"),
    rule("a.14", phi, psi @ (I + S @ L @ H @ phi), "001 a.14"),
    rule("a.15", psi, (I - Psi @ L @ H) @ phi, "001 a.15"),
    rule("a.16", Phi, Psi @ (I + L @ H @ Phi), "001 a.16"),
    rule("a.17", Psi, (I - Psi @ L @ H) @ Phi, "001 a.17"),
    rule("a.22", phi, (I + Phi @ L @ H) @ psi, "001 a.22"),
    rule("a.23", psi, phi @ (I - S @ L @ H @ psi), "001 a.23"),
    rule("a.24", Phi, (I + Phi @ L @ H) @ Psi, "001 a.24"),
    rule("a.25", Psi, Phi @ (I - L @ H @ Psi), "001 a.25"),
    rule("a.26", Phi @ L @ H @ psi, Psi @ L @ H @ phi, "001 a.26"),
    rule("a.27", Phi @ L @ H @ Psi, Psi @ L @ H @ Phi, "001 a.27"),
    rule("a.32", H @ phi, (I + H @ Phi @ L) @ H @ psi, "001 a.32"),
    rule("a.33", H @ Phi, (I + H @ Phi @ L) @ H @ Psi, "001 a.33"),
    rule("a.34", H @ Psi, H @ Phi @ (I - L @ H @ Psi), "001 a.34"),
    rule("a.35", H @ psi, (I - H @ Psi @ L) @ H @ phi, "001 a.35"),
    rule("a.36", H @ Psi, (I - H @ Psi @ L) @ H @ Phi, "001 a.36"),
    rule("a.37", H @ Phi, H @ Psi @ (I + L @ H @ Phi), "001 a.37"),
    rule("a.38", H @ Phi @ L @ H @ Psi, H @ Psi @ L @ H @ Phi, "001 a.38"),
    rule("a.39", Phi @ L, Psi @ L @ (I + H @ Phi @ L), "001 a.39"),
    rule("a.40", Psi @ L, (I - Psi @ L @ H) @ Phi @ L, "001 a.40"),
    rule("a.41", Psi @ L, Phi @ L @ (I - H @ Psi @ L), "001 a.41"),
    rule("a.42", Phi @ L, (I + Phi @ L @ H) @ Psi @ L, "001 a.42"),
    rule("a.43", Psi @ L @ H @ Phi @ L, Phi @ L @ H @ Psi @ L, "001 a.43"),
)


ALL: tuple[Rule, ...] = (
    *RESOLVENT,
    *RICCATI,
    *FACTORISATION,
    *DECOMPOSITION,
    *COVARIANCE,
    *JPL88,
)
"""Every identity of the table."""

BY_NAME: dict[str, Rule] = {rule.name: rule for rule in ALL}
assert len(BY_NAME) == len(ALL), "two rules of one name"
