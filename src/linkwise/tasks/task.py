"""Tasks: what is controlled, some of the motions of a node relative to another.

The motion of node b relative to the reference a is V_ab = V_b - T V_a, at b's origin. With the
rotation R from b's axes to those of a, or none, and constant rows S,

    ẋ = S R V_ab

are the velocities of a task. A loop requires them to be zero; a task gives them a desired value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast

import numpy as np

from linkwise import arguments
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.model.body import WORLD
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.vector import cross
from linkwise.tasks.representation import ORIENTATIONS

Kind: TypeAlias = Literal[
    "pose", "position", "orientation", "direction", "joints", "center_of_mass"
]
Axes: TypeAlias = Literal["reference", "node"]


@dataclass(frozen=True, slots=True)
class Task:
    """Rows of the motion of a node or the centre of mass, or velocities of hinges.

    Use the functions below to make one.

    Attributes:
        name: Its name; default: made from kind and node.
        kind: "pose", "position", "orientation", "direction", "joints" or "center_of_mass".
        node: The node or body; "" for joints and the centre of mass.
        relative_to: The reference, a node or body; "world" for the ground.
        axes: Of the rows: those of the "reference", or of the "node" itself.
        rows: S (m, 6), angular part first; empty for joints.
        hinges: Names of hinges or bodies, for joints.
        coordinates: Of the orientation; None for angular velocity, the basic form.
        axis: For a direction, the axis in the node's axes.
    """

    name: str
    kind: Kind
    node: str = ""
    relative_to: str = WORLD
    axes: Axes = "reference"
    rows: tuple[tuple[float, ...], ...] = ()
    hinges: tuple[str, ...] = ()
    coordinates: str | None = None
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)

    @staticmethod
    def pose(
        node: str,
        *,
        relative_to: str = WORLD,
        axes: Axes = "reference",
        coordinates: str | None = None,
        name: str | None = None,
    ) -> Task:
        """The pose of a node: six rows, angular first.

        Args:
            node: The node or body.
            relative_to: The reference, a node or body.
            axes: Of velocities and forces: those of the "reference", or of the "node".
            coordinates: Of its orientation, see `lw.tasks.task_coordinates`.
            name: Default: "pose of NODE".
        """
        return _checked("pose", node, relative_to, axes, np.eye(6), name, coordinates)

    @staticmethod
    def position(
        node: str,
        along: str | ArrayLike = "xyz",
        *,
        relative_to: str = WORLD,
        axes: Axes = "reference",
        name: str | None = None,
    ) -> Task:
        """The position of the origin of a node: a row for each direction.

        Args:
            node: The node or body.
            along: Letters of axes, or directions (k, 3) in the axes of the task.
            relative_to: The reference, a node or body.
            axes: Of velocities and forces: those of the "reference", or of the "node".
            name: Default: "position of NODE".
        """
        rows = _directions(along, "along")
        rows = np.concatenate([np.zeros(rows.shape), rows], axis=1)
        return _checked("position", node, relative_to, axes, rows, name)

    @staticmethod
    def orientation(
        node: str,
        about: str | ArrayLike = "xyz",
        *,
        relative_to: str = WORLD,
        axes: Axes = "reference",
        coordinates: str | None = None,
        name: str | None = None,
    ) -> Task:
        """The orientation of a node: a row for each axis.

        Args:
            node: The node or body.
            about: Letters of axes, or axes (k, 3) in the axes of the task.
            relative_to: The reference, a node or body.
            axes: Of velocities and moments: those of the "reference", or of the "node".
            coordinates: See `lw.tasks.task_coordinates`.
            name: Default: "orientation of NODE".
        """
        rows = _directions(about, "about")
        rows = np.concatenate([rows, np.zeros(rows.shape)], axis=1)
        return _checked("orientation", node, relative_to, axes, rows, name, coordinates)

    @staticmethod
    def direction(
        node: str,
        axis: ArrayLike = (0.0, 0.0, 1.0),
        *,
        relative_to: str = WORLD,
        name: str | None = None,
    ) -> Task:
        """The direction of an axis of a node: two rows, turns in the node's axes.

        Args:
            node: The node or body.
            axis: The axis, in the node's axes.
            relative_to: The reference, a node or body.
            name: Default: "direction of NODE".
        """
        d = floats(axis, "axis")
        if d.shape != (3,) or not np.isfinite(d).all() or not np.any(d):
            raise ModelError(f"axis is {axis!r}; it must be a direction of three numbers.")
        d = d / np.linalg.norm(d)
        first = cross(d, np.eye(3)[np.argmin(np.abs(d))])
        first = first / np.linalg.norm(first)
        across = np.stack([first, cross(d, first)])
        rows = np.concatenate([across, np.zeros((2, 3))], axis=1)
        task = _checked("direction", node, relative_to, "node", rows, name)
        return replace(task, axis=(float(d[0]), float(d[1]), float(d[2])))

    @staticmethod
    def joints(*hinges: str, name: str | None = None) -> Task:
        """The velocities of hinges, a row for each.

        Args:
            hinges: Names of hinges or bodies.
            name: Default: "joints NAMES".
        """
        if len(hinges) == 1 and isinstance(cast(object, hinges[0]), list | tuple):
            hinges = tuple(hinges[0])
        if not hinges or not all(isinstance(cast(object, x), str) for x in hinges):
            raise ModelError(f"joints are {hinges!r}; name at least one hinge or body.")
        if name is not None:
            arguments.name(name, "name of a task")
        if len(set(hinges)) < len(hinges):
            raise ModelError(f"joints are {hinges!r}; name each hinge once.")
        return Task(name or f"joints {', '.join(hinges)}", "joints", hinges=hinges)

    @staticmethod
    def center_of_mass(along: str | ArrayLike = "xyz", *, name: str | None = None) -> Task:
        """The centre of mass of the whole mechanism in the world: a row for each direction.

        `lw.optimize` and `lw.TaskController` take it, and `lw.tasks.task_position`, `task_error`,
        `task_velocity`, `task_jacobian` and `task_bias`; `lw.inverse_kinematics` has an argument
        `center_of_mass`.

        Args:
            along: Letters of axes, or directions (k, 3) in the world.
            name: Default: "centre of mass".
        """
        rows = _directions(along, "along")
        if name is not None:
            arguments.name(name, "name of a task")
        every = np.concatenate([np.zeros(rows.shape), rows], axis=1)
        directions = tuple(tuple(float(x) for x in row) for row in every)
        return Task(name or "centre of mass", "center_of_mass", rows=directions)

    @property
    def matrix(self) -> Array:
        """S (m, 6); empty for joints."""
        return np.array(self.rows, dtype=np.float64).reshape(-1, 6)

    def __repr__(self) -> str:
        return f"<Task {self}>"

    def __str__(self) -> str:
        if self.kind == "joints":
            return self.name
        seen = "" if self.relative_to == WORLD else f" relative to {self.relative_to!r}"
        return f"{self.name}{seen}: {len(self.rows)} rows in the axes of the {self.axes}"


Tasks: TypeAlias = Task | Sequence[Task]
"""One task, or several whose rows are stacked."""


def as_tuple(tasks: object) -> tuple[Task, ...]:
    """The tasks as a tuple; raises for anything else."""
    given = (tasks,) if isinstance(tasks, Task) else tasks
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ModelError(
            f"tasks is a {type(tasks).__name__}; it must be a lw.Task or several, like "
            "lw.Task.position('hand')."
        )
    each = tuple(cast("Sequence[object]", given))
    for x in each:
        if not isinstance(x, Task):
            raise ModelError(f"{x!r} is not a task; make one like lw.Task.position('hand').")
    if not each:
        raise ModelError("no task was given; name at least one, like lw.Task.position('hand').")
    return cast("tuple[Task, ...]", each)


def _directions(given: str | ArrayLike, what: str) -> Array:
    """Directions (k, 3) from letters or numbers."""
    if isinstance(given, str):
        if not given or set(given) - set("xyz") or len(set(given)) < len(given):
            raise ModelError(f"{what} is {given!r}; it takes letters x, y, z, each once.")
        return np.eye(3)[["xyz".index(letter) for letter in given]]
    rows = floats(given, what)
    rows = rows[None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] != 3 or not 1 <= len(rows) <= 3:
        raise ShapeError(f"{what} has shape {np.shape(given)}; it must be (3,) or (k, 3), k <= 3.")
    if not np.isfinite(rows).all() or np.linalg.matrix_rank(rows) < len(rows):
        raise ModelError(
            f"{what} is {rows.tolist()}; it must be finite, linearly independent directions."
        )
    return rows


def _checked(
    kind: Kind,
    node: object,
    relative_to: object,
    axes: Axes,
    rows: Array,
    name: str | None,
    coordinates: str | None = None,
) -> Task:
    for what, value in (("node", node), ("relative_to", relative_to)):
        if not isinstance(value, str):
            raise ModelError(f"{what} is {value!r}; it must be the name of a node or body.")
    if name is not None and not isinstance(cast(object, name), str):
        raise ModelError(f"name is {name!r}; it must be a string.")
    if node == relative_to:
        raise ModelError(f"the task is about {node!r} relative to itself; name two nodes.")
    if cast(str, axes) == "world" and relative_to == WORLD:
        axes = "reference"
    if cast(str, axes) not in ("reference", "node"):
        raise unknown_name("axes", axes, ("reference", "node"), owner="a task")
    if coordinates is not None and coordinates not in ORIENTATIONS:
        raise unknown_name(
            "coordinates of an orientation", coordinates, ORIENTATIONS, owner="a task"
        )
    if coordinates is not None and (
        axes != "reference" or not np.array_equal(rows[:3, :3], np.eye(3))
    ):
        raise ModelError(
            f"coordinates {coordinates!r} describe a full orientation in the axes of the "
            "reference; use about='xyz' and axes='reference'."
        )
    rest = (cast(str, node), cast(str, relative_to), axes)
    directions = tuple(tuple(float(x) for x in row) for row in rows)
    return Task(name or f"{kind} of {node}", kind, *rest, directions, coordinates=coordinates)
