"""Hinges made from other hinges: held still, or seen from the other side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.hinges.hinge import ConstantHinge, Coordinate, Hinge, velocity
from linkwise.spatial.array import Array, floats, frozen
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.vector import cross_velocity


@dataclass(frozen=True)
class Locked(ConstantHinge):
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

    @cached_property
    def constant_map(self) -> Array:
        return frozen(np.zeros((0, 6)))

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

    def reversed(self) -> Locked:
        return self if self.of is None else Locked(self.of.reversed(), self.q)


@dataclass(frozen=True)
class Reversed(Hinge):
    """A hinge seen from its other side: O and O+ change places; q and v keep their meaning.

    With X the pose of the hinge as it was, the velocity of O+ relative to O in O+'s axes is
    -Ad(X) H* v, so H_reversed = -H Ad(X)*, and since V × V = 0 the bias is -Ad(X) times the old.

    Attributes:
        hinge: The hinge as it was.
    """

    hinge: Hinge

    @property
    def nv(self) -> int:
        return self.hinge.nv

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return self.hinge.coordinates

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        return self.hinge.velocities

    @property
    def hull(self) -> Hinge:
        hull = self.hinge.hull
        return self if hull is self.hinge else hull.reversed()

    @property
    def kind(self) -> str:
        return f"reversed {self.hinge.kind}"

    def describe(self) -> str:
        return f"reversed {self.hinge.describe()}"

    def pose(self, q: Array) -> Pose:
        return self.hinge.pose(q).inverse()

    def hinge_map(self, q: Array) -> Array:
        back = self.pose(q)  # X_(O, O+): shifting a velocity from O to O+ is Ad(X)
        return -_rows(back, self.hinge.hinge_map(q))

    def bias(self, q: Array, v: Array) -> Array:
        return -self.pose(q).shift_velocity(self.hinge.bias(q, v))

    def hinge_map_rate(self, q: Array, v: Array) -> Array:
        """-(Ḣ + (V × H*)*) Ad(X)*, since Ad(X) turns with V = H* v."""
        H, V = self.hinge.hinge_map(q), velocity(self.hinge, q, v)
        rate = self.hinge.hinge_map_rate(q, v) + cross_velocity(V[..., None, :], H)
        return -_rows(self.pose(q), rate)

    def qdot(self, q: Array, v: Array) -> Array:
        return self.hinge.qdot(q, v)

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        return self.hinge.integrate(q, v, dt)

    def difference(self, q0: Array, q1: Array) -> Array:
        return self.hinge.difference(q0, q1)

    def neutral(self) -> Array:
        return self.hinge.neutral()

    def reversed(self) -> Hinge:
        return self.hinge


def _rows(pose: Pose, rows: Array) -> Array:
    """Each row (..., n, 6) shifted as a velocity."""
    rot, p = pose.rot[..., None, :, :], pose.p[..., None, :]
    return trusted_pose(np.asarray(rot), np.asarray(p)).shift_velocity(rows)


def is_plain(hinge: Hinge) -> bool:
    """Whether q̇ = v, entry by entry, and q moves along v by adding; seen from either side."""
    while isinstance(hinge, Reversed):
        hinge = hinge.hinge
    return type(hinge).qdot is Hinge.qdot and type(hinge).integrate is Hinge.integrate
