"""Tasks in coordinates: angles, quaternions, cylinders; and the dynamics in them.

The basic velocity ϑ of a task contains angular velocity, which is not the rate of coordinates.
Coordinates x move with it through a matrix that does not depend on the mechanism:

    ẋ = E(x) ϑ,      ẍ = E ϑ̇ + Ė ϑ,      J = E J_t                                     003 (4), (5)

and forces and inertia follow, with E⁺ the inverse of E (its pseudo-inverse for redundant
coordinates, E⁺ E = I):

    Λ(x) = E⁺* Λ E⁺                                                                    003 (7)
    μ(x, ẋ) = E⁺* μ − Λ(x) Ė ϑ,      p(x) = E⁺* p,      J̄(x) = J̄ E⁺
    F_basic = E* F                                                                     003 (8)

A desired ẍ is the basic acceleration ϑ̇ = E⁺ (ẍ − Ė ϑ), an argument of `task_torque`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.arguments import rows
from linkwise.dynamics.kernels import check_mechanism
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.tasks.coordinate_part import Part, named, parts_of
from linkwise.tasks.dynamics import TaskDynamics, task_dynamics
from linkwise.tasks.representation import ORIENTATIONS, POSITIONS, Representation
from linkwise.tasks.task import Task, Tasks, as_tuple


@dataclass(frozen=True, slots=True, eq=False)
class TaskCoordinates:
    """Position and velocity of tasks in coordinates; k numbers for m basic rows.

    For a batch every array has the batch in front.

    Attributes:
        tasks: The tasks, whose coordinates are stacked.
        labels: Names of the coordinates (k,).
        x: Coordinates (k,) [rad or m, or none].
        velocity: ẋ (k,).
        matrix: E (k, m), with ẋ = E ϑ.
        inverse: E⁺ (m, k), with E⁺ E = I.
        rate: Ė ϑ (k,): ẍ while the basic velocity ϑ is constant.
        parts: The coordinates of each orientation, position, direction or set of joints.
    """

    tasks: tuple[Task, ...]
    labels: tuple[str, ...]
    x: Array
    velocity: Array
    matrix: Array
    inverse: Array
    rate: Array
    parts: tuple[Part, ...]

    def error(self, goal: ArrayLike) -> Array:
        """The difference (k,) from x to the goal: angles wrapped, quaternions to ±goal."""
        x, goal = np.broadcast_arrays(self.x, self.sized(goal, "the goal"))
        errors, at = list[Array](), 0
        for part in self.parts:
            columns = slice(at, at + len(part.labels))
            errors.append(part.difference(x[..., columns], goal[..., columns]))
            at = columns.stop
        return np.concatenate(errors, axis=-1)

    def acceleration(self, xddot: ArrayLike) -> Array:
        """The basic acceleration E⁺ (ẍ − Ė ϑ) (m,) of ẍ (k,), for `task_torque`.

        For redundant coordinates, only the feasible part of ẍ counts.
        """
        array = self.sized(xddot, "the acceleration")
        return (self.inverse @ (array - self.rate)[..., None])[..., 0]

    def basic_velocity(self, xdot: ArrayLike) -> Array:
        """ϑ = E⁺ ẋ (m,)."""
        return (self.inverse @ self.sized(xdot, "the velocity")[..., None])[..., 0]

    def basic_force(self, force: ArrayLike) -> Array:
        """E* F (m,): moments and forces of a generalised force (k,) along the coordinates."""
        array = self.sized(force, "the force")
        return (np.swapaxes(self.matrix, -1, -2) @ array[..., None])[..., 0]

    def sized(self, value: ArrayLike, what: str) -> Array:
        """An array with one entry for each coordinate, checked."""
        return rows(value, len(self.labels), what, hint=", ".join(self.labels))

    def __str__(self) -> str:
        names = " and ".join(repr(task.name) for task in self.tasks)
        if self.x.ndim > 1:
            return f"{len(self.labels)} coordinates of {names}, {len(self.x)} states"
        wide = max(len(label) for label in self.labels)
        each = zip(self.labels, self.x, self.velocity, strict=True)
        lines = [f"  {label:{wide}}  {x:9.4f}  rate {rate:9.4f}" for label, x, rate in each]
        return "\n".join([f"coordinates of {names}:", *lines])


@dataclass(frozen=True, slots=True, eq=False)
class CoordinateDynamics:
    """Λ(x) ẍ + μ(x, ẋ) + p(x) = F: the equations of motion of tasks in coordinates.

    For a batch every array has the batch in front.

    Attributes:
        coordinates: The coordinates of the tasks, and E.
        basic: The dynamics in the basic velocities.
        jacobian: J = E J_t (k, nv), ẋ = J v.
        inertia: Λ(x) (k, k).
        consistent_inverse: J̄ E⁺ (nv, k).
        coriolis: μ(x, ẋ) (k,).
        gravity: p(x) (k,).
        bias: J̇ v (k,), ẍ = J v̇ + J̇ v.
    """

    coordinates: TaskCoordinates
    basic: TaskDynamics
    jacobian: Array
    inertia: Array
    consistent_inverse: Array
    coriolis: Array
    gravity: Array
    bias: Array

    def force(self, xddot: ArrayLike) -> Array:
        """F = Λ(x) ẍ + μ + p (k,): the force for an acceleration of the coordinates."""
        array = self.coordinates.sized(xddot, "the acceleration")
        return _times(self.inertia, array) + self.coriolis + self.gravity

    def __str__(self) -> str:
        return f"dynamics in {len(self.coordinates.labels)} coordinates of the {self.basic.space}"


def task_coordinates(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tasks: Tasks,
    *,
    orientation: str | Representation | None = None,
    position: str | Representation = "cartesian",
) -> TaskCoordinates:
    """Coordinates of tasks, with the matrix E(x) of their rates.

    Expression:
        ẋ = E(x) ϑ with ϑ = J_t v the basic velocity; Ė ϑ and E⁺ in closed form
    Source: 003 (4), (5), section 2.1.

    x depends on the kind of task: a pose has its orientation and then its position; an orientation
    has the coordinates `orientation`; a position three numbers by `position`, or the chosen
    components alone; a direction the three components of the axis, in the axes of the reference;
    joints have their positions. Euler angles are intrinsic: "euler_zyx" is a turn about z, then
    about the new y, then about the newest x.

    Args:
        orientation: Coordinates of orientations: "euler_zyx" or any other of the twelve sequences,
            "quaternion" (4 numbers), "direction_cosines" (9), or your own `Representation`.
            Default: the coordinates of each task.
        position: Coordinates of full positions: "cartesian", "cylindrical" or "spherical", about
            the z axis of the reference, or your own.

    Raises:
        ModelError: A task without coordinates, or a singularity such as gimbal lock; the message
            has the angle and alternatives. In a batch such states are NaN instead, with a warning.
    """
    check_mechanism(mech)
    every = as_tuple(tasks)
    for kind, known in ((orientation, ORIENTATIONS), (position, POSITIONS)):
        if kind is not None:
            named(kind, known)  # raises for an unknown one, used or not
    parts = parts_of(mech, q, v, every, orientation, position)
    return TaskCoordinates(
        tasks=every,
        labels=tuple(label for part in parts for label in part.labels),
        x=np.concatenate([part.x for part in parts], axis=-1),
        velocity=np.concatenate([part.velocity for part in parts], axis=-1),
        matrix=_diagonal([part.matrix for part in parts]),
        inverse=_diagonal([part.inverse for part in parts]),
        rate=np.concatenate([part.rate for part in parts], axis=-1),
        parts=parts,
    )


def coordinate_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tasks: Tasks,
    *,
    orientation: str | Representation | None = None,
    position: str | Representation = "cartesian",
    **options: Any,
) -> CoordinateDynamics:
    """The equations of motion of tasks in chosen coordinates.

    Expression:
        Λ(x) ẍ + μ(x, ẋ) + p(x) = F,   Λ(x) = E⁺* Λ E⁺,   μ(x, ẋ) = E⁺* μ − Λ(x) Ė ϑ,
        p(x) = E⁺* p
    with Λ, μ, p of `task_dynamics`.
    Source: 003 (3), (7), (8), (23)-(25).

    The torque that gives ẍ is `task_torque(mech, q, v, tasks, coordinates.acceleration(xddot))`.
    For redundant coordinates Λ(x) is a pseudo-inverse; ½ ẋ* Λ(x) ẋ is still the kinetic energy of
    the task.

    Args:
        orientation: As for `task_coordinates`.
        position: As for `task_coordinates`.
        options: `tolerance`, `length`, `damping` of `task_space`.

    Raises:
        ModelError: As for `task_coordinates`.
    """
    at = task_coordinates(mech, q, v, tasks, orientation=orientation, position=position)
    basic = task_dynamics(mech, q, v, tasks, **options)
    back = np.swapaxes(at.inverse, -1, -2)  # E⁺*
    inertia = back @ basic.space.inertia @ at.inverse
    return CoordinateDynamics(
        coordinates=at,
        basic=basic,
        jacobian=at.matrix @ basic.space.jacobian,
        inertia=inertia,
        consistent_inverse=basic.space.consistent_inverse @ at.inverse,
        coriolis=_times(back, basic.coriolis) - _times(inertia, at.rate),
        gravity=_times(back, basic.gravity),
        bias=_times(at.matrix, basic.bias) + at.rate,
    )


def _times(matrix: Array, x: Array) -> Array:
    return (matrix @ x[..., None])[..., 0]


def _diagonal(blocks: list[Array]) -> Array:
    """Blocks (..., k, m) along the diagonal of one matrix."""
    heights, widths = ([block.shape[axis] for block in blocks] for axis in (-2, -1))
    out = np.zeros((*blocks[0].shape[:-2], sum(heights), sum(widths)))
    down = across = 0
    for block, height, width in zip(blocks, heights, widths, strict=True):
        out[..., down : down + height, across : across + width] = block
        down, across = down + height, across + width
    return out
