"""A point that slides on a plane and turns in any way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.model.hinges.hinge import QUATERNION, Coordinate, Hinge, axis_text
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array, constant, frozen, unit
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.rotation import aligning
from linkwise.spatial.vector import cross, six


@dataclass(frozen=True)
class PointOnPlane(Hinge):
    """O slides on a plane of O+ and turns freely: one direction is blocked.

    q = (quaternion w x y z of O seen from O+, x, y [m] in the plane), v = (ω [rad/s] in O's axes,
    ẋ, ẏ [m/s]). With e_x and e_y along the plane, in O+, and p = e_x x + e_y y + n height:

        H = [[1, 0], [0, rot* e_x], [0, rot* e_y]]
        bias = (0, (rot* (e_x ẋ + e_y ẏ)) × ω)
        q̇ = (½ q (0, ω), ẋ, ẏ)

    With the plane on the object and the point on a finger it is the contact without friction that
    slides; for a loop whose node b is the object, that is `PointOnPlane().reversed()`.

    Attributes:
        height: Of the plane over the origin of O+, along the normal [m].
        normal: Of the plane, in O+; e_x and e_y are x and y, turned the short way with z onto it.
    """

    height: float = 0.0
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        height = constant(self.height, (), "height of a plane")
        object.__setattr__(self, "height", float(height))
        object.__setattr__(self, "normal", tuple(unit(self.normal, "normal of a plane").tolist()))

    @cached_property
    def axes(self) -> Array:
        """e_x, e_y and the normal as rows (3, 3)."""
        return frozen(aligning(np.array([0.0, 0.0, 1.0]), np.array(self.normal)).T.copy())

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
        height = f", height {self.height:.4g} m" if self.height else ""
        return f"point on plane {axis_text(self.normal)}{height}"

    def pose(self, q: Array) -> Pose:
        q = np.asarray(q)
        e_x, e_y, n = self.axes
        p = e_x * q[..., 4:5] + e_y * q[..., 5:6] + n * self.height
        return trusted_pose(quaternion.to_matrix(q[..., :4]), p)

    def _slides(self, q: Array) -> Array:
        """rot* e_x and rot* e_y as rows (..., 2, 3)."""
        rot = quaternion.to_matrix(np.asarray(q)[..., :4])
        return self.axes[:2] @ rot

    def hinge_map(self, q: Array) -> Array:
        slides = self._slides(q)
        sliding = np.concatenate([0.0 * slides, slides], axis=-1)
        turning = np.broadcast_to(np.eye(3, 6), (*slides.shape[:-2], 3, 6))
        return np.concatenate([turning, sliding], axis=-2)

    def bias(self, q: Array, v: Array) -> Array:
        v, slides = np.asarray(v), self._slides(q)
        slide = slides[..., 0, :] * v[..., 3:4] + slides[..., 1, :] * v[..., 4:5]
        linear = cross(slide, v[..., :3])
        return six(0.0 * linear, linear)

    def hinge_map_rate(self, q: Array, v: Array) -> Array:
        """Ḣ: rows rot* e_i turn with -ω, d(rot* e_i)/dt = (rot* e_i) × ω."""
        turned = cross(self._slides(q), np.asarray(v)[..., None, :3])
        sliding = np.concatenate([0.0 * turned, turned], axis=-1)
        zero = np.broadcast_to(0.0 * sliding[..., :1, :], (*sliding.shape[:-2], 3, 6))
        return np.concatenate([zero, sliding], axis=-2)

    def qdot(self, q: Array, v: Array) -> Array:
        q, v = np.asarray(q), np.asarray(v)
        turn = quaternion.rate(q[..., :4], v[..., :3])
        slide = np.broadcast_to(v[..., 3:], (*turn.shape[:-1], 2))
        return np.concatenate([turn, slide], axis=-1)

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        q, step = np.asarray(q), dt * np.asarray(v)
        turn = quaternion.integrate(q[..., :4], step[..., :3])
        return np.concatenate([turn, q[..., 4:] + step[..., 3:]], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        """The turn the short way, and the way on the plane."""
        q0, q1 = np.asarray(q0), np.asarray(q1)
        turn = quaternion.log(quaternion.multiply(quaternion.conjugate(q0[..., :4]), q1[..., :4]))
        return np.concatenate([turn, q1[..., 4:] - q0[..., 4:]], axis=-1)
