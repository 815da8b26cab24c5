"""A point that slides on a plane and turns in any way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.model.hinges.hinge import QUATERNION, Coordinate, Hinge
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array, constant
from linkwise.spatial.pose import Pose
from linkwise.spatial.vector import cross, six


@dataclass(frozen=True)
class PointOnPlane(Hinge):
    """O slides on the plane z = height of O+ and turns freely: one direction is blocked.

    q = (quaternion w x y z of O seen from O+, x, y [m] in O+), v = (ω [rad/s] in O's axes,
    ẋ, ẏ [m/s] in O+). With e_x and e_y of O+ seen in O's axes, columns of rot*:

        H = [[1, 0], [0, rot* e_x], [0, rot* e_y]]
        bias = (0, (rot* (ẋ, ẏ, 0)) × ω)
        q̇ = (½ q (0, ω), ẋ, ẏ)

    With the plane on the object and the point on a finger it is the contact without friction that
    slides; for a loop whose node b is the object, that is `PointOnPlane().reversed()`.

    Attributes:
        height: Of the plane over the origin of O+ [m].
    """

    height: float = 0.0

    def __post_init__(self) -> None:
        height = constant(self.height, (), "height of a plane")
        object.__setattr__(self, "height", float(height))

    @property
    def kind(self) -> str:
        return "point on plane"

    @property
    def nv(self) -> int:
        return 5

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (*QUATERNION, Coordinate("x", "m"), Coordinate("y", "m"))

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        turns = (Coordinate(f"omega_{c}", "rad") for c in "xyz")
        return (*turns, Coordinate("xdot", "m"), Coordinate("ydot", "m"))

    def describe(self) -> str:
        return "point on plane" + (f", height {self.height:.4g} m" if self.height else "")

    def pose(self, q: Array) -> Pose:
        q = np.asarray(q)
        height = self.height + 0.0 * q[..., :1]
        return Pose(quaternion.to_matrix(q[..., :4]), np.concatenate([q[..., 4:], height], axis=-1))

    def hinge_map(self, q: Array) -> Array:
        q = np.asarray(q)
        rot = quaternion.to_matrix(q[..., :4])
        zero = 0.0 * rot
        turning = np.concatenate([np.broadcast_to(np.eye(3), rot.shape), zero], axis=-1)
        # Row i of rot is rot* e_i.
        sliding = np.concatenate([zero[..., :2, :], rot[..., :2, :]], axis=-1)
        return np.concatenate([turning, sliding], axis=-2)

    def bias(self, q: Array, v: Array) -> Array:
        q, v = np.asarray(q), np.asarray(v)
        rot = quaternion.to_matrix(q[..., :4])
        slide = rot[..., 0, :] * v[..., 3:4] + rot[..., 1, :] * v[..., 4:5]
        linear = cross(slide, v[..., :3])
        return six(0.0 * linear, linear)

    def hinge_map_rate(self, q: Array, v: Array) -> Array:
        """Ḣ: rows rot* e_i turn with -ω, d(rot* e_i)/dt = (rot* e_i) × ω."""
        q, v = np.asarray(q), np.asarray(v)
        rot = quaternion.to_matrix(q[..., :4])
        rows = [cross(rot[..., i, :], v[..., :3]) for i in (0, 1)]
        turned = np.stack(rows, axis=-2)
        sliding = np.concatenate([0.0 * turned, turned], axis=-1)
        zero = np.broadcast_to(0.0 * sliding[..., :1, :], (*sliding.shape[:-2], 3, 6))
        return np.concatenate([zero, sliding], axis=-2)

    def qdot(self, q: Array, v: Array) -> Array:
        q, v = np.asarray(q), np.asarray(v)
        turn = quaternion.rate(q[..., :4], v[..., :3])
        slide = np.broadcast_to(v[..., 3:], (*turn.shape[:-1], 2))
        return np.concatenate([turn, slide], axis=-1)

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        q, step = np.asarray(q, dtype=np.float64), dt * np.asarray(v, dtype=np.float64)
        turn = quaternion.integrate(q[..., :4], step[..., :3])
        return np.concatenate([turn, q[..., 4:] + step[..., 3:]], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        """The turn the short way, and the way on the plane."""
        q0, q1 = np.asarray(q0), np.asarray(q1)
        turn = quaternion.log(quaternion.multiply(quaternion.conjugate(q0[..., :4]), q1[..., :4]))
        return np.concatenate([turn, q1[..., 4:] - q0[..., 4:]], axis=-1)
