"""Helical (screw) hinge: a turn and a travel along the same axis, in a fixed ratio."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.hinges.hinge import Coordinate, ScrewHinge, axis_text
from linkwise.spatial.array import Array, floats, frozen, unit


@dataclass(frozen=True)
class Helical(ScrewHinge):
    """H = [axis, pitch axis], constant; q the angle [rad], v = q̇ [rad/s]; no bias.

    Attributes:
        axis: Direction of the axis in O (and in O+); made a unit vector.
        pitch: Travel for one radian [m/rad]; a thread with lead s per turn has s / 2π.
    """

    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    pitch: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", tuple(unit(self.axis, "helical axis").tolist()))
        pitch = floats(self.pitch, "pitch of a helical hinge")
        if pitch.shape != () or not np.isfinite(pitch):
            raise ModelError(f"pitch of a helical hinge is {self.pitch}; give a finite m/rad.")
        object.__setattr__(self, "pitch", float(pitch))

    @cached_property
    def screws(self) -> Array:
        axis = np.array(self.axis)
        return frozen(np.concatenate([axis, self.pitch * axis])[None])

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("angle", "rad"),)

    def describe(self) -> str:
        return f"helical {axis_text(self.axis)}, {self.pitch:.4g} m/rad"

    def reversed(self) -> Helical:
        x, y, z = self.axis
        return Helical((-x, -y, -z), self.pitch)
