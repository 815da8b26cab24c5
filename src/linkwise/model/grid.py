"""A grid of heights over a rectangle, and the surface of triangles over it.

Columns go along x, rows along y, from the lowest coordinates on. Each cell is two triangles that
share the edge from its first corner to the opposite one, as in MuJoCo:

    z = h₀₀ + s (h₁₀ − h₀₀) + t (h₁₁ − h₁₀)     where s ≥ t
    z = h₀₀ + t (h₀₁ − h₀₀) + s (h₁₁ − h₀₁)     where s < t

with s and t from 0 to 1 along x and y of the cell, and the first index of h along x.

A ball of radius r touches the surface where its centre touches the surface grown by r: the highest
z + √(r² − ρ²) over all points of the surface at the distance ρ ≤ r from the vertical through the
centre. `grown` gives it at the points of the grid; over a plane it is that plane, raised by r/n_z.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from linkwise.errors import ModelError
from linkwise.spatial.array import Array, ArrayLike, floats, read_only

MOST = 1 << 20
"""Heights of a grid, at most: they are a constant of kernels."""


@dataclass(frozen=True, slots=True, init=False)
class Grid:
    """Heights (rows, columns) [m]; equal numbers make equal grids.

    Attributes:
        data: The heights, row by row, as bytes of float64.
        rows: How many along y.
        columns: How many along x.
    """

    data: bytes
    rows: int
    columns: int

    def __init__(self, heights: ArrayLike) -> None:
        array = floats(heights, "heights")
        if array.ndim != 2 or min(array.shape) < 2 or array.size > MOST:
            raise ModelError(
                f"heights have the shape {array.shape}; they are (rows, columns), at least 2 of "
                f"each and at most {MOST} numbers."
            )
        if not np.isfinite(array).all():
            raise ModelError("heights must be finite numbers.")
        put = object.__setattr__
        put(self, "data", np.ascontiguousarray(array, dtype=np.float64).tobytes())
        put(self, "rows", array.shape[0])
        put(self, "columns", array.shape[1])

    @property
    def heights(self) -> Array:
        """(rows, columns) [m]."""
        return read_only(np.frombuffer(self.data).reshape(self.rows, self.columns))

    def __repr__(self) -> str:
        low, high = self.heights.min(), self.heights.max()
        return f"<Grid of {self.rows} × {self.columns} heights from {low:.6g} to {high:.6g} m>"


@lru_cache(maxsize=32)
def grown(grid: Grid, half: tuple[float, float], radius: float) -> Grid:
    """The heights of the surface grown by a radius, at the points of the grid.

    Args:
        half: Half the lengths of the rectangle along x and y [m].
        radius: Of the ball [m].
    """
    if radius == 0.0:
        return grid
    z, steps = grid.heights, _steps(grid, half)
    reach = [int(np.ceil(radius / step)) for step in steps]
    best = z + radius
    for i in range(-reach[1], reach[1] + 1):  # all cells that a ball over a point reaches
        for j in range(-reach[0], reach[0] + 1):
            for corners in _triangles(i, j):
                best = np.maximum(best, _highest(z, steps, corners, radius))
    return Grid(best)


def _steps(grid: Grid, half: tuple[float, float]) -> tuple[float, float]:
    """Distances of columns and of rows [m]."""
    return 2.0 * half[0] / (grid.columns - 1), 2.0 * half[1] / (grid.rows - 1)


def _triangles(i: int, j: int) -> tuple[Any, Any]:
    """(row, column) of the corners of the triangles of a cell, from the point at (0, 0)."""
    first, last = (i, j), (i + 1, j + 1)
    return (first, (i, j + 1), last), (first, (i + 1, j), last)


def _highest(z: Array, steps: tuple[float, float], corners: Any, radius: float) -> Array:
    """The highest z + √(r² − ρ²) over a triangle near each point of a grid.

    Inside, with the slope g, it is at ρ = r g/√(1 + g²) with the value z₀ + r √(1 + g²) of the
    plane; along an edge and at corners likewise. −∞ where a triangle is beyond the grid.
    """
    at = np.array([(j * steps[0], i * steps[1]) for i, j in corners])
    heights = np.array([_shifted(z, i, j) for i, j in corners])
    with np.errstate(invalid="ignore"):
        best = np.full(z.shape, -np.inf)
        edges = np.array([at[1] - at[0], at[2] - at[0]])
        slope = np.einsum("ab,b...->a...", np.linalg.inv(edges), heights[1:] - heights[0])
        stretch = np.sqrt(1.0 + (slope**2).sum(axis=0))
        spot = radius * slope / stretch
        share = np.einsum("ab,b...->a...", np.linalg.inv(edges.T), spot - at[0][:, None, None])
        inside = (share >= -EDGE).all(axis=0) & (share.sum(axis=0) <= 1.0 + EDGE)
        level = heights[0] - np.einsum("a,a...->...", at[0], slope)
        best = np.where(inside, level + radius * stretch, best)
        for a, b in ((0, 1), (1, 2), (2, 0)):
            best = np.maximum(best, _along(at[a], at[b], heights[a], heights[b], radius))
    return np.where(np.isfinite(best), best, -np.inf)


def _along(a: Array, b: Array, low: Array, high: Array, radius: float) -> Array:
    """The same over an edge, with its ends."""
    length = float(np.linalg.norm(b - a))
    unit = (b - a) / length
    begin, off = float(a @ unit), float(a @ a - (a @ unit) ** 2)
    if off >= radius**2:
        return np.full(low.shape, -np.inf)
    disc, slope = np.sqrt(radius**2 - off), (high - low) / length
    # along the edge, s = 0 is nearest to the point
    s = np.clip(disc * slope / np.sqrt(1.0 + slope**2), begin, begin + length)
    rise = np.sqrt(np.maximum(disc**2 - s**2, 0.0))
    return np.where(np.abs(s) <= disc, low + slope * (s - begin) + rise, -np.inf)


EDGE = 1e-9
"""How far beyond a triangle a point may be and count as inside it, as a share of its edges."""


def _shifted(z: Array, i: int, j: int) -> Array:
    """z of the point i rows and j columns on; NaN beyond the grid."""
    out = np.full(z.shape, np.nan)
    rows, columns = z.shape
    if abs(i) < rows and abs(j) < columns:
        here = slice(max(-i, 0), rows - max(i, 0)), slice(max(-j, 0), columns - max(j, 0))
        there = slice(max(i, 0), rows + min(i, 0)), slice(max(j, 0), columns + min(j, 0))
        out[here] = z[there]
    return out
