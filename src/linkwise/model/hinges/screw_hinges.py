"""Hinges that are products of screw motions: pin, prismatic, helical, cylindrical, universal ..."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.hinges.hinge import ConstantHinge, Coordinate, ScrewHinge, axis_text
from linkwise.spatial.array import Array, constant, floats, frozen, unit

_Axis = tuple[float, float, float]
_NONE = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class AxisHinge(ConstantHinge, ScrewHinge):
    """A hinge with one axis, fixed in both bodies: H is constant and there is no bias.

    Attributes:
        axis: Direction of the axis in O and in O+; made a unit vector.
    """

    axis: _Axis = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", tuple(unit(self.axis, f"{self.kind} axis").tolist()))

    @cached_property
    def constant_map(self) -> Array:
        return self.screws

    def describe(self) -> str:
        return f"{self.kind} {axis_text(self.axis)}"

    def reversed(self) -> Self:
        x, y, z = self.axis
        return replace(self, axis=(-x, -y, -z))


@dataclass(frozen=True)
class Pin(AxisHinge):
    """Pin (revolute) hinge: H = [axis, 0]; q the angle [rad], v = q̇ [rad/s].

    Attributes:
        axis: Direction of the axis in O and in O+; made a unit vector.
    """

    @cached_property
    def screws(self) -> Array:
        return frozen(np.array([[*self.axis, *_NONE]]))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("angle", "rad"),)


@dataclass(frozen=True)
class Prismatic(AxisHinge):
    """Prismatic (sliding) hinge: H = [0, axis]; q the travel [m], v = q̇ [m/s].

    Attributes:
        axis: Direction of travel in O and in O+; made a unit vector.
    """

    @cached_property
    def screws(self) -> Array:
        return frozen(np.array([[*_NONE, *self.axis]]))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("travel", "m"),)


@dataclass(frozen=True)
class Helical(AxisHinge):
    """Helical (screw) hinge: H = [axis, pitch axis]; q the angle [rad], v = q̇ [rad/s].

    Attributes:
        axis: Direction of the axis in O and in O+; made a unit vector.
        pitch: Travel for one radian [m/rad]; a thread with lead s per turn has s / 2π.
    """

    pitch: float = 0.01

    def __post_init__(self) -> None:
        AxisHinge.__post_init__(self)
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


@dataclass(frozen=True)
class Cylindrical(AxisHinge):
    """A turn and an independent travel along one axis: H = [[axis, 0], [0, axis]].

    q = (angle [rad], travel [m]), v = q̇.

    Attributes:
        axis: Direction of the axis in O and in O+; made a unit vector.
    """

    @cached_property
    def screws(self) -> Array:
        return frozen(np.array([[*self.axis, *_NONE], [*_NONE, *self.axis]]))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("angle", "rad"), Coordinate("travel", "m"))


@dataclass(frozen=True)
class Universal(ScrewHinge):
    """Universal (Hooke, Cardan) hinge: a turn about `axis_1`, fixed in O+, then about `axis_2`.

    q = (angle 1, angle 2) [rad], v = q̇. In O's axes H = [[rot_2* axis_1, 0], [axis_2, 0]]: the
    first row depends on angle 2, which gives the bias.

    Attributes:
        axis_1: Axis on the inboard body; made a unit vector.
        axis_2: Axis on the outboard body, fixed in O; made a unit vector, must differ from the
            first.
    """

    axis_1: _Axis = (1.0, 0.0, 0.0)
    axis_2: _Axis = (0.0, 1.0, 0.0)

    def __post_init__(self) -> None:
        first, second = unit(self.axis_1, "first axis"), unit(self.axis_2, "second axis")
        if _are_parallel(first, second):
            raise ModelError("the two axes of a universal hinge are parallel; use a Pin instead.")
        object.__setattr__(self, "axis_1", tuple(first.tolist()))
        object.__setattr__(self, "axis_2", tuple(second.tolist()))

    @cached_property
    def screws(self) -> Array:
        return frozen(np.array([[*self.axis_1, *_NONE], [*self.axis_2, *_NONE]]))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("angle_1", "rad"), Coordinate("angle_2", "rad"))

    def describe(self) -> str:
        return f"universal {axis_text(self.axis_1)} {axis_text(self.axis_2)}"


@dataclass(frozen=True)
class Gimbal(ScrewHinge):
    """Three turns, each about an axis carried by the one before: the default is x, then y, then z.

    q = three angles [rad], v = q̇. H depends on the second and third angle and loses rank where
    the first and third axis coincide (gimbal lock): use `Spherical` to pass through there.

    Attributes:
        axes: The three axes, each in the frame reached before its turn; made unit vectors.
    """

    axes: tuple[_Axis, _Axis, _Axis] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

    def __post_init__(self) -> None:
        axes = floats(self.axes, "axes of a gimbal hinge")
        if axes.shape != (3, 3):
            count = len(axes) if axes.ndim else 0
            raise ModelError(f"a gimbal hinge has three axes of three numbers; {count} were given.")
        units = [unit(a, f"gimbal axis {i + 1}") for i, a in enumerate(axes)]
        for i, (a, b) in enumerate(pairwise(units)):
            if _are_parallel(a, b):
                raise ModelError(
                    f"axes {i + 1} and {i + 2} of a gimbal hinge are parallel, so it never has "
                    "three degrees of freedom; neighbouring axes must differ."
                )
        object.__setattr__(self, "axes", tuple(tuple(a.tolist()) for a in units))

    @cached_property
    def screws(self) -> Array:
        return frozen(np.array([[*axis, *_NONE] for axis in self.axes]))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return tuple(Coordinate(f"angle_{i}", "rad") for i in (1, 2, 3))

    def describe(self) -> str:
        return "gimbal " + " ".join(axis_text(a) for a in self.axes)


@dataclass(frozen=True)
class Translation(ScrewHinge):
    """Moves along x, y and z and never turns: H = [0, 1]; q = (x, y, z) [m] in O+, v = q̇."""

    @cached_property
    def screws(self) -> Array:
        return frozen(np.hstack([np.zeros((3, 3)), np.eye(3)]))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return tuple(Coordinate(c, "m") for c in "xyz")


@dataclass(frozen=True)
class Screws(ScrewHinge):
    """pose(q) = exp(S_1 q_1) exp(S_2 q_2) ...: any set of free directions, in the order given.

    q_i is an angle [rad] where row i turns by one radian for a unit of q, and a length [m] where
    it only slides. v = q̇.

    Attributes:
        rows: The screws (ω, v), one to six linearly independent rows of six numbers.
    """

    rows: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        rows = np.atleast_2d(floats(self.rows, "screws"))
        if rows.ndim != 2 or rows.shape[1] != 6 or not 1 <= len(rows) <= 6:
            raise ModelError(
                f"screws have shape {rows.shape}; give one to six rows of six numbers (ω, v)."
            )
        rows = constant(rows, rows.shape, "screws")
        rank = int(np.linalg.matrix_rank(rows))
        if rank < len(rows):
            raise ModelError(
                f"{len(rows)} screws were given but only {rank} are linearly independent; "
                "remove the others: they add no degree of freedom."
            )
        object.__setattr__(self, "rows", tuple(tuple(row) for row in rows.tolist()))

    @cached_property
    def screws(self) -> Array:
        return frozen(np.array(self.rows))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        units = ["rad" if any(row[:3]) else "m" for row in self.rows]
        return tuple(Coordinate(f"screw_{i + 1}", unit) for i, unit in enumerate(units))

    def describe(self) -> str:
        return f"{len(self.rows)} screws"


def _are_parallel(a: Array, b: Array) -> bool:
    return float(np.linalg.norm(np.cross(a, b))) < 1e-9
