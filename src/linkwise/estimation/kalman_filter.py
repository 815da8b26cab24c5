"""The Kalman filter of a mechanism: joint forces in, innovations out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from linkwise.spatial.array import Array

if TYPE_CHECKING:
    from linkwise.estimation.random_field import RandomField


@dataclass(frozen=True, eq=False)
class KalmanFilter:
    """A filter run over measurements, from the tips to the base; every quantity can be read.

    Recursion (004 (9.3)-(9.10), on a tree; c is a child, p the parent):
        P(k) = Σ_c φ(k,c) P⁺(c) φ*(k,c) + M(k)       D(k) = H(k) P(k) H*(k) + N(k)
        z(k) = Σ_c φ(k,c) z⁺(c)                      G(k) = P(k) H*(k) D⁻¹(k)
        ε(k) = T(k) - H(k) z(k)                      z⁺(k) = z(k) + G(k) ε(k)
        P⁺(k) = P(k) - G(k) H(k) P(k)
    What runs are the operators: z = ψ K T, ε = (I - H ψ K) T ... (`linkwise.estimation.OPERATORS`),
    each computed when it is first read.

    In mechanics P is the articulated inertia, D that of the hinge, z the residual force.

    Attributes:
        field: The random field.
        T: Joint forces (nv,) or (batch, nv). Every vector below has their batch axis, if any.
    """

    field: RandomField
    T: Array

    @cached_property
    def P(self) -> Array:
        """Covariance of X(k) - z(k), before T(k) is seen (n, 6, 6)."""
        return np.stack(self.field.blocks("P"))

    @cached_property
    def P_plus(self) -> Array:
        """Covariance of X(k) - z⁺(k), after it (n, 6, 6)."""
        return np.stack(self.field.blocks("P_plus"))

    @cached_property
    def D(self) -> tuple[Array, ...]:
        """Covariance of the innovation of each body, (d, d) with the d freedoms of its hinge."""
        return self.field.blocks("D")

    @cached_property
    def G(self) -> tuple[Array, ...]:
        """Kalman gain of each body (6, d), how far T(k) moves its state."""
        return self.field.blocks("G")

    @cached_property
    def K(self) -> tuple[Array, ...]:
        """The gain K(p,k) = φ(p,k) G(k) at the parent of each body (6, d)."""
        return self.field.blocks("K")

    @cached_property
    def psi(self) -> Array:
        """Transition ψ(p,k) = φ(p,k) (I - G(k) H(k)) from each body to its parent (n, 6, 6)."""
        return np.stack(self.field.blocks("psi"))

    @cached_property
    def z(self) -> Array:
        """Prediction of the state X(k) from the joints outboard of k (..., n, 6)."""
        return self.field.apply("z", self.T)

    @cached_property
    def z_plus(self) -> Array:
        """The same with T(k) taken into account (..., n, 6)."""
        return self.field.apply("z_plus", self.T)

    @cached_property
    def eps(self) -> Array:
        """Innovations (..., nv), what T has that its prediction H z had not."""
        return self.field.apply("eps", self.T)

    @cached_property
    def nu(self) -> Array:
        """Residuals D⁻¹ ε (..., nv), joint accelerations with all inboard joints locked."""
        return self.field.apply("nu", self.T)

    @cached_property
    def white(self) -> Array:
        """Innovations as white noise (..., nv), L⁻¹ ε with D = L L*; independent, of variance 1."""
        out, start = np.empty_like(self.eps), self.field.mech.v_start.tolist()
        for k, D_k in enumerate(self.D):
            s = slice(start[k], start[k + 1])
            out[..., s] = np.linalg.solve(np.linalg.cholesky(D_k), self.eps[..., s, None])[..., 0]
        return out

    @property
    def log_likelihood(self) -> Array:
        """Logarithm of the probability density of T, a number or (batch,).

        -½ (ε* D⁻¹ ε + log det D + nv log 2π): no mass matrix, since det 𝓜 = det D.
        """
        log_det = sum(float(np.linalg.slogdet(D_k)[1]) for D_k in self.D)
        quadratic = np.sum(self.eps * self.nu, axis=-1)
        constant = self.field.mech.nv * np.log(2.0 * np.pi)
        return -0.5 * (quadratic + log_det + constant)
