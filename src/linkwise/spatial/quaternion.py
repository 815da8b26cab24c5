"""Unit quaternions (w, x, y, z): w the scalar part, the same rotation as -q.

`to_matrix(q)` is rot_AB, so that a quaternion names the orientation of a frame B seen from A,
and `rate` takes the angular velocity of B in B's own axes.
"""

from __future__ import annotations

import numpy as np

from linkwise.errors import ModelError
from linkwise.spatial.array import Array, stack
from linkwise.spatial.choice import absolute, angle, cosine, maximum, root, sine, where

TOLERANCE = 1e-6
"""How far from unit length a quaternion may be before it is refused."""

SMALL_ANGLE = 1e-4
"""Below this angle [rad] series are used: their first neglected term is under 1e-17 relative."""


def multiply(a: Array, b: Array) -> Array:
    """Hamilton product a b: first the rotation b, then a."""
    a, b = np.asarray(a), np.asarray(b)
    aw, ax, ay, az = a[..., 0], a[..., 1], a[..., 2], a[..., 3]
    bw, bx, by, bz = b[..., 0], b[..., 1], b[..., 2], b[..., 3]
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def conjugate(q: Array) -> Array:
    """The inverse rotation of a unit quaternion."""
    return np.asarray(q) * np.array([1.0, -1.0, -1.0, -1.0])


def normalise(q: Array) -> Array:
    """q / |q|. A zero quaternion has no direction and is refused."""
    q = np.asarray(q)
    if q.dtype == object:
        return q / _length(q)
    # Scaled by the largest entry first, so that no length over- or underflows.
    largest = np.abs(q).max(axis=-1, keepdims=True)
    if not largest.all():
        raise ModelError("a zero quaternion is not a rotation; the identity is (1, 0, 0, 0).")
    scaled = q / largest
    return scaled / np.linalg.norm(scaled, axis=-1, keepdims=True)


def to_matrix(q: Array) -> Array:
    """Rotation matrix (..., 3, 3) of a unit quaternion. Runs on arrays of dtype object as well.

    Raises:
        ModelError: A quaternion is not of unit length to `TOLERANCE`.
    """
    q = np.asarray(q)
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    if q.dtype != object:
        square = w * w + x * x + y * y + z * z
        if (np.abs(square - 1.0) > 2.0 * TOLERANCE).any():
            worst = float(square.flat[np.argmax(np.abs(square - 1.0))])
            raise ModelError(
                f"a quaternion has length {np.sqrt(worst):.6g}; a rotation is (w, x, y, z) of "
                "length 1."
            )
    return stack(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


def from_matrix(rot: Array) -> Array:
    """Unit quaternion with w ≥ 0 of a rotation matrix (..., 3, 3).

    Each row of the symmetric matrix 4 q q^T can be read off the rotation; the row whose diagonal
    is largest is the best conditioned one.
    """
    r = np.asarray(rot)
    r = r if r.dtype == object else r.astype(np.float64, copy=False)
    xx, yy, zz = r[..., 0, 0], r[..., 1, 1], r[..., 2, 2]
    wx, wy, wz = (
        r[..., 2, 1] - r[..., 1, 2],
        r[..., 0, 2] - r[..., 2, 0],
        r[..., 1, 0] - r[..., 0, 1],
    )
    xy, xz, yz = (
        r[..., 1, 0] + r[..., 0, 1],
        r[..., 0, 2] + r[..., 2, 0],
        r[..., 2, 1] + r[..., 1, 2],
    )
    four_qq: Array = stack(
        [
            [1.0 + xx + yy + zz, wx, wy, wz],
            [wx, 1.0 + xx - yy - zz, xy, xz],
            [wy, xy, 1.0 - xx + yy - zz, yz],
            [wz, xz, yz, 1.0 - xx - yy + zz],
        ]
    )
    row, most = four_qq[..., 0, :], four_qq[..., 0, :1]
    for k in range(1, 4):
        diagonal = four_qq[..., k, k : k + 1]
        row, most = where(diagonal - most, four_qq[..., k, :], row), maximum(diagonal, most)
    return _with_positive_w(row / _length(row))


def from_axis_angle(axis: Array, angle: Array | float) -> Array:
    """Quaternion of a turn by `angle` [rad] about the unit vector `axis` (..., 3)."""
    return exp(np.asarray(axis) * np.asarray(angle)[..., None])


def rate(q: Array, omega: Array) -> Array:
    """Time derivative of the quaternion: q̇ = ½ q (0, ω), ω [rad/s] in the body's own axes."""
    q, omega = np.asarray(q), np.asarray(omega)
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    a, b, c = omega[..., 0], omega[..., 1], omega[..., 2]
    return 0.5 * np.stack(
        [
            -x * a - y * b - z * c,
            w * a + y * c - z * b,
            w * b + z * a - x * c,
            w * c + x * b - y * a,
        ],
        axis=-1,
    )


def exp(w: Array) -> Array:
    """Quaternion of the rotation vector w (..., 3): (cos |w|/2, sin(|w|/2) w/|w|)."""
    w = np.asarray(w)
    square = (w * w).sum(axis=-1, keepdims=True)
    small = SMALL_ANGLE**2 - square  # a root has no derivative where there is no turn
    half = 0.5 * root(where(small, 1.0, square))
    scalar = where(small, 1.0 - square / 8.0, cosine(half))
    return np.concatenate(
        [scalar, where(small, 0.5 - square / 48.0, 0.5 * sine(half) / half) * w], axis=-1
    )


def log(q: Array) -> Array:
    """Rotation vector (..., 3) of a unit quaternion, with length at most π."""
    q = _with_positive_w(np.asarray(q))
    w, square = q[..., :1], (q[..., 1:] * q[..., 1:]).sum(axis=-1, keepdims=True)
    tiny = 1e-24 - square  # there the turn is 2 / w to rounding, and roots have no derivative
    length = root(where(tiny, 1.0, square))
    turn = 2.0 * angle(length, w) / length
    return where(tiny, 2.0 / maximum(w, 0.5), turn) * q[..., 1:]


def difference(q0: Array, q1: Array) -> Array:
    """Rotation vector (..., 3) of the turn from q0 to q1, the short way, in the axes of q0."""
    return log(multiply(conjugate(q0), q1))


def integrate(q: Array, w: Array) -> Array:
    """q exp(w): the orientation after turning by w (..., 3) [rad] in its own axes; unit length."""
    return normalise(multiply(q, exp(w)))


def random(rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Array:
    """Unit quaternions (*shape, 4), uniform over rotations, w ≥ 0."""
    return _with_positive_w(normalise(rng.standard_normal((*shape, 4))))


def sinc(x: Array) -> Array:
    """sin(x) / x, exact through x = 0."""
    x = np.asarray(x)
    small = SMALL_ANGLE - absolute(x)
    return where(small, 1.0 - x * x / 6.0, sine(x) / where(small, 1.0, x))


def _length(x: Array) -> Array:
    """|x| (..., 1)."""
    return root((x * x).sum(axis=-1, keepdims=True))


def _with_positive_w(q: Array) -> Array:
    """Of q and -q, which are one rotation, the one with w ≥ 0."""
    return where(-q[..., :1], -q, q)
