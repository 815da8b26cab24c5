"""How one hinge is arranged elsewhere: coordinates, velocities and accelerations.

v_there = T(q) v with T a permutation or a rotation. Where axes turn, T' = T ω~ on the linear part,
so that v_there' = T (v' + ω × v): a rule says what is added before the map of v.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.spatial import quaternion, rotation
from linkwise.spatial.array import Array

Map = Callable[[Array], Array]
MapAt = Callable[[Array, Array], Array]


@dataclass(frozen=True, slots=True)
class Rule:
    """How one hinge is arranged elsewhere.

    Attributes:
        name: In words.
        q_to: Our coordinates to theirs.
        q_from: Theirs to ours.
        v_to: Our velocities to theirs, at our coordinates q.
        v_from: Theirs to ours, at our coordinates q.
        turning: What our v̇ lacks because axes turn, from our v: v̇_there = v_to(q, v̇ + turning).
    """

    name: str
    q_to: Map
    q_from: Map
    v_to: MapAt
    v_from: MapAt
    turning: Map = np.zeros_like


def _same(x: Array) -> Array:
    return x


def _same_at(q: Array, x: Array) -> Array:
    del q
    return x


def _turned(q: Array, x: Array, *, back: bool = False) -> Array:
    rot = quaternion.to_matrix(q[..., :4])
    rot = np.swapaxes(rot, -1, -2) if back else rot
    return (rot @ x[..., None])[..., 0]


def _with_axes(v: Array) -> Array:
    """ω × v in the linear part, for v = (ω, v) in axes that turn with the body."""
    cross = np.cross(v[..., :3], v[..., 3:])
    return np.concatenate([np.zeros_like(cross), cross], axis=-1)


def _with_plane(v: Array) -> Array:
    """ω × v for v = (v_x, v_y, ω)."""
    w = v[..., 2]
    return np.stack([-w * v[..., 1], w * v[..., 0], np.zeros_like(w)], axis=-1)


def _parts(order: Sequence[int]) -> tuple[Map, Map]:
    forth, back = list(order), np.argsort(order)
    return (lambda x: x[..., forth]), (lambda x: x[..., back])


SAME = Rule("same", _same, _same, _same_at, _same_at)

COS_SIN = Rule(
    "angle as (cos, sin)",
    lambda q: np.concatenate([np.cos(q), np.sin(q)], axis=-1),
    lambda q: np.arctan2(q[..., 1:], q[..., :1]),
    _same_at,
    _same_at,
)

PLANAR_COS_SIN = Rule(
    "angle as (cos, sin)",
    lambda q: np.concatenate([q[..., :2], np.cos(q[..., 2:]), np.sin(q[..., 2:])], axis=-1),
    lambda q: np.concatenate([q[..., :2], np.arctan2(q[..., 3:], q[..., 2:3])], axis=-1),
    _same_at,
    _same_at,
)


def _in_plane(q: Array, v: Array, sign: float) -> Array:
    c, s = np.cos(q[..., 2]), sign * np.sin(q[..., 2])
    x, y = c * v[..., 0] - s * v[..., 1], s * v[..., 0] + c * v[..., 1]
    return np.stack(np.broadcast_arrays(x, y, v[..., 2]), axis=-1)


PLANAR_IN_PARENT = Rule(
    "velocity in the parent's axes",
    _same,
    _same,
    lambda q, v: _in_plane(q, v, 1.0),
    lambda q, v: _in_plane(q, v, -1.0),
    _with_plane,
)

BALL_XYZW = Rule("quaternion x y z w", *_parts((1, 2, 3, 0)), _same_at, _same_at)

BALL_RPY = Rule(
    "roll, pitch, yaw; velocity in the parent's axes",
    lambda q: rotation.rpy_of(quaternion.to_matrix(q)),
    lambda q: quaternion.from_matrix(rotation.rpy(q[..., 0], q[..., 1], q[..., 2])),
    _turned,
    lambda q, v: _turned(q, v, back=True),
)

FREE_LINEAR_FIRST = Rule(
    "position, quaternion x y z w; v = (linear, angular) in body axes",
    *_parts((4, 5, 6, 1, 2, 3, 0)),
    lambda q, v: v[..., [3, 4, 5, 0, 1, 2]],
    lambda q, v: v[..., [3, 4, 5, 0, 1, 2]],
)

FREE_MIXED = Rule(
    "position, quaternion w x y z; v = (linear in world axes, angular in body axes)",
    *_parts((4, 5, 6, 0, 1, 2, 3)),
    lambda q, v: np.concatenate(np.broadcast_arrays(_turned(q, v[..., 3:]), v[..., :3]), axis=-1),
    lambda q, v: np.concatenate(
        np.broadcast_arrays(v[..., 3:], _turned(q, v[..., :3], back=True)), axis=-1
    ),
    _with_axes,
)

FREE_WORLD = Rule(
    "quaternion w x y z, position; v = (angular, linear) in world axes",
    _same,
    _same,
    lambda q, v: np.concatenate([_turned(q, v[..., :3]), _turned(q, v[..., 3:])], axis=-1),
    lambda q, v: np.concatenate(
        [_turned(q, v[..., :3], back=True), _turned(q, v[..., 3:], back=True)], axis=-1
    ),
    _with_axes,
)
