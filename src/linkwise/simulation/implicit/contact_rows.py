"""Where shapes touch: rows of velocities at contacts and their gaps, on graph nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.codegen.writing import Writing
from linkwise.dynamics.quantity import expression
from linkwise.simulation.implicit.ground import ContactPoint, HeightField
from linkwise.spatial.vector import cross


def contact_rows(
    at: Writing, q: Any, bodies: tuple[str, ...], points: tuple[ContactPoint, ...]
) -> tuple[Any, list[Any], list[Any]]:
    """S (rows of all points, 6 bodies) with u = S V of body velocities in world axes, and gaps.

    The third are the normals of the points over height fields, one number after another.

    Args:
        q: Joint positions, as nodes.
        bodies: Names of the bodies in V.
        points: Points that may touch; each has `point.rows` rows.
    """
    poses = at.value(expression("node_poses"), nodes=bodies, q=q)
    return rows_at(poses, bodies, points)


def rows_at(
    poses: Any, bodies: tuple[str, ...], points: tuple[ContactPoint, ...]
) -> tuple[Any, list[Any], list[Any]]:
    """The same, of poses of the bodies (bodies, 3, 4) in the world."""
    poses = poses.reshape(-1, 3, 4)
    S = np.zeros((sum(point.rows for point in points), 6 * len(bodies)), dtype=object)
    gaps, normals, i = list[Any](), list[Any](), 0
    for point in points:
        k = bodies.index(point.body)
        ground, (arm, axes, gap) = point.ground, touching(poses[k], point)
        n, *tangents = axes
        gaps.append(gap)
        if isinstance(ground, HeightField):
            normals += n.tolist()
        arm = arm - point.radius * n  # where it touches
        for j, axis in enumerate(axes):
            S[i + j, 6 * k : 6 * k + 3] = cross(arm, axis.astype(object))
            S[i + j, 6 * k + 3 : 6 * k + 6] = axis
        turns = [n] * (ground.torsional > 0.0) + tangents * (ground.rolling > 0.0)
        for j, axis in enumerate(turns):
            S[i + 3 + j, 6 * k : 6 * k + 3] = axis
        i += point.rows
    return S, gaps, normals


def touching(pose: Any, point: ContactPoint) -> tuple[Any, Any, Any]:
    """The centre of a point (3,) from the body's origin, the axes of its contact, and its gap.

    Args:
        pose: Of its body (3, 4) in the world.
    """
    ground, turn = point.ground, pose[:, :3]
    axes, place = ground.axes, np.array(point.point)
    if point.support is not None:
        if isinstance(ground, HeightField):  # the lowest point is that over the slope below
            middle = turn @ np.array(point.support.middle) + pose[:, 3]
            axes = ground.frame(ground.under(middle, 0.0)[1])
        place = point.support.lowest(axes @ turn)
    arm = turn @ place
    centre = arm + pose[:, 3]
    if not isinstance(ground, HeightField):
        return arm, axes, sum(axes[0] * (centre - np.array(ground.point))) - point.radius
    gap, normal = ground.under(centre, point.radius)
    return arm, ground.frame(normal), gap
