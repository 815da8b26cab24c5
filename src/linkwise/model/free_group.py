"""Poses that a hinge reaches whose free directions are the same in every position.

Such poses are X₀ G, with X₀ the neutral one and G a group of motions: translations along some
directions, with turns about no axis, about one that may carry a thread, or about all axes:

    exp(θ (u, c × u + pitch u)) · translations        c a point of the axis, pitch in m/rad

The axis of a thread passes through c; balls turn about c. With these, the error of a pose has a
formula to first order, in which no coordinates of the hinge are searched.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from linkwise.model.closure import constant_directions
from linkwise.model.hinges import Hinge
from linkwise.spatial.array import Array
from linkwise.spatial.choice import angle, cosine, sine
from linkwise.spatial.pose import Pose
from linkwise.spatial.vector import cross

SMALL = 1e-10
"""Numbers of a hinge below this are zero."""


@dataclass(frozen=True, slots=True, eq=False)
class FreeGroup:
    """The poses X₀ G of a hinge.

    Attributes:
        neutral: X₀.
        turns: Axes about which it turns: 0, 1 or 3.
        axis: u (3,), if it turns about one.
        point: c (3,), in the axes of both sides at X₀.
        pitch: Of the thread [m/rad]; 0 where the turn and the way along u are independent.
    """

    neutral: Pose
    turns: int
    axis: Array
    point: Array
    pitch: float

    def error(self, back: Any, p: Any) -> Any:
        """The displacement (6,) from a pose that is reached, in b's axes at b's origin.

        To first order in it, and up to free motions.

        Args:
            back: R* of the pose of b seen from a.
            p: R* p: the way from a to b, in b's axes.
        """
        first, u, c = self.neutral, self.axis, self.point
        p = p - back @ first.p  # of X₀⁻¹ X, in b's axes
        back = back @ first.rot
        p = p + c - back @ c  # of the point c
        if self.turns == 3:
            turn = np.zeros(3, dtype=object)
        elif self.turns == 0:
            turn = _rotation(back)
        else:
            turn = cross(back @ u, u.astype(object))
        if self.turns == 1 and self.pitch:
            along = (back @ u) @ p
            phase = along / self.pitch
            s, c_ = u @ _rotation(back), 0.5 * (np.trace(back) - u @ (back @ u))
            s, c_ = s * cosine(phase) - c_ * sine(phase), c_ * cosine(phase) + s * sine(phase)
            turn = turn + angle(s, c_) * u
            p = p - along * (back @ u)
        slide = p + cross(turn, p)
        return np.concatenate([turn, slide + cross(c.astype(object), turn)])


def _rotation(back: Any) -> Any:
    """The rotation vector θ of R* ≈ 1 − θ~."""
    skew = 0.5 * (back - back.T)
    return np.array([skew[1, 2], skew[2, 0], skew[0, 1]])


@lru_cache(maxsize=1024)
def free_group(hinge: Hinge) -> FreeGroup | None:
    """The poses that a hinge reaches; None where its free directions change."""
    if constant_directions(hinge) is None:
        return None
    q, zero = hinge.neutral(), np.zeros(3)
    neutral = hinge.pose(q)
    H = hinge.hinge_map(q) if hinge.nv else np.zeros((0, 6))
    left, sizes, right = np.linalg.svd(H[:, :3])
    turns = int((sizes > SMALL).sum())
    if turns == 0:
        return FreeGroup(neutral, 0, zero, zero, 0.0)
    if turns == 3 and hinge.nv == 6:
        return FreeGroup(neutral, 3, zero, zero, 0.0)
    if turns == 3:  # rows (e_i, c × e_i)
        ways = np.linalg.solve(H[:, :3], H[:, 3:])
        point = _clean(np.array([ways[1, 2], ways[2, 0], ways[0, 1]]))
        return FreeGroup(neutral, 3, zero, point, 0.0)
    u = _clean(right[0])
    way = left[:, 0] @ H[:, 3:] / sizes[0]
    slides = left[:, 1:].T @ H[:, 3:]
    way = way - np.linalg.pinv(slides) @ (slides @ way) if len(slides) else way
    pitch = float(u @ way)
    return FreeGroup(neutral, 1, u, _clean(np.cross(u, way)), pitch if abs(pitch) > SMALL else 0.0)


def _clean(x: Any) -> Array:
    """Numbers that are rounding as zeros, which cost nothing in a kernel."""
    return np.where(np.abs(x) < 1e-14, 0.0, x)
