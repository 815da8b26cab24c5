"""Goals of tasks: position, velocity and acceleration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.model import task_rows
from linkwise.model.body import Body
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.pose import Pose
from linkwise.tasks.measure import SQUARE, checked_goal
from linkwise.tasks.task import Task
from linkwise.tasks.task_stack import task_stack


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """The desired position, velocity and acceleration of a task.

    Attributes:
        position: The desired `lw.tasks.task_position`: a `Pose`, a point, a rotation, a direction
            or joint coordinates; a batch of them has (batch,) in front. A `Pose` gives tasks of a
            position or an orientation theirs.
        velocity: ẋ_d (m,) or (batch, m) along the rows of the task; None for zero.
        acceleration: ẍ_d (m,) or (batch, m); None for zero.
    """

    position: Any
    velocity: ArrayLike | None = None
    acceleration: ArrayLike | None = None


def as_goals(goals: Any, names: Sequence[str]) -> list[Goal]:
    """A goal for each servo."""
    if isinstance(goals, Mapping):
        given = cast("Mapping[object, Any]", goals)
        for name in given:
            if name not in names:
                raise unknown_name("servo", name, names, owner="the controller")
        missing = [name for name in names if name not in given]
        if missing:
            raise ModelError(
                f"no goal was given for {_listed(missing)}; the controller needs one for each of "
                f"{_listed(names)}."
            )
        each = [given[name] for name in names]
    elif len(names) == 1:
        each = [goals]
    elif isinstance(goals, list | tuple):
        each = list(cast("Sequence[Any]", goals))
        if len(each) != len(names):
            raise ModelError(
                f"{len(each)} goals were given for {len(names)} servos; give one for each, in the "
                f"order {_listed(names)}, or a dictionary by name."
            )
    else:
        raise ModelError(
            f"goals is a {type(goals).__name__}; for {len(names)} servos it must be a dictionary "
            f"with the keys {_listed(names)}, or a list in that order."
        )
    return [goal if isinstance(goal, Goal) else Goal(goal) for goal in each]


def goal_size(mech: Mechanism, task: Task) -> int:
    """Numbers of the goal of a task: as in `linkwise.model.task_rows`; coordinates of joints."""
    if task.kind == "joints":
        return sum(at.stop - at.start for at in map(mech.q_slice, task.hinges))
    return task_rows.SIZES[task.kind]


class GoalNumbers:
    """Goals of servos as inputs of a kernel: all positions, ẋ_d and ẍ_d in sequence."""

    def __init__(self, mech: Mechanism, tasks: Sequence[Task]) -> None:
        self.mech, self.tasks, self.names = mech, tasks, [task.name for task in tasks]
        self._places = list[tuple[Task, slice, slice, bool]]()
        self.size, self.rows = 0, 0
        for task in tasks:
            size, rows = goal_size(mech, task), task_stack(mech, task, center=True).size
            at, row = slice(self.size, self.size + size), slice(self.rows, self.rows + rows)
            hinges = [_body(mech, name).hinge for name in task.hinges]
            plain = task.kind != "orientation" and all(map(is_plain, hinges))
            self._places.append((task, at, row, plain))
            self.size, self.rows = at.stop, row.stop
        self._still = np.zeros(self.rows)

    def quickly(self, goals: Any) -> tuple[Array, Array, Array] | None:
        """The goals of one state; None if they need to be checked."""
        names, each = self.names, [goals]
        if type(goals) is dict:
            given = cast("dict[str, Any]", goals)
            each = [given.get(name) for name in names] if len(given) == len(names) else []
        elif len(names) > 1 and type(goals) in (list, tuple):
            each = cast("list[Any]", goals)
        if len(each) != len(names):
            return None
        out, speeds = np.empty(self.size), [self._still, self._still]
        for (task, at, rows, plain), goal in zip(self._places, each, strict=True):
            position = goal
            if type(goal) is Goal:
                position = goal.position
                for i, x in enumerate((goal.velocity, goal.acceleration)):
                    if x is None:
                        continue
                    if type(x) is not np.ndarray or x.shape != (rows.stop - rows.start,):
                        return None
                    if speeds[i] is self._still:
                        speeds[i] = np.zeros(self.rows)
                    speeds[i][rows] = x
            if type(position) is Pose and position.p.ndim == 1 and task.kind in _OF_POSES:
                if task.kind == "pose":
                    place = out[at].reshape(3, 4)
                    place[:, :3], place[:, 3] = position.rot, position.p
                else:
                    out[at] = position.p if task.kind == "position" else position.rot.reshape(9)
            elif type(position) is np.ndarray and task.kind == "orientation":
                if not _is_rotation(position):
                    return None
                out[at] = position.reshape(9)
            elif not plain or type(position) is not np.ndarray or position.dtype.kind != "f":
                return None
            elif position.shape != (at.stop - at.start,):
                return None
            else:
                out[at] = position
        return out, speeds[0], speeds[1]

    def carefully(self, goals: Any, batch: int, single: bool) -> tuple[Array, Array, Array]:
        """The goals, checked: for one state, or for each of a batch.

        Raises:
            ShapeError: Targets or velocities for another number of states, or of another shape.
            ModelError: A position of another kind, or not finite.
        """
        each = as_goals(goals, self.names)
        parts = [list[Array](), list[Array](), list[Array]()]
        for (task, at, _, _), goal in zip(self._places, each, strict=True):
            position = self._numbers(task, goal.position)
            if position.shape[:-1] not in (((),) if single else ((), (batch,))):
                raise ShapeError(
                    f"the goal of {task.name!r} has positions for another number of states than q, "
                    f"which has {'one' if single else batch}; give one, or one for each "
                    "state."
                )
            one, whose = task_stack(self.mech, task, center=True), f"of the goal of {task.name!r}"
            rest = (batch, single)
            parts[0].append(np.broadcast_to(position, (batch, at.stop - at.start)))
            parts[1].append(one.along_rows(goal.velocity, f"velocity {whose}", *rest))
            parts[2].append(one.along_rows(goal.acceleration, f"acceleration {whose}", *rest))
        joined = (np.concatenate(part, axis=-1) for part in parts)
        goal, velocity, acceleration = (x[0] if single else x for x in joined)
        return goal, velocity, acceleration

    def _numbers(self, task: Task, position: Any) -> Array:
        """A position as numbers (..., size), checked."""
        place: Any = checked_goal(self.mech, task, position)
        if isinstance(place, Pose):
            numbers = np.concatenate([place.rot, place.p[..., None]], axis=-1)
            return numbers.reshape(*place.p.shape[:-1], 12)
        if task.kind == "orientation":
            return place.reshape(*place.shape[:-2], 9)
        if task.kind == "joints":
            mech, every = self.mech, np.arange(self.mech.nq)
            there = np.array(np.broadcast_to(mech.neutral(), (*place.shape[:-1], mech.nq)))
            there[..., np.concatenate([every[mech.q_slice(x)] for x in task.hinges])] = place
            mech.check_q(there)  # raises for quaternions not of unit length
        return place


_OF_POSES = ("pose", "position", "orientation")
"""Kinds of tasks whose goal may be a pose, which was checked when it was made."""

CLOSE = 0.1 * SQUARE
"""Scalar products of rows of a rotation are as near to 0 or 1; else it is looked at carefully."""


def _is_rotation(matrix: Array) -> bool:
    """Whether it is clearly one rotation: scalar products in Python are cheaper than NumPy here."""
    if matrix.shape != (3, 3) or matrix.dtype.kind != "f":
        return False
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()
    return (
        abs(a * a + b * b + c * c - 1.0) < CLOSE
        and abs(d * d + e * e + f * f - 1.0) < CLOSE
        and abs(g * g + h * h + i * i - 1.0) < CLOSE
        and abs(a * d + b * e + c * f) < CLOSE
        and abs(a * g + b * h + c * i) < CLOSE
        and abs(d * g + e * h + f * i) < CLOSE
        and a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) > 0.0
    )


def _body(mech: Mechanism, name: str) -> Body:
    """The body of a hinge, named by either."""
    return mech.hinge(name) if name in mech.hinge_index else mech.body(name)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
