"""How far one loop is from closed, in one state: closed forms for the hinges of most loops.

With X_ab = (R, p) the pose of node b seen from a, and e the rotation vector and translation from
the nearest pose that the hinge allows, seen from there:

    weld   e = (log R, p)
    ball   e = (0, R* p)
    pin    e = (log S, T* p)   with R = T S, T the turn about the axis next to R, S across the axis

For other hinges the coordinates are searched (`closure.coordinates`).
"""

from __future__ import annotations

import math

import numpy as np

from linkwise.model import closure
from linkwise.model.hinges import Hinge, Locked, Pin, Spherical
from linkwise.spatial import quaternion, rotation
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose


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
