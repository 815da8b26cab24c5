"""Whether a mechanism can perform tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.tasks.measure import task_jacobian
from linkwise.tasks.space import ROUNDING
from linkwise.tasks.task import Task
from linkwise.tasks.task_stack import TaskStack

SAMPLES = 3
"""Random states to try: almost all states have the highest rank."""

RANK = 1e-9
"""Singular values of J below this fraction of the largest are zero."""


def check_tasks(mech: Mechanism, levels: Sequence[TaskStack]) -> None:
    """Raise for impossible tasks: too many rows, nodes that do not move.

    The first level must have full rank somewhere; lower ones do what they can.

    Raises:
        ModelError: Names the task, its rows and the motions of the mechanism.
    """
    rng = np.random.default_rng(0)
    q = np.stack([mech.random(rng) for _ in range(SAMPLES)])
    for k, level in enumerate(levels):
        if level.size > mech.nv:
            names = ", ".join(repr(task.name) for task in level.tasks)
            raise ModelError(
                f"a level has {level.size} rows ({names}), but {mech.name!r} has {mech.nv} "
                "degrees of freedom; remove rows, or move some of the tasks to a lower level."
            )
        reach = level.length()
        J = task_jacobian(mech, q, level.tasks) * level.scale(reach)[:, None]
        for i, task in enumerate(level.tasks):
            _check_task(mech, task, J[:, level.rows(i)], ROUNDING * reach, first=k == 0)


def _check_task(mech: Mechanism, task: Task, J: Array, floor: float, *, first: bool) -> None:
    values = np.linalg.svd(J, compute_uv=False)
    if values.max() <= floor and task.kind == "center_of_mass":
        raise ModelError(
            f"task {task.name!r} is about the centre of mass of {mech.name!r}, which no hinge "
            "moves along these directions; name others."
        )
    if values.max() <= floor:
        seen = "" if task.relative_to == "world" else f" relative to {task.relative_to!r}"
        raise ModelError(
            f"task {task.name!r} is about node {task.node!r}{seen}, which does not move with any "
            f"hinge of {mech.name!r}; name a node on a body that moves."
        )
    rank = int((values > np.maximum(RANK * values[:, :1], floor)).sum(axis=1).max())
    if first and rank < J.shape[1]:
        raise ModelError(
            f"task {task.name!r} has {J.shape[1]} rows, but {mech.name!r} has only {rank} of these "
            "motions, in any state. Use a task of fewer rows (position, orientation, direction, or "
            "some of their axes: along='xz'); on a lower level it would do what it can."
        )
