"""Translation hinge: moves along x, y and z and never turns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.model.hinges.hinge import Coordinate, ScrewHinge
from linkwise.spatial.array import Array, frozen


@dataclass(frozen=True)
class Translation(ScrewHinge):
    """H = [0, 1], constant; q = (x, y, z) [m] in O+, v = q̇; no bias."""

    @cached_property
    def screws(self) -> Array:
        return frozen(np.hstack([np.zeros((3, 3)), np.eye(3)]))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("x", "m"), Coordinate("y", "m"), Coordinate("z", "m"))
