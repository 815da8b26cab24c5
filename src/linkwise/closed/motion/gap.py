"""Errors of loops and couplings of one state, the short way.

What `loop_errors` and `constraint_error` find by a search, written down for the hinges of most
loops: welds, balls and pins. With X_ab = (R, p) the pose of node b seen from a, and e the rotation
vector and translation from the nearest pose that the hinge allows, seen from there:

    weld   e = (log R, p)
    ball   e = (0, R* p)
    pin    e = (log S, T* p)   with R = T S, T the turn about the axis next to R, S across the axis
"""

from __future__ import annotations

import math

import numpy as np

from linkwise.closed.closure import relative_poses
from linkwise.model import closure
from linkwise.model.closure import coupling_error
from linkwise.model.hinges import Hinge, Locked, Pin, Spherical
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import quaternion, rotation
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose

_STILL = np.zeros(6)


class Gap:
    """How far the loops and couplings are from closed.

    Attributes:
        loops: Rotation vector [rad] and translation [m] of each loop (loops, 6).
        couplings: Error of each coupling [rad or m].
        rows: The errors in the order of `constraint_names` (m,).
    """

    def __init__(self, mech: Mechanism, q: Array) -> None:
        self.loops = np.zeros((len(mech.loops), 6))
        parts = list[Array]()
        pairs = zip(mech.loops, relative_poses(mech, q), strict=True)
        for i, (loop, X_ab) in enumerate(pairs):
            e = self.loops[i] = loop_error(loop.hinge, X_ab)
            parts.append(closure.blocked(loop.hinge, X_ab, _STILL).S @ e)
        self.couplings = np.array([float(coupling_error(mech, x, q)) for x in mech.couplings])
        self.rows = np.concatenate([*parts, self.couplings])

    @property
    def size(self) -> float:
        """The largest error of a row [rad or m]."""
        return float(np.abs(self.rows).max(initial=0.0))


def loop_error(hinge: Hinge, X_ab: Pose) -> Array:
    """e (6,) of one loop."""
    R, p = X_ab.rot, X_ab.p
    if isinstance(hinge, Spherical):
        return np.concatenate([np.zeros(3), p @ R])
    if isinstance(hinge, Locked):
        return np.concatenate([rotation.log(R), p])
    if isinstance(hinge, Pin):
        return _pin_error(hinge, R, p)
    return closure.error(hinge, X_ab, closure.coordinates(hinge, X_ab))


def _pin_error(pin: Pin, R: Array, p: Array) -> Array:
    """Of the quaternion of R the part along the axis is the turn T, what is left the swing S."""
    w, x, y, z = quaternion.from_matrix(R).tolist()
    a, b, c = pin.axis
    along = a * x + b * y + c * z
    size = math.hypot(w, along)
    if size == 0.0:  # the axes are opposite: every turn is as near as any other
        return np.concatenate([math.pi * np.array([x, y, z]), p])
    cosine, sine = w / size, along / size  # of half the angle of T
    # S = T⁻¹ R, as quaternions (cosine, -sine axis) (w, x, y, z); its part along the axis is zero.
    swing = (
        cosine * x - sine * (w * a + b * z - c * y),
        cosine * y - sine * (w * b + c * x - a * z),
        cosine * z - sine * (w * c + a * y - b * x),
    )
    length = math.hypot(*swing)
    scale = 2.0 * math.atan2(length, size) / length if length > 1e-150 else 2.0
    turn = pin.pose(np.array([2.0 * math.atan2(sine, cosine)])).rot
    return np.concatenate([scale * np.array(swing), p @ turn])
