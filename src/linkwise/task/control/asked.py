"""What a level asks for in a state: accelerations of its rows, from the goals of its servos."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from linkwise.errors import LinkwiseError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.task.control.goal import Goal
from linkwise.task.control.servo import Servo
from linkwise.task.dynamics import along_rows
from linkwise.task.measure import task_error, task_jacobian
from linkwise.task.twin import Twin, twin


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One level in a batch of states.

    Attributes:
        servos: Its servos.
        twin: Its tasks.
        J: Jacobian (batch, m, nv).
        wanted: F* (batch, m).
        pull: k_p e + k_v ẋ_d (batch, m), the part of F* that points to the goal.
        q: Joint positions (batch, nq).
        v: Joint velocities (batch, nv).
        scale: What makes all rows speeds (m,).
    """

    servos: tuple[Servo, ...]
    twin: Twin
    J: Array
    wanted: Array
    pull: Array
    q: Array
    v: Array
    scale: Array


def asked(
    mech: Mechanism,
    servos: tuple[Servo, ...],
    tasks: Twin,
    q: Array,
    v: Array,
    goals: Iterator[Goal],
    length: float | None,
    single: bool,
) -> Asked:
    """What the servos of one level ask for.

    Args:
        mech: The mechanism.
        servos: Those of the level.
        tasks: Their tasks.
        q: Joint positions (batch, nq).
        v: Joint velocities (batch, nv).
        goals: Gives the goal of each servo in turn.
        length: Where turning is compared with moving [m]; None for the reach.
        single: Whether the batch is one state that was given by itself.
    """
    at = q[0] if single else q  # one state goes through kernels quicker than a batch of one
    J = task_jacobian(mech, at, tasks.tasks).reshape(len(q), tasks.size, mech.nv)
    moving = (J @ v[..., None])[..., 0]
    pull, wanted = np.zeros(moving.shape), np.zeros(moving.shape)
    for i, servo in enumerate(servos):
        goal, rows, one = next(goals), tasks.rows(i), twin(mech, servo.task)
        error = _error(mech, at, servo, goal, tasks.sizes[i])
        whose, rest = f"of the goal of {servo.name!r}", (len(q), single)
        speed = along_rows(one, goal.velocity, f"velocity {whose}", *rest)
        ahead = along_rows(one, goal.acceleration, f"acceleration {whose}", *rest)
        pull[:, rows] = servo.pull(error, speed)
        wanted[:, rows] = servo.acceleration(error, moving[:, rows], speed, ahead)
    scale = tasks.scale(tasks.length() if length is None else length)
    return Asked(servos, tasks, J, wanted, pull, q, v, scale)


def _error(mech: Mechanism, q: Array, servo: Servo, goal: Goal, size: int) -> Array:
    """e (m,) or (batch, m), for one target or one for each state."""
    try:
        found = task_error(mech, q, servo.task, goal.target)
    except LinkwiseError:
        raise
    except ValueError:  # batches that do not go together
        found = np.zeros(0)
    if found.shape not in ((size,), (*q.shape[:-1], size)):
        raise ShapeError(
            f"the goal of {servo.name!r} has targets for another number of states than q, which "
            f"has shape {q.shape}; give one target, or one for each state."
        )
    return found
