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
from functools import lru_cache
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import rows
from linkwise.bare_call import begins_bare
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar.orthogonal import factored, singular
from linkwise.dynamics.batched import Batched
from linkwise.dynamics.closure import Setting
from linkwise.dynamics.held_motion import held_inputs, held_motion, loops_of, usual_rows
from linkwise.dynamics.kernels import Loops, is_closed, no_call, written
from linkwise.dynamics.mass_root import root_of
from linkwise.dynamics.motion_space import Motions, lost_in_words, motions
from linkwise.dynamics.operational_space import TOLERANCE, ranked
from linkwise.errors import ModelError
from linkwise.model.body import WORLD
from linkwise.model.closure import closure_nodes
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import keep_bare_call, once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.choice import where
from linkwise.tasks.quantity import TASK
from linkwise.tasks.task import Task, Tasks
from linkwise.tasks.task_stack import TaskStack, task_stack

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel
    from linkwise.codegen.writing import Writing

OPTIONS = ("tolerance", "length", "damping", "loops")
"""Arguments of functions of tasks on which their kernels and inputs depend."""

Held: TypeAlias = tuple[Mechanism, tuple[int, ...]]
"""The mechanism whose loops and couplings are held, and their rows that are usually independent."""

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


@begins_bare("tasks", *OPTIONS)
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
    stack, choices = task_stack(mech, tasks), (tasks, tolerance, length, damping, loops)
    length, damping = checked_options(stack, tolerance, length, damping)
    limits = least(stack, tolerance, length)
    if not damping and not is_closed(mech, loops):
        kernel = by_rank(stack, space)
        keep_bare_call(mech, "task_space", choices, _one_state(stack, kernel, limits, length))
        return recorded(stack, kernel(q, *limits), length)
    arrays: dict[str, Any] = {"q": q, "scale": limits[0], "least": limits[1]}
    if damping:
        arrays["damping"] = np.array([damping])
    held = (mech, usual_rows(mech, q)) if is_closed(mech, loops) else None
    kernel = by_rank(stack, careful_space, ("weakened",), held, bool(damping))
    if held:
        arrays |= held_inputs(mech, kernel, q)
    if kernel.arguments == ("q", "scale", "least"):
        keep_bare_call(mech, "task_space", choices, _one_state(stack, kernel, limits, length))
    given = [arrays[name] for name in kernel.arguments]
    return recorded(stack, kernel(*given), length, damping)


def _one_state(
    stack: TaskStack, kernel: Kernel, limits: tuple[Array, Array], length: float
) -> Callable[..., TaskSpace | None]:
    """The bare call for one state."""
    bare = kernel.quick or no_call

    def one_state(q: ArrayLike) -> TaskSpace | None:
        parts = bare(q, *limits)
        return None if parts is None else recorded(stack, parts, length)

    return one_state


def recorded(
    stack: TaskStack, results: dict[str, Any], length: float, damping: float = 0.0
) -> TaskSpace:
    """The record of the results of a kernel."""
    parts = ranked(results)
    rest, weakened = [parts[name] for name in RESULTS], parts.get("weakened")
    if weakened is None:
        weakened = 0.0 if rest[0].ndim == 2 else np.zeros(len(rest[0]))
    elif not weakened.ndim:
        weakened = float(weakened)
    return TaskSpace(
        stack.tasks, stack.names, *rest, length=length, damping=damping, weakened=weakened
    )


@lru_cache(maxsize=256)
def least(stack: TaskStack, tolerance: float, length: float) -> tuple[Array, Array]:
    """Inputs of kernels that decide the rank: the scale of the rows, and (tolerance, floor)."""
    return stack.scale(length), np.array([tolerance, ROUNDING * stack.length()])


def by_rank(
    stack: TaskStack, write: Callable[..., Any], names: tuple[str, ...] = (), *options: Any
) -> Any:
    """The kernel of a formula of tasks with the results `RESULTS` and `names`."""
    order = None if stack.order is None else tuple(stack.order.tolist())
    return _by_rank(stack.mech, write, (order, *options), names)


@once_per_mechanism
def _by_rank(
    mech: Mechanism, write: Callable[..., Any], options: tuple[Any, ...], names: tuple[str, ...]
) -> Any:
    return written(mech, Formula(write, options, (*RESULTS, *names)), closure_nodes(mech))


def space(at: Writing, order: tuple[int, ...] | None) -> Any:
    """The formula of `TaskSpace`, rows in the order of the tasks."""
    inverse, jacobian, response, motion = motions_of_tasks(at, order)
    rest = (motion.rank, motion.basis, motion.singular_values, motion.condition)
    return jacobian, inverse, motion.inertia, response @ motion.inertia, *rest


def careful_space(
    at: Writing, order: tuple[int, ...] | None, held: Held | None, damped: bool
) -> Any:
    """The same, and what damping removes."""
    return doubted_space(at, order, held, damped)[0]


def doubted_space(
    at: Writing, order: tuple[int, ...] | None, held: Held | None, damped: bool
) -> Any:
    """The same, and whether rows of loops were chosen one by one (`HeldMotion.doubtful`).

    In a closed chain with 𝓜_c⁻¹ of `held_motion` in place of 𝓜⁻¹; what counts as possible is
    measured by the largest motion of the open mechanism.
    """
    s, which = settled(at), slice(None) if order is None else list(order)
    J = at.value(TASK["task_jacobian"](s))[which]
    measure, (tolerance, floor) = at.read("scale", len(J)), at.read("least", 2)
    damping, doubtful = at.read("damping", 1)[0] if damped else 0.0, 0.0
    if held:
        closed, usual = held
        motion_held = held_motion(at, J, loops_of(at, usual, closed), response=True, scaled=False)
        A, response, allowed = motion_held.whitened, motion_held.response, motion_held.allowed
        opened, doubtful = measure[:, None] * J, motion_held.doubtful
    else:
        columns, response = at.value(TASK["task_columns"](s), TASK["task_response"](s))
        A, response, allowed = root_of(at).solved(columns[:, which]).T, response[:, which], J
        opened = None
    motion = motions(at, allowed, A, measure, tolerance, floor, opened)
    inertia, weakened = motion.inertia, 0.0 * motion.rank
    if damped:
        inertia, weakened = damped_inertia(at, A, motion, measure, damping)
    rest = (motion.rank, motion.basis, motion.singular_values, motion.condition, weakened)
    return (J, A @ A.T, inertia, response @ inertia, *rest), doubtful


def damped_inertia(
    at: Writing, A: Any, motion: Motions, measure: Any, damping: Any
) -> tuple[Any, Any]:
    """Λ with damping, and the largest fraction of an acceleration that it removes.

    With orthonormal E that span S U, S the scale of the rows, and E* S A = X s Y*:
    Λ = S E X (s² + damping² s_1²)⁻¹ X* E* S.
    """
    exist = factored(measure[:, None] * motion.basis, motion.exists)[0]
    turned, sizes = singular(at, exist.T @ (measure[:, None] * A))
    floor = damping * damping * sizes[0] * sizes[0]
    shares, smallest = list[Any](), 0.0
    for i, s in enumerate(sizes):
        total = s * s + floor
        shares.append(1.0 / where(total, total, 1.0))
        smallest = where(motion.rank - i - 0.5, s * s, smallest)  # the last that exists
    axes = measure[:, None] * (exist @ turned)
    total = smallest + floor
    weakened = where(motion.rank, floor / where(total, total, 1.0), 0.0)
    return (axes * np.array(shares)) @ axes.T, weakened


def settled(at: Writing) -> Setting:
    """Which kinds of rows the mechanism with tasks has."""
    return Setting(bool(at.mech.loops), bool(at.mech.couplings))


RESULTS = (
    *("jacobian", "inverse", "inertia", "consistent_inverse"),
    *("rank", "basis", "singular_values", "condition"),
)
"""Results of kernels, in the order of the attributes of `TaskSpace`."""


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
