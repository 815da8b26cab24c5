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
        ground, turn = point.ground, poses[k, :, :3]
        axes, place = ground.axes, np.array(point.point)
        if point.support is not None:
            if isinstance(ground, HeightField):  # the lowest point is that over the slope below
                middle = turn @ np.array(point.support.middle) + poses[k, :, 3]
                axes = ground.frame(ground.under(middle, 0.0)[1])
            place = point.support.lowest(axes @ turn)
        arm = turn @ place
        centre = arm + poses[k, :, 3]
        if isinstance(ground, HeightField):
            gap, normal = ground.under(centre, point.radius)
            normals += normal.tolist()
            axes = ground.frame(normal)
        else:
            gap = sum(axes[0] * (centre - np.array(ground.point))) - point.radius
        n, *tangents = axes
        gaps.append(gap)
        arm = arm - point.radius * n  # where it touches
        for j, axis in enumerate(axes):
            S[i + j, 6 * k : 6 * k + 3] = cross(arm, axis.astype(object))
            S[i + j, 6 * k + 3 : 6 * k + 6] = axis
        turns = [n] * (ground.torsional > 0.0) + tangents * (ground.rolling > 0.0)
        for j, axis in enumerate(turns):
            S[i + 3 + j, 6 * k : 6 * k + 3] = axis
        i += point.rows
    return S, gaps, normals
