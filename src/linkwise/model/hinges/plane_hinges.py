"""Hinges that stay on a plane: planar, a point that slides on it, a ball that rolls on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.hinges.hinge import (
    OMEGA,
    QUATERNION,
    ConstantHinge,
    Coordinate,
    Hinge,
    axis_text,
)
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array, constant, floats, frozen, unit
from linkwise.spatial.choice import angle, cosine, sine
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.rotation import aligning, axis_angle, skew
from linkwise.spatial.vector import cross, six


@dataclass(frozen=True)
class Planar(ConstantHinge):
    """Slides in a plane and turns about its normal.

    q = (x, y [m] in O+, angle [rad]), v = (v_x, v_y [m/s] in O's axes, ω [rad/s]).
    H = [[0, e_x], [0, e_y], [normal, 0]] is constant, since v is in the moving axes; no bias.
    q̇ = (rot(angle) (v_x, v_y), ω). Unlike three prismatic and pin hinges in series, this needs no
    massless body between them.

    Attributes:
        normal: Normal of the plane; e_x and e_y are x and y, turned the short way with z onto it.
    """

    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "normal", tuple(unit(self.normal, "planar normal").tolist()))

    @cached_property
    def in_plane(self) -> Array:
        """e_x and e_y as rows (2, 3)."""
        return frozen(aligning(np.array([0.0, 0.0, 1.0]), np.array(self.normal))[:, :2].T.copy())

    @cached_property
    def constant_map(self) -> Array:
        H = np.zeros((3, 6))
        H[:2, 3:] = self.in_plane
        H[2, :3] = self.normal
        return frozen(H)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate("x", "m"), Coordinate("y", "m"), Coordinate("angle", "rad"))

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        return (Coordinate("v_x", "m"), Coordinate("v_y", "m"), Coordinate("omega", "rad"))

    def describe(self) -> str:
        return f"planar {axis_text(self.normal)}"

    def pose(self, q: Array) -> Pose:
        q = np.asarray(q)
        e_x, e_y = self.in_plane
        p = e_x * q[..., 0:1] + e_y * q[..., 1:2]
        return trusted_pose(axis_angle(np.array(self.normal), q[..., 2]), p)

    def qdot(self, q: Array, v: Array) -> Array:
        q, v = np.asarray(q), np.asarray(v)
        return _turned(v, np.cos(q[..., 2]), np.sin(q[..., 2]))

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        """Exact: the arc of a circle, a half-angle chord of the straight way."""
        q, step = np.asarray(q), dt * np.asarray(v)
        half = 0.5 * step[..., 2]
        middle = q[..., 2] + half
        shrink = quaternion.sinc(half)
        return q + _turned(step, shrink * np.cos(middle), shrink * np.sin(middle))

    def difference(self, q0: Array, q1: Array) -> Array:
        """The turn is taken the short way: angles count modulo a full turn here."""
        q0, q1 = np.asarray(q0), np.asarray(q1)
        step = q1 - q0
        turn = angle(sine(step[..., 2]), cosine(step[..., 2]))
        step = np.concatenate([step[..., :2], turn[..., None]], axis=-1)
        middle = q0[..., 2] + 0.5 * turn
        grow = 1.0 / quaternion.sinc(0.5 * turn)
        return _turned(step, grow * np.cos(middle), -grow * np.sin(middle))


def _turned(xya: Array, c: Array, s: Array) -> Array:
    """(c x - s y, s x + c y, a) of (x, y, a)."""
    x, y, a = xya[..., 0], xya[..., 1], xya[..., 2]
    return np.stack(np.broadcast_arrays(c * x - s * y, s * x + c * y, a), axis=-1)


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
        return (*OMEGA, Coordinate("xdot", "m"), Coordinate("ydot", "m"))

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
        turn = quaternion.difference(q0[..., :4], q1[..., :4])
        return np.concatenate([turn, q1[..., 4:] - q0[..., 4:]], axis=-1)


@dataclass(frozen=True)
class RollingBall(Hinge):
    """A ball that rolls on a plane without slipping (document 002).

    O is the ball's centre and turns with it; the plane is z = 0 of O+, the ball above it.

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
        return OMEGA

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
        return quaternion.difference(q0[..., :4], q1[..., :4])
