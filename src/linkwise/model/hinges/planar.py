"""Planar hinge: slides in a plane and turns about its normal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.model.hinges.hinge import Coordinate, Hinge, axis_text
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array, frozen, unit
from linkwise.spatial.choice import angle, cosine, sine
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.rotation import aligning, axis_angle


@dataclass(frozen=True)
class Planar(Hinge):
    """q = (x, y [m] in O+, angle [rad]), v = (v_x, v_y [m/s] in O's axes, ω [rad/s]).

    H = [[0, e_x], [0, e_y], [normal, 0]] is constant, since v is in the moving axes; no bias.
    q̇ = (rot(angle) (v_x, v_y), ω). Unlike three prismatic and pin hinges in a row this needs no
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

    @property
    def nv(self) -> int:
        return 3

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

    def hinge_map(self, q: Array) -> Array:
        H = np.zeros((3, 6))
        H[:2, 3:] = self.in_plane
        H[2, :3] = self.normal
        return np.broadcast_to(H, (*np.shape(q)[:-1], 3, 6))

    def bias(self, q: Array, v: Array) -> Array:
        return np.zeros((*np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1]), 6))

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
