"""Prismatic (sliding) hinge: travel along an axis fixed in both bodies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.model.hinges.hinge import Coordinate, ScrewHinge, axis_text
from linkwise.spatial.array import Array, frozen, unit


@dataclass(frozen=True)
class Prismatic(ScrewHinge):
    """H = [0, axis], constant; q the travel [m], v = q̇ [m/s]; no bias.

    Attributes:
        axis: Direction of travel in O+ (and in O); made a unit vector.
    """

    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", tuple(unit(self.axis, "prismatic axis").tolist()))

    @cached_property
    def screws(self) -> Array:
        return frozen(np.array([[0.0, 0.0, 0.0, *self.axis]]))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("travel", "m"),)

    def describe(self) -> str:
        return f"prismatic {axis_text(self.axis)}"

    def reversed(self) -> Prismatic:
        x, y, z = self.axis
        return Prismatic((-x, -y, -z))
