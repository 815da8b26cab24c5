"""Which point of a shape is the lowest over a plane? Formulas for numbers and for graph nodes.

A plane has the normal n and two tangents, here in body axes. A contact of a round shape is the
point with the tangent plane ⟂ n, which moves over the surface:

    ellipsoid   c − A A* n / |A* n|, with the semi-axes as columns of A
    cylinder    on the rim of each end, towards u: what is left of −n without its part along the
                axis; and two more on the lower end, at ±120° from u. Lying, it rolls on the two
                points at u; standing, it has a triangle whose first corner is always where it
                tips. An upright axis leaves no u: a millionth of a fixed direction decides then.

Of a shape with many corners a few are chosen that carry it, each the lowest one over a plane that
leans a little to another side. Over a flat face these are its outermost corners; the choice does
not depend on rounding. A corner that is not chosen is at most LEAN times the size of the shape
below one that is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.spatial.choice import gate, norm, where
from linkwise.spatial.vector import cross

Vector = tuple[float, float, float]

LEAN = 0.02
"""Slope of the planes that choose corners."""

UPRIGHT = 1e-6
"""Slope below which a cylinder stands upright."""

LEANS = {
    1: ((0.0, 0.0),),
    2: ((1.0, 0.0), (-1.0, 0.0)),
    3: tuple((float(np.cos(a)), float(np.sin(a))) for a in np.pi / 6 * np.array([1, 5, 9])),
    4: tuple((x * 0.5**0.5, y * 0.5**0.5) for x in (1.0, -1.0) for y in (1.0, -1.0)),
}
"""For each number of corners that are chosen, the directions in which the planes lean."""


class Support(ABC):
    """A point that moves over a body with the direction of the plane."""

    @property
    @abstractmethod
    def middle(self) -> Vector:
        """The middle of the shape in the body frame [m]."""

    @abstractmethod
    def lowest(self, axes: Any) -> Any:
        """The point (3,) in the body frame.

        Args:
            axes: The normal and two tangents of the plane (3, 3), by rows, in body axes.
        """


@dataclass(frozen=True, slots=True)
class Corners(Support):
    """One of many corners: the lowest over a plane that leans to one side.

    Attributes:
        points: The corners, in the body frame [m].
        lean: To which side, along the two tangents.
    """

    points: tuple[Vector, ...]
    lean: tuple[float, float] = (0.0, 0.0)

    @property
    def middle(self) -> Vector:
        """The middle of the corners."""
        x, y, z = np.mean(self.points, axis=0).tolist()
        return x, y, z

    def lowest(self, axes: Any) -> Any:
        """The point (3,) in the body frame."""
        n, *tangents = axes
        best: list[Any] = [*self.points[0]]
        height = self._height(self.points[0], n, tangents)
        for corner in self.points[1:]:
            lower = height - self._height(corner, n, tangents)
            height = height - gate(lower, lower)
            best = [x + gate(lower, y - x) for x, y in zip(best, corner, strict=True)]
        return np.array(best, dtype=object)

    def _height(self, corner: Vector, n: Any, tangents: Any) -> Any:
        height = sum(a * x for a, x in zip(n, corner, strict=True))
        for slope, t in zip(self.lean, tangents, strict=True):
            if slope:
                height = height + LEAN * slope * sum(a * x for a, x in zip(t, corner, strict=True))
        return height


@dataclass(frozen=True, slots=True)
class Rim(Support):
    """A point on the rim of a cylinder.

    Attributes:
        centre: The centre of the cylinder in the body frame [m].
        axis: Its axis, of unit length.
        across: A direction across the axis, of unit length.
        radius: Its radius [m].
        half: Half its length [m].
        end: On which end: 1 and -1 along the axis, 0 for the lower one.
        turn: Angle from u [rad].
    """

    centre: Vector
    axis: Vector
    across: Vector
    radius: float
    half: float
    end: int
    turn: float = 0.0

    @property
    def middle(self) -> Vector:
        """Its centre."""
        return self.centre

    def lowest(self, axes: Any) -> Any:
        """The point (3,) in the body frame."""
        n, axis = np.array(list(axes[0]), dtype=object), np.array(self.axis)
        along = sum(n * axis)
        down = along * axis - n + UPRIGHT * np.array(self.across)
        u = down / norm(down)
        if self.turn:
            u = float(np.cos(self.turn)) * u + float(np.sin(self.turn)) * cross(axis, u)
        height = self.end * self.half if self.end else where(along, -self.half, self.half)
        return np.array(self.centre) + height * axis + self.radius * u


@dataclass(frozen=True, slots=True)
class Ellipsoid(Support):
    """The point of an ellipsoid.

    Attributes:
        centre: Its centre in the body frame [m].
        semi_axes: Its semi-axes in the body frame, one a row [m].
    """

    centre: Vector
    semi_axes: tuple[Vector, Vector, Vector]

    @property
    def middle(self) -> Vector:
        """Its centre."""
        return self.centre

    def lowest(self, axes: Any) -> Any:
        """The point (3,) in the body frame."""
        rows = np.array(self.semi_axes)
        along = [sum(a * x for a, x in zip(row, axes[0], strict=True)) for row in rows]
        size = norm(along)
        moved = sum(row * (x / size) for row, x in zip(rows, along, strict=True))
        return np.array(self.centre) - moved
