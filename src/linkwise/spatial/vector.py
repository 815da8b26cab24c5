"""Spatial (six-) vectors, angular part first: velocities V = (ω, v), forces f = (moment, force)."""

from __future__ import annotations

import numpy as np

from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew


def cross(a: Array, b: Array) -> Array:
    """a × b of 3-vectors (..., 3). Unlike `np.cross`, runs on arrays of dtype object as well."""
    a, b = np.asarray(a), np.asarray(b)
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def six(angular: Array, linear: Array) -> Array:
    """The spatial vector (angular, linear) (..., 6) of two 3-vectors, broadcast to each other."""
    return np.concatenate(np.broadcast_arrays(angular, linear), axis=-1)


def cross_velocity(V: Array, W: Array) -> Array:
    """V × W: rate of change of W, carried by a frame that moves with V, both (..., 6).

    (ω, v) × (α, a) = (ω × α, ω × a + v × α)
    """
    V, W = np.asarray(V), np.asarray(W)
    angular = cross(V[..., :3], W[..., :3])
    linear = cross(V[..., :3], W[..., 3:]) + cross(V[..., 3:], W[..., :3])
    return six(angular, linear)


def cross_force(V: Array, f: Array) -> Array:
    """V ×* f: rate of change of a spatial force carried by a frame that moves with V.

    (ω, v) ×* (n, f) = (ω × n + v × f, ω × f), the negative adjoint of `cross_velocity`.
    """
    V, f = np.asarray(V), np.asarray(f)
    angular = cross(V[..., :3], f[..., :3]) + cross(V[..., 3:], f[..., 3:])
    linear = cross(V[..., :3], f[..., 3:])
    return six(angular, linear)


def cross_velocity_matrix(V: Array) -> Array:
    """The matrix (..., 6, 6) of `cross_velocity`: [[ω~, 0], [v~, ω~]]."""
    V = np.asarray(V)
    w, v = skew(V[..., :3]), skew(V[..., 3:])
    return blocks(w, 0.0 * w, v, w)


def cross_force_matrix(V: Array) -> Array:
    """The matrix (..., 6, 6) of `cross_force`: [[ω~, v~], [0, ω~]]."""
    V = np.asarray(V)
    w, v = skew(V[..., :3]), skew(V[..., 3:])
    return blocks(w, v, 0.0 * w, w)


def blocks(upper_left: Array, upper_right: Array, lower_left: Array, lower_right: Array) -> Array:
    """A 6×6 matrix from its four 3×3 blocks (..., 3, 3)."""
    upper = np.concatenate(np.broadcast_arrays(upper_left, upper_right), axis=-1)
    lower = np.concatenate(np.broadcast_arrays(lower_left, lower_right), axis=-1)
    return np.concatenate([upper, lower], axis=-2)
