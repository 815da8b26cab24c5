"""Inputs held over the steps of a rollout: joint forces, or goal and gains of a control law."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from linkwise.codegen.request import Request
from linkwise.codegen.scalar import parameters
from linkwise.dynamics.kernels import tree_of
from linkwise.dynamics.state_feedback import StateFeedback
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.implicit.ground import ContactPoint
from linkwise.simulation.integrators.command import INTERNAL
from linkwise.simulation.motion_parameters import ACTING, nominal
from linkwise.simulation.motion_request import EXPLICIT
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.tasks.law import ControlLaw

FeedbackLaw: TypeAlias = ControlLaw | StateFeedback
"""A law that is one kernel of the state, a goal and inputs with defaults."""


def check_controller(controller: object) -> tuple[FeedbackLaw | None, Any]:
    """The control law of a rollout and its goal; None and None without a controller.

    Raises:
        ModelError: It is not a control law, or a pair of a law and a goal.
    """
    if controller is None:
        return None, None
    law, goal = controller, None
    if isinstance(controller, tuple) and len(cast("tuple[Any, ...]", controller)) == 2:
        law, goal = cast("tuple[Any, Any]", controller)
    if not isinstance(law, ControlLaw | StateFeedback):
        raise ModelError(
            f"controller is {type(law).__name__}; a rollout runs no Python between its steps. Give "
            "controller=(law, goal) with law = lw.control_law(...), or use lw.simulate."
        )
    return law, goal


def checked_law(mech: Mechanism, integrator: str, law: FeedbackLaw | None) -> Request | None:
    """The request of the kernel of a law, to be compiled into steps; None for none.

    Raises:
        ModelError: It belongs to another mechanism, the integrator takes no law, or it returns
            more than joint forces.
    """
    if law is None:
        return None
    if law.mech is not mech and tree_of(law.mech) is not mech:
        raise ModelError(
            f"the control law belongs to {law.mech.name!r}, made apart from the mechanism "
            f"{mech.name!r} that should move: make it with lw.control_law of this one."
        )
    if integrator not in (*EXPLICIT, "implicit"):
        known = ", ".join(repr(name) for name in (*EXPLICIT, "implicit"))
        raise ModelError(f"a control law works with {known}, not with {integrator!r}.")
    if law.kernel.request.names:
        raise ModelError("the control law returns more than joint forces; make it without `also`.")
    return law.kernel.request


def law_inputs(law: FeedbackLaw) -> dict[str, Array]:
    """Everything a law takes besides the state, with its defaults, by the names of registers."""
    return {INTERNAL if name == "tau" else name: x for name, x in law.inputs.items()}


def commands(
    law: FeedbackLaw, goal: Any, inputs: Mapping[str, ArrayLike] | None = None
) -> dict[str, Array]:
    """The inputs of a law by the names of registers, with its goal and the given values.

    Raises:
        ModelError: The goal is missing, or a value is not finite.
        UnknownNameError: The law has no input of that name.
    """
    held = law_inputs(law)
    if "goal" in held:
        if goal is None:
            raise ModelError(
                "the goal is missing: controller=(law, goal), where the goal is the desired value "
                "of lw.tasks.task_position."
            )
        size = held["goal"].shape[-1]
        numbers = isinstance(goal, np.ndarray) and np.shape(cast("Any", goal))[-1:] == (size,)
        held["goal"] = floats(goal, "goal") if numbers else law.goal(cast("Any", goal))
    for name, given in (inputs or {}).items():
        if name not in held or name == "goal":
            raise unknown_name("input", name, [x for x in held if x != "goal"], owner="the law")
        array = floats(given, name)
        held[name] = np.broadcast_to(array, held[name].shape) if array.ndim == 0 else array
    for name, array in held.items():
        if not np.isfinite(array).all():
            raise ModelError(f"{name} is not finite.")
    return held


def joint_forces(mech: Mechanism, tau: ArrayLike | None) -> Array:
    """Joint forces as an array; raises unless they are finite."""
    forces = np.zeros(mech.nv) if tau is None else floats(tau, "tau")
    if forces.ndim == 0:
        forces = np.full(mech.nv, forces)
    if not np.isfinite(forces).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(forces))[0])
        hinge = f", {mech.velocity_names[index[-1]]!r}" if forces.shape[-1] == mech.nv else ""
        raise ModelError(f"tau is not finite, first at {index}{hinge}.")
    return forces


def mechanism_numbers(
    mech: Mechanism, given: Mapping[str, ArrayLike] | None, contacts: Sequence[ContactPoint]
) -> dict[str, Array]:
    """Numbers of the mechanism and of what acts on it that replace its own, by name.

    Of what acts, one number may replace a row.

    Raises:
        UnknownNameError: A name that neither `scalar/parameters.py` nor `motion_parameters.py` has.
        ModelError: A number is not finite, or a payload has no node.
        ShapeError: A row has another length.
    """
    values = {name: floats(x, name) for name, x in (given or {}).items()}
    known = (*parameters.NAMES, *ACTING)
    for name in values:
        if name.split(":")[0] not in known:
            raise unknown_name("parameter", name, known, owner="a rollout")
    parameters.checked(mech, tuple(x for x in values if x not in ACTING), ())
    for name, array in values.items():
        acts = name in ACTING
        size = len(nominal(mech, name, contacts)) if acts else parameters.size(mech, name)
        if acts and (array.ndim == 0 or array.shape[-1] == 1):
            lead = array.shape[:-1]
            array = values[name] = np.broadcast_to(array, (*lead, size))
        if array.shape[-1:] != (size,):
            raise ShapeError(
                f"parameters[{name!r}] has shape {array.shape}; its rows have {size} numbers."
            )
        if not np.isfinite(array).all():
            raise ModelError(f"parameters[{name!r}] is not finite.")
    return values


def shaped(
    held: Mapping[str, Any],
    sizes: Mapping[str, int],
    steps: int,
    states: Iterable[Any],
    scalars: Iterable[str] = (),
) -> dict[str, Any]:
    """Arrays (n,), (steps, n), (batch, 1, n) or (batch, steps, n) from what was given.

    An array (batch, n) is read as one row per motion if nothing else is possible: as many states
    or as many motions of another input exist, and the number of steps differs.

    Args:
        held: Inputs by name; arrays that are not NumPy's pass through unchanged.
        scalars: Names of inputs where one number may replace a row of n, (..., 1).

    Raises:
        ShapeError: An array that does not fit; names the allowed shapes.
    """
    wide = set(scalars)
    batches = {int(x.shape[0]) for x in states if x.ndim == 2}
    batches |= {int(x.shape[0]) for x in held.values() if x.ndim == 3}
    batches -= {1, steps}
    return {
        name: _shaped(cast(Array, x), name, sizes[name], steps, batches, name in wide)
        if isinstance(x, np.ndarray)
        else x
        for name, x in held.items()
    }


def _shaped(array: Array, name: str, size: int, steps: int, batches: set[int], wide: bool) -> Array:
    if wide and array.shape[-1:] == (1,):
        array = np.broadcast_to(array, (*array.shape[:-1], size))
    shape = array.shape
    if shape == (size,):
        return array
    if array.ndim == 2 and shape[1] == size:
        if shape[0] in (1, steps):
            return array
        if shape[0] in batches:
            return array[:, None]
    if array.ndim == 3 and shape[2] == size and shape[1] in (1, steps):
        return array
    message = (
        f"{name} has shape {shape}; it must be ({size},), ({steps}, {size}) with one row for each "
        f"of the {steps} steps, (batch, 1, {size}) with one for each motion, or "
        f"(batch, {steps}, {size})."
    )
    if array.ndim == 1:
        message += f" For {shape[0]} motions with a number each: {name}[:, None, None]"
        message += "." if wide or size == 1 else f" * np.ones({size})."
    elif array.ndim == 2 and shape[1] == size:
        message += f" For {shape[0]} motions with a row each: {name}[:, None]."
    raise ShapeError(message)
