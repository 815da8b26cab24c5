"""Stacked tasks: a copy of a mechanism with tasks in place of loops and couplings.

Its closure map Q takes velocities of nodes to the rows of the tasks, Y velocities of hinges to
those of joints, κ has their rates: `linkwise.model.task_rows`. The kernels of loops then compute
quantities of
tasks: J_t = Q J + Y, γ = J̇_t v, and the force λ that gives rows an acceleration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.closure import Setting
from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.momentum import CenterOfMass, center_of_mass, check_mass
from linkwise.dynamics.velocity_space import reach
from linkwise.errors import ExpressionError, ModelError, ShapeError, unknown_name
from linkwise.model import derived
from linkwise.model.body import Coupling, Loop
from linkwise.model.closure import closure_nodes
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.model.task_rows import JointRow, Rows
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.tasks.quantity import TASK, Law, torque
from linkwise.tasks.task import Task, Tasks, as_tuple

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel

HOLDS = (
    "lw.tasks.task_torque respects them; for arms that hold an object use "
    "lw.grasp.ObjectController."
)
"""The alternative that functions name which support no loops."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskStack:
    """Tasks of a mechanism, whose rows are stacked.

    Attributes:
        mech: The copy with the tasks in it.
        tasks: The tasks.
        names: A name for each row, in the order of the tasks.
        sizes: The number of rows of each task.
        order: For each row of the tasks its index among the rows of the copy, where loops precede
            couplings; None if they are equal.
        turns: For each row whether it is an angular velocity.
        center: Directions (k, 3) of the rows of the centre of mass, which are not in the copy and
            come after its rows.
    """

    mech: Mechanism
    tasks: tuple[Task, ...]
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    order: NDArray[np.int64] | None
    turns: NDArray[np.bool_]
    center: tuple[tuple[float, ...], ...] = ()

    @property
    def size(self) -> int:
        """The number of rows of all tasks."""
        return len(self.names)

    @property
    def setting(self) -> Setting:
        """Which kinds of rows the copy has."""
        return _setting(self.mech)

    def rows(self, i: int) -> slice:
        """Rows of one task."""
        start = sum(self.sizes[:i])
        return slice(start, start + self.sizes[i])

    def length(self) -> float:
        """The reach of the mechanism at the nodes of the tasks [m], 1 if there are none."""
        nodes = [task.node for task in self.tasks if task.node]
        nodes += [body.name for body in self.mech.bodies] if self.center else []
        return reach(self.mech, nodes) if nodes else 1.0

    def scale(self, length: float) -> Array:
        """Factors (m,) that turn all rows into speeds: the length for angular rows."""
        return np.where(self.turns, length, 1.0)

    def sorted(self, array: Array, *axes: int) -> Array:
        """An array over the copy's rows along some axes, in the order of the tasks."""
        if self.order is not None:
            for axis in axes:
                array = np.take(array, self.order, axis=axis)
        return array

    def unsorted(self, array: Array) -> Array:
        """An array over the tasks' rows along its last axis, in the order of the copy."""
        if self.order is None:
            return array
        back = np.empty(array.shape)
        back[..., self.order] = array
        return back

    def along_rows(self, value: ArrayLike | None, what: str, batch: int, single: bool) -> Array:
        """A vector over the rows of the tasks (batch, m), checked; zeros for None."""
        size = self.size
        if value is None:
            return np.zeros((batch, size))
        array = floats(value, what)
        allowed = f"({size},)" if single else f"({size},) or ({batch}, {size})"
        if array.shape not in ((size,), *(() if single else ((batch, size),))):
            raise ShapeError(
                f"{what} has shape {array.shape}; it must be {allowed}, for the rows "
                f"{', '.join(self.names)}."
            )
        if not np.isfinite(array).all():
            raise ModelError(f"{what} is not finite.")
        return np.broadcast_to(array, (batch, size))

    def kernel(self, *names: str) -> Kernel:
        """The kernel of one quantity of tasks, a key of `quantity.TASK`, or of several."""
        return _kernel(self.mech, names)

    def measured(self, name: CenterOfMass, q: ArrayLike, v: ArrayLike | None = None) -> Array:
        """ẋ, J_t or γ = J̇_t v of all rows, in the order of the tasks.

        Args:
            name: "velocity", "jacobian" or "bias".
            q: Joint positions.
            v: Joint velocities, for all but the Jacobian.
        """
        axis, state = -2 if name == "jacobian" else -1, (q,) if v is None else (q, v)
        parts = list[Array]()
        if self.mech.loops or self.mech.couplings:
            parts.append(self.kernel(f"task_{name}")(*state))
        if self.center:
            of_point, S = center_of_mass(self.mech, q, v, what=name), np.array(self.center)
            parts.append(S @ of_point if name == "jacobian" else of_point @ S.T)
        return self.sorted(np.concatenate(parts, axis) if len(parts) > 1 else parts[0], axis)

    def torque_kernel(self, law: Law) -> Kernel | None:
        """The kernel of the torque that gives tasks of full rank an acceleration.

        None for tasks that never have full rank.
        """
        return _torque_kernel(self.mech, law)


def task_stack(mech: Mechanism, tasks: Tasks, *, center: bool = False) -> TaskStack:
    """The stack of tasks of a mechanism, made once.

    Args:
        mech: The mechanism.
        tasks: The tasks.
        center: Whether they may be about the centre of mass.

    Raises:
        UnknownNameError: The mechanism has no such node or hinge.
        ModelError: A task of the centre of mass where there is no mass, or where only nodes and
            joints can have tasks.
    """
    check_mechanism(mech)
    if isinstance(cast(object, mech), Embedded):
        raise ModelError(
            f"{mech.name!r} has its loops and couplings built in; tasks need an open mechanism: "
            "use embedded.mech."
        )
    stack = _made(mech, (tasks,) if isinstance(tasks, Task) else as_tuple(tasks))
    if stack.center and not center:
        name = next(task.name for task in stack.tasks if task.kind == "center_of_mass")
        raise ModelError(
            f"the task {name!r} is about the centre of mass; this function takes tasks of nodes "
            "and joints. Tasks of the centre of mass are taken by lw.optimize and "
            "lw.TaskController, and by lw.tasks.task_position, task_error, task_velocity, "
            "task_jacobian and task_bias."
        )
    return stack


def _setting(mech: Mechanism) -> Setting:
    return Setting(bool(mech.loops), bool(mech.couplings))


@once_per_mechanism
def _kernel(mech: Mechanism, names: tuple[str, ...]) -> Kernel:
    for name in names:
        if name not in TASK:
            raise unknown_name("quantity", name, TASK, owner="linkwise.tasks")
    expressions = {name: TASK[name](_setting(mech)) for name in names}
    alone = expressions[names[0]] if len(names) == 1 else expressions
    return compile(alone, mech, nodes=closure_nodes(mech))


@once_per_mechanism
def _torque_kernel(mech: Mechanism, law: Law) -> Kernel | None:
    try:
        return compile(torque(_setting(mech), law), mech, nodes=closure_nodes(mech))
    except ExpressionError:  # singular in every state
        return None


@once_per_mechanism
def _made(mech: Mechanism, tasks: tuple[Task, ...]) -> TaskStack:
    loops, couplings = list[Loop](), list[Coupling]()
    names, sizes, turns = list[str](), list[int](), list[bool]()
    inner, outer = list[int](), list[int]()  # rows of loops, rows of couplings
    center, last = list[tuple[float, ...]](), list[int]()  # rows of the centre of mass
    for i, task in enumerate(tasks):
        before = len(names)
        if task.kind == "joints":
            for hinge in task.hinges:
                rows = _joint_rows(mech, hinge, i)
                couplings += [row for row, _, _ in rows]
                turns += [turn for _, turn, _ in rows]
                names += [f"{task.name}: {name}" for _, _, name in rows]
            outer += range(before, len(names))
        elif task.kind == "center_of_mass":
            check_mass(mech)
            center += [row[3:] for row in task.rows]
            turns += [False] * len(task.rows)
            names += [f"{task.name}[{k}]" for k in range(len(task.rows))]
            last += range(before, len(names))
        else:
            for node in (task.node, task.relative_to):
                mech.node(node)  # raises for an unknown one
            name = f"{i}: {task.name}"
            hinge = Rows(task.rows, task.axes == "reference", task.kind, task.axis)
            loops.append(Loop(name, task.relative_to, task.node, hinge))
            turns += [not any(row[3:]) for row in task.rows]
            names += [f"{task.name}[{k}]" for k in range(len(task.rows))]
            inner += range(before, len(names))
        sizes.append(len(names) - before)
    copy = derived.replaced(mech, loops=tuple(loops), couplings=tuple(couplings))
    order = np.argsort(np.array([*inner, *outer, *last], dtype=np.int64))
    same = bool(np.array_equal(order, np.arange(len(order))))
    given = tasks, tuple(names), tuple(sizes), None if same else order, np.array(turns)
    return TaskStack(copy, *given, tuple(center))


def _joint_rows(mech: Mechanism, name: str, i: int) -> list[tuple[JointRow, bool, str]]:
    """A row for each velocity of a hinge, whether it turns, and its name."""
    at = mech.v_slice(name)  # raises for an unknown one
    body = mech.hinge(name) if name in mech.hinge_index else mech.body(name)
    if at.start == at.stop:
        raise ModelError(
            f"hinge {name!r} of {mech.name!r} does not move; a task needs a hinge that does."
        )
    rows = list[tuple[JointRow, bool, str]]()
    for j, velocity in enumerate(body.hinge.velocities):
        label = body.hinge_name if body.hinge.nv == 1 else f"{body.hinge_name}[{j}]"
        row = JointRow(f"{i}: {label}", body.hinge_name, (), index=j)
        rows.append((row, velocity.unit.startswith("rad"), label))
    return rows
