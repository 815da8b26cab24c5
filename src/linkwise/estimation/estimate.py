"""Estimates from measured joint forces: the Kalman filter, the smoother, and all at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from linkwise.algebra import H, M, phi
from linkwise.spatial.array import Array

if TYPE_CHECKING:
    from linkwise.estimation.random_field import RandomField


@dataclass(frozen=True, eq=False)
class KalmanFilter:
    """A filter run over measurements, from the tips to the base; with every quantity it has.

    Recursion (004 (9.3)-(9.10), on a tree; c is a child, p the parent):
        P(k) = Σ_c φ(k,c) P⁺(c) φ*(k,c) + M(k)       D(k) = H(k) P(k) H*(k) + N(k)
        z(k) = Σ_c φ(k,c) z⁺(c)                      G(k) = P(k) H*(k) D⁻¹(k)
        ε(k) = T(k) - H(k) z(k)                      z⁺(k) = z(k) + G(k) ε(k)
        P⁺(k) = P(k) - G(k) H(k) P(k)
    The operators z = ψ K T, ε = (I - H ψ K) T ... (`linkwise.estimation.OPERATORS`) run, each when
    it is first read.

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
        """Covariance of the innovation of each body, (d, d) for a hinge with d velocities."""
        return self.field.blocks("D")

    @cached_property
    def G(self) -> tuple[Array, ...]:
        """Kalman gain of each body (6, d), the effect of T(k) on its state."""
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
        """Innovations (..., nv), the part of T that its prediction H z lacks."""
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
        """Smoothed state E[X | T] (..., n, 6), the force on each body through its hinge."""
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
        """Covariance P - P Υ P of X(k) - f(k) (n, 6, 6), which the measurements leave."""
        return np.stack(self.filter.field.covariance_blocks("X - f"))


@dataclass(frozen=True, eq=False)
class BatchEstimate:
    """Conditional means E[X | T] and E[W | T] by explicit matrices, without a filter.

    The gain 𝒢 solves the Fredholm equation 𝒢 E[T T*] = E[X T*]: E[T T*] = 𝓜 (+ N) is assembled and
    factored, O(n³). The filter and the smoother give the same numbers without it.
    Source: 004 (7.1)-(7.5).
    Departs: 𝓜⁻¹ where the scan of (7.2) has M⁻¹.

    Attributes:
        field: The random field.
        T: Joint forces (nv,) or (batch, nv).
    """

    field: RandomField
    T: Array

    @cached_property
    def mass(self) -> Array:
        """E[T T*] (nv, nv)."""
        return self.field.covariance("T")

    @cached_property
    def gain(self) -> Array:
        """𝒢 = S H* 𝓜⁻¹ (6 n, nv)."""
        return self._solved(self._with_state).T

    @cached_property
    def process_gain(self) -> Array:
        """M φ* H* 𝓜⁻¹ (6 n, nv)."""
        return self._solved(self._with_process).T

    @cached_property
    def vdot(self) -> Array:
        """𝓜⁻¹ T (..., nv)."""
        return self._solved(self.T[..., None])[..., 0]

    @cached_property
    def f(self) -> Array:
        """E[X | T] = 𝒢 T (..., n, 6)."""
        return (self.T @ self.gain.T).reshape(*self.T.shape[:-1], -1, 6)

    @cached_property
    def W_hat(self) -> Array:
        """E[W | T] (..., n, 6)."""
        return (self.T @ self.process_gain.T).reshape(*self.T.shape[:-1], -1, 6)

    @cached_property
    def error(self) -> Array:
        """Covariance (I - 𝒢 H) S of X - f (6 n, 6 n)."""
        return self.field.covariance("X") - self.gain @ self._with_state

    @cached_property
    def process_error(self) -> Array:
        """Covariance of W - W_hat (6 n, 6 n)."""
        return self.field.covariance("W") - self.process_gain @ self._with_process

    @cached_property
    def _with_state(self) -> Array:
        """E[T X*] = H S (nv, 6 n)."""
        return self.field.numbers.matrix(lambda F: H @ phi @ M @ phi.T)

    @cached_property
    def _with_process(self) -> Array:
        """E[T W*] = H φ M (nv, 6 n)."""
        return self.field.numbers.matrix(lambda F: H @ phi @ M)

    def _solved(self, right: Array) -> Array:
        """𝓜⁻¹ times something."""
        self.field.numbers.require_resistance()
        return np.asarray(np.linalg.solve(self.mass, right), dtype=np.float64)
