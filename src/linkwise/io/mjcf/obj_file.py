"""Which triangles are in an OBJ file, and which of them does MuJoCo read?

MuJoCo reads OBJ files with tinyobjloader and keeps the first object or group that has faces. It
cuts polygons into triangles in single precision:

    4 corners         along the shorter diagonal; along 1-3 where both are equal
    5 to 100          ears are clipped, in the two coordinates in which the first corner is largest
    more than 100     the polygon is left out

An inertia depends on this wherever the corners of a polygon do not lie in one plane. Clipping can
get stuck; then MuJoCo leaves out what remains of the polygon, and so does this reader. What is
left out is named in `Triangles.left_out`. Measured against MuJoCo 4.0, triangle by triangle.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import ParseError
from linkwise.io.mjcf.triangles import MAX_FACES, MAX_VERTICES, Faces, Triangles, single
from linkwise.io.xml import shorten
from linkwise.spatial.array import Array

MAX_CORNERS: Final = 100
"""Most corners of a polygon that MuJoCo sees."""
MAX_EARS: Final = 300_000
"""Most ears that are tried for all polygons of a file; this many take about ten seconds."""
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
    left_out: list[str] = []
    count = len(polygons.sizes)
    if not like_mujoco:
        return Triangles(vertices, _fans(polygons, path))
    if len(polygons.shapes) > 1:
        count = polygons.shapes[1]
        others = ", ".join(f"'{name}'" for name in polygons.names[1:])
        more = " ..." if len(polygons.shapes) > len(polygons.names) else ""
        left_out.append(
            f"of its {len(polygons.shapes)} objects and groups only the first, "
            f"'{polygons.names[0]}', gives the inertia, as in MuJoCo; left out: {others}{more}"
        )
    with np.errstate(all="ignore"):  # coordinates near the limits overflow, and are checked later
        faces = _cut(polygons, count, vertices.astype(np.float32), path, left_out)
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


def _count_triangles(polygons: _Polygons, count: int, path: str) -> tuple[Faces, Faces, Faces]:
    """Number of corners, first corner and number of triangles of the first `count` polygons."""
    sizes = np.frombuffer(polygons.sizes, np.int32)[:count].astype(np.int64)
    counts = sizes - 2
    if int(counts.sum()) > MAX_FACES:
        reason = f"the mesh has {int(counts.sum())} triangles; at most {MAX_FACES} are read"
        raise ParseError(reason, file=path)
    return sizes, np.cumsum(sizes) - sizes, counts


def _fans(polygons: _Polygons, path: str) -> Faces:
    """Each polygon as a fan around its first corner."""
    _, starts, counts = _count_triangles(polygons, len(polygons.sizes), path)
    corners = np.frombuffer(polygons.corners, np.int32).astype(np.int64)
    step = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.repeat(starts, counts)
    return corners[np.stack([first, first + step + 1, first + step + 2], axis=1)]


def _cut(polygons: _Polygons, count: int, points: Single, path: str, left_out: list[str]) -> Faces:
    """The triangles of the first `count` polygons, one polygon after the other."""
    sizes, starts, counts = _count_triangles(polygons, count, path)
    corners = np.frombuffer(polygons.corners, np.int32).astype(np.int64)
    faces = np.full((int(counts.sum()), 3), -1, dtype=np.int64)
    rows = np.cumsum(counts) - counts
    three, four = np.flatnonzero(sizes == 3), np.flatnonzero(sizes == 4)
    faces[rows[three]] = corners[starts[three, None] + np.arange(3)]
    quads = _cut_quads(corners[starts[four, None] + np.arange(4)], points)
    faces[rows[four, None] + np.arange(2)] = quads
    trials, stuck = 0, list[int]()
    for k in np.flatnonzero((sizes > 4) & (sizes <= MAX_CORNERS)):
        polygon = corners[starts[k] : starts[k] + sizes[k]].tolist()
        ears, tried = _clip_ears(polygon, points)
        trials += tried
        if trials > MAX_EARS:
            reason = f"its polygons need more than {MAX_EARS} attempts to be cut into triangles"
            raise ParseError(f"{reason}; triangulate the mesh", file=path, line=polygons.lines[k])
        faces[rows[k] : rows[k] + len(ears)] = np.reshape(ears, (-1, 3))
        if len(ears) < counts[k]:
            stuck.append(polygons.lines[k])
    large = [polygons.lines[k] for k in np.flatnonzero(sizes > MAX_CORNERS)]
    for what, lines in (
        ("parts of {} polygons that cannot be cut into triangles", stuck),
        (f"{{}} polygons of more than {MAX_CORNERS} corners", large),
    ):
        if lines:
            where = shorten(", ".join(map(str, lines)), 100)
            what = what.format(len(lines))
            left_out.append(
                f"{what} are left out, as in MuJoCo (line {where}); triangulate the mesh"
            )
    return faces[faces[:, 0] >= 0]


def _cut_quads(quads: Faces, points: Single) -> Faces:
    """Two triangles (m, 2, 3) of each polygon (m, 4) of four corners."""
    across_02 = points[quads[:, 2]] - points[quads[:, 0]]
    across_13 = points[quads[:, 3]] - points[quads[:, 1]]
    shorter = _squared(across_02) < _squared(across_13)
    return np.where(
        shorter[:, None, None],
        quads[:, [[0, 1, 2], [0, 2, 3]]],
        quads[:, [[0, 1, 3], [1, 2, 3]]],
    )


def _squared(a: Single) -> Single:
    return a[:, 0] * a[:, 0] + a[:, 1] * a[:, 1] + a[:, 2] * a[:, 2]


def _clip_ears(polygon: list[int], points: Single) -> tuple[list[list[int]], int]:
    """Triangles of a polygon of five or more corners, and how many ears were tried."""
    flat = points[polygon][:, _two_axes(points[polygon])]
    rest = list(range(len(polygon)))  # corners that are left
    ears = list[list[int]]()
    guess = trials = 0
    # tinyobjloader counts the attempts of one round down, and starts again after an ear, but not
    # after one that was found by the last attempt: then it gives up.
    left = before = len(rest)
    while len(rest) > 3 and left > 0:
        n = len(rest)
        guess %= n
        before, left = (n, n) if before != n else (n, left - 1)
        trials += 1
        around = [rest[(guess + k) % n] for k in range(n)]
        if _is_ear(flat[around]):
            ears.append([polygon[i] for i in around[:3]])
            del rest[(guess + 1) % n]
        else:
            guess += 1
    if len(rest) == 3:
        ears.append([polygon[i] for i in rest])
    return ears, trials


def _two_axes(corners: Single) -> list[int]:
    """The two coordinates in which the first corner of some extent is largest."""
    e0, e1 = (np.roll(corners, -1 - k, axis=0) - np.roll(corners, -k, axis=0) for k in (0, 1))
    size = np.abs(np.stack([_minor(e0, e1, *pair) for pair in ((1, 2), (2, 0), (0, 1))], axis=1))
    for x, y, z in size[(size > np.finfo(np.float32).eps).any(axis=1)][:1]:
        if x > y and x > z:
            return [1, 2]
        return [0, 1] if z > x and z > y else [0, 2]
    return [1, 2]


def _minor(a: Single, b: Single, i: int, j: int) -> Single:
    return a[:, i] * b[:, j] - a[:, j] * b[:, i]


def _is_ear(p: Single) -> bool:
    """Whether the first three of these points (n, 2) can be cut off as a triangle."""
    a, b, c = p[0], p[1], p[2]
    turn = (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0])
    # tinyobjloader takes the area of the triangle 0 a b for that of the polygon.
    area = (a[0] * b[1] - a[1] * b[0]) * np.float32(0.5)
    if turn * area < 0.0:
        return False
    inside = np.zeros(len(p) - 3, dtype=bool)
    x, y = p[3:, 0], p[3:, 1]
    for one, other in _edges(p[:3]):
        crosses = (one[1] > y) != (other[1] > y)
        at = (other[0] - one[0]) * (y - one[1]) / (other[1] - one[1]) + one[0]
        inside ^= crosses & (x < at)
    return not inside.any()


def _edges(triangle: Single) -> Iterator[tuple[Array, Array]]:
    return ((triangle[i], triangle[i - 1]) for i in range(3))
