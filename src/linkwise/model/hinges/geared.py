"""The rotor of a motor that a gear ties to a hinge."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from linkwise.arguments import is_a, number
from linkwise.model.hinges.hinge import ConstantHinge, Coordinate, axis_text, screw_motion
from linkwise.model.hinges.screw_hinges import AxisHinge
from linkwise.spatial.array import Array, frozen
from linkwise.spatial.pose import Pose


@dataclass(frozen=True)
class Geared(ConstantHinge):
    """A turn by `ratio` q about an axis of the mount: H = [ratio axis, 0]; v = q̇.

    As the hinge of a lump, with the coordinate q of the body's hinge, it moves the rotor of a motor
    that sits on the parent: `Builder.motor`.

    Attributes:
        axis: The axis of the rotor, in its mount; made a unit vector.
        ratio: Turns of the rotor for one of q [rad/rad or rad/m]; negative turns the other way.
        mount: Pose of the rotor at q = 0, in hinge frame O+.
    """

    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    ratio: float = 1.0
    mount: Pose = field(default_factory=Pose.identity)

    def __post_init__(self) -> None:
        AxisHinge.__post_init__(self)  # type: ignore[arg-type]
        object.__setattr__(self, "ratio", number(self.ratio, "ratio of a gear"))
        is_a(Pose, self.mount, "mount of a rotor")

    @cached_property
    def constant_map(self) -> Array:
        return frozen(self.ratio * np.array([[*self.axis, 0.0, 0.0, 0.0]]))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("drive", "rad"),)

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        return self.coordinates

    def describe(self) -> str:
        return f"geared {axis_text(self.axis)}, {self.ratio:.4g}"

    def pose(self, q: Array) -> Pose:
        turn = screw_motion(
            np.array([*self.axis, 0.0, 0.0, 0.0]), self.ratio * np.asarray(q)[..., 0]
        )
        return turn if self.mount is Pose.identity() else self.mount @ turn
