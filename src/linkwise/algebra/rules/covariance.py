"""The covariances of document 004, section 10, and the closed form of the inverse (Lemma 12)."""

from linkwise.algebra.rule import rule
from linkwise.algebra.symbols import (
    D,
    E_phi,
    E_psi,
    H,
    I,
    K,
    M,
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
