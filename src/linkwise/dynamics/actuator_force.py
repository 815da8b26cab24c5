"""Forces of actuators, from their activations: on joints, at nodes and along cables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from linkwise.algebra import J, f, rot_W
from linkwise.codegen.formula import Formula
from linkwise.dynamics.kernels import written
from linkwise.dynamics.quantity import expression
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.model.actuator import ALL, Actuator, Range
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.model.state import split_coordinate
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.choice import clip, gate, maximum, norm

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

NamedCommands: TypeAlias = ArrayLike | Mapping[str, ArrayLike]
"""Commands of actuators: a number for all, an array, or numbers by name."""

PUSHED = J.T @ f
"""Joint forces of wrenches at nodes."""

PULLED = (rot_W @ J).T @ f
"""Joint forces of wrenches at nodes, in world axes."""

SHORT = 1e-12
"""A cable shorter than this [m] has no direction, and pulls nothing."""


def with_activation(mech: Mechanism) -> list[Actuator]:
    """The actuators whose activation has dynamics, in order."""
    return [a for a in mech.actuators if a.dynamics != "none"]


NO_NUMBERS: Mapping[str, Any] = MappingProxyType({})


def actuator_forces(
    at: Any,
    q: Any,
    v: Any,
    activations: Sequence[Any],
    *,
    slopes: bool = False,
    numbers: Mapping[str, Any] = NO_NUMBERS,
) -> tuple[Any, Any, Any]:
    """Joint forces (nv,) of all actuators, and the slopes k = −∂τ/∂q and d = −∂τ/∂v of servos.

    Args:
        at: What gives values of expressions, on the nodes of a graph or on numbers.
        activations: The activation of each, or its command within its range.
        slopes: Whether slopes are needed; they are zero otherwise.
        numbers: "gain" and "bias" (3 a,) that replace those of the actuators.
    """
    mech, arm = at.mech, 0.0
    total = np.zeros(mech.nv, dtype=object)
    stiffness, damping = np.zeros(mech.nv, dtype=object), np.zeros(mech.nv, dtype=object)
    wrenches = dict[str, Any]()
    for i, (actuator, a) in enumerate(zip(mech.actuators, activations, strict=True)):
        places = joint_places(mech, actuator)
        length: Any = sum((c * q[i] for i, _, c in places), 0.0)
        rate: Any = sum((c * v[j] for _, j, c in places), 0.0)
        if actuator.cables:
            arm, length, rate = _cables(at, q, v, actuator)
        g, b = (
            numbers[name][3 * i : 3 * i + 3] if name in numbers else getattr(actuator, name)
            for name in ("gain", "bias")
        )
        if actuator.node and (numbers or actuator.gain[2] or actuator.bias[2]):
            along = np.array(actuator.wrench, dtype=object)
            reach = at.value(PUSHED, nodes=(actuator.node,), q=q, f=along)
            rate = sum(x * y for x, y in zip(reach, v, strict=True))
        free = (g[0] + g[1] * length + g[2] * rate) * a + b[0] + b[1] * length + b[2] * rate
        force = within(free, actuator.force)
        for _, j, c in places:
            total[j] = total[j] + c * force
        if actuator.cables:
            total = total + force * arm
        if actuator.node:
            wrench = force * np.array(actuator.wrench)
            wrenches[actuator.node] = wrenches.get(actuator.node, 0.0) + wrench
        if len(places) == 1 and slopes:
            (_, j, c), acts = places[0], _unbounded(free, actuator.force)
            stiffness[j] = stiffness[j] - acts * c * c * (g[1] * a + b[1])
            damping[j] = damping[j] - acts * c * c * (g[2] * a + b[2])
    largest = efforts(mech)
    for j in sorted({j for x in mech.actuators for _, j, _ in joint_places(mech, x)}):
        bounds = (-largest[j], largest[j])
        acts = _unbounded(total[j], bounds)
        # slopes that would push away are left to the explicit part
        stiffness[j], damping[j] = (acts * maximum(x[j], 0.0) for x in (stiffness, damping))
        total[j] = within(total[j], bounds)
    if wrenches:
        given = np.concatenate(list(wrenches.values()))
        total = total + at.value(PUSHED, nodes=tuple(wrenches), q=q, f=given)
    return total, stiffness, damping


def _cables(at: Writing, q: Any, v: Any, actuator: Actuator) -> tuple[Any, Any, Any]:
    """∂l/∂q (nv,), the length l and its rate, on graph nodes.

    A unit force along each cable, outwards at both ends, has the joint forces ∂l/∂q.
    """
    names = tuple(dict.fromkeys(x for cable in actuator.cables for x in cable[:2]))
    poses = at.value(expression("node_poses"), nodes=names, q=q).reshape(-1, 3, 4)
    forces, length = np.zeros((len(names), 6), dtype=object), 0.0
    for a, b, gear in actuator.cables:
        i, j = names.index(a), names.index(b)
        between = poses[j, :, 3] - poses[i, :, 3]
        size = norm(between)
        length = length + gear * size
        along = gate(size - SHORT, gear / maximum(size, SHORT)) * between
        forces[j, 3:] = forces[j, 3:] + along
        forces[i, 3:] = forces[i, 3:] - along
    arm = at.value(PULLED, nodes=names, q=q, f=forces.ravel())
    return arm, length, sum(x * y for x, y in zip(arm, v, strict=True))


def joint_places(mech: Mechanism, actuator: Actuator) -> list[tuple[int, int, float]]:
    """Places in q and v, and gears, of the joints that move."""
    places = list[tuple[int, int, float]]()
    for name, gear in actuator.joints:
        hinge, index = split_coordinate(name, mech.hinge_index)
        k = mech.hinge_index[hinge]
        if mech.bodies[k].hinge.nv and gear:
            i = index or 0
            places.append((int(mech.q_start[k]) + i, int(mech.v_start[k]) + i, gear))
    return places


@once_per_mechanism
def efforts(mech: Mechanism) -> list[float]:
    """The largest force of the drive of each velocity (nv,)."""
    each = [body.drive.array("effort", body.hinge) for body in mech.bodies]
    return np.concatenate([np.zeros(0), *each]).tolist()


def within(x: Any, bounds: Range) -> Any:
    """A number cut to its bounds."""
    low, high = bounds
    if bounds == ALL:
        return x
    return clip(x, low if np.isfinite(low) else -LARGEST, high if np.isfinite(high) else LARGEST)


def _unbounded(x: Any, bounds: Range) -> Any:
    """1 where a force is within its bounds, else 0."""
    low, high = bounds
    inside: Any = 1.0
    if np.isfinite(high):
        inside = gate(high - x, inside)
    return gate(x - low, inside) if np.isfinite(low) else inside


LARGEST = math.sqrt(np.finfo(np.float32).max)
"""The bound where there is none."""


# ---------------------------------------------------------------------------- at given commands


def driven(at: Writing, q: Any, v: Any) -> Any:
    """The forces of actuators at their commands, or at their activations, in a formula."""
    command = at.read("control", len(at.mech.actuators))
    each = zip(at.mech.actuators, command, strict=True)
    bounded = [within(x, a.control if a.dynamics == "none" else a.activation) for a, x in each]
    return actuator_forces(at, q, v, bounded)[0]


def _with_actuators(at: Writing) -> Any:
    q, v, tau = at.q, at.v, at.read("tau", at.mech.nv)
    return tau + driven(at, q, v)


WITH_ACTUATORS = Formula(_with_actuators)


def with_actuator_force(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    controls: NamedCommands,
    activations: NamedCommands | None = None,
) -> Array:
    """`tau` with the forces of actuators, checked: (nv,) or (batch, nv)."""
    return written(mech, WITH_ACTUATORS)(q, v, tau, instant_commands(mech, controls, activations))


def actuator_commands(mech: Mechanism, controls: NamedCommands) -> Array:
    """Commands of actuators as an array; raises unless they are finite.

    By name, each actuator has a number, or numbers in the shape of the array without its last axis;
    others have 0.
    """
    if not mech.actuators:
        raise ModelError(
            f"controls were given, and {mech.name!r} has no actuators. Load them from an MJCF "
            "file, or add them: builder.actuator(lw.Actuator.motor('knee', 'knee'))."
        )
    return _numbers(mech, mech.actuators, controls, "controls")


def _numbers(
    mech: Mechanism, actuators: Sequence[Actuator], controls: NamedCommands, what: str
) -> Array:
    """Commands or activations (..., a) of some actuators."""
    by_name = isinstance(controls, Mapping)
    values = _by_name(mech, actuators, controls, what) if by_name else floats(controls, what)
    if values.ndim == 0:
        values = np.full(len(actuators), values)
    if not np.isfinite(values).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise ModelError(f"{what} are not finite, first at {index}.")
    return values


def _by_name(
    mech: Mechanism, actuators: Sequence[Actuator], controls: Mapping[str, ArrayLike], what: str
) -> Array:
    """Numbers (..., a) of some of these actuators by name."""
    names = [x.name for x in actuators]
    given = dict[str, Array]()
    for name, value in controls.items():
        if name not in names:
            raise unknown_name("actuator", name, names, owner=f"mechanism {mech.name!r}")
        given[name] = floats(value, f"{what}[{name!r}]")
    try:
        lead = np.broadcast_shapes(*(x.shape for x in given.values()))
    except ValueError:
        shapes = ", ".join(f"{name!r} {x.shape}" for name, x in given.items())
        raise ShapeError(f"{what} by name have different shapes: {shapes}.") from None
    values = np.zeros((*lead, len(names)))
    for name, x in given.items():
        values[..., names.index(name)] = x
    return values


def instant_commands(
    mech: Mechanism | Embedded, controls: NamedCommands, activations: NamedCommands | None = None
) -> Array:
    """Commands (a,) or (batch, a), with activations in place of those of actuators with one.

    These are a further state, and actuators that have it are refused where it is not given.
    """
    if isinstance(mech, Embedded):
        raise ModelError(
            f"controls were given for {mech.name!r}, whose loops are built in; its actuators pull "
            "at hinges of the mechanism itself, embedded.mech: use that."
        )
    command, count = actuator_commands(mech, controls), len(mech.actuators)
    with_state = with_activation(mech)
    lasting = ", ".join(repr(x.name) for x in with_state)
    if lasting and activations is None:
        raise ModelError(
            f"controls were given for {mech.name!r}, whose actuators {lasting} have an activation: "
            "a state besides q and v. Give it as activations=, or leave out controls and add the "
            "forces of the actuators to tau. lw.rollout and lw.simulate move activations."
        )
    if command.ndim not in (1, 2) or command.shape[-1] != count:
        raise ShapeError(
            f"controls has shape {command.shape}; it must be ({count},) or (batch, {count})."
        )
    if activations is None:
        return command
    if not lasting:
        raise ModelError(f"activations were given, and no actuator of {mech.name!r} has one.")
    values = _numbers(mech, with_state, activations, "activations")
    if values.ndim not in (1, 2) or values.shape[-1] != len(with_state):
        n = len(with_state)
        raise ShapeError(
            f"activations has shape {values.shape}; it must be ({n},) or (batch, {n}), for "
            f"{lasting}."
        )
    lead = np.broadcast_shapes(command.shape[:-1], values.shape[:-1])
    command = np.array(np.broadcast_to(command, (*lead, count)))
    command[..., [mech.actuators.index(x) for x in with_state]] = values
    return command
