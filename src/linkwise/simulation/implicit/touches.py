"""Contacts during implicit steps: what touched, how fast it slipped, and the work that it did."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linkwise.simulation.implicit.ground import ContactPoint, HeightField, axes_of
from linkwise.spatial.array import Array

Indices = NDArray[np.intp]

Moved = tuple[NDArray[np.bool_], Array, Array, Array]
"""Of some contacts (n, c): whether there was a force, gap, approach and slip."""


class Touches(Protocol):
    """Contacts during n steps."""

    @property
    def names(self) -> tuple[str, ...]:
        """Their names (c)."""
        ...

    @property
    def gap(self) -> Array:
        """Before each step (n, c) [m]; negative for a penetration."""
        ...

    @property
    def force(self) -> Array:
        """Mean force on the body, in world axes (n, c, 3) [N]."""
        ...

    @property
    def slip(self) -> Array:
        """Sliding speed after each step (n, c) [m/s]."""
        ...

    @property
    def approach(self) -> Array:
        """Normal velocity before each step (n, c) [m/s]; negative towards the other side."""
        ...

    @property
    def touching(self) -> NDArray[np.bool_]:
        """Whether there was a force (n, c)."""
        ...

    @property
    def pushing(self) -> NDArray[np.bool_]:
        """Which contacts had a force in some step (c,)."""
        ...

    @property
    def work(self) -> Array:
        """Of all normal forces and of all friction, over each step (n, 2) [J]."""
        ...

    def among(self, contacts: Indices) -> Moved:
        """What happened at some contacts."""
        ...

    def at(self, steps: Any) -> Touches:
        """Some of the steps."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PairTouches:
    """Contacts of pairs of bodies: `Touches` as numbers that are known.

    Attributes:
        each: Work of normal forces and of friction at each contact (n, c, 2) [J].
    """

    names: tuple[str, ...]
    force: Array
    gap: Array
    approach: Array
    slip: Array
    each: Array

    @property
    def touching(self) -> NDArray[np.bool_]:
        """Whether there was a force (n, c)."""
        return (self.force != 0.0).any(axis=-1)

    @property
    def pushing(self) -> NDArray[np.bool_]:
        """Which contacts had a force in some step (c,)."""
        return np.asarray(self.touching.any(axis=0))

    @property
    def work(self) -> Array:
        """Of all normal forces and of all friction, over each step (n, 2) [J]."""
        return self.each.sum(axis=1)

    def among(self, contacts: Indices) -> Moved:
        """What happened at some contacts."""
        gap, approach, slip = (x[:, contacts] for x in (self.gap, self.approach, self.slip))
        return self.touching[:, contacts], gap, approach, slip

    def at(self, steps: Any) -> PairTouches:
        """Some of the steps."""
        names = ("force", "gap", "approach", "slip", "each")
        return replace(self, **{name: getattr(self, name)[steps] for name in names})


@dataclass(frozen=True, eq=False)
class PointTouches:
    """Contacts of points with the ground, of their rows: `Touches` computed where it is read.

    Points that had no force in any step, most of them on a robot that walks, take no time.

    Attributes:
        points: The points.
        impulse: Of their rows (n, r), which are three for each point or more.
        start: Velocities of these before each step, likewise.
        end: After it.
        gap: Of points (n, c) [m].
        normals: Of points over height fields (n, 3 of each).
        h: Length of a step [s].
    """

    points: tuple[ContactPoint, ...]
    impulse: Array
    start: Array
    end: Array
    gap: Array
    normals: Array
    h: float

    @property
    def names(self) -> tuple[str, ...]:
        """Their names (c)."""
        return tuple(point.name for point in self.points)

    @cached_property
    def _normal(self) -> Indices:
        """The row of the normal of each point (c,)."""
        sizes = np.array([point.rows for point in self.points], dtype=np.intp)
        return np.cumsum(sizes) - sizes

    @cached_property
    def _acting(self) -> NDArray[np.bool_]:
        """Which rows had an impulse in some step (r,)."""
        return np.asarray((self.impulse != 0.0).any(axis=0))

    @property
    def pushing(self) -> NDArray[np.bool_]:
        """Which points had a force in some step (c,)."""
        return np.asarray(self._acting[self._normal[:, None] + np.arange(3)].any(axis=1))

    def _push(self, contacts: Indices) -> Array:
        """Impulses along the axes of some points (n, c, 3)."""
        return self.impulse[:, self._normal[contacts, None] + np.arange(3)]

    def _slip(self, contacts: Any) -> Array:
        at = self._normal[contacts]
        return np.hypot(self.end[:, at + 1], self.end[:, at + 2])

    def among(self, contacts: Indices) -> Moved:
        """What happened at some points."""
        touching = (self._push(contacts) != 0.0).any(axis=-1)
        approach = self.start[:, self._normal[contacts]]
        return touching, self.gap[:, contacts], approach, self._slip(contacts)

    @property
    def touching(self) -> NDArray[np.bool_]:
        """Whether there was a force (n, c)."""
        push = self._push(np.arange(len(self.points)))
        return np.asarray((push != 0.0).any(axis=-1))

    @property
    def approach(self) -> Array:
        """Normal velocity before each step (n, c) [m/s]; negative towards the ground."""
        return self.start[:, self._normal]

    @property
    def slip(self) -> Array:
        """Sliding speed after each step (n, c) [m/s]."""
        return self._slip(slice(None))

    @property
    def force(self) -> Array:
        """Mean force on the body, in world axes (n, c, 3) [N]."""
        out = np.zeros((len(self.gap), len(self.points), 3))
        if not self.points or not self.pushing.any():
            return out
        pushing = np.flatnonzero(self.pushing)
        if any(isinstance(self.points[i].ground, HeightField) for i in pushing):
            axes = axes_of(self.points, self.normals)[:, pushing]
            out[:, pushing] = np.einsum("nci,ncij->ncj", self._push(pushing), axes) / self.h
            return out
        for i in pushing:
            at = int(self._normal[i])
            out[:, i] = self.impulse[:, at : at + 3] @ (self.points[i].ground.axes / self.h)
        return out

    @property
    def work(self) -> Array:
        """Of all normal forces and of all friction, over each step (n, 2) [J]."""
        out, acting = np.zeros((len(self.gap), 2)), np.flatnonzero(self._acting)
        if len(acting):
            each = self.start[:, acting] + self.end[:, acting]
            each *= self.impulse[:, acting]
            normal = np.isin(acting, self._normal)
            out[:, 0], out[:, 1] = 0.5 * (each @ normal), 0.5 * (each @ ~normal)
        return out

    def at(self, steps: Any) -> PointTouches:
        """Some of the steps."""
        names = ("impulse", "start", "end", "gap", "normals")
        return replace(self, **{name: getattr(self, name)[steps] for name in names})


def touches_of(
    points: tuple[ContactPoint, ...],
    impulse: Array,
    start: Array,
    end: Array,
    gap: Array,
    normals: Array,
    h: float,
) -> PointTouches:
    """Contacts during n steps, from the rows of all joints and points, of which the last count."""
    first = impulse.shape[1] - sum(point.rows for point in points)
    impulse, start, end = (x[:, first:] for x in (impulse, start, end))
    return PointTouches(points, impulse, start, end, gap, normals, h)
