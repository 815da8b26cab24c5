"""Gimbal hinge: three turns about successive axes, with three angles as coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.hinges.hinge import Coordinate, ScrewHinge, axis_text
from linkwise.spatial.array import Array, floats, frozen, unit

_Axis = tuple[float, float, float]


@dataclass(frozen=True)
class Gimbal(ScrewHinge):
    """Three turns, each about an axis carried by the one before: the default is x, then y, then z.

    q = three angles [rad], v = q̇. H depends on the second and third angle and loses rank where
    the first and third axis fall together (gimbal lock): use `Spherical` to go through there.

    Attributes:
        axes: The three axes, each in the frame reached before its own turn; made unit vectors.
    """

    axes: tuple[_Axis, _Axis, _Axis] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

    def __post_init__(self) -> None:
        axes = floats(self.axes, "axes of a gimbal hinge")
        if axes.shape != (3, 3):
            count = len(axes) if axes.ndim else 0
            raise ModelError(f"a gimbal hinge has three axes of three numbers; {count} were given.")
        units = [unit(a, f"gimbal axis {i + 1}") for i, a in enumerate(axes)]
        for i, (a, b) in enumerate(pairwise(units)):
            if float(np.linalg.norm(np.cross(a, b))) < 1e-9:
                raise ModelError(
                    f"axes {i + 1} and {i + 2} of a gimbal hinge are parallel, so it never has "
                    "three freedoms; neighbouring axes must differ."
                )
        object.__setattr__(self, "axes", tuple(tuple(a.tolist()) for a in units))

    @cached_property
    def screws(self) -> Array:
        return frozen(np.array([[*axis, 0.0, 0.0, 0.0] for axis in self.axes]))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return tuple(Coordinate(f"angle_{i}", "rad") for i in (1, 2, 3))

    def describe(self) -> str:
        return "gimbal " + " ".join(axis_text(a) for a in self.axes)
