"""What every set of coordinates of an orientation or a position can say of itself.

Coordinates x (k numbers) of something with three freedoms move with the basic velocity w, which is
an angular velocity ω or a linear one, both in the axes of the reference:

    ẋ = E(x) w,      ẍ = E(x) ẇ + Ė w,      w = E⁺(x) ẋ                             (003 (4), (5))

E has three columns and full rank where the coordinates are not singular; E⁺ is its inverse, or for
redundant coordinates (k > 3) its pseudo-inverse, E⁺ E = I.

Coordinates of one's own are a class with `labels`, `of`, `place`, `matrix` and `rate`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.spatial.array import Array

LIMIT = 1e-6
"""How near [rad] to a singularity coordinates are refused: E is as large as the inverse of that,
and its rate as the square, of which about four digits are left."""


class Representation(ABC):
    """One way to write down an orientation (3, 3) or a position (3,)."""

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """Names of the k coordinates."""

    @abstractmethod
    def of(self, place: Array) -> Array:
        """Coordinates (..., k) of orientations (..., 3, 3) or positions (..., 3)."""

    @abstractmethod
    def place(self, x: Array) -> Array:
        """The orientation or position that coordinates (..., k) stand for."""

    @abstractmethod
    def matrix(self, x: Array) -> Array:
        """E(x) (..., k, 3)."""

    def inverse(self, x: Array) -> Array:
        """E⁺(x) (..., 3, k); of those here in closed form."""
        return np.asarray(np.linalg.pinv(self.matrix(x)), dtype=np.float64)

    @abstractmethod
    def rate(self, x: Array, w: Array) -> Array:
        """Ė w (..., k) while the basic velocity is w (..., 3): ẍ where ẇ is zero."""

    def difference(self, x: Array, target: Array) -> Array:
        """The way (..., k) from x to coordinates of a target, the short one."""
        return target - x

    def singular(self, x: Array) -> NDArray[Any]:
        """Which of the coordinates (...) have no rates for some velocity; here none."""
        return np.zeros(x.shape[:-1], dtype=np.bool_)

    def trouble(self, x: Array) -> str:
        """Why coordinates (k,) are singular, and what to do."""
        return f"they are singular at {np.array2string(x, precision=6)}. Take others there."
