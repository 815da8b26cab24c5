"""A ball that rolls on a plane without slipping, as a hinge (document 002)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.hinges.hinge import QUATERNION, Coordinate, Hinge
from linkwise.model.hinges.point_on_plane import PointOnPlane
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array, floats
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import cross, six


@dataclass(frozen=True)
class RollingBall(Hinge):
    """O is the ball's centre and turns with it; the plane is z = 0 of O+, the ball above it.

    q = (quaternion w x y z, contact point x, y [m]), v = ω [rad/s] in the ball's axes: six
    coordinates, three velocities. With l = (0, 0, -radius) from the centre to the contact point
    in O+ and l_O = rot* l in the ball's axes, rolling asks v + ω × l_O = 0, so

        H = [1, -l_O~]      (V = H* ω = (ω, l_O × ω))
        bias = (0, l̇_O × ω),   l̇_O = l_O × ω

    H depends on the configuration in the ball's axes; the constraint is nonholonomic, and
    `difference` can only match the turn: the contact point goes where rolling takes it.

    Attributes:
        radius: Of the ball [m], positive.
    """

    radius: float = 1.0

    def __post_init__(self) -> None:
        radius = floats(self.radius, "radius of a rolling ball")
        if radius.shape != () or not 0.0 < radius < np.inf:
            raise ModelError(f"radius of a rolling ball is {self.radius}; it must be positive.")
        object.__setattr__(self, "radius", float(radius))

    @property
    def kind(self) -> str:
        return "rolling ball"

    @property
    def nv(self) -> int:
        return 3

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (*QUATERNION, Coordinate("x", "m"), Coordinate("y", "m"))

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        return tuple(Coordinate(f"omega_{c}", "rad") for c in "xyz")

    @property
    def hull(self) -> Hinge:
        return PointOnPlane(self.radius)

    def describe(self) -> str:
        return f"rolling ball, radius {self.radius:.4g} m"

    def pose(self, q: Array) -> Pose:
        q = np.asarray(q)
        height = self.radius + 0.0 * q[..., :1]
        return trusted_pose(
            quaternion.to_matrix(q[..., :4]), np.concatenate([q[..., 4:], height], axis=-1)
        )

    def _to_contact(self, q: Array) -> Array:
        """l_O: centre to contact point in the ball's axes, -radius times row z of rot."""
        return -self.radius * quaternion.to_matrix(np.asarray(q)[..., :4])[..., 2, :]

    def hinge_map(self, q: Array) -> Array:
        turn = skew(self._to_contact(q))
        eye = np.broadcast_to(np.eye(3), turn.shape)
        return np.concatenate([eye, -turn], axis=-1)  # rows of H: (l~)* = -l~

    def bias(self, q: Array, v: Array) -> Array:
        v = np.asarray(v)
        arm = self._to_contact(q)
        linear = cross(cross(arm, v), v)
        return six(0.0 * linear, linear)

    def hinge_map_rate(self, q: Array, v: Array) -> Array:
        """[0, -l̇_O~] with l̇_O = l_O × ω."""
        turn = skew(cross(self._to_contact(q), np.asarray(v)))
        return np.concatenate([0.0 * turn, -turn], axis=-1)

    def qdot(self, q: Array, v: Array) -> Array:
        q, v = np.asarray(q), np.asarray(v)
        return np.concatenate([quaternion.rate(q[..., :4], v), self._path(q, v)], axis=-1)

    def _path(self, q: Array, turn: Array) -> Array:
        """Velocity of the contact point (..., 2) in O+: l × (rot ω)."""
        w = (quaternion.to_matrix(q[..., :4]) @ turn[..., None])[..., 0]
        return np.stack([self.radius * w[..., 1], -self.radius * w[..., 0]], axis=-1)

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        """Exact: rot ω is constant while ω is, so the contact point runs along a straight line."""
        q, step = np.asarray(q), dt * np.asarray(v)
        turn = quaternion.integrate(q[..., :4], step)
        return np.concatenate([turn, q[..., 4:] + self._path(q, step)], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        """The turn from q0 to q1, the short way; the contact point follows by rolling."""
        q0, q1 = np.asarray(q0), np.asarray(q1)
        return quaternion.log(quaternion.multiply(quaternion.conjugate(q0[..., :4]), q1[..., :4]))
