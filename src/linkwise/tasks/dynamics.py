"""The motion of tasks under forces: Λ ẍ + μ + p = F, and the torques that give an acceleration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

import numpy as np

from linkwise.algebra import bias, mass
from linkwise.arguments import rows
from linkwise.bare_call import begins_bare
from linkwise.codegen.formula import Formula
from linkwise.dynamics.batched import Batched
from linkwise.dynamics.closure import CLOSED, setting_of
from linkwise.dynamics.closure_rank import known_rank
from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.dynamics.held_motion import usual_rows
from linkwise.dynamics.joint_force import bias_force
from linkwise.dynamics.kernels import Loops, is_closed, no_call, written
from linkwise.dynamics.mass_root import LARGE, mass_root
from linkwise.dynamics.operational_space import TOLERANCE
from linkwise.dynamics.velocity_space import states
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.model.closure import closure_nodes
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import keep_bare_call
from linkwise.spatial.array import Array, ArrayLike
from linkwise.tasks.quantity import TASK, Law
from linkwise.tasks.space import (
    OPTIONS,
    RESULTS,
    ROUNDING,
    Held,
    TaskSpace,
    by_rank,
    checked_options,
    doubted_space,
    least,
    motions_of_tasks,
    recorded,
    settled,
    space,
    task_space,
)
from linkwise.tasks.task import Tasks
from linkwise.tasks.task_stack import TaskStack, task_stack

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel
    from linkwise.codegen.writing import Writing

Compensate: TypeAlias = Literal["task", "joints"]
"""Where gravity, Coriolis and centrifugal forces are compensated: in the task, or in all joints."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskDynamics(Batched):
    """Λ ẍ + μ + p = F.

    Attributes:
        space: Λ, J̄, the null space and the lost motions.
        coriolis: μ (m,) or (batch, m) [N or N m]: centrifugal and Coriolis forces.
        gravity: p (m,) or (batch, m).
        bias: γ = J̇_t v (m,) or (batch, m).
        falling: J_t 𝓜⁻¹ C (m,) or (batch, m), the deceleration of the tasks by the bias force.
    """

    WHAT: ClassVar[str] = "task dynamics"
    AXES: ClassVar[tuple[str, int]] = ("coriolis", 1)

    space: TaskSpace
    coriolis: Array
    gravity: Array
    bias: Array
    falling: Array

    @property
    def inertia(self) -> Array:
        """Λ (m, m) or (batch, m, m)."""
        return self.space.inertia

    def __str__(self) -> str:
        if self.is_batch:
            return f"dynamics in the {self.space}"
        rows = zip(self.space.names, self.coriolis, self.gravity, strict=True)
        lines = [f"  {name}: Coriolis {mu:.4g}, gravity {p:.4g}" for name, mu, p in rows]
        return "\n".join([f"dynamics in the {self.space}", *lines])

    def force(self, acceleration: ArrayLike) -> Array:
        """F = Λ ẍ + μ + p: the force of the tasks for an acceleration (m,) or (batch, m)."""
        array = self._sized(acceleration, "acceleration")
        return (self.inertia @ array[..., None])[..., 0] + self.coriolis + self.gravity

    def acceleration(self, force: ArrayLike) -> Array:
        """ẍ = J_t 𝓜⁻¹ (J_t* F - C) + γ: of the tasks under a force (m,) or (batch, m).

        Correct at singularities too, independent of damping and of lost motions in Λ.
        """
        pushed = self.space.inverse @ self._sized(force, "force")[..., None]
        return pushed[..., 0] - self.falling + self.bias

    def _sized(self, given: ArrayLike, what: str) -> Array:
        names, lead = self.space.names, self.coriolis.shape[:-1]
        array = rows(given, len(names), what, hint=f"the rows {', '.join(names)}")
        if array.shape not in ((len(names),), (*lead, len(names))):
            allowed = f"({len(names)},)" + (f" or {(*lead, len(names))}" if lead else "")
            raise ShapeError(
                f"{what} has shape {array.shape}; it must be {allowed}, for the rows "
                f"{', '.join(names)}."
            )
        return array


PARTS = ("coriolis", "gravity", "bias", "falling")
"""Results of kernels that follow those of the task space."""


@begins_bare("tasks", *OPTIONS)
def task_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tasks: Tasks,
    *,
    tolerance: float = TOLERANCE,
    length: float | None = None,
    damping: float | None = None,
    loops: Loops = "closed",
) -> TaskDynamics:
    """The equation of motion of tasks: Λ ẍ + μ + p = F.

    Expression:
        μ = Λ (J_t 𝓜⁻¹ C_v - γ) = J̄* C_v - Λ J̇_t v,   p = Λ J_t 𝓜⁻¹ g = J̄* g
    with the bias force C_v + g. Source: 003 (23) to (25); the joint-space equation projected by
    J̄*, (26). With loops or couplings, J_t 𝓜⁻¹ C is the deceleration in the closed chain.

    Args:
        tolerance: See `task_space`.
        length: See `task_space`.
        damping: See `task_space`.
    """
    stack = task_stack(mech, tasks)
    reach, damped = checked_options(stack, tolerance, length, damping)
    limits, kernel, usual = least(stack, tolerance, reach), None, ()
    if not damped and not is_closed(mech, loops):
        kernel = by_rank(stack, dynamics, PARTS)
    elif not damped:
        usual = usual_rows(mech, q, loops)
        if usual and len(usual) == known_rank(mech, q):
            names = ("weakened", *PARTS, "doubtful")
            kernel = by_rank(stack, held_dynamics, names, (mech, usual))
    if kernel is not None:
        bare = _one_state(mech, stack, kernel, limits, reach, len(usual))
        keep_bare_call(mech, "task_dynamics", (tasks, tolerance, length, damping, loops), bare)
        parts = kernel(q, v, *limits)
        if not np.any(parts.get("doubtful", 0.0) > 0.0):
            return _recorded(stack, parts, reach)
    single, rows, (speeds,) = states(mech, q, v=v)
    options: dict[str, Any] = {"tolerance": tolerance, "length": length, "damping": damping}
    space = task_space(mech, rows, tasks, **options, loops=loops)
    gamma = stack.sorted(stack.kernel("task_bias")(rows, speeds), -1)
    still = np.zeros(speeds.shape)
    if is_closed(mech, loops):
        falling, dropping = (
            -_caused(space, forward_dynamics(mech, rows, x, np.zeros(mech.nv)))
            for x in (still, speeds)
        )
    else:
        falling = stack.sorted(stack.kernel("task_drop")(rows, still), -1)  # J 𝓜⁻¹ g
        dropping = stack.sorted(stack.kernel("task_drop")(rows, speeds), -1)  # J 𝓜⁻¹ C
    mu = (space.inertia @ (dropping - falling - gamma)[..., None])[..., 0]
    p = (space.inertia @ falling[..., None])[..., 0]
    if single:
        return TaskDynamics(space[0], mu[0], p[0], gamma[0], dropping[0])
    return TaskDynamics(space, mu, p, gamma, dropping)


def _recorded(stack: TaskStack, parts: dict[str, Any], length: float) -> TaskDynamics:
    return TaskDynamics(recorded(stack, parts, length), *(parts[name] for name in PARTS))


def _one_state(
    mech: Mechanism,
    stack: TaskStack,
    kernel: Kernel,
    limits: tuple[Array, Array],
    length: float,
    held: int,
) -> Callable[..., TaskDynamics | None]:
    """The bare call for one state, in which the usual rows of loops, `held`, are independent."""
    bare = kernel.quick or no_call

    def one_state(q: ArrayLike, v: ArrayLike) -> TaskDynamics | None:
        parts = bare(q, v, *limits)
        if parts is None or (held and (parts["doubtful"] > 0.0 or known_rank(mech, q) != held)):
            return None
        return _recorded(stack, parts, length)

    return one_state


def dynamics(at: Writing, order: tuple[int, ...] | None) -> Any:
    """The formula of `TaskDynamics`, after that of its space."""
    _ = at.q, at.v  # before other inputs
    parts, s = space(at, order), settled(at)
    which = slice(None) if order is None else list(order)
    bias, dropping = (x[which] for x in at.value(TASK["task_bias"](s), TASK["task_drop"](s)))
    falling = at.value(TASK["task_drop"](s), v=np.zeros(at.mech.nv))[which]  # J 𝓜⁻¹ g
    inertia = parts[RESULTS.index("inertia")]
    return *parts, inertia @ (dropping - falling - bias), inertia @ falling, bias, dropping


def held_dynamics(at: Writing, order: tuple[int, ...] | None, held: Held) -> Any:
    """The same in a closed chain; positive numbers behind it mark states to be looked at again."""
    _ = at.q, at.v
    parts, doubtful = doubted_space(at, order, held, damped=False)
    closed, which = held[0], slice(None) if order is None else list(order)
    bias, still = at.value(TASK["task_bias"](settled(at)))[which], np.zeros(at.mech.nv)
    options: dict[str, Any] = {"nodes": closure_nodes(closed), "mech": closed, "tau": still}
    expr, J = CLOSED["forward_dynamics"](setting_of(closed)), parts[RESULTS.index("jacobian")]
    falling, dropping = (-J @ at.value(expr, **options, v=x) for x in (still, at.v))
    inertia = parts[RESULTS.index("inertia")]
    rest = inertia @ (dropping - falling - bias), inertia @ falling, bias, dropping
    return *parts, *rest, doubtful


def task_torque(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tasks: Tasks,
    acceleration: ArrayLike,
    *,
    tau0: ArrayLike | None = None,
    applied: ArrayLike | None = None,
    compensate: Compensate = "task",
    tolerance: float = TOLERANCE,
    length: float | None = None,
    damping: float | None = None,
    loops: Loops = "closed",
) -> Array:
    """Joint forces that give tasks an acceleration, plus others in their null space.

    Expression:
        F = Λ (ẍ - γ - J_t 𝓜⁻¹ (τ₀ - C)) + F_applied,   τ = τ₀ + J_t* F
    which is J_t* (Λ ẍ + μ + p + F_applied) + (I - J_t* J̄*) τ₀. F is the force of the constraint
    J_t v̇ + γ = ẍ. With loops or couplings, the tasks have ẍ in the closed chain, with all hinges
    driven.
    Source: 003 (23), (27); with `applied` for (13).

    Args:
        acceleration: ẍ (m,) or (batch, m).
        tau0: Joint forces in the null space of the tasks (nv,) or (batch, nv); default: none.
        applied: An additional force along the rows (m,) or (batch, m), such as the measured contact
            force.
        compensate: "task" compensates gravity, Coriolis and centrifugal forces as the tasks see
            them, which lets the rest of the mechanism fall; "joints" compensates them in all
            joints: τ₀ + C instead of τ₀.
        tolerance: See `task_space`.
        length: See `task_space`.
        damping: See `task_space`.

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    if compensate not in ("task", "joints"):
        raise unknown_name(
            "compensate", compensate, ("task", "joints"), owner="lw.tasks.task_torque"
        )
    stack = task_stack(mech, tasks)
    kernel, closed = None, is_closed(mech, loops)
    if not closed and tolerance == TOLERANCE and length is None and damping in (None, 0.0):
        law = Law(compensate == "joints", internal=tau0 is not None, applied=applied is not None)
        kernel = stack.torque_kernel(law)
        given = {"q": q, "v": v, "tau": tau0, "closing": acceleration, "applied": applied}
        # One state, arrays in the form that the kernel takes, far from singular.
        if kernel is not None and kernel.quick is not None and stack.order is None:
            tau = kernel.quick(*[given[name] for name in kernel.arguments])
            if tau is not None:
                return tau
    internal = np.zeros(mech.nv) if tau0 is None else tau0
    single, rows, (speeds, internal) = states(mech, q, v=v, tau0=internal)
    if cast(object, acceleration) is None:
        raise ModelError(
            "acceleration is None; give the acceleration of the tasks, zeros for constant velocity."
        )
    target = stack.along_rows(acceleration, "acceleration", len(rows), single)
    extra = stack.along_rows(applied, "applied", len(rows), single)
    if closed:
        options: dict[str, Any] = {"tolerance": tolerance, "length": length, "damping": damping}
        space = task_space(mech, rows, stack.tasks, **options)
        tau = _held_torque(mech, stack, space, rows, speeds, target, internal, extra, compensate)
        return tau[0] if single else tau
    reach, damped = checked_options(stack, tolerance, length, damping)
    order = None if stack.order is None else tuple(stack.order.tolist())
    formula = _with_losses(order, compensate == "joints", bool(damped))
    careful = written(stack.mech, formula, closure_nodes(stack.mech))
    limits = (*least(stack, tolerance, reach), *([np.array([damped])] if damped else []))
    if kernel is None or len(rows) == 1:
        tau = careful(rows, speeds, internal, target, extra, *limits)
        return tau[0] if single else tau
    arrays = {"q": rows, "v": speeds, "tau": internal}
    arrays |= {"closing": stack.unsorted(target), "applied": stack.unsorted(extra)}
    codes = np.zeros(len(rows), dtype=np.int32)
    tau = kernel(*[arrays[name] for name in kernel.arguments], status=codes)
    rest = np.flatnonzero(codes)  # states with lost motions
    if len(rest):
        parts = (rows[rest], speeds[rest], internal[rest], target[rest], extra[rest])
        tau[rest] = careful(*parts, *limits)
    return tau


def _caused(space: TaskSpace, vdot: Array) -> Array:
    """J_t v̇ (batch, m)."""
    return (space.jacobian @ vdot[..., None])[..., 0]


def _held_torque(
    mech: Mechanism,
    stack: TaskStack,
    space: TaskSpace,
    q: Array,
    v: Array,
    target: Array,
    internal: Array,
    extra: Array,
    compensate: Compensate,
) -> Array:
    """τ₀ + J_t* (Λ (ẍ - γ - J_t v̇₀) + F_applied), with v̇₀ caused by τ₀ in the closed chain."""
    if compensate == "joints":
        internal = internal + bias_force(mech, q, v)
    gamma = stack.sorted(stack.kernel("task_bias")(q, v), -1)
    left = target - gamma - _caused(space, forward_dynamics(mech, q, v, internal))
    force = (space.inertia @ left[..., None])[..., 0] + extra
    return internal + (force[..., None, :] @ space.jacobian)[..., 0, :]


@cache
def _with_losses(order: tuple[int, ...] | None, all_joints: bool, damped: bool) -> Formula:
    return Formula(torque_by_rank, (order, all_joints, damped))


def torque_by_rank(
    at: Writing, order: tuple[int, ...] | None, all_joints: bool, damped: bool
) -> Any:
    """The torque in the possible directions, as a formula."""
    s, which = settled(at), slice(None) if order is None else list(order)
    _, n = (at.q, at.v), at.mech.nv  # before other inputs
    gamma, resisting = at.value(s.bias, bias)
    internal, m = at.read("tau", n), len(gamma)
    target, extra = at.read("closing", m) - gamma[which], at.read("applied", m)
    if damped:
        return _damped_torque(at, which, target, extra, internal, resisting, all_joints)
    _, J, response, motion = motions_of_tasks(at, order)
    given = internal + resisting if all_joints else internal
    seen = response.T @ (given - resisting)  # J 𝓜⁻¹ (τ₀ - C)
    return given + J.T @ (motion.inertia @ (target - seen) + extra)


def _damped_torque(
    at: Writing,
    which: Any,
    target: Any,
    extra: Any,
    internal: Any,
    resisting: Any,
    all_joints: bool,
) -> Any:
    """A hierarchy of one level, with the shares of damping."""
    from linkwise.tasks.control.hierarchy import Hierarchy, Size, largest
    from linkwise.tasks.control.singular import damped_share

    J = at.value(settled(at).jacobian)[which]
    scale, (tolerance, floor) = at.read("scale", len(J)), at.read("least", 2)
    root = mass_root(at, at.value(mass) if at.mech.nv < LARGE else None)
    drive = internal if all_joints else internal - resisting
    done, rows = Hierarchy(root, drive, tolerance), scale[:, None] * J
    size = Size(largest(at, root.whitened(rows.T).T), largest(at, rows), floor / ROUNDING)
    share = partial(damped_share, damping=at.read("damping", 1)[0])
    done.add(rows, scale * target, size, share, inertial=True)
    return done.force + resisting + J.T @ extra
