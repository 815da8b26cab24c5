"""How far the rows of a task are from a goal, in one formula that can be traced.

With X_ab = (R, p) the pose of node b seen from a, and the goal R_d, p_d or a direction d_d of the
axis d fixed in b, the missing displacement and turn, in a's axes, are

    way = p_d - p
    turn = 2 sin(θ/2) n,   axis n and angle θ of R_d R*, or of the smallest turn from R d to d_d

The turn is the chord of the angle: it is the vector part of a quaternion, grows up to half a turn,
and needs no branches. The rows are S (turn, way), in b's axes if the rows are b's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.hinges import Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.model.rows import JointRow, Rows
from linkwise.spatial import rotation
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.spatial.vector import cross, six

SIZES = {"pose": 12, "orientation": 9, "position": 3, "direction": 3}
"""Numbers of a goal: (R_d | p_d) row by row, R_d row by row, p_d, d_d."""

SERVO = ("goal", "push", "rate", "kp", "kv")
"""Inputs of a servo: the goal, ẍ_d, ẋ_d and the gains, with a number for each row."""

HALF_TURN = {8: 1e-14, 4: 1e-7}
"""Keeps the axis finite at half a turn, where no direction is nearest; by bytes of a number."""


def goal_sizes(mech: Mechanism) -> list[int]:
    """Numbers of the goal of each loop and coupling of a mechanism that holds tasks as loops."""
    sizes = list[int]()
    for loop in mech.loops:
        if not isinstance(loop.hinge, Rows):
            raise ModelError(f"loop {loop.name!r} of {mech.name!r} is not a task: it has no goal.")
        sizes.append(SIZES[loop.hinge.aim])
    return sizes + [1] * len(joint_places(mech))


def joint_places(mech: Mechanism) -> list[tuple[int, int]]:
    """Body and velocity index of each row of joints.

    Raises:
        ModelError: The velocities of a hinge are not the rates of its coordinates.
    """
    places = list[tuple[int, int]]()
    for row in mech.couplings:
        if not isinstance(row, JointRow):
            raise ModelError(
                f"coupling {row.name!r} of {mech.name!r} is not a task: it has no goal."
            )
        k = mech.hinge_index[row.dependent]
        if type(mech.bodies[k].hinge).qdot is not Hinge.qdot:
            raise ModelError(
                f"hinge {row.dependent!r} has coordinates whose rates are not its velocities; a "
                "kernel has no error for it. Use a task about a node instead."
            )
        places.append((k, row.index))
    return places


def random_goal(mech: Mechanism, rng: np.random.Generator) -> Array:
    """A random goal that the tasks can reach."""
    parts = list[Array]()
    for loop in mech.loops:
        assert isinstance(loop.hinge, Rows)
        turn, way = rotation.random_rotation(rng), rng.standard_normal(3)
        pose = np.concatenate([turn, way[:, None]], axis=1).ravel()
        each = {"pose": pose, "orientation": turn.ravel(), "position": way, "direction": turn[0]}
        parts.append(each[loop.hinge.aim])
    return np.concatenate([*parts, rng.standard_normal(len(joint_places(mech)))])


def missing(hinge: Rows, X_ab: Pose, goal: Any, itemsize: int = 8) -> Any:
    """The rows S (turn, way) (..., m).

    Args:
        hinge: The rows, with what they aim at.
        X_ab: Pose of b seen from a, with leading axes.
        goal: The goal (..., size), or (size,).
        itemsize: Bytes of a number.
    """
    R, p, least = X_ab.rot, X_ab.p, HALF_TURN[itemsize]
    turn, way = np.zeros(p.shape), np.zeros(p.shape)
    if hinge.aim == "pose":
        place = goal.reshape(*goal.shape[:-1], 3, 4)
        turn, way = chord(R, place[..., :3], least), place[..., 3] - p
    elif hinge.aim == "orientation":
        turn = chord(R, goal.reshape(*goal.shape[:-1], 3, 3), least)
    elif hinge.aim == "position":
        way = goal - p
    else:
        turn = _least_turn((R @ np.array(hinge.axis)[:, None])[..., 0], goal, least)
    if not hinge.outer:
        back = np.swapaxes(R, -1, -2)
        turn, way = (back @ turn[..., None])[..., 0], (back @ way[..., None])[..., 0]
    both: Any = six(turn, way)
    return (hinge.rows @ both[..., None])[..., 0]


def chord(R: Array, R_d: Array, least: float) -> Array:
    """2 sin(θ/2) n of R_d R* (..., 3): sin θ n over cos(θ/2)."""
    E = R_d @ np.swapaxes(R, -1, -2)
    sine: Any = 0.5 * np.stack(
        [
            E[..., 2, 1] - E[..., 1, 2],
            E[..., 0, 2] - E[..., 2, 0],
            E[..., 1, 0] - E[..., 0, 1],
        ],
        axis=-1,
    )
    trace = E[..., 0, 0] + E[..., 1, 1] + E[..., 2, 2]
    return sine / _half((1.0 + trace) * 0.25, least)[..., None]


def _least_turn(d: Array, goal: Array, least: float) -> Array:
    """2 sin(θ/2) n of the smallest turn that takes one unit vector to another."""
    cosine = (d * goal).sum(axis=-1)
    return cross(d, goal) / _half((1.0 + cosine) * 0.5, least)[..., None]


def _half(square: Any, least: float) -> Any:
    """cos(θ/2) from its square, which rounding may take below zero: (|x| + x) / 2 is max(x, 0)."""
    return np.sqrt(0.5 * (np.sqrt(square * square) + square) + least)
