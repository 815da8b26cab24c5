"""How errors of tasks change with q, beside differences of `lw.tasks.task_error`."""

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.formula import Formula
from linkwise.control.residual import Term, rows_of
from linkwise.dynamics.kernels import written
from linkwise.tasks.measure import goal_numbers

STEP = 1e-6


def rows(at: Any, task: lw.Task) -> Any:
    """r and ∂r/∂q of q and the goal."""
    _ = at.q  # the first of the inputs
    u = np.full(at.mech.nv, 0.0, dtype=object)
    r, by, _ = rows_of(at, (Term("task", task=task, rows=len(task.rows)),), u, derivatives=True)
    return r, by[0]


@pytest.mark.parametrize("axes", ["reference", "node"])
@pytest.mark.parametrize("kind", ["pose", "orientation", "position"])
def test_slopes_are_those_of_differences(kind: str, axes: Any) -> None:
    rng, mech = np.random.default_rng(3), lw.models.seven_dof_arm()
    node = mech.bodies[-1].name
    task = getattr(lw.Task, kind)(node, axes=axes)
    kernel = written(mech, Formula(rows, (task,), names=("r", "by_q")))
    for turn in (0.0, 1e-6, 0.9e-4, 1.1e-4, 1e-2, 1.0, 3.1):
        q, axis = mech.random(rng), rng.normal(size=3)
        here = lw.forward_kinematics(mech, q, node)
        rot = here.rot @ lw.spatial.rotation.exp(turn * axis / np.linalg.norm(axis))
        goal: Any = lw.Pose(rot, here.p + rng.normal(size=3))
        goal = {"pose": goal, "orientation": goal.rot, "position": goal.p}[kind]
        r, by_q = kernel(q, goal_numbers(mech, task, goal)).values()
        assert np.allclose(r, lw.tasks.task_error(mech, q, task, goal), atol=1e-12)
        ends = [
            lw.tasks.task_error(mech, q + sign * STEP * np.eye(7), task, goal) for sign in (1, -1)
        ]
        slopes = (ends[0] - ends[1]).T / (2.0 * STEP)
        assert np.abs(slopes).max() > 0.1
        assert np.abs(by_q - slopes).max() < 2e-9
