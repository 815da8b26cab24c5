"""Circles and spheres of directions: what curves and surfaces about a point are made over."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import ModelError
from linkwise.spatial.array import Array

LEAST = 8
"""Fewest points around a circle."""


def circle(resolution: int) -> Array:
    """Unit vectors (resolution, 2) around a circle, once."""
    angle = np.linspace(0.0, 2.0 * np.pi, checked_resolution(resolution), endpoint=False)
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def sphere(resolution: int) -> tuple[Array, NDArray[np.int64]]:
    """Unit vectors (k, 3) over a sphere and triangles (f, 3) between them, seen from outside.

    Circles of latitude about the third axis, of `resolution` points each, half as many of them, and
    the two poles. Triangles go round counterclockwise; the surface is closed.
    """
    around = checked_resolution(resolution)
    rings = around // 2 - 1
    ring = circle(around)
    height = np.cos(np.pi * np.arange(1, rings + 1) / (rings + 1))
    wide = np.sqrt(1.0 - height**2)
    middle = np.concatenate(
        [
            wide[:, None, None] * ring,
            np.broadcast_to(height[:, None, None], (rings, around, 1)),
        ],
        axis=-1,
    )
    points = np.concatenate([[[0.0, 0.0, 1.0]], middle.reshape(-1, 3), [[0.0, 0.0, -1.0]]])
    here = np.arange(around)
    after = (here + 1) % around
    faces = [np.stack([np.zeros_like(here), 1 + here, 1 + after], axis=-1)]
    for k in range(rings - 1):
        upper, lower = 1 + k * around, 1 + (k + 1) * around
        faces.append(np.stack([upper + here, lower + here, lower + after], axis=-1))
        faces.append(np.stack([upper + here, lower + after, upper + after], axis=-1))
    last, bottom = 1 + (rings - 1) * around, len(points) - 1
    faces.append(np.stack([np.full_like(here, bottom), last + after, last + here], axis=-1))
    return points, np.concatenate(faces).astype(np.int64)


def checked_resolution(resolution: object) -> int:
    """A number of points around; raises for what is none."""
    if isinstance(resolution, int) and resolution >= LEAST and resolution % 2 == 0:
        return resolution
    raise ModelError(
        f"resolution is {resolution!r}; it counts points around a circle: an even whole number, "
        f"{LEAST} at least."
    )
