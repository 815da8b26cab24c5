"""What tasks measure: where they are, how far from where they should be, how fast they go."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from linkwise.dynamics.kernels import kernel
from linkwise.dynamics.relative_pose import relative_pose
from linkwise.errors import ModelError, ShapeError
from linkwise.model.body import WORLD
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import rotation
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.vector import cross, six
from linkwise.task.kernels import task_kernel
from linkwise.task.task import Task, Tasks, as_tuple
from linkwise.task.twin import twin

SQUARE = 1e-9
"""How far a target may be from a rotation, or a direction from unit length."""


def task_position(mech: Mechanism, q: ArrayLike, task: Task) -> Any:
    """Where a task is, in the axes of its reference.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        task: One task.

    Returns:
        For a pose a `Pose`; for a position the point (3,) [m], whichever rows the task has; for an
        orientation the rotation matrix (3, 3); for a direction the unit vector (3,); for joints
        their coordinates (k,), quaternions included. For a batch with (batch,) in front.
    """
    (task,) = _one(task)
    twin(mech, task)  # names that are not there are told of
    if task.kind == "joints":
        q = mech.check_q(q)
        return np.concatenate([q[..., mech.q_slice(name)] for name in task.hinges], axis=-1)
    X = _pose(mech, q, task)
    if task.kind == "pose":
        return X
    if task.kind == "position":
        return X.p
    return X.rot if task.kind == "orientation" else X.rot @ np.array(task.axis)


def task_error(mech: Mechanism, q: ArrayLike, task: Task, target: Any) -> Array:
    """What is missing to a target: the velocities that would arrive there in a second.

    Expression:
        e = S (log(R* R_d), R* (p_d - p)) in the node's axes, each part times R in the reference's
    with the pose (R, p) of the task; for a direction the shortest turn, for joints
    `mech.difference`.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        task: One task.
        target: What `task_position` should become; a batch of targets has (batch,) in front.

    Returns:
        (m,) or (batch, m) [rad or m], in the order of the rows.
    """
    (task,) = _one(task)
    twin(mech, task)  # names that are not there are told of
    if task.kind == "joints":
        return _joint_error(mech, mech.check_q(q), task, target)
    X = _pose(mech, q, task)
    goal = checked_target(mech, task, target)
    given = goal.p if isinstance(goal, Pose) else goal
    lead = given.shape[: given.ndim - (2 if task.kind == "orientation" else 1)]
    rows = {X.p.shape[:-1], lead}
    if len(rows - {(), (1,)}) > 1:
        raise ShapeError(
            f"q and the target of {task.name!r} are batches of {sorted(rows)}; one is wanted."
        )
    if task.kind == "direction":
        here = X.rot @ np.array(task.axis)
        return _turn(here, cast(Array, goal), X.rot) @ task.matrix[:, :3].T
    back = np.swapaxes(X.rot, -1, -2)
    turn, way = np.zeros(X.p.shape), np.zeros(X.p.shape)
    if task.kind in ("pose", "orientation"):
        wanted: Array = goal.rot if isinstance(goal, Pose) else goal
        turn = rotation.log(back @ wanted)
    if task.kind in ("pose", "position"):
        point: Array = goal.p if isinstance(goal, Pose) else goal
        way = point - X.p
    if task.axes == "reference":
        turn = _times(X.rot, turn)
    else:
        way = _times(back, way)
    lead = np.broadcast_shapes(turn.shape, way.shape)
    return six(np.broadcast_to(turn, lead), np.broadcast_to(way, lead)) @ task.matrix.T


def task_velocity(mech: Mechanism, q: ArrayLike, v: ArrayLike, tasks: Tasks) -> Array:
    """ẋ = J_t v: the velocities of tasks.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        tasks: A task or several.

    Returns:
        (m,) or (batch, m) [rad/s or m/s].
    """
    found = twin(mech, tasks)
    return found.sorted(task_kernel(found, "task_velocity")(q, v), -1)


def task_jacobian(mech: Mechanism, q: ArrayLike, tasks: Tasks) -> Array:
    """J_t = Q J + Y: velocities of tasks per velocity of hinges.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        tasks: A task or several.

    Returns:
        (m, nv) or (batch, m, nv).
    """
    found = twin(mech, tasks)
    return found.sorted(task_kernel(found, "task_jacobian")(q), -2)


def task_bias(mech: Mechanism, q: ArrayLike, v: ArrayLike, tasks: Tasks) -> Array:
    """γ = J̇_t v: the accelerations of tasks that are there while the hinges keep their speed.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        tasks: A task or several.

    Returns:
        (m,) or (batch, m) [rad/s² or m/s²].
    """
    found = twin(mech, tasks)
    return found.sorted(task_kernel(found, "task_bias")(q, v), -1)


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
        raise ModelError(f"{len(each)} tasks were given; this is about one at a time.")
    return (each[0],)


def checked_target(mech: Mechanism, task: Task, target: Any) -> Any:
    """A target of the kind that the task has, checked."""
    if task.kind == "joints":
        return _joint_target(mech, task, target)
    if task.kind == "pose":
        if not isinstance(target, Pose):
            raise ModelError(
                f"the target of {task.name!r} is a {type(target).__name__}; it must be a lw.Pose."
            )
        _rotation(task, target.rot)
        return target
    goal = floats(target, f"the target of {task.name!r}")
    shape = (3, 3) if task.kind == "orientation" else (3,)
    if goal.shape[-len(shape) :] != shape:
        whole = f"the whole {task.kind}, whichever rows the task has: "
        raise ShapeError(
            f"the target of {task.name!r} has shape {goal.shape}; it must be "
            f"{whole * (len(task.rows) < 3 and task.kind != 'direction')}{shape}, or with (batch,) "
            "in front."
        )
    if not np.isfinite(goal).all():
        raise ModelError(f"the target of {task.name!r} is not finite.")
    if task.kind == "orientation":
        _rotation(task, goal)
    if task.kind == "direction":
        length = np.linalg.norm(goal, axis=-1, keepdims=True)
        if not np.all(length > SQUARE):
            raise ModelError(f"the target of {task.name!r} is {goal.tolist()}: no direction.")
        goal = goal / length
    return goal


def _rotation(task: Task, rot: Array) -> None:
    if not np.all(rotation.deviation(rot) < SQUARE):
        raise ModelError(f"the target of {task.name!r} is turned by a matrix that is no rotation.")


def _turn(d: Array, goal: Array, rot: Array) -> Array:
    """The shortest turn from one direction to another, in the node's axes."""
    d, goal = np.broadcast_arrays(d, goal)
    across = cross(d, goal)
    sine, cosine = np.linalg.norm(across, axis=-1), (d * goal).sum(axis=-1)
    angle = np.arctan2(sine, cosine)
    safe = np.where(sine > 0.0, sine, 1.0)
    turn = across * (angle / safe)[..., None]
    back = (sine <= 1e-12) & (cosine < 0.0)  # opposite: any axis across will do
    if np.any(back):
        least = np.eye(3)[np.argmin(np.abs(d), axis=-1)]
        any_axis = cross(d, least)
        any_axis = any_axis / np.linalg.norm(any_axis, axis=-1, keepdims=True)
        turn = np.asarray(np.where(back[..., None], np.pi * any_axis, turn), dtype=np.float64)
    return _times(np.swapaxes(rot, -1, -2), turn)


def _times(matrix: Array, vector: Array) -> Array:
    return np.asarray((matrix @ vector[..., None])[..., 0], dtype=np.float64)


def _joint_target(mech: Mechanism, task: Task, target: Any) -> Array:
    goal = floats(target, f"the target of {task.name!r}")
    size = sum(at.stop - at.start for at in map(mech.q_slice, task.hinges))
    if goal.shape[-1:] != (size,):
        raise ShapeError(
            f"the target of {task.name!r} has shape {goal.shape}; it must be ({size},), or "
            f"(batch, {size})."
        )
    if not np.isfinite(goal).all():
        raise ModelError(f"the target of {task.name!r} is not finite.")
    return goal


def _joint_error(mech: Mechanism, q: Array, task: Task, target: Any) -> Array:
    goal, start = _joint_target(mech, task, target), 0
    lead = np.broadcast_shapes(q.shape[:-1], goal.shape[:-1])
    there = np.array(np.broadcast_to(q, (*lead, mech.nq)))
    for at in map(mech.q_slice, task.hinges):
        there[..., at] = goal[..., start : start + at.stop - at.start]
        start += at.stop - at.start
    e = mech.difference(np.broadcast_to(q, there.shape), mech.check_q(there))
    return np.concatenate([e[..., mech.v_slice(name)] for name in task.hinges], axis=-1)
