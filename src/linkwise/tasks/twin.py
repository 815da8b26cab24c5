"""The copy of a mechanism in which tasks stand where loops and couplings would.

Its closure map Q takes velocities of nodes to the rows of the tasks, Y velocities of hinges to
those of joints, κ has their rates: `linkwise.model.task_rows`. What kernels of loops compute is
then about tasks: J_t = Q J + Y, γ = J̇_t v, and the force λ that gives rows an acceleration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.velocity_space import reach
from linkwise.errors import ModelError
from linkwise.model import derived
from linkwise.model.body import Coupling, Loop
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.model.task_rows import JointRow, Rows
from linkwise.spatial.array import Array
from linkwise.tasks.task import Task, Tasks, as_tuple

HOLDS = (
    "lw.tasks.task_torque holds them; for arms that hold an object there is "
    "lw.grasp.AugmentedObjectController."
)
"""What functions that cannot hold loops say of those that can."""


@dataclass(frozen=True, slots=True, eq=False)
class Twin:
    """Tasks of a mechanism.

    Attributes:
        mech: The copy with the tasks in it.
        tasks: The tasks.
        names: A name for each row, in the order of the tasks.
        sizes: How many rows each task has.
        order: For each row of the tasks its place among the rows of the copy, where loops stand
            before couplings; None where that is the same.
        turns: For each row whether it turns, so that it is an angular velocity.
    """

    mech: Mechanism
    tasks: tuple[Task, ...]
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    order: NDArray[np.int64] | None
    turns: NDArray[np.bool_]

    @property
    def size(self) -> int:
        """Rows of all tasks."""
        return len(self.names)

    def rows(self, i: int) -> slice:
        """Rows of one task."""
        start = sum(self.sizes[:i])
        return slice(start, start + self.sizes[i])

    def length(self) -> float:
        """The reach of the mechanism at the nodes of the tasks [m], 1 if there are none."""
        nodes = [task.node for task in self.tasks if task.node]
        return reach(self.mech, nodes) if nodes else 1.0

    def scale(self, length: float) -> Array:
        """What makes all rows speeds (m,): rows that turn times a length."""
        return np.where(self.turns, length, 1.0)

    def sorted(self, array: Array, *axes: int) -> Array:
        """An array of the copy's rows along some axes in the order of the tasks."""
        if self.order is not None:
            for axis in axes:
                array = np.take(array, self.order, axis=axis)
        return array

    def unsorted(self, array: Array) -> Array:
        """An array with the tasks' rows along its last axis in the order of the copy."""
        if self.order is None:
            return array
        back = np.empty(array.shape)
        back[..., self.order] = array
        return back


def twin(mech: Mechanism, tasks: Tasks) -> Twin:
    """Tasks of a mechanism, made once.

    Raises:
        UnknownNameError: A node or hinge that the mechanism does not have; lists those it has.
    """
    check_mechanism(mech)
    if isinstance(cast(object, mech), Embedded):
        raise ModelError(
            f"a task of {mech.name!r} with its loops and couplings built in was asked for; tasks "
            "are about open mechanisms: take embedded.mech."
        )
    return _made(mech, (tasks,) if isinstance(tasks, Task) else as_tuple(tasks))


@once_per_mechanism
def _made(mech: Mechanism, tasks: tuple[Task, ...]) -> Twin:
    loops, couplings = list[Loop](), list[Coupling]()
    names, sizes, turns = list[str](), list[int](), list[bool]()
    inner, outer = list[int](), list[int]()  # places of rows of loops, of couplings
    for i, task in enumerate(tasks):
        before = len(names)
        if task.kind == "joints":
            for hinge in task.hinges:
                rows = _joint_rows(mech, hinge, i)
                couplings += [row for row, _, _ in rows]
                turns += [turn for _, turn, _ in rows]
                names += [f"{task.name}: {name}" for _, _, name in rows]
            outer += range(before, len(names))
        else:
            for node in (task.node, task.relative_to):
                mech.node(node)  # raises for one that is not there
            name = f"{i}: {task.name}"
            hinge = Rows(task.rows, task.axes == "reference", task.kind, task.axis)
            loops.append(Loop(name, task.relative_to, task.node, hinge))
            turns += [not any(row[3:]) for row in task.rows]
            names += [f"{task.name}[{k}]" for k in range(len(task.rows))]
            inner += range(before, len(names))
        sizes.append(len(names) - before)
    copy = derived.replaced(mech, loops=tuple(loops), couplings=tuple(couplings))
    order = np.argsort(np.array([*inner, *outer], dtype=np.int64))
    same = bool(np.array_equal(order, np.arange(len(order))))
    return Twin(copy, tasks, tuple(names), tuple(sizes), None if same else order, np.array(turns))


def _joint_rows(mech: Mechanism, name: str, i: int) -> list[tuple[JointRow, bool, str]]:
    """A row for each velocity of a hinge, whether it turns, and its name."""
    at = mech.v_slice(name)  # raises for one that is not there
    body = mech.hinge(name) if name in mech.hinge_index else mech.body(name)
    found = list[tuple[JointRow, bool, str]]()
    if at.start == at.stop:
        raise ModelError(f"hinge {name!r} of {mech.name!r} does not move; a task needs freedoms.")
    for j, velocity in enumerate(body.hinge.velocities):
        label = body.hinge_name if body.hinge.nv == 1 else f"{body.hinge_name}[{j}]"
        row = JointRow(f"{i}: {label}", body.hinge_name, (), index=j)
        found.append((row, velocity.unit.startswith("rad"), label))
    return found
