"""Which triangles are in a mesh file: STL (binary or text), OBJ, or MuJoCo's MSH?

Coordinates are rounded to single precision, as they are in binary STL and MSH files and as MuJoCo
does for all others.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from linkwise.errors import ParseError
from linkwise.io.mjcf.obj_file import read_obj
from linkwise.io.mjcf.triangles import MAX_FACES, Triangles, check_triangles, single, widened
from linkwise.io.xml import read_bytes

MAX_BYTES: Final = 256 * 2**20
"""Largest mesh file that is read [bytes]."""


def read_mesh_file(path: str, content_type: str = "", *, like_mujoco: bool = False) -> Triangles:
    """Triangles of a mesh file; its type is `content_type`, or else given by the suffix.

    Args:
        path: The file.
        content_type: Its MIME type, if it is given.
        like_mujoco: Keep only the part of an OBJ file that MuJoCo reads (`obj_file`).

    Raises:
        ParseError: Not such a file, one that is broken, or one beyond the limits.
    """
    suffix = os.path.splitext(path)[1].lower()
    kind = {"model/stl": ".stl", "model/obj": ".obj", "model/vnd.mujoco.msh": ".msh"}.get(
        content_type, suffix
    )
    readers: dict[str, Callable[[bytes, str], Triangles]] = {
        ".stl": _read_stl,
        ".obj": partial(read_obj, like_mujoco=like_mujoco),
        ".msh": _read_msh,
    }
    if kind not in readers:
        raise ParseError(
            f"the mesh has the type '{content_type or suffix}'; read are .stl, .obj and .msh",
            file=path,
        )
    return check_triangles(readers[kind](read_bytes(path, limit=MAX_BYTES), path), path)


def _read_stl(data: bytes, path: str) -> Triangles:
    count = int.from_bytes(data[80:84], "little") if len(data) >= 84 else -1
    # A text file may also be long enough; only a binary one has exactly the size its count says.
    if count >= 0 and len(data) == 84 + 50 * count:
        _check_count(count, path)
        record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("tag", "<u2")])
        corners = np.frombuffer(data, record, count, offset=84)["corners"]
        vertices = widened(corners.reshape(-1, 3))
    elif data.lstrip()[:5].lower() == b"solid":
        vertices = single(np.frombuffer(_text_vertices(data, path), np.float64).reshape(-1, 3))
    else:
        raise ParseError(
            f"this is not an STL file: {len(data)} bytes do not fit {max(count, 0)} triangles",
            file=path,
        )
    unique, index = np.unique(vertices, axis=0, return_inverse=True)
    return Triangles(unique, index.reshape(-1, 3).astype(np.int64))


def _text_vertices(data: bytes, path: str) -> array[float]:
    """Coordinates of the vertices of a text STL file, three a vertex."""
    vertices: array[float] = array("d")
    for match in re.finditer(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)", data):
        try:
            vertices.extend([float(word) for word in match.groups()])
        except ValueError:
            line = data.count(b"\n", 0, match.start()) + 1
            reason = "the mesh has a coordinate that is not a number"
            raise ParseError(reason, file=path, line=line) from None
        _check_count(len(vertices) // 9, path)
    if len(vertices) % 9:
        raise ParseError("the text STL file has a facet without three vertices", file=path)
    return vertices


def _check_count(triangles: int, path: str) -> None:
    if triangles > MAX_FACES:
        reason = f"the mesh has more than {MAX_FACES} triangles, the most that are read"
        raise ParseError(f"{reason}; make it coarser", file=path)


def _read_msh(data: bytes, path: str) -> Triangles:
    if len(data) < 16:
        raise ParseError("this is not an MSH file: its header is missing", file=path)
    n_vertex, n_normal, n_texcoord, n_face = (int(n) for n in np.frombuffer(data, "<i4", 4))
    if min(n_vertex, n_normal, n_texcoord, n_face) < 0 or len(data) != (
        16 + 12 * (n_vertex + n_normal + n_face) + 8 * n_texcoord
    ):
        raise ParseError("this is not an MSH file: its size does not fit its header", file=path)
    _check_count(n_face, path)
    vertices = np.frombuffer(data, "<f4", 3 * n_vertex, offset=16).reshape(-1, 3)
    start = len(data) - 12 * n_face
    faces = np.frombuffer(data, "<i4", 3 * n_face, offset=start).reshape(-1, 3)
    return Triangles(widened(vertices), faces.astype(np.int64))
