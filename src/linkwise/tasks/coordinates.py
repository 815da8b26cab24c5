"""Tasks in coordinates: angles, quaternions, cylinders; and the dynamics in them.

The basic velocity ϑ of a task has angular velocity in it, which is the rate of no coordinates.
Coordinates x of one's choice move with it through a matrix that knows nothing of the mechanism:

    ẋ = E(x) ϑ,      ẍ = E ϑ̇ + Ė ϑ,      J = E J_t                                     003 (4), (5)

and all that belongs to forces and inertia follows, with E⁺ the inverse of E (its pseudo-inverse for
redundant coordinates, E⁺ E = I):

    Λ(x) = E⁺* Λ E⁺                                                                    003 (7)
    μ(x, ẋ) = E⁺* μ − Λ(x) Ė ϑ,      p(x) = E⁺* p,      J̄(x) = J̄ E⁺
    F_basic = E* F                                                                     003 (8)

A wanted ẍ is the basic acceleration ϑ̇ = E⁺ (ẍ − Ė ϑ), with which `task_torque` does the rest.
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
    """Where tasks are and how they move, in coordinates; k numbers for m basic rows.

    For a batch every array has the batch in front.

    Attributes:
        tasks: The tasks, whose coordinates stand one after the other.
        labels: What each coordinate is (k,).
        x: Coordinates (k,) [rad or m, or none].
        velocity: ẋ (k,).
        matrix: E (k, m), with ẋ = E ϑ.
        inverse: E⁺ (m, k), with E⁺ E = I.
        rate: Ė ϑ (k,): ẍ while the basic velocity ϑ is constant.
        parts: Each orientation, position, direction or set of joints by itself.
    """

    tasks: tuple[Task, ...]
    labels: tuple[str, ...]
    x: Array
    velocity: Array
    matrix: Array
    inverse: Array
    rate: Array
    parts: tuple[Part, ...]

    def error(self, target: ArrayLike) -> Array:
        """The way (k,) from x to the target: angles the short way round, quaternions to ±target."""
        wanted = self.sized(target, "the target")
        x, wanted = np.broadcast_arrays(self.x, wanted)
        found, at = list[Array](), 0
        for part in self.parts:
            own = slice(at, at + len(part.labels))
            found.append(part.difference(x[..., own], wanted[..., own]))
            at = own.stop
        return np.concatenate(found, axis=-1)

    def acceleration(self, xddot: ArrayLike) -> Array:
        """The basic acceleration E⁺ (ẍ − Ė ϑ) (m,) of a wanted ẍ (k,), for `task_torque`.

        Of redundant coordinates only that part of ẍ counts that the freedoms can follow.
        """
        wanted = self.sized(xddot, "the acceleration")
        return (self.inverse @ (wanted - self.rate)[..., None])[..., 0]

    def basic_velocity(self, xdot: ArrayLike) -> Array:
        """ϑ = E⁺ ẋ (m,)."""
        return (self.inverse @ self.sized(xdot, "the velocity")[..., None])[..., 0]

    def basic_force(self, force: ArrayLike) -> Array:
        """E* F (m,): moments and forces of a generalised force (k,) along the coordinates."""
        wanted = self.sized(force, "the force")
        return (np.swapaxes(self.matrix, -1, -2) @ wanted[..., None])[..., 0]

    def sized(self, value: ArrayLike, what: str) -> Array:
        """An array with one entry for each coordinate, or the error that names them."""
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
        coordinates: Where the tasks are, and E.
        basic: The same dynamics of the basic velocities.
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
        """F = Λ(x) ẍ + μ + p (k,): what makes the coordinates accelerate so."""
        wanted = self.coordinates.sized(xddot, "the acceleration")
        return _times(self.inertia, wanted) + self.coriolis + self.gravity

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
    """Coordinates of tasks, with the matrix E(x) that gives their rates.

    Expression:
        ẋ = E(x) ϑ with ϑ = J_t v the basic velocity; Ė ϑ and E⁺ in closed form
    Source: 003 (4), (5), section 2.1.

    What x is, by the kind of task: a pose has its orientation and then its position; an orientation
    has what `orientation` says; a position three numbers by `position`, or the chosen components
    alone; a direction the three components of the axis, in the axes of the reference; joints have
    their own positions. Euler angles are intrinsic: "euler_zyx" is a turn about z, then about the
    new y, then about the newest x.

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        tasks: One task or several.
        orientation: Coordinates of orientations: "euler_zyx" or any other of the twelve sequences,
            "quaternion" (4 numbers), "direction_cosines" (9), or a `Representation` of one's own.
            By default what each task says.
        position: Coordinates of whole positions: "cartesian", "cylindrical" or "spherical", about
            the z axis of the reference, or one's own.

    Returns:
        `TaskCoordinates`: x, ẋ, E, E⁺, Ė ϑ.

    Raises:
        ModelError: A task whose velocity is the rate of no coordinates, or a singular place, such
            as gimbal lock; the message has the angle and what else could be taken. In a batch such
            states are NaN instead, and a warning names them.
    """
    check_mechanism(mech)
    every = as_tuple(tasks)
    for asked, known in ((orientation, ORIENTATIONS), (position, POSITIONS)):
        if asked is not None:
            named(asked, known)  # raises for one that is not known, used or not
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
    """The equations of motion of tasks in coordinates of one's choice.

    Expression:
        Λ(x) ẍ + μ(x, ẋ) + p(x) = F,   Λ(x) = E⁺* Λ E⁺,   μ(x, ẋ) = E⁺* μ − Λ(x) Ė ϑ,
        p(x) = E⁺* p
    with Λ, μ, p of `task_dynamics`.
    Source: 003 (3), (7), (8), (23)-(25).

    The torque that gives ẍ is `task_torque(mech, q, v, tasks, coordinates.acceleration(xddot))`.
    For redundant coordinates Λ(x) is a pseudo-inverse: ½ ẋ* Λ(x) ẋ is the kinetic energy of the
    task all the same.

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        tasks: One task or several.
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
