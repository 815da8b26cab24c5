"""Which triangles are in an OBJ file, and which of them does MuJoCo read?

MuJoCo keeps the first object or group that has faces. It cuts polygons of four corners along the
shorter diagonal in single precision, and so does this reader. Larger polygons become fans, which
give the same inertia where they are flat and convex; `Triangles.left_out` names them otherwise.
"""

from __future__ import annotations

import io
from array import array
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import ParseError
from linkwise.io.mjcf.triangles import MAX_FACES, MAX_VERTICES, Faces, Triangles, single
from linkwise.io.xml import shorten

MAX_NAMES: Final = 12
"""Most objects and groups that are named where they are left out."""

Single = NDArray[Any]  # of float32; arithmetic of float32 is float32


@dataclass(slots=True)
class _Polygons:
    """The numbers of a file.

    Attributes:
        vertices: Coordinates, three a vertex.
        corners: Indices of vertices, polygon after polygon.
        sizes: How many corners each polygon has.
        lines: The line of each polygon.
        shapes: The first polygon of each object or group that has any.
        names: Names of the first of these shapes.
    """

    vertices: array[float] = field(default_factory=lambda: array("d"))
    corners: array[int] = field(default_factory=lambda: array("i"))
    sizes: array[int] = field(default_factory=lambda: array("i"))
    lines: array[int] = field(default_factory=lambda: array("i"))
    shapes: array[int] = field(default_factory=lambda: array("i"))
    names: list[str] = field(default_factory=lambda: [])


def read_obj(data: bytes, path: str, *, like_mujoco: bool) -> Triangles:
    """Triangles of an OBJ file.

    Args:
        data: The file's content.
        path: The file, for messages.
        like_mujoco: Keep what MuJoCo sees, as described above; otherwise all objects and groups,
            and each polygon as a fan around its first corner.

    Raises:
        ParseError: Broken, or beyond the limits on vertices and faces; with the line.
    """
    polygons = _parse(data, path)
    vertices = single(np.frombuffer(polygons.vertices, np.float64).reshape(-1, 3))
    _check_indices(polygons, len(vertices), path)
    sizes = np.frombuffer(polygons.sizes, np.int32).astype(np.int64)
    left_out = list[str]()
    if like_mujoco and len(polygons.shapes) > 1:
        sizes = sizes[: polygons.shapes[1]]
        others = ", ".join(f"'{name}'" for name in polygons.names[1:])
        more = " ..." if len(polygons.shapes) > len(polygons.names) else ""
        left_out.append(
            f"of its {len(polygons.shapes)} objects and groups only the first, "
            f"'{polygons.names[0]}', gives the inertia, as in MuJoCo; left out: {others}{more}"
        )
    faces = _fans(polygons, sizes, path)
    if like_mujoco:
        with np.errstate(all="ignore"):  # what overflows is checked later
            _cut_like_mujoco(faces, sizes, vertices.astype(np.float32))
        large = np.flatnonzero(sizes > 4)
        if len(large):
            where = shorten(", ".join(str(polygons.lines[int(k)]) for k in large[:100]), 100)
            left_out.append(
                f"{len(large)} polygons of five or more corners are cut as fans; if they are not "
                f"flat and convex, MuJoCo cuts them otherwise (line {where}): triangulate the mesh"
            )
    return Triangles(vertices, faces, tuple(left_out))


def _parse(data: bytes, path: str) -> _Polygons:
    """The numbers of a file, in compact arrays."""
    polygons, name, fresh = _Polygons(), "", True
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for number, line in enumerate(io.BytesIO(data), start=1):
        words = line.split()
        if not words:
            continue
        if words[0] == b"v":
            if len(words) < 4:
                raise ParseError("a vertex has fewer than 3 numbers", file=path, line=number)
            try:
                polygons.vertices.extend([float(word) for word in words[1:4]])
            except ValueError:
                reason = f"a coordinate is not a number: '{_text(line)}'"
                raise ParseError(reason, file=path, line=number) from None
            if len(polygons.vertices) > 3 * MAX_VERTICES:
                reason = f"the mesh has more than {MAX_VERTICES} vertices, the most that are read"
                raise ParseError(reason, file=path, line=number)
        elif words[0] == b"f":
            if fresh:
                polygons.shapes.append(len(polygons.sizes))
                polygons.names += [name] if len(polygons.names) < MAX_NAMES else []
                fresh = False
            _add_face(polygons, words[1:], path, number)
        elif words[0] in (b"o", b"g"):
            name, fresh = _text(line).partition(" ")[2], True
    return polygons


def _add_face(polygons: _Polygons, words: list[bytes], path: str, line: int) -> None:
    if len(words) < 3:
        raise ParseError("a face has fewer than 3 corners", file=path, line=line)
    if len(polygons.sizes) >= MAX_FACES:
        reason = f"the mesh has more than {MAX_FACES} faces, the most that are read"
        raise ParseError(reason, file=path, line=line)
    known = len(polygons.vertices) // 3
    polygons.corners.extend([_index(word, known, path, line) for word in words])
    polygons.sizes.append(len(words))
    polygons.lines.append(line)


def _text(line: bytes) -> str:
    return shorten(line.decode("utf-8", errors="replace").strip())


def _index(word: bytes, known: int, path: str, line: int) -> int:
    """Vertex of `v/vt/vn`: counted from 1, or back from the last one if negative."""
    try:
        index = int(word.split(b"/")[0])
    except ValueError:
        reason = f"'{_text(word)}' is not an index of a vertex"
        raise ParseError(reason, file=path, line=line) from None
    place = index - 1 if index > 0 else known + index
    if index == 0 or not 0 <= place < MAX_VERTICES:
        raise ParseError(_no_vertex(_text(word), known), file=path, line=line)
    return place


def _no_vertex(word: str, known: int) -> str:
    return (
        f"a face names vertex {word}, which does not exist: there are {known}, counted from 1 "
        "(negative ones back from the last)"
    )


def _check_indices(polygons: _Polygons, known: int, path: str) -> None:
    """A face may name vertices that follow it, but they have to exist in the end."""
    corners = np.frombuffer(polygons.corners, np.int32)
    if corners.size and int(corners.max()) >= known:
        first = int(np.argmax(corners >= known))
        face = int(np.searchsorted(np.cumsum(polygons.sizes), first, side="right"))
        reason = _no_vertex(str(int(corners[first]) + 1), known)
        raise ParseError(reason, file=path, line=polygons.lines[face])


def _fans(polygons: _Polygons, sizes: Faces, path: str) -> Faces:
    """The first polygons, as many as there are sizes, each as a fan around its first corner."""
    starts, counts = np.cumsum(sizes) - sizes, sizes - 2
    if int(counts.sum()) > MAX_FACES:
        reason = f"the mesh has {int(counts.sum())} triangles; at most {MAX_FACES} are read"
        raise ParseError(reason, file=path)
    corners = np.frombuffer(polygons.corners, np.int32).astype(np.int64)
    step = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.repeat(starts, counts)
    return corners[np.stack([first, first + step + 1, first + step + 2], axis=1)]


def _cut_like_mujoco(faces: Faces, sizes: Faces, points: Single) -> None:
    """Cut polygons of four corners along the shorter diagonal, in place of their fans."""
    rows = (np.cumsum(sizes - 2) - (sizes - 2))[sizes == 4, None] + np.arange(2)
    fans = faces[rows]
    quads = np.concatenate([fans[:, 0], fans[:, 1, 2:]], axis=1)
    across_02 = points[quads[:, 2]] - points[quads[:, 0]]
    across_13 = points[quads[:, 3]] - points[quads[:, 1]]
    longer = _squared(across_02) >= _squared(across_13)
    faces[rows[longer]] = quads[longer][:, [[0, 1, 3], [1, 2, 3]]]


def _squared(a: Single) -> Single:
    return a[:, 0] * a[:, 0] + a[:, 1] * a[:, 1] + a[:, 2] * a[:, 2]
