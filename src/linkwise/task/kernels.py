"""Kernels of task space: made on first use, kept with the mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkwise.algebra.expr import Expr
from linkwise.closed.closure_quantity import Setting
from linkwise.dynamics.kernels import made_once
from linkwise.errors import unknown_name
from linkwise.model.closure import closure_nodes
from linkwise.pipeline import compile
from linkwise.task.quantity import TASK, Law, torque
from linkwise.task.twin import Twin

if TYPE_CHECKING:
    from linkwise.codegen.cpu.kernel import Kernel


def setting(found: Twin) -> Setting:
    """What there is of a mechanism with tasks."""
    mech = found.mech
    return Setting(bool(mech.loops), bool(mech.couplings), bool(mech.armature.any()))


def task_kernel(found: Twin, name: str) -> Kernel:
    """The kernel behind a quantity of tasks: a key of `quantity.TASK`."""
    if name not in TASK:
        raise unknown_name("quantity", name, TASK, owner="linkwise.task")
    return _kernel(found, name, TASK[name](setting(found)))


def torque_kernel(found: Twin, law: Law) -> Kernel:
    """The kernel of the torque that gives tasks an acceleration."""
    return _kernel(found, ("torque", law), torque(setting(found), law))


def _kernel(found: Twin, key: object, expr: Expr) -> Kernel:
    mech, nodes = found.mech, closure_nodes(found.mech)
    make = lambda: compile(expr, mech, nodes=nodes, derive=False)  # noqa: E731
    return made_once(mech, ("task", key), make)
