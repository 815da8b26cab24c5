"""Kernels of task space: made on first use, kept with the mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkwise.dynamics.closure_quantity import Setting
from linkwise.dynamics.kernels import made_once
from linkwise.errors import ExpressionError, unknown_name
from linkwise.model.closure import closure_nodes
from linkwise.pipeline import compile
from linkwise.task.quantity import TASK, Law, torque
from linkwise.task.twin import Twin

if TYPE_CHECKING:
    from linkwise.codegen.cpu.kernel import Kernel
    from linkwise.codegen.several import Several


def setting(found: Twin) -> Setting:
    """What there is of a mechanism with tasks."""
    mech = found.mech
    return Setting(bool(mech.loops), bool(mech.couplings))


def task_kernel(found: Twin, name: str) -> Kernel:
    """The kernel behind a quantity of tasks: a key of `quantity.TASK`."""
    known: Kernel | None = found.mech.kept.get(("task", name))
    if known is not None:
        return known
    if name not in TASK:
        raise unknown_name("quantity", name, TASK, owner="linkwise.task")
    expr, mech, nodes = TASK[name](setting(found)), found.mech, closure_nodes(found.mech)
    return made_once(mech, ("task", name), lambda: compile(expr, mech, nodes=nodes))


def torque_kernel(found: Twin, law: Law) -> Kernel | None:
    """The kernel of the torque that gives tasks an acceleration, where they have full rank.

    None for tasks that never have it.
    """
    kept = found.mech.kept
    if ("task", law) not in kept:
        expr, mech, nodes = torque(setting(found), law), found.mech, closure_nodes(found.mech)

        def made() -> Kernel | None:
            try:
                return compile(expr, mech, nodes=nodes)
            except ExpressionError:  # singular in every state
                return None

        made_once(mech, ("task", law), made)
        kept.setdefault(("task", law), None)
    return kept["task", law]


def task_kernels(found: Twin, *names: str) -> Several:
    """One kernel that gives several quantities of tasks."""
    known: Several | None = found.mech.kept.get(("task", names))
    if known is not None:
        return known
    s, mech, nodes = setting(found), found.mech, closure_nodes(found.mech)
    wanted = {name: TASK[name](s) for name in names}
    return made_once(mech, ("task", names), lambda: compile(wanted, mech, nodes=nodes))
