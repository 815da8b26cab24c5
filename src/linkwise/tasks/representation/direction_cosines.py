"""Orientation as its nine direction cosines: the three columns s of the rotation matrix.

Each column is fixed in the node, so with ω in the axes of the reference

    ṡ = ω × s,      E = (−s̃1, −s̃2, −s̃3) one below the other                                  (1)

E* E = Σ (1 − s s*) = 2 · 1, so that E⁺ = ½ E*. And

    Ė ω = ω × (ω × s) for each of them,      E⁺ Ė ω = ½ Σ (ω · s) s × ω = 0.                   (2)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import cross
from linkwise.tasks.representation.representation import Representation


@dataclass(frozen=True, slots=True)
class DirectionCosines(Representation):
    """The axes x, y and z of the node, in the axes of the reference, one after the other."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Of the axis in front, the component behind."""
        return tuple(f"{axis} along {onto}" for axis in "xyz" for onto in "xyz")

    def of(self, place: Array) -> Array:
        """Column by column."""
        return np.swapaxes(place, -1, -2).reshape(*place.shape[:-2], 9)

    def place(self, x: Array) -> Array:
        """The matrix that the columns make."""
        return np.swapaxes(x.reshape(*x.shape[:-1], 3, 3), -1, -2)

    def matrix(self, x: Array) -> Array:
        """(1)."""
        return -skew(x.reshape(*x.shape[:-1], 3, 3)).reshape(*x.shape[:-1], 9, 3)

    def inverse(self, x: Array) -> Array:
        """½ E*."""
        return 0.5 * np.swapaxes(self.matrix(x), -1, -2)

    def rate(self, x: Array, w: Array) -> Array:
        """(2)."""
        w, columns = w[..., None, :], x.reshape(*x.shape[:-1], 3, 3)
        found = cross(w, cross(w, columns))
        return found.reshape(*found.shape[:-2], 9)
