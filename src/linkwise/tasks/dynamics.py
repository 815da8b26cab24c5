"""The motion of tasks under forces: Λ ẍ + μ + p = F, and the torques that give an acceleration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from linkwise.algebra import bias, mass
from linkwise.arguments import row, rows
from linkwise.codegen.formula import Formula
from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.dynamics.joint_force import bias_force
from linkwise.dynamics.kernels import Loops, is_closed, written
from linkwise.dynamics.mass_root import LARGE, mass_root
from linkwise.dynamics.operational_space import TOLERANCE, ranked
from linkwise.dynamics.velocity_space import states
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.model.closure import closure_nodes
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.tasks.kernels import task_kernel, torque_kernel
from linkwise.tasks.quantity import TASK, Law
from linkwise.tasks.space import (
    RESULTS,
    ROUNDING,
    TaskSpace,
    by_rank,
    checked_options,
    least,
    motions_of_tasks,
    plain_space,
    settled,
    space,
    task_space,
)
from linkwise.tasks.task import Tasks
from linkwise.tasks.twin import Twin, twin

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

Compensate: TypeAlias = Literal["task", "joints"]
"""Where gravity, Coriolis and centrifugal forces are taken out: in the task, or everywhere."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskDynamics:
    """Λ ẍ + μ + p = F.

    Attributes:
        space: Λ, J̄, the null space and what is lost.
        coriolis: μ (m,) or (batch, m) [N or N m]: centrifugal and Coriolis forces.
        gravity: p (m,) or (batch, m).
        bias: γ = J̇_t v (m,) or (batch, m).
        falling: J_t 𝓜⁻¹ C (m,) or (batch, m), what the bias force would accelerate the tasks by.
    """

    space: TaskSpace
    coriolis: Array
    gravity: Array
    bias: Array
    falling: Array

    @property
    def inertia(self) -> Array:
        """Λ (m, m) or (batch, m, m)."""
        return self.space.inertia

    def __getitem__(self, i: int) -> TaskDynamics:
        """One state of a batch."""
        i = row(i, None if self.coriolis.ndim == 1 else len(self.coriolis), "this task space")
        parts = (self.coriolis[i], self.gravity[i], self.bias[i], self.falling[i])
        return TaskDynamics(self.space[i], *parts)

    def __str__(self) -> str:
        if self.coriolis.ndim == 2:
            return f"dynamics in the {self.space}"
        rows = zip(self.space.names, self.coriolis, self.gravity, strict=True)
        told = [f"  {name}: Coriolis {mu:.4g}, gravity {p:.4g}" for name, mu, p in rows]
        return "\n".join([f"dynamics in the {self.space}", *told])

    def force(self, acceleration: ArrayLike) -> Array:
        """F = Λ ẍ + μ + p: the force of the tasks for an acceleration (m,) or (batch, m)."""
        wanted = self._sized(acceleration, "acceleration")
        return (self.inertia @ wanted[..., None])[..., 0] + self.coriolis + self.gravity

    def acceleration(self, force: ArrayLike) -> Array:
        """ẍ = J_t 𝓜⁻¹ (J_t* F - C) + γ: of the tasks under a force (m,) or (batch, m).

        Right at singularities too, and whatever was damped or left out of Λ.
        """
        pushed = self.space.inverse @ self._sized(force, "force")[..., None]
        return pushed[..., 0] - self.falling + self.bias

    def _sized(self, given: ArrayLike, what: str) -> Array:
        """A number for each row, or the error that names the rows."""
        names, lead = self.space.names, self.coriolis.shape[:-1]
        array = rows(given, len(names), what, hint=f"the rows {', '.join(names)}")
        if array.shape not in ((len(names),), (*lead, len(names))):
            told = f"({len(names)},)" + (f" or {(*lead, len(names))}" if lead else "")
            raise ShapeError(
                f"{what} has shape {array.shape}; it must be {told}, for the rows "
                f"{', '.join(names)}."
            )
        return array


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
    with the bias force C_v + g. Source: 003 (23) to (25); the joint-space equation seen through
    J̄*, (26). With loops or couplings, J_t 𝓜⁻¹ C is what the tasks fall short of while these hold.

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        tasks: A task or several, whose rows are stacked.
        tolerance: See `task_space`.
        length: See `task_space`.
        damping: See `task_space`.
        loops: "closed" holds loops and couplings; "open" leaves them open.
    """
    found = twin(mech, tasks)
    reach, damped = checked_options(found, tolerance, length, damping)
    if not damped and not is_closed(mech, loops):
        kernel = by_rank(found, dynamics, ("coriolis", "gravity", "bias", "falling"))
        parts = ranked(kernel(q, v, *least(found, tolerance, reach)))
        rest = (parts[name] for name in ("coriolis", "gravity", "bias", "falling"))
        return TaskDynamics(plain_space(found, parts, reach), *rest)
    single, rows, (speeds,) = states(mech, q, v=v)
    options: dict[str, Any] = {"tolerance": tolerance, "length": length, "damping": damping}
    space = task_space(mech, rows, tasks, **options, loops=loops)
    gamma = found.sorted(task_kernel(found, "task_bias")(rows, speeds), -1)
    still = np.zeros(speeds.shape)
    if is_closed(mech, loops):
        falling, whole = (
            -_caused(space, forward_dynamics(mech, rows, x, np.zeros(mech.nv)))
            for x in (still, speeds)
        )
    else:
        falling = found.sorted(task_kernel(found, "task_drop")(rows, still), -1)  # J 𝓜⁻¹ g
        whole = found.sorted(task_kernel(found, "task_drop")(rows, speeds), -1)  # J 𝓜⁻¹ C
    mu = (space.inertia @ (whole - falling - gamma)[..., None])[..., 0]
    p = (space.inertia @ falling[..., None])[..., 0]
    if single:
        return TaskDynamics(space[0], mu[0], p[0], gamma[0], whole[0])
    return TaskDynamics(space, mu, p, gamma, whole)


def dynamics(at: Writing, order: tuple[int, ...] | None) -> Any:
    """The formula of `TaskDynamics`, behind that of its space."""
    _ = at.q, at.v  # in front of other inputs
    parts, s = space(at, order), settled(at)
    which = slice(None) if order is None else list(order)
    bias, whole = (x[which] for x in at.value(TASK["task_bias"](s), TASK["task_drop"](s)))
    falling = at.value(TASK["task_drop"](s), v=np.zeros(at.mech.nv))[which]  # J 𝓜⁻¹ g
    inertia = parts[RESULTS.index("inertia")]
    return *parts, inertia @ (whole - falling - bias), inertia @ falling, bias, whole


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
    """Joint forces that give tasks an acceleration, and others that leave the tasks alone.

    Expression:
        F = Λ (ẍ - γ - J_t 𝓜⁻¹ (τ₀ - C)) + F_applied,   τ = τ₀ + J_t* F
    which is J_t* (Λ ẍ + μ + p + F_applied) + (I - J_t* J̄*) τ₀. F is the force of a constraint that
    asks J_t v̇ + γ = ẍ. With loops or couplings, the tasks have ẍ while these hold, all hinges being
    driven.
    Source: 003 (23), (27); with `applied` for (13).

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        tasks: A task or several, whose rows are stacked.
        acceleration: ẍ that is wanted (m,) or (batch, m).
        tau0: Joint forces for what the tasks leave free (nv,) or (batch, nv); by default none.
        applied: A force along the rows that is added (m,) or (batch, m), such as what a sensor
            says the tasks push with.
        compensate: "task" takes gravity, Coriolis and centrifugal forces out as the tasks see
            them, and leaves the rest of the mechanism to them; "joints" takes them out everywhere:
            τ₀ + C for τ₀.
        tolerance: See `task_space`.
        length: See `task_space`.
        damping: See `task_space`.
        loops: "closed" holds loops and couplings; "open" leaves them open.

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    if compensate not in ("task", "joints"):
        raise unknown_name(
            "compensate", compensate, ("task", "joints"), owner="lw.tasks.task_torque"
        )
    found = twin(mech, tasks)
    kernel, closed = None, is_closed(mech, loops)
    if not closed and tolerance == TOLERANCE and length is None and damping in (None, 0.0):
        law = Law(compensate == "joints", internal=tau0 is not None, applied=applied is not None)
        kernel = torque_kernel(found, law)
        given = {"q": q, "v": v, "tau": tau0, "closing": acceleration, "applied": applied}
        # One state whose arrays are as the kernel wants them, and far from singular.
        if kernel is not None and kernel.quick is not None and found.order is None:
            tau = kernel.quick(*[given[name] for name in kernel.arguments])
            if tau is not None:
                return tau
    internal = np.zeros(mech.nv) if tau0 is None else tau0
    single, rows, (speeds, internal) = states(mech, q, v=v, tau0=internal)
    if cast(object, acceleration) is None:
        raise ModelError("acceleration is None; say what the tasks should have, zeros to hold.")
    wanted = along_rows(found, acceleration, "acceleration", len(rows), single)
    extra = along_rows(found, applied, "applied", len(rows), single)
    if closed:
        options: dict[str, Any] = {"tolerance": tolerance, "length": length, "damping": damping}
        space = task_space(mech, rows, found.tasks, **options)
        tau = _held_torque(mech, found, space, rows, speeds, wanted, internal, extra, compensate)
        return tau[0] if single else tau
    reach, damped = checked_options(found, tolerance, length, damping)
    order = None if found.order is None else tuple(found.order.tolist())
    formula = _with_losses(order, compensate == "joints", bool(damped))
    careful = written(found.mech, formula, closure_nodes(found.mech))
    limits = (*least(found, tolerance, reach), *([np.array([damped])] if damped else []))
    if kernel is None or len(rows) == 1:
        tau = careful(rows, speeds, internal, wanted, extra, *limits)
        return tau[0] if single else tau
    own = {"q": rows, "v": speeds, "tau": internal}
    own |= {"closing": found.unsorted(wanted), "applied": found.unsorted(extra)}
    codes = np.zeros(len(rows), dtype=np.int32)
    tau = kernel(*[own[name] for name in kernel.arguments], status=codes)
    rest = np.flatnonzero(codes)  # those that have lost something
    if len(rest):
        parts = (rows[rest], speeds[rest], internal[rest], wanted[rest], extra[rest])
        tau[rest] = careful(*parts, *limits)
    return tau


def _caused(space: TaskSpace, vdot: Array) -> Array:
    """J_t v̇ (batch, m)."""
    return (space.jacobian @ vdot[..., None])[..., 0]


def _held_torque(
    mech: Mechanism,
    found: Twin,
    space: TaskSpace,
    q: Array,
    v: Array,
    wanted: Array,
    internal: Array,
    extra: Array,
    compensate: Compensate,
) -> Array:
    """τ₀ + J_t* (Λ (ẍ - γ - J_t v̇₀) + F_applied), with v̇₀ caused by τ₀ while loops hold."""
    if compensate == "joints":
        internal = internal + bias_force(mech, q, v)
    gamma = found.sorted(task_kernel(found, "task_bias")(q, v), -1)
    left = wanted - gamma - _caused(space, forward_dynamics(mech, q, v, internal))
    force = (space.inertia @ left[..., None])[..., 0] + extra
    return internal + (force[..., None, :] @ space.jacobian)[..., 0, :]


@cache
def _with_losses(order: tuple[int, ...] | None, whole: bool, damped: bool) -> Formula:
    return Formula(torque_by_rank, (order, whole, damped))


def torque_by_rank(at: Writing, order: tuple[int, ...] | None, whole: bool, damped: bool) -> Any:
    """The torque in the directions that are there, as a formula."""
    s, which = settled(at), slice(None) if order is None else list(order)
    _, n = (at.q, at.v), at.mech.nv  # in front of other inputs
    gamma, resisting = at.value(s.bias, bias)
    internal, m = at.read("tau", n), len(gamma)
    wanted, extra = at.read("closing", m) - gamma[which], at.read("applied", m)
    if damped:
        return _damped_torque(at, which, wanted, extra, internal, resisting, whole)
    _, J, response, motion = motions_of_tasks(at, order)
    given = internal + resisting if whole else internal
    seen = response.T @ (given - resisting)  # J 𝓜⁻¹ (τ₀ - C)
    return given + J.T @ (motion.inertia @ (wanted - seen) + extra)


def _damped_torque(
    at: Writing, which: Any, wanted: Any, extra: Any, internal: Any, resisting: Any, whole: bool
) -> Any:
    """A hierarchy of one level, with the shares that damping leaves."""
    from linkwise.tasks.control.hierarchy import Hierarchy, Size, largest
    from linkwise.tasks.control.singular import damped_share

    J = at.value(settled(at).jacobian)[which]
    scale, (tolerance, floor) = at.read("scale", len(J)), at.read("least", 2)
    root = mass_root(at, at.value(mass) if at.mech.nv < LARGE else None)
    drive = internal if whole else internal - resisting
    done, rows = Hierarchy(root, drive, tolerance), scale[:, None] * J
    size = Size(largest(at, root.whitened(rows.T).T), largest(at, rows), floor / ROUNDING)
    share = partial(damped_share, damping=at.read("damping", 1)[0])
    done.add(rows, scale * wanted, size, share, inertial=True)
    return done.force + resisting + J.T @ extra


def along_rows(found: Twin, given: ArrayLike | None, what: str, batch: int, single: bool) -> Array:
    """A vector over the rows of tasks (batch, m), checked."""
    size = found.size
    if given is None:
        return np.zeros((batch, size))
    array = floats(given, what)
    allowed = f"({size},)" if single else f"({size},) or ({batch}, {size})"
    if array.shape not in ((size,), *(() if single else ((batch, size),))):
        told = ", ".join(found.names)
        raise ShapeError(
            f"{what} has shape {array.shape}; it must be {allowed}, for the rows {told}."
        )
    if not np.isfinite(array).all():
        raise ModelError(f"{what} is not finite.")
    return np.broadcast_to(array, (batch, size))
