"""Where shapes touch height fields, from poses of bodies: straight code for given points.

The points of a shape, and the gap and normal of each, are those of rollouts (`contact_rows.py`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.model.builder import Builder
from linkwise.model.hinges import Pin
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import compile
from linkwise.simulation.implicit.contact_rows import touching
from linkwise.simulation.implicit.ground import ContactPoint
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia

POSES = "poses"
"""The input of the straight code: poses of bodies."""


@cache
def any_mechanism() -> Mechanism:
    """A mechanism to compile code for that reads poses only."""
    b = Builder("any")
    b.body("any", "world", Pin((0, 0, 1)), inertia=SpatialInertia.solid_box(1.0, (1.0, 1.0, 1.0)))
    return b.build()


def _written(at: Any, bodies: tuple[str, ...], points: tuple[ContactPoint, ...]) -> Any:
    """The place, the normal and the gap of each point (c, 7), on graph nodes."""
    poses = at.read(POSES, 12 * len(bodies)).reshape(-1, 3, 4)
    rows = list[Any]()
    for point in points:
        pose = poses[bodies.index(point.body)]
        arm, (normal, *_), gap = touching(pose, point)
        rows.append([*(pose[:, 3] + arm - point.radius * normal), *normal, gap])
    return np.array(rows, dtype=object)


class OverHeights:
    """Points over height fields.

    Attributes:
        points: The points.
    """

    def __init__(self, bodies: tuple[str, ...], points: tuple[ContactPoint, ...]) -> None:
        self.points = points
        self._at = compile(Formula(_written, (bodies, points)), any_mechanism())

    def find(self, poses: Array) -> tuple[Array, Array, Array]:
        """Where the points touch (c, 3) [m], the normals there (c, 3), and gaps (c,) [m].

        Args:
            poses: Of the bodies (b, 3, 4).
        """
        rows = self._at(poses.reshape(-1)).reshape(-1, 7)
        return rows[:, :3], rows[:, 3:6], rows[:, 6]
