"""Whether a mechanism can do what tasks ask of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.tasks.measure import task_jacobian
from linkwise.tasks.space import ROUNDING
from linkwise.tasks.task import Task
from linkwise.tasks.twin import Twin

SAMPLES = 3
"""States that are tried: ranks are at their highest in almost all of them."""

RANK = 1e-9
"""Singular values of J below this fraction of the largest are zero."""


def check_tasks(mech: Mechanism, levels: Sequence[Twin]) -> None:
    """Raise for tasks that cannot be: too many rows, nodes that do not move.

    The first level must be one that can be had somewhere; lower ones do as well as they can.

    Raises:
        ModelError: Says which task, what it asks for and what the mechanism can do.
    """
    rng = np.random.default_rng(0)
    q = np.stack([mech.random(rng) for _ in range(SAMPLES)])
    for k, level in enumerate(levels):
        if level.size > mech.nv:
            names = ", ".join(repr(task.name) for task in level.tasks)
            raise ModelError(
                f"a level asks for {level.size} rows ({names}), and {mech.name!r} has {mech.nv} "
                "freedoms; leave rows out, or put some of the tasks on a lower level."
            )
        reach = level.length()
        J = task_jacobian(mech, q, level.tasks) * level.scale(reach)[:, None]
        for i, task in enumerate(level.tasks):
            _check_task(mech, task, J[:, level.rows(i)], ROUNDING * reach, first=k == 0)


def _check_task(mech: Mechanism, task: Task, J: Array, floor: float, *, first: bool) -> None:
    values = np.linalg.svd(J, compute_uv=False)
    if values.max() <= floor:
        seen = "" if task.relative_to == "world" else f" seen from {task.relative_to!r}"
        raise ModelError(
            f"task {task.name!r} is about node {task.node!r}{seen}, which does not move with any "
            f"hinge of {mech.name!r}; name a node on a body that moves."
        )
    rank = int((values > np.maximum(RANK * values[:, :1], floor)).sum(axis=1).max())
    if first and rank < J.shape[1]:
        raise ModelError(
            f"task {task.name!r} asks for {J.shape[1]} motions, of which {mech.name!r} has {rank}, "
            "wherever it stands. Take a task of fewer rows (position, orientation, direction, or "
            "some of their axes: along='xz'); on a lower level it would do what it can."
        )
