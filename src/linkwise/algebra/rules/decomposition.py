"""Products of a causal, a memoryless and an anticausal operator as sums of the three kinds."""

from linkwise.algebra.rule import rule
from linkwise.algebra.symbols import (
    D,
    G,
    H,
    I,
    K,
    M,
    N,
    Omega,
    P,
    Pi_bar,
    R,
    Upsilon,
    Xi,
    mass,
    phi,
    phi_tilde,
    psi,
    psi_tilde,
)

W = I - H @ psi @ K

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
