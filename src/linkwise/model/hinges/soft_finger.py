"""Soft finger: a contact that may tip in any direction, but not twist about its normal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.model.hinges.hinge import QUATERNION, Coordinate, Hinge, axis_text
from linkwise.model.hinges.spherical import Spherical
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array, frozen, unit
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.rotation import aligning


@dataclass(frozen=True)
class SoftFinger(Hinge):
    """q = unit quaternion (w, x, y, z) of O seen from O+, v = (ω_1, ω_2) [rad/s] in O's axes.

    The normal n is fixed in O: O is on the object whose surface is touched, O+ on the finger. Turns
    about the two tangents h = (h_1, h_2) are free, the turn about n is not:

        H = [h*, 0], constant; no bias; q̇ = ½ q (0, h v)

    The constraint is nonholonomic: two velocities reach every attitude, so that all of the
    quaternion is needed, and no lower pair is like it. `difference` leaves out the twist about n.

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

    @property
    def kind(self) -> str:
        return "soft finger"

    @property
    def nv(self) -> int:
        return 2

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

    def hinge_map(self, q: Array) -> Array:
        H = np.zeros((2, 6))
        H[:, :3] = self.tangents
        return np.broadcast_to(H, (*np.shape(q)[:-1], 2, 6))

    def bias(self, q: Array, v: Array) -> Array:
        return np.zeros((*np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1]), 6))

    def _turn(self, v: Array) -> Array:
        """ω = h v (..., 3)."""
        v = np.asarray(v)
        h_1, h_2 = self.tangents
        return h_1 * v[..., 0:1] + h_2 * v[..., 1:2]

    def qdot(self, q: Array, v: Array) -> Array:
        return quaternion.rate(q, self._turn(v))

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        return quaternion.integrate(q, dt * self._turn(np.asarray(v)))

    def difference(self, q0: Array, q1: Array) -> Array:
        """The turn from q0 to q1, the short way, without its part about the normal."""
        turn = quaternion.log(quaternion.multiply(quaternion.conjugate(q0), q1))
        return turn @ self.tangents.T
