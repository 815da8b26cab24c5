"""Cylindrical hinge: a turn and an independent travel along the same axis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.model.hinges.hinge import Coordinate, ScrewHinge, axis_text
from linkwise.spatial.array import Array, frozen, unit


@dataclass(frozen=True)
class Cylindrical(ScrewHinge):
    """H = [[axis, 0], [0, axis]], constant; q = (angle [rad], travel [m]), v = q̇; no bias.

    Attributes:
        axis: Direction of the axis in O (and in O+); made a unit vector.
    """

    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", tuple(unit(self.axis, "cylindrical axis").tolist()))

    @cached_property
    def screws(self) -> Array:
        none = (0.0, 0.0, 0.0)
        return frozen(np.array([[*self.axis, *none], [*none, *self.axis]]))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("angle", "rad"), Coordinate("travel", "m"))

    def describe(self) -> str:
        return f"cylindrical {axis_text(self.axis)}"

    def reversed(self) -> Cylindrical:
        x, y, z = self.axis
        return Cylindrical((-x, -y, -z))
