"""Position, error, velocity and Jacobian of tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.dynamics.kernels import kernel
from linkwise.dynamics.kinematics import relative_pose
from linkwise.dynamics.momentum import center_of_mass
from linkwise.errors import ModelError, ShapeError
from linkwise.model.body import WORLD
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import rotation
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.choice import absolute, angle, minimum, root, where
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.vector import cross
from linkwise.tasks.task import Task, Tasks, as_tuple
from linkwise.tasks.task_stack import task_stack

SQUARE = 1e-9
"""Largest deviation of a goal from a rotation, and smallest length of a direction."""


def task_position(mech: Mechanism, q: ArrayLike, task: Task) -> Any:
    """The position of a task, in the axes of its reference.

    Args:
        mech: The mechanism; loops and couplings are left open.
        task: One task.

    Returns:
        For a pose a `Pose`; for a position or the centre of mass the point (3,) [m], for any
        rows; for an orientation the rotation matrix (3, 3); for a direction the unit vector (3,);
        for joints their coordinates (k,), quaternions included. For a batch with (batch,) in front.
    """
    (task,) = _one(task)
    task_stack(mech, task, center=True)  # raises for unknown names
    if task.kind == "center_of_mass":
        return center_of_mass(mech, q)
    if task.kind == "joints":
        q = mech.check_q(q)
        return np.concatenate([q[..., mech.q_slice(name)] for name in task.hinges], axis=-1)
    X = _pose(mech, q, task)
    if task.kind == "pose":
        return X
    if task.kind == "position":
        return X.p
    return X.rot if task.kind == "orientation" else X.rot @ np.array(task.axis)


def task_error(mech: Mechanism, q: ArrayLike, task: Task, goal: Any) -> Array:
    """The error of a task: the velocities that would reach the goal in one second.

    Expression:
        e = S (log(R* R_d), R* (p_d - p)) in the node's axes, each part times R in the reference's
    with the pose (R, p) of the task; for a direction the shortest turn, for joints
    `mech.difference`, for the centre of mass S (c_d - c).

    Args:
        mech: The mechanism; loops and couplings are left open.
        task: One task.
        goal: The desired `task_position`; a batch of them has (batch,) in front.

    Returns:
        (m,) or (batch, m) [rad or m], in the order of the rows.
    """
    (task,) = _one(task)
    task_stack(mech, task, center=True)  # raises for unknown names
    if task.kind == "joints":
        return _joint_error(mech, mech.check_q(q), task, goal)
    if task.kind == "center_of_mass":
        c = center_of_mass(mech, q)
        X = Pose(np.broadcast_to(np.eye(3), (*c.shape[:-1], 3, 3)), c)
    else:
        X = _pose(mech, q, task)
    desired = checked_goal(mech, task, goal)
    given = desired.p if isinstance(desired, Pose) else desired
    lead = given.shape[: given.ndim - (2 if task.kind == "orientation" else 1)]
    rows = {X.p.shape[:-1], lead}
    if len(rows - {(), (1,)}) > 1:
        raise ShapeError(
            f"q and the goal of {task.name!r} are batches of {sorted(rows)}; they must be one "
            "batch."
        )
    if isinstance(desired, Pose):
        return missing(task, X.rot, X.p, desired.rot, desired.p)
    return missing(task, X.rot, X.p, desired, desired)


def missing(task: Task, R: Any, p: Any, R_d: Any, p_d: Any) -> Any:
    """The error (..., m) of a task of a node, in array code.

    Args:
        task: The task.
        R: Orientation of the node in the reference (..., 3, 3).
        p: Its position [m] (..., 3).
        R_d: Desired orientation; for a direction the unit vector (..., 3).
        p_d: Desired position.
    """
    back = np.swapaxes(R, -1, -2)
    if task.kind == "direction":
        turn = _times(back, _turn(_times(R, np.array(task.axis)), R_d))
        return _times(task.matrix[:, :3], turn)
    parts = list[Any]()
    if task.kind not in ("position", "center_of_mass"):
        turn = rotation.log(back @ R_d)
        turn = _times(R, turn) if task.axes == "reference" else turn
        parts.append(_times(task.matrix[:, :3], turn))
    if task.kind != "orientation":
        way = p_d - p
        way = way if task.axes == "reference" else _times(back, way)
        parts.append(_times(task.matrix[:, 3:], way))
    return sum(parts[1:], parts[0])


def task_velocity(mech: Mechanism, q: ArrayLike, v: ArrayLike, tasks: Tasks) -> Array:
    """ẋ = J_t v: the velocities of tasks.

    Args:
        mech: The mechanism; loops and couplings are left open.

    Returns:
        (m,) or (batch, m) [rad/s or m/s].
    """
    return task_stack(mech, tasks, center=True).measured("velocity", q, v)


def task_jacobian(mech: Mechanism, q: ArrayLike, tasks: Tasks) -> Array:
    """J_t = Q J + Y: velocities of tasks per velocity of hinges.

    Args:
        mech: The mechanism; loops and couplings are left open.

    Returns:
        (m, nv) or (batch, m, nv).
    """
    return task_stack(mech, tasks, center=True).measured("jacobian", q)


def task_bias(mech: Mechanism, q: ArrayLike, v: ArrayLike, tasks: Tasks) -> Array:
    """γ = J̇_t v: the accelerations of tasks at constant joint velocities.

    Args:
        mech: The mechanism; loops and couplings are left open.

    Returns:
        (m,) or (batch, m) [rad/s² or m/s²].
    """
    return task_stack(mech, tasks, center=True).measured("bias", q, v)


def _pose(mech: Mechanism, q: ArrayLike, task: Task) -> Pose:
    """The pose of the node seen from the reference, with the batch in front."""
    if task.relative_to != WORLD:
        return relative_pose(mech, q, task.node, task.relative_to)
    place = kernel(mech, "node_poses", task.node)(q)
    place = place.reshape(*place.shape[:-1], 3, 4)
    return trusted_pose(place[..., :3], place[..., 3])


def _one(task: object) -> tuple[Task]:
    each = as_tuple(task)
    if len(each) != 1:
        raise ModelError(f"{len(each)} tasks were given; this function takes one.")
    return (each[0],)


def checked_goal(mech: Mechanism, task: Task, given: Any) -> Any:
    """A goal of the task's kind, checked."""
    if task.kind == "joints":
        return _joint_goal(mech, task, given)
    if task.kind == "pose":
        if not isinstance(given, Pose):
            raise ModelError(
                f"the goal of {task.name!r} is a {type(given).__name__}; it must be a lw.Pose."
            )
        return given
    if isinstance(given, Pose) and task.kind in ("position", "orientation"):
        given = given.p if task.kind == "position" else given.rot
    goal = floats(given, f"the goal of {task.name!r}")
    shape = (3, 3) if task.kind == "orientation" else (3,)
    if goal.shape[-len(shape) :] != shape:
        kind = "position" if task.kind == "center_of_mass" else task.kind
        full = f"the full {kind}, for any rows of the task: "
        raise ShapeError(
            f"the goal of {task.name!r} has shape {goal.shape}; it must be "
            f"{full * (len(task.rows) < 3 and task.kind != 'direction')}{shape}, or with (batch,) "
            "in front."
        )
    if not np.isfinite(goal).all():
        raise ModelError(f"the goal of {task.name!r} is not finite.")
    if task.kind == "orientation":
        _rotation(task, goal)
    if task.kind == "direction":
        length = np.linalg.norm(goal, axis=-1, keepdims=True)
        if not np.all(length > SQUARE):
            raise ModelError(
                f"the goal of {task.name!r} is {goal.tolist()}; it must be a direction, not zero."
            )
        goal = goal / length
    return goal


def goal_numbers(mech: Mechanism, task: Task, given: Any) -> Array:
    """The numbers of a goal (..., n) as kernels take them: a pose is (R, p) row by row."""
    goal = checked_goal(mech, task, given)
    if isinstance(goal, Pose):
        rows = np.concatenate([goal.rot, goal.p[..., None]], axis=-1)
        return rows.reshape(*goal.p.shape[:-1], 12)
    return goal.reshape(*goal.shape[:-2], 9) if task.kind == "orientation" else goal


def _rotation(task: Task, rot: Array) -> None:
    if not np.all(rotation.deviation(rot) < SQUARE):
        raise ModelError(f"the goal of {task.name!r} is not a rotation matrix.")


def _turn(d: Any, goal: Any) -> Any:
    """The shortest turn (..., 3) from one unit vector to another."""
    d, goal = np.broadcast_arrays(d, goal)
    across, cosine = cross(d, goal), (d * goal).sum(axis=-1, keepdims=True)
    sine = root((across * across).sum(axis=-1, keepdims=True))
    turn = across * (angle(sine, cosine) / where(sine, sine, 1.0))
    # Opposite vectors: any perpendicular axis, here d × the coordinate axis farthest from d.
    size, least = absolute(d), np.broadcast_to(np.eye(3)[0], d.shape)
    smallest = size[..., :1]
    for k in (1, 2):
        entry = size[..., k : k + 1]
        least = where(smallest - entry, np.eye(3)[k], least)
        smallest = minimum(smallest, entry)
    other = cross(d, least)
    other = other * (np.pi / root((other * other).sum(axis=-1, keepdims=True)))
    return where(1e-12 - sine, where(-cosine, other, turn), turn)


def _times(matrix: Any, vector: Any) -> Any:
    return (matrix @ vector[..., None])[..., 0]


def _joint_goal(mech: Mechanism, task: Task, given: Any) -> Array:
    goal = floats(given, f"the goal of {task.name!r}")
    size = sum(at.stop - at.start for at in map(mech.q_slice, task.hinges))
    if goal.shape[-1:] != (size,):
        raise ShapeError(
            f"the goal of {task.name!r} has shape {goal.shape}; it must be ({size},), or "
            f"(batch, {size})."
        )
    if not np.isfinite(goal).all():
        raise ModelError(f"the goal of {task.name!r} is not finite.")
    return goal


def _joint_error(mech: Mechanism, q: Array, task: Task, given: Any) -> Array:
    goal, start = _joint_goal(mech, task, given), 0
    lead = np.broadcast_shapes(q.shape[:-1], goal.shape[:-1])
    there = np.array(np.broadcast_to(q, (*lead, mech.nq)))
    for at in map(mech.q_slice, task.hinges):
        there[..., at] = goal[..., start : start + at.stop - at.start]
        start += at.stop - at.start
    e = mech.difference(np.broadcast_to(q, there.shape), mech.check_q(there))
    return np.concatenate([e[..., mech.v_slice(name)] for name in task.hinges], axis=-1)
