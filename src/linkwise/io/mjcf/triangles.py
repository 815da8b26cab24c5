"""What is a mesh: vertices, faces, and what of its file is not among them?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import ParseError
from linkwise.spatial.array import Array

MAX_VERTICES: Final = 3_000_000
"""Most vertices of one mesh file; text of this size is read in a few seconds."""
MAX_FACES: Final = 1_000_000
"""Most triangles of one mesh file; their inertia takes about 400 MB."""

Faces = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Triangles:
    """Vertices (n, 3) [m] and faces (m, 3), indices into them; no faces means the convex hull.

    `left_out` says what the file has besides, a sentence each.
    """

    vertices: Array
    faces: Faces
    left_out: tuple[str, ...] = ()


def single(values: Array) -> Array:
    """The numbers rounded to single precision; beyond its range they become infinite."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def widened(values: NDArray[np.float32]) -> Array:
    """The same numbers in double precision; one that signals NaN is checked with all others."""
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64)


def check_triangles(triangles: Triangles, path: str) -> Triangles:
    """The same triangles, or a ParseError if they cannot be a mesh."""
    vertices, faces = triangles.vertices, triangles.faces
    if len(vertices) < 4:
        raise ParseError(f"the mesh has {len(vertices)} vertices; it needs 4 or more", file=path)
    if len(faces) > MAX_FACES or len(vertices) > MAX_VERTICES:
        raise ParseError(
            f"the mesh has {len(faces)} triangles and {len(vertices)} vertices; at most "
            f"{MAX_FACES} and {MAX_VERTICES} are read: make it coarser",
            file=path,
        )
    if not np.isfinite(vertices).all():
        raise ParseError("the mesh has a vertex that is not finite", file=path)
    if faces.size and (faces.min() < 0 or faces.max() >= len(vertices)):
        raise ParseError("a face of the mesh names a vertex that does not exist", file=path)
    return triangles
