"""The Bryson-Frazier smoother of a mechanism: innovations in, accelerations and forces out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.estimation.kalman_filter import KalmanFilter
from linkwise.spatial.array import Array


@dataclass(frozen=True, eq=False)
class Smoother:
    """A smoother run over the residuals of a filter, from the base to the tips.

    Recursion (004 (9.11)-(9.14), (10.2), on a tree; p is the parent):
        θ̈(k) = ν(k) - K*(p,k) α(p)                   α(k) = φ*(p,k) α(p) + H*(k) θ̈(k)
        Υ(k) = ψ*(p,k) Υ(p) ψ(p,k) + H*(k) D⁻¹(k) H(k)
        f(k) = z(k) + P(k) α(k)
    The costate α is the spatial acceleration of each body, θ̈ the joint acceleration: given joint
    forces without velocities and gravity, `vdot` is forward dynamics.

    Attributes:
        filter: The filter before it.
    """

    filter: KalmanFilter

    @property
    def T(self) -> Array:
        """The measurements (nv,) or (batch, nv)."""
        return self.filter.T

    @cached_property
    def alpha(self) -> Array:
        """Costate ψ* H* ν (..., n, 6), the spatial accelerations [rad/s², m/s²]."""
        return self.filter.field.apply("alpha", self.T)

    @cached_property
    def vdot(self) -> Array:
        """Joint accelerations ν - K* α = 𝓜⁻¹ T (..., nv)."""
        return self.filter.field.apply("vdot", self.T)

    @cached_property
    def f(self) -> Array:
        """Smoothed state E[X | T] (..., n, 6), the force each body gets through its hinge."""
        return self.filter.field.apply("f", self.T)

    @cached_property
    def W_hat(self) -> Array:
        """E[W | T] = M α (..., n, 6), the inertial forces."""
        return self.filter.field.apply("W_hat", self.T)

    @cached_property
    def Upsilon(self) -> Array:
        """Covariance of α(k) (n, 6, 6); its inverse, if any, is the inertia felt at the body."""
        return np.stack(self.filter.field.blocks("Upsilon"))

    @cached_property
    def error(self) -> Array:
        """Covariance P - P Υ P of X(k) - f(k) (n, 6, 6), what the measurements leave open."""
        return np.stack(self.filter.field.covariance_blocks("X - f"))
