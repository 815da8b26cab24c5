"""Locked hinge: no freedom. It can remember the hinge it holds still."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.hinges.hinge import Coordinate, Hinge
from linkwise.spatial.array import Array, floats, frozen
from linkwise.spatial.pose import Pose, trusted_pose


@dataclass(frozen=True)
class Locked(Hinge):
    """nq = nv = 0. A weld, or another hinge held at one configuration until it is released.

    Attributes:
        of: The hinge that is held; None for a plain weld with O on O+.
        q: Where it is held; by default its neutral coordinates.
    """

    of: Hinge | None = None
    q: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.of is None:
            if self.q:
                raise ModelError("Locked was given q but not the hinge `of` it belongs to.")
            object.__setattr__(self, "q", ())
            return
        if isinstance(self.of, Locked):
            raise ModelError("a locked hinge cannot be locked again; lock the hinge it holds.")
        q = self.of.neutral() if self.q is None else floats(self.q, "q of a lock")
        if q.shape != (self.of.nq,) or not np.isfinite(q).all():
            raise ModelError(
                f"to lock a {self.of.kind} hinge give its {self.of.nq} coordinates, finite; "
                f"found {q.tolist()}."
            )
        object.__setattr__(self, "q", tuple(self.of.normalise(q).tolist()))

    @cached_property
    def _held(self) -> Pose:
        if self.of is None:
            return Pose.identity()
        held = self.of.pose(np.array(self.q))
        return trusted_pose(frozen(np.array(held.rot)), frozen(np.array(held.p)))

    @property
    def nv(self) -> int:
        return 0

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return ()

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        return ()

    def describe(self) -> str:
        return "locked" if self.of is None else f"locked {self.of.describe()}"

    def pose(self, q: Array) -> Pose:
        return self._held

    def hinge_map(self, q: Array) -> Array:
        return np.zeros((*np.shape(q)[:-1], 0, 6))

    def bias(self, q: Array, v: Array) -> Array:
        return np.zeros((*np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1]), 6))

    def reversed(self) -> Locked:
        return self if self.of is None else Locked(self.of.reversed(), self.q)
