"""What are the volume and the moments of inertia of a primitive shape, solid or shell?

Sizes are MuJoCo's: sphere (radius), capsule and cylinder (radius, half length of the cylinder),
ellipsoid (semi-axes), box (half sides). Moments are about the centre, in the shape's own axes,
for unit mass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.spatial.array import Array

PI = float(np.pi)


def _three(size: Sequence[float]) -> Array:
    """Three sizes, padded by zeros, as an array: its arithmetic gives inf where floats raise."""
    return np.array((*size, 0.0, 0.0, 0.0)[:3], dtype=np.float64)


def volume(kind: str, size: Sequence[float]) -> float:
    """Volume [m³]."""
    a, b, c = _three(size)
    if kind == "sphere":
        return 4.0 / 3.0 * PI * a**3
    if kind == "capsule":
        return PI * (a * a * 2.0 * b + 4.0 / 3.0 * a**3)
    if kind == "cylinder":
        return PI * a * a * 2.0 * b
    if kind == "ellipsoid":
        return 4.0 / 3.0 * PI * a * b * c
    return 8.0 * a * b * c


def area(kind: str, size: Sequence[float]) -> float:
    """Surface [m²]; of an ellipsoid by Thomsen's formula, as MuJoCo has it."""
    a, b, c = _three(size)
    if kind == "sphere":
        return 4.0 * PI * a * a
    if kind == "capsule":
        return 4.0 * PI * a * a + 4.0 * PI * a * b
    if kind == "cylinder":
        return 2.0 * PI * a * a + 4.0 * PI * a * b
    if kind == "ellipsoid":
        p = 1.6075
        mean = ((a * b) ** p + (b * c) ** p + (c * a) ** p) / 3.0
        return 4.0 * PI * mean ** (1.0 / p)
    return 8.0 * (a * b + b * c + c * a)


def solid_moments(kind: str, size: Sequence[float]) -> Array:
    """Principal moments (3,) of a solid of mass 1 kg [kg m²]."""
    a, b, c = _three(size)
    if kind == "sphere":
        return np.full(3, 0.4 * a * a)
    if kind == "cylinder":
        across = (3.0 * a * a + 4.0 * b * b) / 12.0
        return np.array([across, across, 0.5 * a * a])
    if kind == "capsule":
        ball = 4.0 * a / (4.0 * a + 6.0 * b)  # share of the two half balls
        rod = 1.0 - ball
        # A half ball's centre of mass is 3r/8 above its flat face: its moment moves out from there.
        across = rod * (3.0 * a * a + 4.0 * b * b) / 12.0 + ball * (
            0.4 * a * a + b * b + 0.75 * a * b
        )
        return np.array([across, across, 0.5 * rod * a * a + 0.4 * ball * a * a])
    squares = np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    return squares / (5.0 if kind == "ellipsoid" else 3.0)


def shell_moments(kind: str, size: Sequence[float]) -> Array:
    """Principal moments (3,) of a thin shell of mass 1 kg [kg m²]."""
    a, b, c = _three(size)
    if kind == "sphere":
        return np.full(3, 2.0 / 3.0 * a * a)
    if kind == "cylinder":
        lid = a / (2.0 * a + 4.0 * b)  # share of one of the two lids
        side = 1.0 - 2.0 * lid
        across = side * (6.0 * a * a + 4.0 * b * b) / 12.0 + 2.0 * lid * (a * a / 4.0 + b * b)
        return np.array([across, across, side * a * a + lid * a * a])
    if kind == "capsule":
        ball = a / (a + b)  # 4πr² of 4πr² + 4πrh
        side = 1.0 - ball
        # A half shell's centre of mass is r/2 above its rim.
        out = (b + 0.5 * a) ** 2 - 0.25 * a * a
        across = side * (6.0 * a * a + 4.0 * b * b) / 12.0 + ball * (2.0 / 3.0 * a * a + out)
        return np.array([across, across, side * a * a + ball * 2.0 / 3.0 * a * a])
    if kind == "ellipsoid":
        return _ellipsoid_shell(np.array([a, b, c]))
    return _box_shell(a, b, c)


def _ellipsoid_shell(axes: Array) -> Array:
    """The difference of two solid ellipsoids whose axes differ by a micrometre, as in MuJoCo."""
    grown = axes + 1e-6
    inner, outer = float(np.prod(axes)), float(np.prod(grown))
    second = (outer * grown**2 - inner * axes**2) / (outer - inner) / 5.0  # ∫x² over the shell
    return second.sum() - second


def _box_shell(a: float, b: float, c: float) -> Array:
    """Six plates. A plate across x has second moments a² along x, b²/3 and c²/3 in its plane."""
    half = np.array([a, b, c])
    share = np.array([b * c, c * a, a * b]) / (b * c + c * a + a * b)  # of the pair across x, y, z
    second = half**2 * (share + (1.0 - share) / 3.0)
    return second.sum() - second
