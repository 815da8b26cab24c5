"""Which triangles are in a mesh file: STL (binary or text), OBJ, or MuJoCo's MSH?

Coordinates are rounded to single precision, as they are in binary STL and MSH files and as MuJoCo
does for all others.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import ParseError
from linkwise.io.xml import read_bytes
from linkwise.spatial.array import Array

MAX_BYTES: Final = 256 * 2**20
"""Largest mesh file that is read [bytes]."""

Faces = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Triangles:
    """Vertices (n, 3) [m] and faces (m, 3), indices into them; no faces means the convex hull."""

    vertices: Array
    faces: Faces


def read_mesh_file(path: str, content_type: str = "") -> Triangles:
    """Triangles of a mesh file; the type is told by `content_type`, else by the suffix.

    Raises:
        ParseError: Not such a file, or one that is broken.
    """
    suffix = os.path.splitext(path)[1].lower()
    kind = {"model/stl": ".stl", "model/obj": ".obj", "model/vnd.mujoco.msh": ".msh"}.get(
        content_type, suffix
    )
    readers = {".stl": _read_stl, ".obj": _read_obj, ".msh": _read_msh}
    if kind not in readers:
        raise ParseError(
            f"the mesh has the type '{content_type or suffix}'; read are .stl, .obj and .msh",
            file=path,
        )
    return readers[kind](read_bytes(path, limit=MAX_BYTES), path)


def single(values: Array) -> Array:
    """The numbers rounded to single precision; beyond its range they become infinite."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def check_triangles(triangles: Triangles, path: str) -> Triangles:
    """The same triangles, or a ParseError if they cannot be a mesh."""
    vertices, faces = triangles.vertices, triangles.faces
    if len(vertices) < 4:
        raise ParseError(f"the mesh has {len(vertices)} vertices; it needs 4 or more", file=path)
    if not np.isfinite(vertices).all():
        raise ParseError("the mesh has a vertex that is not finite", file=path)
    if faces.size and (faces.min() < 0 or faces.max() >= len(vertices)):
        raise ParseError("a face of the mesh names a vertex that does not exist", file=path)
    return triangles


def _read_stl(data: bytes, path: str) -> Triangles:
    count = int.from_bytes(data[80:84], "little") if len(data) >= 84 else -1
    # A text file may also be long enough; only a binary one has exactly the size its count says.
    if count >= 0 and len(data) == 84 + 50 * count:
        record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("tag", "<u2")])
        corners = np.frombuffer(data, record, count, offset=84)["corners"]
        vertices = corners.reshape(-1, 3).astype(np.float64)
    elif data.lstrip()[:5].lower() == b"solid":
        words = re.findall(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)", data)
        vertices = _decimals([x for row in words for x in row], path).reshape(-1, 3)
        if len(vertices) % 3:
            raise ParseError("the text STL file has a facet without three vertices", file=path)
    else:
        raise ParseError(
            f"this is no STL file: {len(data)} bytes do not fit {max(count, 0)} triangles",
            file=path,
        )
    unique, index = np.unique(vertices, axis=0, return_inverse=True)
    faces = index.reshape(-1, 3).astype(np.int64)
    return check_triangles(Triangles(unique, faces), path)


def _read_msh(data: bytes, path: str) -> Triangles:
    if len(data) < 16:
        raise ParseError("this is no MSH file: its header is missing", file=path)
    n_vertex, n_normal, n_texcoord, n_face = (int(n) for n in np.frombuffer(data, "<i4", 4))
    if min(n_vertex, n_normal, n_texcoord, n_face) < 0 or len(data) != (
        16 + 12 * (n_vertex + n_normal + n_face) + 8 * n_texcoord
    ):
        raise ParseError("this is no MSH file: its size does not fit its header", file=path)
    vertices = np.frombuffer(data, "<f4", 3 * n_vertex, offset=16).reshape(-1, 3)
    start = len(data) - 12 * n_face
    faces = np.frombuffer(data, "<i4", 3 * n_face, offset=start).reshape(-1, 3)
    return check_triangles(Triangles(vertices.astype(np.float64), faces.astype(np.int64)), path)


def _read_obj(data: bytes, path: str) -> Triangles:
    vertices: list[bytes] = []
    faces: list[tuple[int, int, int]] = []
    for line in data.splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] == b"v":
            if len(words) < 4:
                raise ParseError("a vertex of the OBJ file has fewer than 3 numbers", file=path)
            vertices += words[1:4]
        elif words[0] == b"f":
            corners = [_obj_index(word, len(vertices) // 3, path) for word in words[1:]]
            if len(corners) < 3:
                raise ParseError("a face of the OBJ file has fewer than 3 corners", file=path)
            # A polygon becomes a fan around its first corner.
            faces += [(corners[0], b, c) for b, c in pairwise(corners[1:])]
    points = _decimals(vertices, path).reshape(-1, 3)
    return check_triangles(Triangles(points, np.array(faces, dtype=np.int64).reshape(-1, 3)), path)


def _obj_index(word: bytes, known: int, path: str) -> int:
    """Vertex of `v/vt/vn`: counted from 1, or back from the last one if negative."""
    try:
        index = int(word.split(b"/")[0])
    except ValueError:
        raise ParseError(
            "a face of the OBJ file has a corner that is no index", file=path
        ) from None
    return index - 1 if index > 0 else known + index


def _decimals(words: list[bytes], path: str) -> Array:
    try:
        return single(np.array([float(word) for word in words], dtype=np.float64))
    except ValueError:
        raise ParseError("the mesh has a coordinate that is no number", file=path) from None
