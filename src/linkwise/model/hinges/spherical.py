"""Spherical (ball) hinge: any turn about a point, with a quaternion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.model.hinges.hinge import QUATERNION, Coordinate, Hinge
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose, trusted_pose


@dataclass(frozen=True)
class Spherical(Hinge):
    """q = unit quaternion (w, x, y, z) of O seen from O+, v = ω [rad/s] in O's axes.

    H = [1, 0], constant; no bias; q̇ = ½ q (0, ω).
    """

    @property
    def nv(self) -> int:
        return 3

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return QUATERNION

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        return tuple(Coordinate(f"omega_{c}", "rad") for c in "xyz")

    def pose(self, q: Array) -> Pose:
        return trusted_pose(quaternion.to_matrix(q), np.zeros((*np.shape(q)[:-1], 3)))

    def hinge_map(self, q: Array) -> Array:
        return np.broadcast_to(np.eye(3, 6), (*np.shape(q)[:-1], 3, 6))

    def bias(self, q: Array, v: Array) -> Array:
        return np.zeros((*np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1]), 6))

    def qdot(self, q: Array, v: Array) -> Array:
        return quaternion.rate(q, v)

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        return quaternion.integrate(q, dt * np.asarray(v))

    def difference(self, q0: Array, q1: Array) -> Array:
        """The short way, at most half a turn."""
        return quaternion.log(quaternion.multiply(quaternion.conjugate(q0), q1))
