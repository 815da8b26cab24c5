"""Free hinge: all six freedoms, for floating bases and loose objects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.model.hinges.hinge import QUATERNION, Coordinate, Hinge
from linkwise.spatial import pose as rigid, quaternion
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose, trusted_pose


@dataclass(frozen=True)
class Free(Hinge):
    """q = (quaternion w x y z, position x y z [m] in O+), v = (ω, velocity) of O in O's own axes.

    H = 1, constant; no bias; q̇ = (½ q (0, ω), rot v).
    """

    @property
    def nv(self) -> int:
        return 6

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (*QUATERNION, *(Coordinate(c, "m") for c in "xyz"))

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        turns = tuple(Coordinate(f"omega_{c}", "rad") for c in "xyz")
        return (*turns, *(Coordinate(f"v_{c}", "m") for c in "xyz"))

    def pose(self, q: Array) -> Pose:
        q = np.asarray(q)
        return trusted_pose(quaternion.to_matrix(q[..., :4]), q[..., 4:])

    def hinge_map(self, q: Array) -> Array:
        return np.broadcast_to(np.eye(6), (*np.shape(q)[:-1], 6, 6))

    def bias(self, q: Array, v: Array) -> Array:
        return np.zeros((*np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1]), 6))

    def qdot(self, q: Array, v: Array) -> Array:
        q, v = np.asarray(q), np.asarray(v)
        turned = (quaternion.to_matrix(q[..., :4]) @ v[..., 3:, None])[..., 0]
        return np.concatenate([quaternion.rate(q[..., :4], v[..., :3]), turned], axis=-1)

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        """Exact: the screw motion exp(v dt) in body axes."""
        q, step = np.asarray(q), dt * np.asarray(v)
        turn = quaternion.integrate(q[..., :4], step[..., :3])
        return np.concatenate([turn, self.pose(q).apply(rigid.exp(step).p)], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        """The logarithm of the relative pose, turning at most half a turn."""
        q0, q1 = np.asarray(q0), np.asarray(q1)
        turn = quaternion.log(quaternion.multiply(quaternion.conjugate(q0[..., :4]), q1[..., :4]))
        return rigid.twist_to(turn, self.pose(q0).inverse().apply(q1[..., 4:]))
