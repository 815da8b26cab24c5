"""Hinges whose numbers (axes, pitches, radii) are columns of a table instead of constants.

The structure of a hinge is what its formulas look like: which screws turn, which slide, which do
both. Hinges of one structure share code and differ in their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from linkwise.model.hinges import Hinge, Planar, RollingBall
from linkwise.model.hinges.hinge import Coordinate, ScrewHinge
from linkwise.model.hinges.modified import Reversed
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.rotation import axis_angle
from linkwise.spatial.vector import cross

Structure: TypeAlias = tuple[Any, ...]

PER_SCREW = 13
"""Columns of a screw: |ω|, w = ω/|ω|, v/|ω|, w × v, w × (w × v); of a slide v instead of v/|ω|."""


def structure_of(hinge: Hinge) -> Structure | None:
    """What the code for a hinge depends on, or None if it is the hinge with all its numbers."""
    if isinstance(hinge, ScrewHinge):
        return ("screws", tuple(_shape(screw) for screw in hinge.screws), hinge.coordinates)
    if isinstance(hinge, Reversed):
        inner = structure_of(hinge.hinge)
        return None if inner is None else ("reversed", inner)
    if isinstance(hinge, RollingBall):
        return ("rolling ball",)
    if isinstance(hinge, Planar):
        return ("planar",)
    return None


def numbers_of(hinge: Hinge) -> list[float]:
    """The columns of a hinge that has a structure."""
    if isinstance(hinge, Reversed):
        return numbers_of(hinge.hinge)
    if isinstance(hinge, RollingBall):
        return [hinge.radius]
    if isinstance(hinge, Planar):
        return [*hinge.normal, *hinge.in_plane.ravel()]
    assert isinstance(hinge, ScrewHinge)
    return [x for screw in hinge.screws for x in _columns(screw)]


def hinge_of(structure: Structure, numbers: Sequence[Any]) -> Hinge:
    """The hinge with nodes of a graph for its numbers."""
    given = np.array(numbers, dtype=object)
    match structure[0]:
        case "reversed":
            return Reversed(hinge_of(structure[1], numbers))
        case "rolling ball":
            ball = object.__new__(RollingBall)
            object.__setattr__(ball, "radius", numbers[0])
            return ball
        case "planar":
            plane, H = object.__new__(Planar), np.zeros((3, 6), dtype=object)
            H[:2, 3:], H[2, :3] = given[3:].reshape(2, 3), given[:3]
            object.__setattr__(plane, "normal", given[:3])
            object.__setattr__(plane, "in_plane", H[:2, 3:])
            object.__setattr__(plane, "constant_map", H)
            return plane
        case _:
            return ColumnScrews(structure[1], structure[2], given.reshape(-1, PER_SCREW))


@dataclass(frozen=True, eq=False)
class ColumnScrews(ScrewHinge):
    """A product of screw motions whose screws are nodes of a graph."""

    # for each screw whether it turns, slides along, and slides across its axis
    shapes: tuple[tuple[bool, bool, bool], ...]
    names: tuple[Coordinate, ...]  # the coordinates
    numbers: Any  # the columns (screws, PER_SCREW)

    @cached_property
    def screws(self) -> Any:
        """The screws, as nodes."""
        rows = list[Any]()
        for (turns, *_), row in zip(self.shapes, self.numbers, strict=True):
            w, v = row[1:4], row[4:7]
            rows.append(np.concatenate([row[0] * w, row[0] * v if turns else v]))
        return np.array(rows, dtype=object)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Names and units, as given."""
        return self.names

    def pose(self, q: Array) -> Pose:
        """The product of the motions."""
        pose = Pose.identity()
        for i in range(len(self.shapes)):
            pose = pose @ self._motion(i, q[..., i])
        return pose

    def hinge_map(self, q: Array) -> Array:
        """Each screw, carried through the motions after it."""
        after, rows = Pose.identity(), list[Any]()
        for i in reversed(range(len(self.shapes))):
            screw = self.screws[i]
            row = screw if after is Pose.identity() else after.shift_velocity(screw[None])
            rows.append(np.broadcast_to(row, (*q.shape[:-1], 6)))
            after = self._motion(i, q[..., i]) @ after
        return np.stack(rows[::-1], axis=-2)

    def _motion(self, i: int, q: Any) -> Pose:
        """exp(S q) as in `screw_motion`, what is zero being known from the shape."""
        turns, along, across = self.shapes[i]
        row = self.numbers[i]
        w, v = row[1:4], row[4:7]
        if not turns:
            return trusted_pose(Pose.identity().rot, v * q[..., None])
        angle = row[0] * q
        rot = axis_angle(w, angle)
        if not along and not across:
            return trusted_pose(rot, np.zeros(3))
        p = v * angle[..., None]
        if across:
            c, s = np.cos(angle)[..., None], np.sin(angle)[..., None]
            p = p + (1.0 - c) * row[7:10] + (angle[..., None] - s) * row[10:13]
        return trusted_pose(rot, p)


def _shape(screw: Array) -> tuple[bool, bool, bool]:
    w, v = screw[:3], screw[3:]
    size = float(np.linalg.norm(w) * np.linalg.norm(v))
    across = float(np.linalg.norm(cross(w, v))) > 1e-15 * size  # less is rounding of v along w
    return bool(w.any()), bool(v.any()), across


def _columns(screw: Array) -> list[float]:
    w, v = screw[:3], screw[3:]
    rate = float(np.sqrt(w @ w))
    if rate == 0.0:
        return [0.0, *w, *v, *np.zeros(6)]
    w, v = w / rate, v / rate
    wv = cross(w, v)
    return [rate, *w, *v, *wv, *cross(w, wv)]
