"""Orientation as a unit quaternion x = (w, u), four numbers for three freedoms.

With ω in the axes of the reference

    ẋ = ½ (0, ω) x = E ω,      E = ½ (−u*,  w 1 − ũ)                                         (1)

E* E = ¼ (u u* + w² 1 − ũ ũ) = ¼ |x|² 1, so that E⁺ = 4 E*. And

    Ė ω = ½ (0, ω) ẋ = −¼ |ω|² x                                                            (2)

which is along x, across all rates: E⁺ Ė ω = 0. No orientation is singular; x and −x are one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.spatial import quaternion
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise.tasks.representation.representation import Representation


@dataclass(frozen=True, slots=True)
class QuaternionParameters(Representation):
    """Unit quaternions (w, x, y, z), w ≥ 0: Euler parameters."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The four entries."""
        return ("w", "i", "j", "k")

    def of(self, place: Array) -> Array:
        """The quaternion with w ≥ 0."""
        return quaternion.from_matrix(place)

    def place(self, x: Array) -> Array:
        """The orientation; lengths other than one are made one."""
        return quaternion.to_matrix(quaternion.normalise(x))

    def matrix(self, x: Array) -> Array:
        """(1)."""
        w, u = x[..., :1, None], x[..., 1:]
        return 0.5 * np.concatenate([-u[..., None, :], w * np.eye(3) - skew(u)], axis=-2)

    def inverse(self, x: Array) -> Array:
        """4 E*."""
        return 4.0 * np.swapaxes(self.matrix(x), -1, -2)

    def rate(self, x: Array, w: Array) -> Array:
        """(2)."""
        return -0.25 * (w * w).sum(axis=-1, keepdims=True) * x

    def difference(self, x: Array, target: Array) -> Array:
        """To the target or to its opposite, which is the same orientation: to the nearer one."""
        across = (x * target).sum(axis=-1, keepdims=True)
        return np.where(across < 0.0, -target, target) - x
