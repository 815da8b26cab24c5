"""Every covariance of document 004, section 10, as an operator.

The printed decompositions by Υ hold on serial chains; on a tree siblings are correlated through
their parent, and terms with Ξ are added. Measurement noise N is not in the document: with it P is
that of D = H P H* + N, ψ M ψ* becomes ψ (M + K N K*) ψ*, and all other forms stay.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.algebra import BODY, JOINT, H, I, M, R, Space, phi, phi_tilde
from linkwise.algebra.expr import Expr
from linkwise.algebra.family import Family
from linkwise.errors import unknown_name
from linkwise.estimation.operator import Form


@dataclass(frozen=True, slots=True)
class Covariance:
    """The covariance of one vector of the problem.

    Attributes:
        name: The vector: "X", "X - z" ...
        space: Its space: BODY, six numbers per body; or JOINT, one per joint velocity.
        meaning: What it is, in words.
        source: The source of the covariance.
        form: The covariance as a product, as an expression in a family.
        sum: The same as memoryless, causal and anticausal parts; valid on any tree.
        diagonal: Its diagonal blocks, memoryless; None where no recursion gives them alone.
    """

    name: str
    space: Space
    meaning: str
    source: str
    form: Form
    sum: Form
    diagonal: Form | None


def process(F: Family) -> Expr:
    """M (004 5.3)."""
    return M


def innovation(F: Family) -> Expr:
    """D (004 Lemma 7)."""
    return F.D


def residual(F: Family) -> Expr:
    """D⁻¹ (004 sec. 10)."""
    return F.D.inv


def state(F: Family) -> Expr:
    """S = φ M φ* (004 6.1)."""
    return phi @ M @ phi.T


def state_sum(F: Family) -> Expr:
    """R + φ̃ R + R φ̃*."""
    return R + phi_tilde @ R + R @ phi_tilde.T


def costate(F: Family) -> Expr:
    """Ω = ψ* H* D⁻¹ H ψ (004 10.1)."""
    return F.psi.T @ H.T @ F.D.inv @ H @ F.psi


def filter_error(F: Family) -> Expr:
    """ψ M ψ*, or ψ (M + K N K*) ψ* with measurement noise (004 Lemma 8)."""
    core = M if F.noise is None else M + F.K @ F.noise @ F.K.T
    return F.psi @ core @ F.psi.T


def filter_error_sum(F: Family) -> Expr:
    """P + ψ̃ P + P ψ̃*."""
    return F.P + F.psi_tilde @ F.P + F.P @ F.psi_tilde.T


def costate_sum(F: Family) -> Expr:
    """Υ + ψ̃* Υ + Υ ψ̃ + ψ* Ξ ψ: the last is missing in 004 10.1, and zero on a chain."""
    Upsilon, psi_tilde = F.Upsilon, F.psi_tilde
    return Upsilon + psi_tilde.T @ Upsilon + Upsilon @ psi_tilde + F.psi.T @ F.Xi @ F.psi


def filtered_sum(F: Family) -> Expr:
    """(R - P) + φ̃ (R - P) + (R - P) φ̃*."""
    difference = R - F.P
    return difference + phi_tilde @ difference + difference @ phi_tilde.T


def smoothing_error_sum(F: Family) -> Expr:
    """(P - P Υ P) + (I - P Υ) ψ̃ P + P ψ̃* (I - Υ P) - P ψ* Ξ ψ P (004 10.5 has no last term)."""
    P, Upsilon, psi_tilde = F.P, F.Upsilon, F.psi_tilde
    return (
        (P - P @ Upsilon @ P)
        + (I - P @ Upsilon) @ psi_tilde @ P
        + P @ psi_tilde.T @ (I - Upsilon @ P)
        - P @ F.psi.T @ F.Xi @ F.psi @ P
    )


def inverse_sum(F: Family) -> Expr:
    """D⁻¹ - K* Υ K + K* ψ* (Υ K - H* D⁻¹) + (K* Υ - D⁻¹ H) ψ K + K* ψ* Ξ ψ K (004 Lemma 12)."""
    K, Upsilon, inverse = F.K, F.Upsilon, F.D.inv
    return (
        inverse
        - K.T @ Upsilon @ K
        + K.T @ F.psi.T @ (Upsilon @ K - H.T @ inverse)
        + (K.T @ Upsilon - inverse @ H) @ F.psi @ K
        + K.T @ F.psi.T @ F.Xi @ F.psi @ K
    )


def measured_sum(F: Family) -> Expr:
    """H R H* + H φ̃ R H* + H R φ̃* H* (+ N)."""
    plain = H @ R @ H.T + H @ phi_tilde @ R @ H.T + H @ R @ phi_tilde.T @ H.T
    return plain if F.noise is None else plain + F.noise


def measured_diagonal(F: Family) -> Expr:
    """H R H* (+ N)."""
    return H @ R @ H.T if F.noise is None else H @ R @ H.T + F.noise


_ALL = (
    Covariance("W", BODY, "process noise", "004 5.3", process, process, process),
    Covariance(
        "X",
        BODY,
        "state: forces of the random field",
        "004 6.1",
        state,
        state_sum,
        lambda F: R,
    ),
    Covariance(
        "T",
        JOINT,
        "measurement: the mass matrix",
        "004 6.3",
        lambda F: F.factored,
        measured_sum,
        measured_diagonal,
    ),
    Covariance(
        "z",
        BODY,
        "filtered state",
        "004 sec. 10",
        lambda F: phi @ F.K @ F.D @ F.K.T @ phi.T,
        filtered_sum,
        lambda F: R - F.P,
    ),
    Covariance(
        "X - z",
        BODY,
        "what the filter does not know",
        "004 Lemma 8",
        filter_error,
        filter_error_sum,
        lambda F: F.P,
    ),
    Covariance("eps", JOINT, "innovations", "004 Lemma 7", innovation, innovation, innovation),
    Covariance("nu", JOINT, "residuals", "004 sec. 10", residual, residual, residual),
    Covariance(
        "alpha",
        BODY,
        "costate: spatial accelerations",
        "004 Lemma 9",
        costate,
        costate_sum,
        lambda F: F.Upsilon,
    ),
    Covariance(
        "vdot",
        JOINT,
        "joint accelerations: the inverse of the mass matrix",
        "004 Lemma 12",
        lambda F: F.factored.inv,
        inverse_sum,
        None,
    ),
    Covariance(
        "f",
        BODY,
        "smoothed state: forces at the hinges",
        "004 sec. 10",
        lambda F: state(F) @ H.T @ F.factored.inv @ H @ state(F),
        lambda F: state_sum(F) - filter_error_sum(F) + F.P @ costate_sum(F) @ F.P,
        lambda F: R - F.P + F.P @ F.Upsilon @ F.P,
    ),
    Covariance(
        "X - f",
        BODY,
        "what the smoother does not know",
        "004 7.5, Lemma 11",
        lambda F: filter_error(F) - F.P @ costate(F) @ F.P,
        smoothing_error_sum,
        lambda F: F.P - F.P @ F.Upsilon @ F.P,
    ),
    Covariance(
        "f - z",
        BODY,
        "what smoothing adds",
        "004 sec. 10",
        lambda F: F.P @ costate(F) @ F.P,
        lambda F: F.P @ costate_sum(F) @ F.P,
        lambda F: F.P @ F.Upsilon @ F.P,
    ),
    Covariance(
        "W_hat",
        BODY,
        "estimated inertial forces",
        "004 sec. 7; sec. 10 prints that of W - W_hat",
        lambda F: M @ costate(F) @ M,
        lambda F: M @ costate_sum(F) @ M,
        lambda F: M @ F.Upsilon @ M,
    ),
    Covariance(
        "W - W_hat",
        BODY,
        "what is not known of the inertial forces",
        "004 sec. 7",
        lambda F: M - M @ costate(F) @ M,
        lambda F: M - M @ costate_sum(F) @ M,
        lambda F: M - M @ F.Upsilon @ M,
    ),
)

COVARIANCES = {entry.name: entry for entry in _ALL}
"""All of them by name."""


def covariance(name: str) -> Covariance:
    """One of `COVARIANCES`."""
    if name not in COVARIANCES:
        raise unknown_name("covariance", name, COVARIANCES, owner="linkwise.estimation")
    return COVARIANCES[name]
