"""Rotation matrices: SO(3), its exponential and logarithm.

`rot_AB` takes components in B to components in A: x_A = rot_AB x_B.
"""

from __future__ import annotations

import math

import numpy as np

from linkwise.errors import ModelError, ShapeError
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array, ArrayLike, floats, stack
from linkwise.spatial.choice import absolute, root, where

ROUNDING = 1e-9
"""How far a matrix may be from a rotation by rounding, as `deviation` measures it."""

ALMOST = 1e-2
"""How far a matrix may be from a rotation to have a nearest one that is meant: three digits."""


def skew(a: Array) -> Array:
    """The matrix a~ of the cross product: a~ b = a × b. Shape (..., 3) to (..., 3, 3)."""
    a = np.asarray(a)
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    zero = 0.0 * x
    return stack([[zero, -z, y], [z, zero, -x], [-y, x, zero]])


def unskew(matrix: Array) -> Array:
    """The vector a of the antisymmetric part of `matrix`: the inverse of `skew`."""
    m = np.asarray(matrix)
    return 0.5 * np.stack(
        [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]],
        axis=-1,
    )


def axis_angle(axis: Array, angle: Array | float) -> Array:
    """Rotation by `angle` [rad] about the unit vector `axis` (..., 3).

    rot_ij = a_i a_j (1 - cos) - ε_ijk a_k sin + δ_ij cos, written so that an axis along x, y or
    z leaves exact zeros and ones. Runs on arrays of dtype object as well.
    """
    a = np.asarray(axis)
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    c, s = np.cos(angle), np.sin(angle)
    u = 1.0 - c
    return stack(
        [
            [x * x + (y * y + z * z) * c, x * y * u - z * s, x * z * u + y * s],
            [x * y * u + z * s, y * y + (x * x + z * z) * c, y * z * u - x * s],
            [x * z * u - y * s, y * z * u + x * s, z * z + (x * x + y * y) * c],
        ]
    )


def rpy(roll: Array | float, pitch: Array | float, yaw: Array | float) -> Array:
    """Rz(yaw) Ry(pitch) Rx(roll): turns about the fixed x, y and z axes in this order [rad]."""
    cr, sr = np.cos(roll), np.sin(roll)
    cp, sp = np.cos(pitch), np.sin(pitch)
    cy, sy = np.cos(yaw), np.sin(yaw)
    return stack(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def rpy_of(rot: Array) -> Array:
    """Roll, pitch and yaw (..., 3) of a rotation; at pitch = ±90° the roll is set to zero."""
    r = np.asarray(rot, dtype=np.float64)
    cos_pitch = np.hypot(r[..., 0, 0], r[..., 1, 0])
    pitch = np.arctan2(-r[..., 2, 0], cos_pitch)
    locked = cos_pitch < 1e-15
    roll = np.where(locked, 0.0, np.arctan2(r[..., 2, 1], r[..., 2, 2]))
    # Yaw is taken from what is left once the roll found above is undone: exact in both branches.
    cr, sr = np.cos(roll), np.sin(roll)
    yaw = np.arctan2(
        r[..., 0, 2] * sr - r[..., 0, 1] * cr,
        r[..., 1, 1] * cr - r[..., 1, 2] * sr,
    )
    return np.stack([roll, pitch, yaw], axis=-1)


def exp(w: Array) -> Array:
    """exp(w~): rotation by |w| [rad] about w (..., 3)."""
    return quaternion.to_matrix(quaternion.exp(w))


def log(rot: Array) -> Array:
    """Rotation vector w (..., 3) with exp(w~) = rot and |w| ≤ π [rad]."""
    if np.shape(rot) == (3, 3) and np.asarray(rot).dtype != object:
        return _log_of_one(rot)
    return quaternion.log(quaternion.from_matrix(rot))


def _log_of_one(rot: Array) -> Array:
    """The same for a single rotation, number by number: small arrays cost more than they compute.

    Of the rows of 4 q q* that can be read off the rotation, the one with the largest diagonal.
    """
    (a, b, c), (d, e, f), (g, h, i) = np.asarray(rot, dtype=np.float64).tolist()
    rows = (
        (1.0 + a + e + i, h - f, c - g, d - b),
        (h - f, 1.0 + a - e - i, d + b, c + g),
        (c - g, d + b, 1.0 - a + e - i, h + f),
        (d - b, c + g, h + f, 1.0 - a - e + i),
    )
    best = max(range(4), key=lambda k: rows[k][k])
    w, x, y, z = rows[best]
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    length = math.sqrt(x * x + y * y + z * z)
    scale = 2.0 * math.atan2(length, w) / length if length > 1e-150 else 2.0 / max(w, 0.5)
    return np.array([scale * x, scale * y, scale * z])


def aligning(a: Array, b: Array) -> Array:
    """The shortest rotation that takes the direction of `a` to the direction of `b`.

    For opposite directions any half turn is shortest; one about an axis normal to `a` is taken.
    """
    a, b = (x / root((x * x).sum(axis=-1, keepdims=True)) for x in (np.asarray(a), np.asarray(b)))
    # The quaternion (1 + a·b, a × b) turns by the angle between them once it is normalised.
    w = 1.0 + (a * b).sum(axis=-1, keepdims=True)
    helper = where(0.6 - absolute(a[..., :1]), np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    across, normal = ((skew(a) @ x[..., None])[..., 0] for x in (b, helper))
    opposite = 1e-14 - w
    parts = [where(opposite, 0.0, w), where(opposite, normal, across)]
    return quaternion.to_matrix(quaternion.normalise(np.concatenate(parts, axis=-1)))


def random_rotation(rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Array:
    """Rotations drawn uniformly over SO(3), shape (*shape, 3, 3)."""
    return quaternion.to_matrix(quaternion.random(rng, shape))


def deviation(rot: Array) -> Array:
    """How far a matrix is from a rotation: max |rot^T rot - 1|, plus the error of det = 1."""
    r = np.asarray(rot, dtype=np.float64)
    gram = np.swapaxes(r, -1, -2) @ r - np.eye(3)
    return np.abs(gram).max(axis=(-1, -2)) + np.abs(np.linalg.det(r) - 1.0)


def checked(rot: ArrayLike, what: str) -> Array:
    """`rot` as rotation matrices (..., 3, 3); raises for anything else."""
    array = _matrices(rot, what)
    error = float(np.max(deviation(array), initial=0.0))
    if error > ROUNDING:
        hint = (
            "Pose.nearest(rot, p) takes the nearest rotation."
            if error < ALMOST
            else "Pose.rpy makes one of angles, quaternion.to_matrix one of a quaternion."
        )
        raise ModelError(f"{what} is not a rotation: {_off(array)}. {hint}")
    return array


def nearest(matrix: ArrayLike, what: str = "the matrix") -> Array:
    """The rotation (..., 3, 3) nearest to each matrix that is almost one: its polar factor."""
    array = _matrices(matrix, what)
    if float(np.max(deviation(array), initial=0.0)) > ALMOST:
        raise ModelError(
            f"{what} has no rotation near it: {_off(array)}. Deviations up to {ALMOST:g} are taken."
        )
    left, _, right = np.linalg.svd(array)
    return left @ right


def _matrices(value: ArrayLike, what: str) -> Array:
    array = floats(value, what)
    if array.shape[-2:] != (3, 3):
        raise ShapeError(f"{what} has shape {array.shape}; it must be (3, 3) or (..., 3, 3).")
    if not np.isfinite(array).all():
        raise ShapeError(f"{what} must be finite.")
    if not np.all(np.abs(array) < 1e3):  # its products would not be finite
        raise ModelError(
            f"{what} is not a rotation: it has entries up to {np.abs(array).max():.3g}."
        )
    return array


def _off(array: Array) -> str:
    """How a stack of matrices differs from rotations, by its worst."""
    flat = array.reshape(-1, 3, 3)
    worst = int(np.argmax(deviation(flat)))
    gram = float(np.abs(flat[worst].T @ flat[worst] - np.eye(3)).max())
    which = f"matrix {worst} of the stack: " if array.ndim > 2 else ""
    return f"{which}rot* rot differs from 1 by {gram:.2g}, det = {np.linalg.det(flat[worst]):.6g}"
