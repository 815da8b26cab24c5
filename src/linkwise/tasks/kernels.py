"""Kernels of task space: made on first use, kept with the mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkwise.dynamics.closure import Setting
from linkwise.errors import ExpressionError, unknown_name
from linkwise.model.closure import closure_nodes
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.tasks.quantity import TASK, Law, torque
from linkwise.tasks.twin import Twin

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel


def setting(found: Twin) -> Setting:
    """What there is of a mechanism with tasks."""
    return _setting(found.mech)


def _setting(mech: Mechanism) -> Setting:
    return Setting(bool(mech.loops), bool(mech.couplings))


def task_kernel(found: Twin, name: str) -> Kernel:
    """The kernel behind a quantity of tasks: a key of `quantity.TASK`."""
    return _task_kernel(found.mech, name)


@once_per_mechanism
def _task_kernel(mech: Mechanism, name: str) -> Kernel:
    if name not in TASK:
        raise unknown_name("quantity", name, TASK, owner="linkwise.tasks")
    return compile(TASK[name](_setting(mech)), mech, nodes=closure_nodes(mech))


def torque_kernel(found: Twin, law: Law) -> Kernel | None:
    """The kernel of the torque that gives tasks an acceleration, where they have full rank.

    None for tasks that never have it.
    """
    return _torque_kernel(found.mech, law)


@once_per_mechanism
def _torque_kernel(mech: Mechanism, law: Law) -> Kernel | None:
    try:
        return compile(torque(_setting(mech), law), mech, nodes=closure_nodes(mech))
    except ExpressionError:  # singular in every state
        return None


def task_kernels(found: Twin, *names: str) -> Kernel:
    """One kernel that gives several quantities of tasks."""
    return _task_kernels(found.mech, names)


@once_per_mechanism
def _task_kernels(mech: Mechanism, names: tuple[str, ...]) -> Kernel:
    wanted = {name: TASK[name](_setting(mech)) for name in names}
    return compile(wanted, mech, nodes=closure_nodes(mech))
