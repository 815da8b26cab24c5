"""Pin (revolute) hinge: one turn about an axis fixed in both bodies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.model.hinges.hinge import Coordinate, ScrewHinge, axis_text
from linkwise.spatial.array import Array, frozen, unit


@dataclass(frozen=True)
class Pin(ScrewHinge):
    """H = [axis, 0], constant; q the angle [rad], v = q̇ [rad/s]; no bias.

    Attributes:
        axis: Direction of the axis in O (and in O+); made a unit vector.
    """

    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", tuple(unit(self.axis, "pin axis").tolist()))

    @cached_property
    def screws(self) -> Array:
        return frozen(np.array([[*self.axis, 0.0, 0.0, 0.0]]))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("angle", "rad"),)

    def describe(self) -> str:
        return f"pin {axis_text(self.axis)}"

    def reversed(self) -> Pin:
        x, y, z = self.axis
        return Pin((-x, -y, -z))
