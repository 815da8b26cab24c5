"""Task space: the possible motions of tasks, their inertia and their null space.

    Λ = U (U* J_t 𝓜⁻¹ J_t* U)⁻¹ U*      U an orthonormal basis of the possible motions
    J̄ = 𝓜⁻¹ J_t* Λ                       the dynamically consistent inverse
    N = I - J̄ J_t                         velocities that do not move the tasks
    N* = I - J_t* J̄*                      torques that do not accelerate them

A direction that is lost, or nearly lost by `tolerance`, is not part of the task: the mechanism is
redundant there, and N is larger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import rows
from linkwise.codegen.formula import Formula
from linkwise.dynamics.batched import Batched
from linkwise.dynamics.closure import Setting
from linkwise.dynamics.innovations import innovations, velocity_from_diagonal
from linkwise.dynamics.kernels import Loops, is_closed, written
from linkwise.dynamics.mass_root import hinge_root, root_of
from linkwise.dynamics.motion_space import Motions, lost_in_words, motion_space, motions
from linkwise.dynamics.operational_space import TOLERANCE, ranked
from linkwise.dynamics.velocity_space import states, velocity_spaces
from linkwise.errors import ModelError
from linkwise.model.body import WORLD
from linkwise.model.closure import closure_nodes
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.tasks.quantity import TASK
from linkwise.tasks.task import Task, Tasks
from linkwise.tasks.task_stack import TaskStack, task_stack

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

NEEDED = ("task_inertia_inverse", "task_jacobian", "task_response", "task_columns")
"""From one kernel: J_t 𝓜⁻¹ J_t*, J_t, 𝓜⁻¹ J_t* and X, whose D^(-½) X is the whitened J_t*."""

ROUNDING = 1e-12
"""Motions below this fraction of the reach are rounding: a node relative to its body."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskSpace(Batched):
    """The possible motions of tasks in a state, their inertia and their null space.

    For a batch every array has the batch in front, and `space[i]` is one state of it.

    Attributes:
        tasks: The tasks, whose rows are stacked, m of them.
        names: A name for each row.
        jacobian: J_t (m, nv).
        inverse: J_t 𝓜⁻¹ J_t* (m, m): acceleration at rest per force.
        inertia: Λ (m, m), zero for impossible motions; smaller with damping.
        consistent_inverse: J̄ (nv, m).
        rank: The number of independent motions; an array for a batch.
        basis: Orthonormal columns (m, m): the first `rank` are `directions`, the others `lost`.
        singular_values: Of J_t with turning measured at `length` (m,), the largest first.
        condition: Largest inertia over smallest, of the possible motions.
        length: The length at which turning is compared with moving [m].
        damping: The requested damping, as a fraction of the largest motion; 0 for none.
        weakened: The largest fraction of an acceleration that damping removes; 0 for none.
    """

    WHAT: ClassVar[str] = "task space"
    AXES: ClassVar[tuple[str, int]] = ("inertia", 2)

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
        """Possible motions (m, rank), as orthonormal combinations of the rows."""
        return self._single().basis[:, : int(self.rank)]

    @property
    def lost(self) -> Array:
        """Lost motions (m, m - rank): no motion has a component along them."""
        return self._single().basis[:, int(self.rank) :]

    @property
    def null_space(self) -> Array:
        """N = I - J̄ J_t (nv, nv): velocities without their part in the tasks."""
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

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        what = " and ".join(task.name for task in self.tasks)
        if self.is_batch:
            return f"task space of {what}, {len(self)} states"
        size = len(self.inertia)
        lines = [
            f"task space of {what}: rank {self.rank} of {size}, condition {self.condition:.3g}"
        ]
        if self.damping:
            lines.append(
                f"damping {self.damping:g} removes up to {100.0 * float(self.weakened):.2g} % of "
                "an acceleration"
            )
        lines += self.lost_in_words()
        return "; ".join(lines)

    def lost_in_words(self) -> list[str]:
        """Lost motions in words, as `OperationalSpace.lost_in_words`; hinges by their rows."""
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


def tasks_in_words(tasks: Sequence[Task], lost: Array) -> list[str] | None:
    """Lost motions of nodes in words, from lost directions over the rows of tasks.

    None if the rows are not orthonormal rows of nodes, which have a direction in space.

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
    axes = [
        "its own axes"
        if task.axes == "node"
        else ("the world" if task.relative_to == WORLD else repr(task.relative_to))
        for task in tasks
    ]
    return lost_in_words(np.concatenate(blocks), [task.node for task in tasks], axes)


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
    """Inertia Λ, dynamically consistent inverse J̄, null space and lost motions of tasks.

    Expression:
        Λ = U (U* J_t 𝓜⁻¹ J_t* U)⁻¹ U*,  J̄ = 𝓜⁻¹ J_t* Λ,  N = I - J̄ J_t
    with the armature of the mechanism in 𝓜.

    Source: 003 (17), (22), (27).

    It always exists. Damping makes the result smooth across a singularity, at the price of an
    error, `weakened`: with S the scale of the rows and σ the largest eigenvalue of S J_t 𝓜⁻¹ J_t*
    S, Λ = S (S J_t 𝓜⁻¹ J_t* S + damping² σ)⁻¹ S on the possible motions.

    With loops or couplings, 𝓜⁻¹ − 𝓜⁻¹ J_c* (J_c 𝓜⁻¹ J_c*)⁺ J_c 𝓜⁻¹ replaces 𝓜⁻¹: the effect of
    joint forces in the closed chain, with all hinges driven.

    Args:
        tolerance: Singular values of J_t below this fraction of the largest count as zero. A larger
            one treats the neighbourhood of a singularity like the singularity itself.
        length: At which turning is compared with moving [m]; default: the reach at the nodes.
        damping: A fraction of the largest motion; None or 0 for none.

    Raises:
        ModelError: A length or tolerance that is not positive, or a negative damping.
        UnknownNameError: The mechanism has no such node or hinge.
        SingularHingeError: Nothing resists the hinge of the named body; in a batch its row is NaN
            and its rank 0, with a warning.
    """
    stack = task_stack(mech, tasks)
    length, damping = checked_options(stack, tolerance, length, damping)
    if not damping and not is_closed(mech, loops):
        parts = ranked(by_rank(stack, space)(q, *least(stack, tolerance, length)))
        return plain_space(stack, parts, length)
    single, rows, _ = states(mech, q)
    values = stack.kernel(*NEEDED)(rows[0] if single else rows)
    inverse, J, response, columns = (x[None] if single else x for x in values.values())
    inverse, J = stack.sorted(inverse, -1, -2), stack.sorted(J, -2)
    response, columns = stack.sorted(response, -1), stack.sorted(columns, -1)
    fine = np.asarray(np.isfinite(inverse).all(axis=(1, 2)), dtype=np.bool_)
    A = hinge_root(mech, rows[fine]).inverse().for_rows().times(np.swapaxes(columns[fine], -1, -2))
    allowed, scale = J[fine], stack.scale(length)
    floor: float | Array = ROUNDING * stack.length()
    if is_closed(mech, loops) and len(A):
        allowed, A, response[fine] = held_motion(mech, rows[fine], J[fine])
        inverse[fine] = A @ np.swapaxes(A, -1, -2)
        easiest = np.linalg.norm(J[fine] * scale[:, None], 2, axis=(-2, -1))  # of the open tree
        floor = np.maximum(floor, tolerance * easiest[:, None])
    motions = motion_space(allowed, A, scale, tolerance, floor).spread(fine)
    inertia, weakened = motions.inertia, np.zeros(len(rows))
    if damping:
        inertia, weakened = _damped(inverse, motions.basis, motions.rank, scale, damping)
    result = TaskSpace(
        stack.tasks,
        stack.names,
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
    return result[0] if single else result


def plain_space(stack: TaskStack, parts: dict[str, Any], length: float) -> TaskSpace:
    """Without damping, from the results of a kernel."""
    jacobian = parts["jacobian"]
    weakened = 0.0 if jacobian.ndim == 2 else np.zeros(len(jacobian))
    rest: dict[str, Any] = {name: parts[name] for name in RESULTS}
    rest |= {"length": length, "damping": 0.0, "weakened": weakened}
    return TaskSpace(stack.tasks, stack.names, **rest)


@lru_cache(maxsize=256)
def least(stack: TaskStack, tolerance: float, length: float) -> tuple[Array, Array]:
    """Inputs of kernels that decide the rank: the scale of the rows, and (tolerance, floor)."""
    return stack.scale(length), np.array([tolerance, ROUNDING * stack.length()])


def by_rank(stack: TaskStack, write: Callable[..., Any], names: tuple[str, ...] = ()) -> Any:
    """The kernel of a formula of tasks with the results `RESULTS` and `names`."""
    order = None if stack.order is None else tuple(stack.order.tolist())
    return written(stack.mech, _formula(write, order, names), closure_nodes(stack.mech))


@cache
def _formula(write: Any, order: tuple[int, ...] | None, names: tuple[str, ...]) -> Formula:
    return Formula(write, (order,), (*RESULTS, *names))


def space(at: Writing, order: tuple[int, ...] | None) -> Any:
    """The formula of `TaskSpace`, rows in the order of the tasks."""
    inverse, jacobian, response, motion = motions_of_tasks(at, order)
    rest = (motion.rank, motion.basis, motion.singular_values, motion.condition)
    return jacobian, inverse, motion.inertia, response @ motion.inertia, *rest


def settled(at: Writing) -> Setting:
    """Which kinds of rows the mechanism with tasks has."""
    return Setting(bool(at.mech.loops), bool(at.mech.couplings))


RESULTS = (
    *("jacobian", "inverse", "inertia", "consistent_inverse"),
    *("rank", "basis", "singular_values", "condition"),
)


def motions_of_tasks(at: Writing, order: tuple[int, ...] | None) -> tuple[Any, Any, Any, Motions]:
    """J_t 𝓜⁻¹ J_t*, J_t, 𝓜⁻¹ J_t* and the possible motions; inputs scale and least."""
    s = settled(at)
    inverse, jacobian, response, columns = at.value(*(TASK[name](s) for name in NEEDED))
    if order is not None:
        which = list(order)
        inverse, jacobian = inverse[np.ix_(which, which)], jacobian[which]
        response, columns = response[:, which], columns[:, which]
    scale, (tolerance, floor) = at.read("scale", len(jacobian)), at.read("least", 2)
    motion = motions(at, jacobian, root_of(at).solved(columns).T, scale, tolerance, floor)
    return inverse, jacobian, response, motion


def checked_options(
    stack: TaskStack, tolerance: float, length: float | None, damping: float | None
) -> tuple[float, float]:
    """Length and damping, the defaults filled in."""
    if tolerance is TOLERANCE and length is damping is None:
        return stack.length(), 0.0
    length = stack.length() if length is None else length
    damping = 0.0 if damping is None else damping
    for name, value in (("length", length), ("tolerance", tolerance)):
        if not (_is_finite(value) and value > 0.0):
            raise ModelError(f"{name} is {value!r}; it must be a positive number.")
    if tolerance >= 1.0:
        raise ModelError(f"tolerance is {tolerance!r}; it must be below 1.")
    if not (_is_finite(damping) and damping >= 0.0):
        raise ModelError(f"damping is {damping!r}; it must be a number, 0 or positive.")
    return float(length), float(damping)


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and bool(np.isfinite(float(value)))


def _damped(
    inverse: Array, basis: Array, rank: NDArray[np.int64], scale: Array, damping: float
) -> tuple[Array, Array]:
    """Λ with damping, and the largest fraction of an acceleration that it removes."""
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


def held_motion(mech: Mechanism, q: Array, J: Array) -> tuple[Array, Array, Array]:
    """Tasks in closed chains: possible motions (n, m, nv), whitened ones, responses (n, nv, m).

    With W = D^(-½) (I - H ψ K), so that 𝓜⁻¹ = W* W, whitened rows A = J_t W* and A_c of the
    independent rows R of J_c, A_c* = Q T:

        A (I - Q Q*)                    whose product with its adjoint is Λ_c⁻¹
        W* (I - Q Q*) A*                the accelerations that forces along the tasks cause
        J_t (I - R* R)                  the possible motions, measured by C (`velocity_space`)

    Args:
        mech: The mechanism, with loops or couplings.
        q: Joint positions (n, nq), n above zero.
        J: Rows of the tasks (n, m, nv).
    """
    m, spaces = J.shape[1], velocity_spaces(mech, q)
    both = [np.concatenate([rows, space.blocked]) for rows, space in zip(J, spaces, strict=True)]
    counts = [len(rows) for rows in both]
    white = innovations(mech, np.repeat(q, counts, axis=0), np.concatenate(both))
    possible, A = np.zeros(J.shape), np.zeros(J.shape)
    parts = np.split(white, np.cumsum(counts)[:-1])
    for i, (eps, space) in enumerate(zip(parts, spaces, strict=True)):
        blocked, A[i] = np.linalg.qr(eps[m:].T)[0], eps[:m]  # Q
        for _ in range(2):  # twice, for orthogonality to the last digit
            A[i] -= A[i] @ blocked @ blocked.T
        columns = space.scale.columns
        scaled = J[i] * columns
        possible[i] = (scaled - scaled @ space.right.T @ space.right) / columns
    response = velocity_from_diagonal(mech, np.repeat(q, m, axis=0), A.reshape(-1, mech.nv))
    return possible, A, np.swapaxes(response.reshape(J.shape), 1, 2)
