"""Surfaces of triangles: moved, put together, split along sharp edges, made lighter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.pose import Pose

CREASE = np.deg2rad(35.0)
"""Edges bent by more than this [rad] are seen as edges; less is a curved surface."""

MOST_AT_A_POINT = 64
"""Triangles around a point that are compared with each other."""

ROUNDS = 8
"""How far, from triangle to triangle around a point, a round surface is followed."""


@dataclass(frozen=True, slots=True, eq=False)
class Mesh:
    """Triangles in the frame of what carries them.

    Attributes:
        vertices: Points (k, 3) [m].
        faces: Indices of vertices (f, 3), counterclockwise from outside.
    """

    vertices: Array
    faces: NDArray[np.int64]

    def moved(self, pose: Pose) -> Mesh:
        """The same surface seen from the frame in which its own frame has this pose."""
        return Mesh(self.vertices @ pose.rot.T + pose.p, self.faces)

    def scaled(self, factors: ArrayLike) -> Mesh:
        """Stretched along the axes; a mirrored one is turned inside out again."""
        factor = np.broadcast_to(np.asarray(factors, dtype=np.float64), (3,))
        faces = self.faces[:, ::-1] if np.prod(factor) < 0.0 else self.faces
        return Mesh(self.vertices * factor, faces)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Least and largest coordinates, (3,) each [m]."""
        return self.vertices.min(axis=0), self.vertices.max(axis=0)

    @property
    def corners(self) -> Array:
        """The eight corners of its box (8, 3) [m]."""
        low, high = self.bounds
        pick = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T
        return np.where(pick == 0, low, high)


EMPTY = Mesh(np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64))


def together(meshes: Sequence[Mesh]) -> Mesh:
    """Several surfaces as one."""
    if not meshes:
        return EMPTY
    starts = np.cumsum([0, *(len(m.vertices) for m in meshes[:-1])])
    faces = [m.faces + start for m, start in zip(meshes, starts, strict=True)]
    return Mesh(np.concatenate([m.vertices for m in meshes]), np.concatenate(faces))


def creased(mesh: Mesh) -> Mesh:
    """The same surface with a vertex for each side of a sharp edge.

    A page shades a surface by normals that are the means of the triangles around a vertex. Points
    that files repeat for each triangle are made one first; then a vertex is split wherever the
    triangles around it meet at more than CREASE, so that round parts look round and edges sharp.
    """
    if not len(mesh.faces):
        return mesh
    points, one = np.unique(mesh.vertices.astype(np.float32), axis=0, return_inverse=True)
    faces = one.reshape(-1)[mesh.faces]
    a, b, c = (points[faces[:, i]].astype(np.float64) for i in range(3))
    area = np.cross(b - a, c - a)  # twice the area, along the normal
    length = np.linalg.norm(area, axis=1)
    good = length > 1e-9 * max(float(length.max()), 1e-300)
    if not good.any():
        return mesh
    faces, area, length = faces[good], area[good], length[good]
    unit = area / length[:, None]
    corner, owner = faces.reshape(-1), np.repeat(np.arange(len(faces)), 3)
    order = np.argsort(corner, kind="stable")
    count = np.bincount(corner, minlength=len(points))
    first = np.concatenate([[0], np.cumsum(count)[:-1]])
    # Each corner with every corner at the same point, as far as they bend little.
    many = np.minimum(count[corner], MOST_AT_A_POINT)
    mine = np.repeat(np.arange(len(corner)), many)
    step = np.arange(len(mine)) - np.repeat(np.cumsum(many) - many, many)
    other = order[first[corner[mine]] + step]
    near = np.einsum("ij,ij->i", unit[owner[mine]], unit[owner[other]]) > np.cos(CREASE)
    mine, other = mine[near], other[near]
    group = np.arange(len(corner))
    for _ in range(ROUNDS):
        lowest = group.copy()
        np.minimum.at(lowest, mine, group[other])
        np.minimum.at(lowest, other, group[mine])
        if np.array_equal(lowest, group):
            break
        group = lowest
    kept, index = np.unique(group, return_inverse=True)
    return Mesh(points[corner[kept]].astype(np.float64), index.reshape(-1, 3).astype(np.int64))


def lighter(mesh: Mesh, most: int) -> Mesh:
    """A surface of at most about `most` triangles: vertices in one cell of a grid become one.

    Args:
        most: Triangles; a mesh that has no more is returned as it is.
    """
    if len(mesh.faces) <= most:
        return mesh
    low, high = mesh.bounds
    extent = np.maximum(high - low, 1e-12)
    points = mesh.vertices
    cells, result = np.sqrt(most), mesh  # along the longest side; triangles go with its square
    for _ in range(12):
        size = float(extent.max()) / cells
        key = np.floor((points - low) / size).astype(np.int64)
        _, index = np.unique(key, axis=0, return_inverse=True)
        index = index.reshape(-1)
        count = np.bincount(index)
        middle = np.stack([np.bincount(index, points[:, i]) / count for i in range(3)], axis=1)
        faces = index[mesh.faces]
        proper = (
            (faces[:, 0] != faces[:, 1])
            & (faces[:, 1] != faces[:, 2])
            & (faces[:, 2] != faces[:, 0])
        )
        faces = faces[proper]
        if len(faces):
            _, once = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)
            faces = faces[np.sort(once)]
        result = Mesh(middle, faces)
        if len(faces) <= most:
            break
        cells *= 0.8
    return result if len(result.faces) else mesh
