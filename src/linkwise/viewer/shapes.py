"""Shapes as triangles: those of model files, and those made where a model has none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linkwise.model.geometry import Geometry
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import aligning
from linkwise.viewer.mesh import EMPTY, Mesh, together

AROUND = 28
"""Sides of round things."""


def box(lengths: ArrayLike) -> Mesh:
    """A box by its edges (3,) [m], with separate vertices on each side."""
    half = 0.5 * np.asarray(lengths, dtype=np.float64)
    points, faces = list[Array](), list[list[int]]()
    for axis in range(3):
        for sign in (-1.0, 1.0):
            u, v = (axis + 1) % 3, (axis + 2) % 3
            start = 4 * len(points)
            corners = np.zeros((4, 3))
            corners[:, axis] = sign
            corners[:, u] = (-1, 1, 1, -1)
            corners[:, v] = (-1, -1, 1, 1)
            points.append(corners * half)
            ring = [start, start + 1, start + 2, start + 3]
            ring = ring if sign > 0.0 else ring[::-1]
            faces += [[ring[0], ring[1], ring[2]], [ring[0], ring[2], ring[3]]]
    return Mesh(np.concatenate(points), np.array(faces, dtype=np.int64))


def lathe(radius: ArrayLike, height: ArrayLike, around: int = AROUND) -> Mesh:
    """A surface of revolution about z through rings of these radii at these heights [m].

    A ring of radius zero is a point. The profile goes upward on the outside.
    """
    radius, height = np.asarray(radius, float), np.asarray(height, float)
    angle = 2.0 * np.pi * np.arange(around) / around
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    rings, starts, points = list[Array](), list[int](), 0
    for r, z in zip(radius, height, strict=True):
        ring = (
            np.column_stack([r * circle, np.full(around, z)]) if r > 0.0 else np.array([[0, 0, z]])
        )
        rings.append(ring)
        starts.append(points)
        points += len(ring)
    faces, i = list[NDArray[np.int64]](), np.arange(around, dtype=np.int64)
    j = (i + 1) % around
    for k in range(len(rings) - 1):
        a, b = starts[k], starts[k + 1]
        if len(rings[k]) > 1:
            top = b + j if len(rings[k + 1]) > 1 else np.full(around, b)
            faces.append(np.column_stack([a + i, a + j, top]))
        if len(rings[k + 1]) > 1:
            low = a + i if len(rings[k]) > 1 else np.full(around, a)
            faces.append(np.column_stack([low, b + j, b + i]))
    if not faces:  # a stroke along the axis
        return EMPTY
    return Mesh(np.concatenate(rings), np.concatenate(faces).astype(np.int64))


def ball(radius: float = 1.0, around: int = AROUND) -> Mesh:
    """A sphere [m]."""
    turn = np.linspace(-0.5 * np.pi, 0.5 * np.pi, around // 2 + 1)
    r = np.cos(turn)
    r[[0, -1]] = 0.0
    return lathe(radius * r, radius * np.sin(turn), around)


def cylinder(radius: float, length: float, around: int = AROUND) -> Mesh:
    """A cylinder along z about its centre [m], with flat ends."""
    h = 0.5 * length
    side = lathe([radius, radius], [-h, h], around)
    return together(
        [side, lathe([0.0, radius], [-h, -h], around), lathe([radius, 0.0], [h, h], around)]
    )


def capsule(radius: float, length: float, around: int = AROUND) -> Mesh:
    """A cylinder along z with half balls at its ends; `length` is that of the straight part [m]."""
    turn = np.linspace(0.0, 0.5 * np.pi, around // 4 + 1)
    r, z = radius * np.cos(turn), radius * np.sin(turn)
    r[-1] = 0.0
    h = 0.5 * length
    return lathe([*r[::-1], *r], [*(-h - z[::-1]), *(h + z)], around)


def rod(start: ArrayLike, end: ArrayLike, radius: float, around: int = AROUND) -> Mesh:
    """A capsule whose half balls are centred on two points (3,) [m]."""
    a, b = np.asarray(start, float), np.asarray(end, float)
    length = float(np.linalg.norm(b - a))
    if length < 1e-12:
        return Mesh(ball(radius, around).vertices + a, ball(radius, around).faces)
    rot = aligning(np.array([0.0, 0.0, 1.0]), (b - a) / length)
    return capsule(radius, length, around).moved(Pose(rot, 0.5 * (a + b)))


def drum(at: ArrayLike, axis: ArrayLike, radius: float, length: float) -> Mesh:
    """A cylinder about a point (3,) along an axis (3,) [m]."""
    rot = aligning(np.array([0.0, 0.0, 1.0]), np.asarray(axis, float))
    return cylinder(radius, length).moved(Pose(rot, np.asarray(at, float)))


def of_geometry(shape: Geometry) -> Mesh:
    """The triangles of a primitive in the frame of its carrier; a mesh of a file has none here.

    An infinite plane is not drawn: the grid replaces it.
    """
    size = shape.size
    if shape.shape == "box":
        made = box(size)
    elif shape.shape == "sphere":
        made = ball(size[0])
    elif shape.shape == "ellipsoid":
        made = ball().scaled(size)
    elif shape.shape == "cylinder":
        made = cylinder(size[0], size[1])
    elif shape.shape == "capsule":
        made = capsule(size[0], size[1])
    elif shape.shape == "plane" and min(size) > 0.0:
        made = box((2.0 * size[0], 2.0 * size[1], 1e-3))
    else:
        return EMPTY
    return made.moved(shape.pose)
