"""Estimates from all measurements at once."""

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
class BatchEstimate:
    """Conditional means E[X | T] and E[W | T] by explicit matrices, with no filter in them.

    The gain 𝒢 solves the Fredholm equation 𝒢 E[T T*] = E[X T*]: E[T T*] = 𝓜 (+ N) is assembled and
    factored, O(n³). The filter and the smoother get to the same numbers without it.
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
