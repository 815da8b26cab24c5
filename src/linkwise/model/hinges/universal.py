"""Universal (Hooke, Cardan) hinge: two turns about axes that meet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.hinges.hinge import Coordinate, ScrewHinge, axis_text
from linkwise.spatial.array import Array, frozen, unit


@dataclass(frozen=True)
class Universal(ScrewHinge):
    """First a turn about `axis_1`, fixed in O+, then about `axis_2`, fixed in O.

    q = (angle 1, angle 2) [rad], v = q̇. In O's axes H = [[rot_2* axis_1, 0], [axis_2, 0]]: the
    first row depends on angle 2, which gives the bias.

    Attributes:
        axis_1: Axis on the inboard body; made a unit vector.
        axis_2: Axis on the outboard body; made a unit vector, must differ from the first.
    """

    axis_1: tuple[float, float, float] = (1.0, 0.0, 0.0)
    axis_2: tuple[float, float, float] = (0.0, 1.0, 0.0)

    def __post_init__(self) -> None:
        first, second = unit(self.axis_1, "first axis"), unit(self.axis_2, "second axis")
        if float(np.linalg.norm(np.cross(first, second))) < 1e-9:
            raise ModelError(
                "the two axes of a universal hinge are parallel; a Pin has this freedom."
            )
        object.__setattr__(self, "axis_1", tuple(first.tolist()))
        object.__setattr__(self, "axis_2", tuple(second.tolist()))

    @cached_property
    def screws(self) -> Array:
        none = (0.0, 0.0, 0.0)
        return frozen(np.array([[*self.axis_1, *none], [*self.axis_2, *none]]))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("angle_1", "rad"), Coordinate("angle_2", "rad"))

    def describe(self) -> str:
        return f"universal {axis_text(self.axis_1)} {axis_text(self.axis_2)}"
