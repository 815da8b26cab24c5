"""The random quantities of document 004, each as what takes the white noise W to it.

W has the covariance M. What depends on it linearly is an operator, x = A W, so that E[x y*] is
A M B*, and equations between random quantities are equations between operators.
"""

from __future__ import annotations

from linkwise.algebra.expr import Expr
from linkwise.algebra.symbols import D, H, I, K, M, P, mass, phi, psi

KAPPA = H @ phi @ K
"""𝒦 of the document."""

ELL = H @ psi @ K
"""ℒ of the document."""

S_OF_X = phi @ M @ phi.T
"""S, covariance of the state."""

GAIN = S_OF_X @ H.T @ mass.inv
"""𝒢, the gain of the batch estimate."""

STATE = phi
"""X = φ W."""

OUTPUT = H @ phi
"""T = H φ W."""

ESTIMATE = GAIN @ OUTPUT
"""f = E(X/T) = 𝒢 T."""

NOISE_ESTIMATE = M @ phi.T @ H.T @ mass.inv @ OUTPUT
"""Ŵ = E(W/T)."""

FILTERED = psi @ K @ OUTPUT
"""z = ψ K T."""

INNOVATIONS = (I - ELL) @ OUTPUT
"""ε = (I - ℒ) T."""

RESIDUALS = D.inv @ INNOVATIONS
"""ν = D⁻¹ ε."""

COSTATE = psi.T @ H.T @ RESIDUALS
"""α = ψ* H* ν."""

ACCELERATION = (I - ELL).T @ RESIDUALS
"""θ̈ = (I - ℒ*) ν."""

FILTER_ERROR = STATE - FILTERED
"""X - z."""

SMOOTHER_ERROR = STATE - ESTIMATE
"""X - f."""

CORRECTION = I - P @ psi.T @ H.T @ D.inv @ H
"""From the error of the filtered state to that of the smoothed one (Lemma 10)."""


def covariance(x: Expr, y: Expr | None = None) -> Expr:
    """E[x y*], or E[x x*], of quantities given as operators on W."""
    return x @ M @ (x if y is None else y).T
