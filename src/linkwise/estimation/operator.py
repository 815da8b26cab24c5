"""The operators of the estimation problem: from white noise to forces, from forces to estimates.

Each is an expression in one Riccati family: that of the mechanism, or with measurement noise N that
of D = H P H* + N. The model is X = φ W, T = H X + n with covariances M of W and N of n; everything
else is linear in T.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from linkwise.algebra import Delta_phi, H, M, phi
from linkwise.algebra.expr import Expr
from linkwise.algebra.family import Family
from linkwise.errors import unknown_name

Form: TypeAlias = Callable[[Family], Expr]
"""An expression in the operators of a family."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of the problem.

    Attributes:
        name: Its key.
        meaning: What it gives, in words.
        source: Its source.
        form: The expression, from a family.
    """

    name: str
    meaning: str
    source: str
    form: Form


def costate(F: Family) -> Expr:
    """α = ψ* H* D⁻¹ (I - H ψ K) T, which is φ* H* 𝓜⁻¹ T (004 9.2 and 7.4)."""
    return F.psi.T @ H.T @ F.D.inv @ F.whitening


MODEL = (
    Operator("X", "state: spatial forces of the subtrees", "004 5.4", lambda F: phi),
    Operator("T", "what is measured: joint forces", "004 5.4", lambda F: H @ phi),
)
"""From the process noise W at the bodies."""

BLOCKS = (
    Operator("H", "projection on the joint axes", "004 5.2", lambda F: H),
    Operator("M", "process noise covariance: spatial inertia", "004 5.3", lambda F: M),
    Operator("phi", "transition φ(p,k) to the parent", "004 sec. 3", lambda F: Delta_phi),
    Operator("P", "covariance before the measurement at k", "004 9.5", lambda F: F.P),
    Operator("P_plus", "covariance after it", "004 9.4", lambda F: F.P_plus),
    Operator("D", "covariance of the innovation", "004 9.6", lambda F: F.D),
    Operator("G", "Kalman gain", "004 9.6", lambda F: F.G),
    Operator("K", "gain K(p,k), at the parent", "004 sec. 8", lambda F: Delta_phi @ F.G),
    Operator("psi", "transition ψ(p,k)", "004 sec. 8", lambda F: Delta_phi @ F.Pi_bar),
    Operator("Upsilon", "covariance of the costate", "004 10.2", lambda F: F.Upsilon),
)
"""Block diagonal: one block for each body."""

ESTIMATES = (
    Operator("z", "prediction of X(k) before T(k) is seen", "004 sec. 9", lambda F: F.psi @ F.K),
    Operator(
        "z_plus",
        "the same corrected by T(k)",
        "004 9.9",
        lambda F: F.psi @ F.K + F.G @ F.whitening,
    ),
    Operator("eps", "innovations T - H z", "004 9.7", lambda F: F.whitening),
    Operator("nu", "residuals D⁻¹ ε", "004 9.8", lambda F: F.D.inv @ F.whitening),
    Operator("alpha", "costate: spatial accelerations", "004 9.2", costate),
    Operator("vdot", "joint accelerations", "004 7.3, 9.1", lambda F: F.factored.inv),
    Operator(
        "f",
        "smoothed state E[X | T]: spatial forces at the hinges",
        "004 7.1, f = z + P α",
        lambda F: F.psi @ F.K + F.P @ costate(F),
    ),
    Operator("W_hat", "E[W | T]: inertial forces", "004 sec. 7", lambda F: M @ costate(F)),
)
"""From the measurement T."""

OPERATORS = {entry.name: entry for entry in (*BLOCKS, *ESTIMATES)}
"""Those of the filter and the smoother by name; `MODEL` has the two that W goes through."""


def operator(name: str) -> Operator:
    """One of `OPERATORS`."""
    return _named("operator", name, tuple(OPERATORS.values()))


def block(name: str) -> Operator:
    """One of `BLOCKS`."""
    return _named("block diagonal operator", name, BLOCKS)


def estimate(name: str) -> Operator:
    """One of `ESTIMATES`."""
    return _named("operator on T", name, ESTIMATES)


def _named(kind: str, name: str, among: Sequence[Operator]) -> Operator:
    for entry in among:
        if entry.name == name:
            return entry
    raise unknown_name(kind, name, [entry.name for entry in among], owner="linkwise.estimation")
