"""The interface of coordinates of an orientation or a position.

Coordinates x (k numbers) move with the basic velocity w, an angular velocity ω or a linear one,
both in the axes of the reference:

    ẋ = E(x) w,      ẍ = E(x) ẇ + Ė w,      w = E⁺(x) ẋ                             (003 (4), (5))

E has three columns and full rank where the coordinates are not singular; E⁺ is its inverse, or its
pseudo-inverse for redundant coordinates (k > 3), E⁺ E = I.

Your own coordinates are a class with `labels`, `of`, `place`, `matrix` and `rate`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.spatial.array import Array

LIMIT = 1e-6
"""Coordinates closer [rad] to a singularity raise: E is as large as the inverse of this, its rate
as the square, which leaves about four digits."""


class Representation(ABC):
    """Coordinates of an orientation (3, 3) or a position (3,)."""

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """Names of the k coordinates."""

    @abstractmethod
    def of(self, place: Array) -> Array:
        """Coordinates (..., k) of orientations (..., 3, 3) or positions (..., 3)."""

    @abstractmethod
    def place(self, x: Array) -> Array:
        """The orientation or position with coordinates (..., k)."""

    @abstractmethod
    def matrix(self, x: Array) -> Array:
        """E(x) (..., k, 3)."""

    def inverse(self, x: Array) -> Array:
        """E⁺(x) (..., 3, k); in closed form in this library."""
        return np.asarray(np.linalg.pinv(self.matrix(x)), dtype=np.float64)

    @abstractmethod
    def rate(self, x: Array, w: Array) -> Array:
        """Ė w (..., k) while the basic velocity is w (..., 3): ẍ where ẇ is zero."""

    def difference(self, x: Array, goal: Array) -> Array:
        """The difference (..., k) from x to coordinates of a goal."""
        return goal - x

    def singular(self, x: Array) -> NDArray[Any]:
        """Which coordinates (...) have no rates for some velocity; default: none."""
        return np.zeros(x.shape[:-1], dtype=np.bool_)

    def trouble(self, x: Array) -> str:
        """Why coordinates (k,) are singular, and alternatives."""
        return (
            f"they are singular at {np.array2string(x, precision=6)}. Use other coordinates there."
        )
