"""Task space: which motions of tasks exist, their inertia, and what leaves them alone.

    Λ = U (U* J_t 𝓜⁻¹ J_t* U)⁻¹ U*      U an orthonormal basis of the motions that exist
    J̄ = 𝓜⁻¹ J_t* Λ                       the dynamically consistent inverse
    N = I - J̄ J_t                         velocities that do not move the tasks
    N* = I - J_t* J̄*                      torques that do not accelerate them

Where a direction is lost, or nearly lost and `tolerance` says so, it is no part of the task: the
mechanism is redundant there, and N is larger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import row, rows
from linkwise.codegen.formula import Formula
from linkwise.dynamics.closure import Setting
from linkwise.dynamics.kernels import Loops, is_closed, written
from linkwise.dynamics.mass_root import hinge_root, root_of
from linkwise.dynamics.motion_space import Motions, lost_in_words, motion_space, motions
from linkwise.dynamics.operational_space import TOLERANCE, ranked
from linkwise.dynamics.velocity_space import states
from linkwise.errors import ModelError, ShapeError
from linkwise.model.body import WORLD
from linkwise.model.closure import closure_nodes
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.tasks.held_motion import held_motion
from linkwise.tasks.kernels import task_kernels
from linkwise.tasks.quantity import TASK
from linkwise.tasks.task import Task, Tasks
from linkwise.tasks.twin import Twin, twin

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

NEEDED = ("task_inertia_inverse", "task_jacobian", "task_response", "task_columns")
"""From one kernel: J_t 𝓜⁻¹ J_t*, J_t, 𝓜⁻¹ J_t* and X, whose D^(-½) X is the whitened J_t*."""

ROUNDING = 1e-12
"""Motions below this part of the reach are rounding: those of a node seen from its own body."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskSpace:
    """The motions of tasks that exist in a state, their inertia and their null space.

    For a batch every array has the batch in front, and `space[i]` is one state of it.

    Attributes:
        tasks: The tasks, whose rows are stacked, m of them.
        names: A name for each row.
        jacobian: J_t (m, nv).
        inverse: J_t 𝓜⁻¹ J_t* (m, m): acceleration at rest per force.
        inertia: Λ (m, m), zero for what is not a motion; with damping it is smaller.
        consistent_inverse: J̄ (nv, m).
        rank: How many independent motions there are; an array for a batch.
        basis: Orthonormal columns (m, m): the first `rank` are `directions`, the others `lost`.
        singular_values: Of J_t with turning measured at `length` (m,), the largest first.
        condition: Largest inertia over smallest, of the motions that exist.
        length: The length at which turning is compared with moving [m].
        damping: What was asked for, as a part of the easiest motion; 0 for none.
        weakened: The largest part of a wanted acceleration that damping takes away: 0 for none.
    """

    tasks: tuple[Task, ...]
    names: tuple[str, ...]
    jacobian: Array
    inverse: Array
    inertia: Array
    consistent_inverse: Array
    rank: int | NDArray[np.int64]
    basis: Array
    singular_values: Array
    condition: float | Array
    length: float
    damping: float
    weakened: float | Array

    @property
    def directions(self) -> Array:
        """Motions that exist (m, rank), as orthonormal combinations of the rows."""
        return self._one().basis[:, : int(self.rank)]

    @property
    def lost(self) -> Array:
        """What is missing (m, m - rank): no motion has a component along it."""
        return self._one().basis[:, int(self.rank) :]

    @property
    def null_space(self) -> Array:
        """N = I - J̄ J_t (nv, nv), what is left of velocities when the tasks' part is taken out."""
        n = self.jacobian.shape[-1]
        return np.eye(n) - self.consistent_inverse @ self.jacobian

    def null_torque(self, tau: ArrayLike) -> Array:
        """N* τ: the part of joint forces that does not accelerate the tasks.

        Args:
            tau: Joint forces (nv,) or (batch, nv) [N or N m].
        """
        tau = rows(tau, self.jacobian.shape[-1], "tau")
        force = np.swapaxes(self.consistent_inverse, -1, -2) @ tau[..., None]
        return tau - (np.swapaxes(self.jacobian, -1, -2) @ force)[..., 0]

    def __len__(self) -> int:
        if self.inertia.ndim == 2:
            raise ShapeError("this is the task space of one state; it has no length.")
        return len(self.inertia)

    def __getitem__(self, i: int) -> TaskSpace:
        """One state of a batch."""
        i = row(i, None if self.inertia.ndim == 2 else len(self.inertia), "this task space")
        return replace(
            self,
            jacobian=self.jacobian[i],
            inverse=self.inverse[i],
            inertia=self.inertia[i],
            consistent_inverse=self.consistent_inverse[i],
            rank=int(np.asarray(self.rank)[i]),
            basis=self.basis[i],
            singular_values=self.singular_values[i],
            condition=float(np.asarray(self.condition)[i]),
            weakened=float(np.asarray(self.weakened)[i]),
        )

    def __str__(self) -> str:
        what = " and ".join(task.name for task in self.tasks)
        if self.inertia.ndim == 3:
            return f"task space of {what}, {len(self)} states"
        size = len(self.inertia)
        told = [f"task space of {what}: rank {self.rank} of {size}, condition {self.condition:.3g}"]
        if self.damping:
            told.append(
                f"damping {self.damping:g} takes away up to {100.0 * float(self.weakened):.2g} % "
                "of what is asked for"
            )
        told += self.lost_in_words()
        return "; ".join(told)

    def lost_in_words(self) -> list[str]:
        """What nodes cannot do, as `OperationalSpace.lost_in_words`; hinges by their rows."""
        if not self.lost.shape[1]:
            return []
        worded = tasks_in_words(self.tasks, self.lost)
        return [f"lost: {self._worded(x)}" for x in self.lost.T] if worded is None else worded

    def _worded(self, column: Array) -> str:
        """A combination of rows by their names."""
        largest = float(np.abs(column).max())
        parts = [
            f"{x:+.2g} {name}"
            for x, name in zip(column, self.names, strict=True)
            if abs(x) > 1e-3 * largest
        ]
        return " ".join(parts)

    def _one(self) -> TaskSpace:
        if self.inertia.ndim == 3:
            raise ShapeError(
                f"this is the task space of {len(self)} states, with ranks of their own; choose "
                "one of them first: space[0]."
            )
        return self


def tasks_in_words(tasks: Sequence[Task], lost: Array) -> list[str] | None:
    """What nodes cannot do, from directions that are lost over the rows of tasks.

    None where rows are not orthonormal ones of nodes, so that they have no direction in space.

    Args:
        tasks: The tasks, whose rows are stacked, m of them.
        lost: Orthonormal columns (m, r).
    """
    blocks, start = list[Array](), 0
    for task in tasks:
        S = task.matrix
        if not len(S) or np.abs(S @ S.T - np.eye(len(S))).max() > 1e-9:
            return None
        blocks.append(S.T @ lost[start : start + len(S)])
        start += len(S)
    axes = ["its own axes" if task.axes == "node" else _named(task.relative_to) for task in tasks]
    return lost_in_words(np.concatenate(blocks), [task.node for task in tasks], axes)


def _named(node: str) -> str:
    return "the world" if node == WORLD else repr(node)


def task_space(
    mech: Mechanism,
    q: ArrayLike,
    tasks: Tasks,
    *,
    tolerance: float = TOLERANCE,
    length: float | None = None,
    damping: float | None = None,
    loops: Loops = "closed",
) -> TaskSpace:
    """Inertia Λ, dynamically consistent inverse J̄ and null space of tasks, and what is lost.

    Expression:
        Λ = U (U* J_t 𝓜⁻¹ J_t* U)⁻¹ U*,  J̄ = 𝓜⁻¹ J_t* Λ,  N = I - J̄ J_t
    with the armature of the mechanism in 𝓜.

    Source: 003 (17), (22), (27).

    It exists always. Damping makes the answer smooth across a singularity, at the price of an error
    that is told: with S the scale of the rows and σ the largest eigenvalue of S J_t 𝓜⁻¹ J_t* S,
    Λ = S (S J_t 𝓜⁻¹ J_t* S + damping² σ)⁻¹ S on the motions that exist.

    With loops or couplings, 𝓜⁻¹ − 𝓜⁻¹ J_c* (J_c 𝓜⁻¹ J_c*)⁺ J_c 𝓜⁻¹ stands for 𝓜⁻¹: what joint
    forces do while these hold, all hinges being driven (`held_motion.py`).

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        tasks: A task or several, whose rows are stacked.
        tolerance: Singular values of J_t below this fraction of the largest are called zero. A
            larger one treats the neighbourhood of a singularity like the singularity itself.
        length: Where turning is compared with moving [m]; by default the reach at the nodes.
        damping: None or 0 for none.
        loops: "closed" holds loops and couplings; "open" leaves them open.

    Raises:
        ModelError: The length or the tolerance is not a positive number, the damping negative.
        UnknownNameError: A node or hinge that the mechanism does not have.
        SingularHingeError: Nothing resists the hinge of some body, which is named; in a batch its
            row is NaN and its rank 0, and a warning tells.
    """
    found = twin(mech, tasks)
    length, damping = checked_options(found, tolerance, length, damping)
    if not damping and not is_closed(mech, loops):
        parts = ranked(by_rank(found, space)(q, *least(found, tolerance, length)))
        return plain_space(found, parts, length)
    single, rows, _ = states(mech, q)
    values = task_kernels(found, *NEEDED)(rows[0] if single else rows)
    inverse, J, response, columns = (x[None] if single else x for x in values.values())
    inverse, J = found.sorted(inverse, -1, -2), found.sorted(J, -2)
    response, columns = found.sorted(response, -1), found.sorted(columns, -1)
    fine = np.asarray(np.isfinite(inverse).all(axis=(1, 2)), dtype=np.bool_)
    A = hinge_root(mech, rows[fine]).inverse().for_rows().times(np.swapaxes(columns[fine], -1, -2))
    allowed, scale = J[fine], found.scale(length)
    floor: float | Array = ROUNDING * found.length()
    if is_closed(mech, loops) and len(A):
        allowed, A, response[fine] = held_motion(mech, rows[fine], J[fine])
        inverse[fine] = A @ np.swapaxes(A, -1, -2)
        easiest = np.linalg.norm(J[fine] * scale[:, None], 2, axis=(-2, -1))  # of the open tree
        floor = np.maximum(floor, tolerance * easiest[:, None])
    motions = motion_space(allowed, A, scale, tolerance, floor).spread(fine)
    inertia, weakened = motions.inertia, np.zeros(len(rows))
    if damping:
        inertia, weakened = _damped(inverse, motions.basis, motions.rank, scale, damping)
    whole = TaskSpace(
        found.tasks,
        found.names,
        J,
        inverse,
        inertia,
        response @ inertia,
        motions.rank,
        motions.basis,
        motions.singular_values,
        motions.condition,
        length,
        damping,
        weakened,
    )
    return whole[0] if single else whole


def plain_space(found: Twin, parts: dict[str, Any], length: float) -> TaskSpace:
    """Without damping, from the results of a kernel."""
    jacobian = parts["jacobian"]
    weakened = 0.0 if jacobian.ndim == 2 else np.zeros(len(jacobian))
    rest: dict[str, Any] = {name: parts[name] for name in RESULTS}
    rest |= {"length": length, "damping": 0.0, "weakened": weakened}
    return TaskSpace(found.tasks, found.names, **rest)


@lru_cache(maxsize=256)
def least(found: Twin, tolerance: float, length: float) -> tuple[Array, Array]:
    """What kernels tell from rounding by: the scale of the rows, and (tolerance, floor)."""
    return found.scale(length), np.array([tolerance, ROUNDING * found.length()])


def by_rank(found: Twin, write: Callable[..., Any], names: tuple[str, ...] = ()) -> Any:
    """The kernel of a formula about the motions of tasks, whose results are `RESULTS` and names."""
    order = None if found.order is None else tuple(found.order.tolist())
    return written(found.mech, _formula(write, order, names), closure_nodes(found.mech))


@cache
def _formula(write: Any, order: tuple[int, ...] | None, names: tuple[str, ...]) -> Formula:
    return Formula(write, (order,), (*RESULTS, *names))


def space(at: Writing, order: tuple[int, ...] | None) -> Any:
    """The formula of `TaskSpace`, rows in the order of the tasks."""
    inverse, jacobian, response, motion = motions_of_tasks(at, order)
    rest = (motion.rank, motion.basis, motion.singular_values, motion.condition)
    return jacobian, inverse, motion.inertia, response @ motion.inertia, *rest


def settled(at: Writing) -> Setting:
    """What the rows of a mechanism with tasks are made of."""
    return Setting(bool(at.mech.loops), bool(at.mech.couplings))


RESULTS = (
    *("jacobian", "inverse", "inertia", "consistent_inverse"),
    *("rank", "basis", "singular_values", "condition"),
)


def motions_of_tasks(at: Writing, order: tuple[int, ...] | None) -> tuple[Any, Any, Any, Motions]:
    """J_t 𝓜⁻¹ J_t*, J_t, 𝓜⁻¹ J_t* and the motions that exist; inputs scale and least."""
    s = settled(at)
    inverse, jacobian, response, columns = at.value(*(TASK[name](s) for name in NEEDED))
    if order is not None:
        which = list(order)
        inverse, jacobian = inverse[np.ix_(which, which)], jacobian[which]
        response, columns = response[:, which], columns[:, which]
    scale, (tolerance, floor) = at.read("scale", len(jacobian)), at.read("least", 2)
    found = motions(at, jacobian, root_of(at).solved(columns).T, scale, tolerance, floor)
    return inverse, jacobian, response, found


def checked_options(
    found: Twin, tolerance: float, length: float | None, damping: float | None
) -> tuple[float, float]:
    """Length and damping, the defaults filled in."""
    if tolerance is TOLERANCE and length is damping is None:
        return found.length(), 0.0
    length = found.length() if length is None else length
    damping = 0.0 if damping is None else damping
    for name, value in (("length", length), ("tolerance", tolerance)):
        if not (_is_finite(value) and value > 0.0):
            raise ModelError(f"{name} is {value!r}; it must be a positive number.")
    if tolerance >= 1.0:
        raise ModelError(f"tolerance is {tolerance!r}; it must be below 1, or all would be lost.")
    if not (_is_finite(damping) and damping >= 0.0):
        raise ModelError(f"damping is {damping!r}; it must be a number, 0 or positive.")
    return float(length), float(damping)


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and bool(np.isfinite(float(value)))


def _damped(
    inverse: Array, basis: Array, rank: NDArray[np.int64], scale: Array, damping: float
) -> tuple[Array, Array]:
    """Λ with damping, and how much of a wanted acceleration is lost at most."""
    inertia, weakened = np.zeros(inverse.shape), np.zeros(len(inverse))
    for i, r in enumerate(rank):
        if not r or not np.isfinite(inverse[i]).all():
            inertia[i] = np.nan if not np.isfinite(inverse[i]).all() else 0.0
            continue
        exist = np.linalg.qr(scale[:, None] * basis[i, :, :r])[0]
        inside = exist.T @ (scale[:, None] * inverse[i] * scale) @ exist
        values, vectors = np.linalg.eigh(inside)
        floor = damping**2 * values[-1]
        turned = scale[:, None] * (exist @ vectors)
        inertia[i] = (turned / (values + floor)) @ turned.T
        weakened[i] = floor / (max(values[0], 0.0) + floor)
    return inertia, weakened
