"""Hinges that hold the orientation as a quaternion and have a constant H: spherical, free ..."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.model.hinges.hinge import (
    OMEGA,
    QUATERNION,
    ConstantHinge,
    Coordinate,
    Hinge,
    axis_text,
)
from linkwise.spatial import pose as rigid, quaternion
from linkwise.spatial.array import Array, frozen, unit
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.rotation import aligning


@dataclass(frozen=True)
class Spherical(ConstantHinge):
    """q = unit quaternion (w, x, y, z) of O seen from O+, v = ω [rad/s] in O's axes.

    H = [1, 0], constant; no bias; q̇ = ½ q (0, ω).
    """

    @cached_property
    def constant_map(self) -> Array:
        return frozen(np.eye(3, 6))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return QUATERNION

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        return OMEGA

    def pose(self, q: Array) -> Pose:
        return trusted_pose(quaternion.to_matrix(q), np.zeros((*np.shape(q)[:-1], 3)))

    def qdot(self, q: Array, v: Array) -> Array:
        return quaternion.rate(q, v)

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        return quaternion.integrate(q, dt * np.asarray(v))

    def difference(self, q0: Array, q1: Array) -> Array:
        """The short way, at most half a turn."""
        return quaternion.difference(q0, q1)


@dataclass(frozen=True)
class SoftFinger(ConstantHinge):
    """A contact that may tip in any direction, but not twist about its normal.

    q = unit quaternion (w, x, y, z) of O seen from O+, v = (ω_1, ω_2) [rad/s] in O's axes. The
    normal n is fixed in O: O is on the object whose surface is touched, O+ on the finger. Turns
    about the two tangents h = (h_1, h_2) are free, the turn about n is not:

        H = [h*, 0], constant; no bias; q̇ = ½ q (0, h v)

    The constraint is nonholonomic: two velocities reach every attitude, so all of the quaternion is
    needed, and no lower pair is like it. `difference` leaves out the twist about n.

    Source: 001, Part II, Appendix A, case 3 (soft finger), (a.4)-(a.5), F = F̄ h.

    Attributes:
        normal: n in the axes of O; h_1 and h_2 are x and y, turned the short way with z onto it.
    """

    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "normal", tuple(unit(self.normal, "soft finger normal").tolist()))

    @cached_property
    def tangents(self) -> Array:
        """h_1 and h_2 as rows (2, 3)."""
        return frozen(aligning(np.array([0.0, 0.0, 1.0]), np.array(self.normal))[:, :2].T.copy())

    @cached_property
    def constant_map(self) -> Array:
        return frozen(np.hstack([self.tangents, np.zeros((2, 3))]))

    @property
    def kind(self) -> str:
        return "soft finger"

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return QUATERNION

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        return (Coordinate("omega_1", "rad"), Coordinate("omega_2", "rad"))

    @property
    def hull(self) -> Hinge:
        return Spherical()

    def describe(self) -> str:
        return f"soft finger {axis_text(self.normal)}"

    def pose(self, q: Array) -> Pose:
        return trusted_pose(quaternion.to_matrix(q), np.zeros((*np.shape(q)[:-1], 3)))

    def _turn(self, v: Array) -> Array:
        """ω = h v (..., 3)."""
        v = np.asarray(v)
        h_1, h_2 = self.tangents
        return h_1 * v[..., 0:1] + h_2 * v[..., 1:2]

    def qdot(self, q: Array, v: Array) -> Array:
        return quaternion.rate(q, self._turn(v))

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        return quaternion.integrate(q, dt * self._turn(v))

    def difference(self, q0: Array, q1: Array) -> Array:
        """The turn from q0 to q1, the short way, without its part about the normal."""
        return quaternion.difference(q0, q1) @ self.tangents.T


@dataclass(frozen=True)
class Free(ConstantHinge):
    """All six degrees of freedom, for floating bases and loose objects.

    q = (quaternion w x y z, position x y z [m] in O+), v = (ω, velocity) of O in O's axes.
    H = 1, constant; no bias; q̇ = (½ q (0, ω), rot v).
    """

    @cached_property
    def constant_map(self) -> Array:
        return frozen(np.eye(6))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (*QUATERNION, *(Coordinate(c, "m") for c in "xyz"))

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        return (*OMEGA, *(Coordinate(f"v_{c}", "m") for c in "xyz"))

    def pose(self, q: Array) -> Pose:
        q = np.asarray(q)
        return trusted_pose(quaternion.to_matrix(q[..., :4]), q[..., 4:])

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
        turn = quaternion.difference(q0[..., :4], q1[..., :4])
        return rigid.twist_to(turn, self.pose(q0).inverse().apply(q1[..., 4:]))
