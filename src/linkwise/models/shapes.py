"""Shapes of sample mechanisms, the inertia of a capsule, and how many bodies they may have."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np

from linkwise.model import Geometry
from linkwise.model.geometry import Role, Shape
from linkwise.spatial import Pose, SpatialInertia, rotation
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.pose import PoseLike

Rgba: TypeAlias = tuple[float, float, float, float]

STEEL: Rgba = (0.62, 0.66, 0.71, 1.0)
SLATE: Rgba = (0.29, 0.35, 0.43, 1.0)
BLUE: Rgba = (0.16, 0.45, 0.70, 1.0)
ORANGE: Rgba = (0.91, 0.51, 0.16, 1.0)
IVORY: Rgba = (0.90, 0.88, 0.82, 1.0)


def pose_between(start: ArrayLike, end: ArrayLike) -> tuple[Pose, float]:
    """The frame half way from `start` to `end` whose z axis points along it, and the length [m]."""
    a, b = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    along: Array = b - a
    length = float(np.linalg.norm(along))
    if length == 0.0:
        return Pose.translation(a), 0.0
    rot = rotation.aligning(np.array([0.0, 0.0, 1.0]), along / length)
    return Pose.rotation(rot, 0.5 * (a + b)), length


def capsule(
    name: str, start: ArrayLike, end: ArrayLike, radius: float, rgba: Rgba = STEEL
) -> Geometry:
    """A capsule whose half balls are centred on the two points [m]."""
    pose, length = pose_between(start, end)
    return Geometry(name, "capsule", (radius, length), pose, "both", rgba)


def solid(
    name: str,
    shape: Shape,
    size: tuple[float, ...],
    at: PoseLike = (0.0, 0.0, 0.0),
    rgba: Rgba = STEEL,
    role: Role = "both",
) -> Geometry:
    """A shape at a place [m] or pose."""
    return Geometry(name, shape, size, Pose.of(at), role, rgba)


def pitch(angle: float) -> Array:
    """A rotation about y [rad]."""
    return rotation.axis_angle(np.array([0.0, 1.0, 0.0]), angle)


def capsule_inertia(mass: float, start: ArrayLike, end: ArrayLike, radius: float) -> SpatialInertia:
    """Inertia of that capsule filled evenly with `mass` [kg], about the frame of the points."""
    pose, length = pose_between(start, end)
    return SpatialInertia.solid_capsule(mass, radius, length).moved(pose)


MOST_BODIES: Final = 1_000_000
"""Most bodies of a sample mechanism; a million take about a minute and a few gigabytes."""
