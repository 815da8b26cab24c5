"""Coordinates of single tasks, and their singularities."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from linkwise.errors import ModelError, TroubleWarning, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import cross
from linkwise.tasks.measure import task_position, task_velocity
from linkwise.tasks.representation import ORIENTATIONS, POSITIONS, Representation
from linkwise.tasks.task import Task


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The coordinates x (..., k) of a task, or of its orientation or position alone.

    Attributes:
        labels: Names of the coordinates (k,).
        x: Coordinates (..., k).
        velocity: ẋ (..., k).
        matrix: E (..., k, m) over the basic velocities of this part.
        inverse: E⁺ (..., m, k).
        rate: Ė ϑ (..., k).
        difference: From coordinates to those of a goal.
    """

    labels: tuple[str, ...]
    x: Array
    velocity: Array
    matrix: Array
    inverse: Array
    rate: Array
    difference: Callable[[Array, Array], Array]


def parts_of(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tasks: tuple[Task, ...],
    orientation: str | Representation | None,
    position: str | Representation,
) -> tuple[Part, ...]:
    """The parts of all tasks in order, with the leading axes of one batch."""
    parts = list[Part]()
    for task in tasks:
        parts += _of_task(mech, q, v, task, orientation, position)
    lead = np.broadcast_shapes(*(part.velocity.shape[:-1] for part in parts))
    bad = np.any([np.broadcast_to(np.isnan(p.rate).any(axis=-1), lead) for p in parts], axis=0)
    return tuple(_spread(part, lead, bad) for part in parts)


def _of_task(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    task: Task,
    orientation: str | Representation | None,
    position: str | Representation,
) -> list[Part]:
    """Coordinates of one task."""
    velocity = task_velocity(mech, q, v, task)
    place: Any = task_position(mech, q, task)
    if task.kind == "joints":
        return [_joints(task, place, velocity)]
    if task.kind == "direction":
        return [_direction(mech, q, v, task, place, velocity)]
    if task.axes != "reference":
        raise ModelError(
            f"task {task.name!r} is in the axes of its node and has no coordinates: velocities "
            "along turning axes are not rates of coordinates. Make the task with "
            "axes='reference'."
        )
    rows = task.matrix
    if task.kind == "position" and not np.array_equal(rows, np.eye(6)[3:]):
        labels = tuple(f"{task.name}: row {i}" for i in range(len(rows)))
        return [_linear(labels, place @ rows[:, 3:].T, velocity)]
    parts = list[Part]()
    if task.kind != "position":
        chosen = named(_orientation(task, rows, orientation), ORIENTATIONS)
        rot = place.rot if task.kind == "pose" else place
        parts.append(_curved(task, chosen, rot, velocity[..., :3]))
    if task.kind != "orientation":
        p = place.p if task.kind == "pose" else place
        parts.append(_curved(task, named(position, POSITIONS), p, velocity[..., -3:]))
    return parts


def named(
    kind: str | Representation, known: dict[str, Representation]
) -> tuple[str, Representation]:
    """Coordinates by name, or a user's representation; raises for unknown names."""
    if isinstance(kind, Representation):
        return type(kind).__name__, kind
    if not isinstance(cast(object, kind), str) or kind not in known:
        what = "orientations" if known is ORIENTATIONS else "positions"
        raise unknown_name(f"coordinates of {what}", kind, known, owner="linkwise.tasks")
    return kind, known[kind]


def _orientation(
    task: Task, rows: Array, kind: str | Representation | None
) -> str | Representation:
    """The coordinates of a task that turns."""
    full = np.eye(6) if task.kind == "pose" else np.eye(6)[:3]
    if not np.array_equal(rows, full):
        raise ModelError(
            f"task {task.name!r} has {len(rows)} rows, not all of x, y and z, and no coordinates: "
            "part of an angular velocity is not the rate of coordinates. Make it about='xyz', or "
            "use Task.direction for one axis."
        )
    chosen = task.coordinates if kind is None else kind
    if chosen is None:
        raise ModelError(
            f"the coordinates of the orientation of task {task.name!r} are not given. Choose "
            "orientation='euler_zyx' (or another sequence), 'quaternion' or 'direction_cosines', "
            "or coordinates= of the task."
        )
    return chosen


def _curved(task: Task, chosen: tuple[str, Representation], place: Array, velocity: Array) -> Part:
    """An orientation or a position in some coordinates; NaN where they are singular."""
    name, kind = chosen
    x = np.broadcast_to(kind.of(place), (*velocity.shape[:-1], len(kind.labels)))
    singular = np.asarray(kind.singular(x))
    if singular.any():
        first = int(np.flatnonzero(singular)[0])
        why = f"coordinates {name!r} of task {task.name!r}: " + kind.trouble(
            x.reshape(-1, x.shape[-1])[first]
        )
        if x.ndim == 1:
            raise ModelError(why)
        count = int(singular.sum())
        warnings.warn(
            f"{count} of {len(x)} states have no result, and are NaN; state {first}, {why}",
            TroubleWarning,
            stacklevel=5,
        )
        x = np.where(singular[..., None], np.nan, x)
    E = kind.matrix(x)
    return Part(
        tuple(f"{task.name}: {label}" for label in kind.labels),
        x,
        (E @ velocity[..., None])[..., 0],
        E,
        kind.inverse(x),
        kind.rate(x, velocity),
        kind.difference,
    )


def _joints(task: Task, q: Array, velocity: Array) -> Part:
    """Joints are their own coordinates."""
    if q.shape[-1] != velocity.shape[-1]:
        raise ModelError(
            f"task {task.name!r} has no coordinates: its hinges have quaternions among their "
            f"{q.shape[-1]} positions, for {velocity.shape[-1]} velocities. Name hinges with "
            "angles and travels only, or use an orientation task of the body they carry."
        )
    return _linear(tuple(f"{task.name}: {i}" for i in range(q.shape[-1])), q, velocity)


def _linear(labels: tuple[str, ...], x: Array, velocity: Array) -> Part:
    """Coordinates whose rates are the basic velocities themselves."""
    m = len(labels)
    one = np.broadcast_to(np.eye(m), (*velocity.shape[:-1], m, m))
    x = np.broadcast_to(x, velocity.shape)
    return Part(labels, x, velocity, one, one, 0.0 * velocity, lambda x, y: y - x)


def _direction(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, task: Task, axis: Array, velocity: Array
) -> Part:
    """The components of an axis n of the node, in the axes of the reference.

    With ω the angular velocity of the node and A ω (2,) the basic velocity, the rows of A
    perpendicular to n and to each other: ω = A* ϑ + n (n · ω), so

        ṅ = ω × n = E ϑ,   E = −ñ R A*,   E⁺ = E*,      n̈ = E ϑ̇ + Ė ϑ

    R from the axes of the node to those of the reference. E turns with the node: Ė ϑ = ω × ṅ.
    """
    orientation = Task.orientation(task.node, relative_to=task.relative_to)
    rot: Any = task_position(mech, q, orientation)
    w = task_velocity(mech, q, v, orientation)  # in the axes of the reference
    A = task.matrix[:, :3]
    E = np.broadcast_to(-skew(axis) @ rot @ A.T, (*velocity.shape[:-1], 3, 2))
    xdot = (E @ velocity[..., None])[..., 0]
    labels = tuple(f"{task.name}: along {letter}" for letter in "xyz")
    x = np.broadcast_to(axis, xdot.shape)
    return Part(labels, x, xdot, E, np.swapaxes(E, -1, -2), cross(w, xdot), lambda x, y: y - x)


def _spread(part: Part, lead: tuple[int, ...], bad: Any) -> Part:
    """With the leading axes of the batch, and NaN for states that are bad."""
    arrays = {
        name: np.broadcast_to(getattr(part, name), (*lead, *getattr(part, name).shape[-after:]))
        for name, after in (("x", 1), ("velocity", 1), ("rate", 1), ("matrix", 2), ("inverse", 2))
    }
    if np.any(bad):
        for name, array in arrays.items():
            mask = bad.reshape(*lead, *(1,) * (array.ndim - len(lead)))
            arrays[name] = np.where(mask, np.nan, array)
    return replace(part, **arrays)
