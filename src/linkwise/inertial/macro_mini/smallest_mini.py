"""The smallest distal set of hinges that spans a task: the general form of Theorem 2.

For any robot, take its hinges from the tip inwards until their columns of J_t span everything that
the whole robot can do in the task. They form a mini, all others its macro, and the inertia at the
tip is never larger than that of the mini alone (003, section 5.2, after the example).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.brief import degrees_of_freedom
from linkwise.dynamics.kernels import Loops, require_open
from linkwise.dynamics.operational_space import TOLERANCE
from linkwise.dynamics.velocity_space import states
from linkwise.errors import ModelError
from linkwise.inertial.macro_mini.macro_mini import path_to
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.tasks.measure import task_jacobian
from linkwise.tasks.space import checked_options
from linkwise.tasks.task import Task
from linkwise.tasks.task_stack import task_stack


@dataclass(frozen=True, slots=True, eq=False)
class SmallestMini:
    """The smallest mini of a robot for a task.

    Attributes:
        split: The hinge where it begins: `lw.papers.reduced_inertia(..., split=split)`.
        hinges: Its hinges on the path to the tip, from the split outwards.
        nv: The number of their velocities.
        rank: The number of independent motions in the task (of the whole, and of the mini); the
            largest over a batch.
        rows: The number of rows of the task.
        macro: The remaining hinges on the path, base first; none if the whole robot is needed.
        margin: The smallest nonzero singular value of the mini's columns over the largest of the
            whole: small near a singularity of the mini. The smallest over a batch.
    """

    split: str
    hinges: tuple[str, ...]
    nv: int
    rank: int
    rows: int
    macro: tuple[str, ...]
    margin: float

    def __str__(self) -> str:
        text = (
            f"the smallest mini begins at hinge {self.split!r}: {degrees_of_freedom(self.nv)} "
            f"({', '.join(self.hinges)}) for rank {self.rank} of {self.rows}, margin "
            f"{self.margin:.2g}"
        )
        if not self.macro:
            return f"{text}; no hinge is left for a macro"
        return f"{text}; the macro has {', '.join(self.macro)}"


def smallest_mini(
    mech: Mechanism,
    q: ArrayLike,
    task: Task,
    *,
    tolerance: float = TOLERANCE,
    length: float | None = None,
    loops: Loops = "closed",
) -> SmallestMini:
    """The smallest distal set of hinges that spans the possible motions of a robot in a task.

    Source: 003, section 5.2: the general statement of Theorem 2.

    A hinge is not divided. If the robot cannot do all rows of the task, the set spans those it can
    do, `rank` of them. For a batch it is the smallest set that spans the task in every state.

    Args:
        task: One task at a node.
        tolerance: Singular values below this fraction of the largest count as zero; a larger one
            gives a mini that is farther from its singularities.
        length: At which turning is compared with moving [m]; default: the reach at the node.
        loops: "open" leaves loops and couplings open; "closed" raises if there are any.

    Raises:
        ModelError: The task is about joints, or nothing moves its node.
    """
    stack = task_stack(mech, task)
    require_open(mech, loops, "lw.papers.smallest_mini")
    (task,) = stack.tasks
    if task.kind == "joints":
        raise ModelError(
            f"the task {task.name!r} is about joints, which span themselves; smallest_mini needs a "
            "task at a node, like lw.Task.position('hand')."
        )
    length, _ = checked_options(stack, tolerance, length, None)
    _, rows, _ = states(mech, q)
    if len(rows) == 0:
        raise ModelError("no state was given; smallest_mini needs at least one.")
    J = task_jacobian(mech, rows, task) * stack.scale(length)[:, None]
    way = [mech.bodies[k] for k in path_to(mech, task.node) if mech.bodies[k].hinge.nv]
    largest = _singular_values(J)
    floor = tolerance * largest[:, :1]
    rank = (largest > floor).sum(axis=1)
    if not rank.any():
        raise ModelError(f"nothing moves {task.node!r} in the task {task.name!r} in this state.")
    columns = list[int]()
    for i in range(len(way) - 1, -1, -1):
        at = mech.v_slice(way[i].name)
        columns = [*range(at.start, at.stop), *columns]
        values = _singular_values(J[:, :, columns])
        if np.array_equal((values > floor).sum(axis=1), rank):
            names = tuple(body.hinge_name for body in way)
            margin = _margin(values, largest, rank)
            sizes = (len(columns), int(rank.max()), stack.size)
            return SmallestMini(names[i], names[i:], *sizes, names[:i], margin)
    raise ModelError(
        f"{task.name!r} is relative to {task.relative_to!r} and depends on hinges that are not on "
        f"the path from the ground to {task.node!r}. Use a task relative to the world."
    )


def _singular_values(matrices: Array) -> Array:
    return np.asarray(np.linalg.svd(matrices, compute_uv=False), dtype=np.float64)


def _margin(values: Array, largest: Array, rank: NDArray[np.int64]) -> float:
    last = np.take_along_axis(values, np.maximum(rank - 1, 0)[:, None], axis=1)[:, 0]
    return float((last / largest[:, 0])[rank > 0].min())
