"""The corners of the convex hull of points, and the few that describe it best."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from linkwise.errors import MissingExtraError
from linkwise.spatial.array import Array

MOST_CORNERS = 20
"""Corners that are kept of a hull, at most."""

ENOUGH = 1e-3
"""Corners are added while the rest extends beyond them by this share of the size of the hull."""


def hull_corners(points: Array, what: str) -> Array:
    """The corners of the hull of points; all points where they are in one plane."""
    try:
        return points[_qhull(points, what).vertices]
    except ValueError:
        return points


def hull(points: Array, what: str) -> tuple[Array, float]:
    """Corners (n, 3) of a hull, at most MOST_CORNERS, and how far others extend beyond them [m].

    Starting from the extreme points along the axes, the point that is farthest outside the hull of
    those chosen is added, until the rest extends beyond it by no more than ENOUGH of its size.

    Args:
        points: (m, 3) [m].
        what: Whose they are, for messages.
    """
    points = np.unique(points, axis=0)
    if len(points) <= 8:  # as many as a box has
        return points, 0.0
    size = float(np.ptp(points, axis=0).max())
    chosen = sorted({int(f(points[:, i])) for i in range(3) for f in (np.argmin, np.argmax)})
    while True:
        outside = _outside(points, points[chosen], what)
        worst = int(np.argmax(outside))
        if outside[worst] <= ENOUGH * size or len(chosen) == MOST_CORNERS:
            return points[chosen], max(float(outside[worst]), 0.0)
        chosen.append(worst)


def _outside(points: Array, corners: Array, what: str) -> Array:
    """How far points (m, 3) are outside of the hull of others (m,); 0 for those inside."""
    try:
        planes = _qhull(corners, what).equations
    except ValueError:
        apart = np.linalg.norm(points[:, None] - corners[None], axis=-1)
        return apart.min(axis=1)
    return np.maximum((points @ planes[:, :3].T + planes[:, 3]).max(axis=1), 0.0)


def _qhull(points: Array, what: str) -> Any:
    """The hull by SciPy; raises ValueError for points in one plane."""
    try:
        spatial: Any = import_module("scipy.spatial")
    except ImportError:
        request = f"The convex hull of {what}"
        raise MissingExtraError(request, package="scipy", extra="mesh") from None
    try:
        return spatial.ConvexHull(points)
    except spatial.QhullError as problem:
        raise ValueError(str(problem)) from None
