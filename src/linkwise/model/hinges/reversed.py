"""A hinge seen from its other side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.model.hinges.hinge import Coordinate, Hinge, velocity
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.vector import cross_velocity


@dataclass(frozen=True)
class Reversed(Hinge):
    """O and O+ change places; q and v keep their meaning.

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
