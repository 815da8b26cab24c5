"""The smallest distal set of freedoms that spans a task: the general form of Theorem 2.

Whatever robot: take its hinges from the tip inwards until their columns of J_t span all that the
whole robot can do in the task. They are a mini, all before them its macro, and what is felt at the
tip is never more than what that mini alone would make felt (003, section 5.2, after the example).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.kernels import Loops, require_open
from linkwise.dynamics.operational_space import TOLERANCE
from linkwise.dynamics.velocity_space import states
from linkwise.errors import ModelError
from linkwise.inertial.macro_mini.parts import path_to
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.tasks.measure import task_jacobian
from linkwise.tasks.space import checked_options
from linkwise.tasks.task import Task
from linkwise.tasks.twin import twin


@dataclass(frozen=True, slots=True, eq=False)
class SmallestMini:
    """The smallest mini of a robot for a task.

    Attributes:
        split: The hinge where it begins: `lw.papers.reduced_inertia(..., split=split)`.
        hinges: Its hinges on the way to the tip, from the split out.
        freedoms: How many freedoms these have.
        rank: How many independent motions the task has (of the whole, and of the mini); the largest
            over a batch.
        rows: How many rows the task has.
        macro: The hinges that are left for the macro on the way, base first; none where the whole
            robot is needed.
        margin: The smallest singular value of the mini's columns that counts, over the largest of
            the whole: small where the mini is near a singularity. The smallest over a batch.
    """

    split: str
    hinges: tuple[str, ...]
    freedoms: int
    rank: int
    rows: int
    macro: tuple[str, ...]
    margin: float

    def __str__(self) -> str:
        count = f"{self.freedoms} freedom{'s' * (self.freedoms != 1)}"
        told = (
            f"the smallest mini begins at hinge {self.split!r}: {count} ({', '.join(self.hinges)})"
        )
        told += f" for rank {self.rank} of {self.rows}, margin {self.margin:.2g}"
        if not self.macro:
            return f"{told}; no hinge is left for a macro"
        return f"{told}; the macro has {', '.join(self.macro)}"


def smallest_mini(
    mech: Mechanism,
    q: ArrayLike,
    task: Task,
    *,
    tolerance: float = TOLERANCE,
    length: float | None = None,
    loops: Loops = "closed",
) -> SmallestMini:
    """The smallest distal set of hinges that spans what a robot can do in a task.

    Source: 003, section 5.2: the general statement of Theorem 2.

    A hinge of several freedoms is taken as one. Where the whole robot cannot do all rows of the
    task, the set spans what it can do, and `rank` tells. For a batch it is the smallest set that
    spans the task in every state.

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        task: One task at a node.
        tolerance: Singular values below this fraction of the largest are called zero: a larger one
            asks for a mini that is farther from its singularities.
        length: Where turning is compared with moving [m]; by default the reach at the node.
        loops: "open" leaves loops and couplings open; "closed" refuses mechanisms with any.

    Raises:
        ModelError: The task is about joints, or nothing moves its node.
    """
    found = twin(mech, task)
    require_open(mech, loops, "lw.papers.smallest_mini")
    (task,) = found.tasks
    if task.kind == "joints":
        raise ModelError(
            f"the smallest mini of {task.name!r} was asked for; a joint spans itself. Give a task "
            "at a node, like lw.Task.position('hand')."
        )
    length, _ = checked_options(found, tolerance, length, None)
    _, rows, _ = states(mech, q)
    if len(rows) == 0:
        raise ModelError("no state was given: the smallest mini is that of a state, or of several.")
    J = task_jacobian(mech, rows, task) * found.scale(length)[:, None]
    way = [mech.bodies[k] for k in path_to(mech, task.node) if mech.bodies[k].hinge.nv]
    whole = _singular_values(J)
    floor = tolerance * whole[:, :1]
    rank = (whole > floor).sum(axis=1)
    if not rank.any():
        raise ModelError(f"nothing moves {task.node!r} in the task {task.name!r} in this state.")
    columns = list[int]()
    for i in range(len(way) - 1, -1, -1):
        at = mech.v_slice(way[i].name)
        columns = [*range(at.start, at.stop), *columns]
        values = _singular_values(J[:, :, columns])
        if np.array_equal((values > floor).sum(axis=1), rank):
            names = tuple(body.hinge_name for body in way)
            margin = _margin(values, whole, rank)
            sizes = (len(columns), int(rank.max()), found.size)
            return SmallestMini(names[i], names[i:], *sizes, names[:i], margin)
    raise ModelError(
        f"{task.name!r} is moved by hinges that are not on the way from the ground to "
        f"{task.node!r}: it is seen from {task.relative_to!r}. Take that for the ground, or a task "
        "seen from the world."
    )


def _singular_values(matrices: Array) -> Array:
    return np.asarray(np.linalg.svd(matrices, compute_uv=False), dtype=np.float64)


def _margin(values: Array, whole: Array, rank: NDArray[np.int64]) -> float:
    """The smallest singular value that counts, over the largest of the whole."""
    last = np.take_along_axis(values, np.maximum(rank - 1, 0)[:, None], axis=1)[:, 0]
    return float((last / whole[:, 0])[rank > 0].min())
