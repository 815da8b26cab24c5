"""Controllers of tasks: a state and goals in, joint forces out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import number
from linkwise.dynamics.inverse_dynamics import bias_force
from linkwise.dynamics.loops import Loops, require_open
from linkwise.dynamics.mass_matrix import mass_matrix
from linkwise.dynamics.velocity_space import states
from linkwise.errors import ModelError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.task.control.asked import Asked, asked
from linkwise.task.control.check import check_tasks
from linkwise.task.control.gain import along, times
from linkwise.task.control.goal import as_goals
from linkwise.task.control.hierarchy import (
    SHORT,
    TOLERANCE,
    Directions,
    Hierarchy,
    everything,
    smooth,
)
from linkwise.task.control.joint_limits import JointLimits
from linkwise.task.control.posture import Posture
from linkwise.task.control.report import ControlReport, LevelReport, row_labels
from linkwise.task.control.servo import Level, Servo, as_levels
from linkwise.task.control.singular import AHEAD, BRAKE, STANDARD, SingularStrategy, damped_share
from linkwise.task.dynamics import Compensate
from linkwise.task.law import ControlLaw, control_law
from linkwise.task.measure import task_bias
from linkwise.task.task import Task
from linkwise.task.twin import HOLDS, Twin, twin

CLEAR = 1e-3
"""Above this ratio of singular values the kernel, which squares it, keeps ten digits."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TaskController:
    """Joint forces that drive tasks to their goals, in order of priority.

    Expression, for one level:
        τ = J* (Λ (F* - γ) + J̄* C) + N* Γ₀,        F* = ẍ_d + k_v (ẋ_d - ẋ) + k_p e
    with Γ₀ of the posture and the joint limits. Further levels act in the dynamically consistent
    null space of all before them, the posture in that of all levels.

    Source: 003 (12), (14), (27), (69) and section 5.3; priorities after Sentis and Khatib (2005).

        hand = lw.Servo(lw.Task.pose("hand"), kp=100.0, kv=20.0)
        controller = lw.TaskController(arm, hand, posture=lw.Posture(q_mid, kp=20.0, kv=5.0))
        tau = controller(q, v, goal)

    It holds no state of its own: the same (q, v, goals) give the same τ.

    Attributes:
        mech: The mechanism.
        levels: Servos in order of priority, each level one servo or several of equal rank.
        posture: What is done with the freedoms that all levels leave.
        limits: Repulsion from the ends of joint ranges.
        singular: What is done near singular configurations; None for the plain inverse, which
            grows without bounds there and gives up exactly at them.
        damping: None, or the damping of `lw.task_space` in place of a strategy; reports tell what
            it takes away.
        compensate: Whether gravity, Coriolis and centrifugal forces are taken out in all "joints",
            or only as the "task"s see them, which lets the rest of the arm fall.
        length: Where turning is compared with moving [m]; by default the reach at the nodes.
        tolerance: Singular values of J below this fraction of the largest are called zero.
        loops: "open" leaves loops and couplings open; "closed" refuses mechanisms with any.

    Raises:
        ModelError: A task that the mechanism cannot do, or has too many rows; names that come
            twice.
        UnknownNameError: A node or hinge that the mechanism does not have; lists near ones.
    """

    mech: Mechanism
    levels: Level | Sequence[Level]
    posture: Posture | None = None
    limits: JointLimits | None = None
    singular: SingularStrategy | None = STANDARD
    damping: float | None = None
    compensate: Compensate = "joints"
    length: float | None = None
    tolerance: float = TOLERANCE
    loops: Loops = "closed"
    servos: tuple[tuple[Servo, ...], ...] = field(init=False, repr=False)
    twins: tuple[Twin, ...] = field(init=False, repr=False)
    gains: tuple[tuple[Array, Array], ...] = field(init=False, repr=False)
    pace: tuple[float, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        servos = as_levels(self.levels)
        object.__setattr__(self, "servos", servos)
        twins = tuple(twin(self.mech, tuple(s.task for s in level)) for level in servos)
        object.__setattr__(self, "twins", twins)
        _check_options(self)
        check_tasks(self.mech, twins)
        gains = tuple(_gains(level, t) for level, t in zip(servos, twins, strict=True))
        object.__setattr__(self, "gains", gains)
        brakes = BRAKE * np.linalg.eigvalsh(gains[0][1])  # the least and the largest along rows
        slowest = 0.0 if self.singular is None else self.singular.slowest(self.mech.velocity_limit)
        object.__setattr__(self, "pace", (float(brakes[0]) * slowest, float(brakes[-1])))
        require_open(self.mech, self.loops, "lw.TaskController", HOLDS)

    def __repr__(self) -> str:
        told = " > ".join(" + ".join(servo.name for servo in level) for level in self.servos)
        parts = [f"{self.mech.name!r}", told]
        parts += [name for name in ("posture", "limits") if getattr(self, name) is not None]
        parts += [f"damping {self.damping:g}"] if self.damping else []
        parts += ["plain inverse"] if self.singular is None and not self.damping else []
        return f"TaskController({', '.join(parts)})"

    def __call__(self, q: ArrayLike, v: ArrayLike, goals: Any) -> Array:
        """Joint forces for a state.

        Args:
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
            goals: For one servo its goal, a `lw.Goal` or a target alone; for several a dictionary
                of goals by the names of the tasks, or a list in their order.

        Returns:
            (nv,) or (batch, nv) [N or N m].
        """
        single, q, (v,) = states(self.mech, q, v=v)
        wishes = self._asked(q, v, goals, single)
        tau = self._by_kernel(q, v, wishes[0])
        if tau is None:
            tau = self._tick(q, v, wishes).tau
        return tau[0] if single else tau

    def explain(self, q: ArrayLike, v: ArrayLike, goals: Any) -> ControlReport:
        """What the controller does in a state: `print` it.

        Args:
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
            goals: As for a call.
        """
        single, q, (v,) = states(self.mech, q, v=v)
        whole = self._tick(q, v, self._asked(q, v, goals, single))
        return whole[0] if single else whole

    # ------------------------------------------------------------------------- one tick

    def _by_kernel(self, q: Array, v: Array, level: Asked) -> Array | None:
        """The torque by one kernel, `lw.control_law`.

        None where there is more than a level that has all its directions in full.
        """
        first = self.limits is not None and self.limits.priority == "top"
        if len(self.servos) > 1 or self.damping or first:
            return None
        if not self._unbounded(level):
            return None
        law = _law(self.mech, level.twin.tasks, self.compensate, self.loops)
        pull = self._posture(q, v)
        if len(q) == 1:  # one state goes through the kernel quicker than a batch of one
            return law(q[0], v[0], acceleration=level.wanted[0], tau0=pull[0])[None]
        return law(q, v, acceleration=level.wanted, tau0=pull)

    def _unbounded(self, level: Asked) -> bool:
        """Whether a level by itself has all its directions in full, and joints slow enough."""
        edge = CLEAR if self.singular is None else max(self.singular.threshold, CLEAR)
        J = level.J * level.scale[:, None]
        sigma = np.linalg.svd(J, compute_uv=False)
        largest = np.maximum(sigma[:, 0], SHORT * level.twin.length())
        if not (sigma[:, -1] > edge * largest).all():
            return False
        if self.singular is None or (sigma[:, -1] > AHEAD * edge * largest).all():
            return True
        one = len(level.q) == 1
        state = (level.q[0], level.v[0]) if one else (level.q, level.v)
        gamma = task_bias(self.mech, *state, level.twin.tasks)
        missing = level.scale * (level.wanted - gamma)
        # No v_i* v̇ is larger than |missing| / σ, no v_i* v than |v|, no speed smaller than slowest.
        most, high = self.pace
        if one and np.linalg.norm(missing) / sigma[0, -1] + high * np.linalg.norm(state[1]) <= most:
            return True
        u, sigma, joints = np.linalg.svd(J, full_matrices=False)
        asked = (np.swapaxes(u, -1, -2) @ missing[..., None])[..., 0] / sigma  # as v_i* v̇
        low, high = self._brake(level, self.gains[0][1], u, sigma, joints, largest)
        return bool(((low <= asked) & (asked <= high)).all())

    def _tick(self, q: Array, v: Array, wishes: list[Asked]) -> ControlReport:
        """The same by the levels one after the other, with all that can be told of them."""
        mass, resisting = mass_matrix(self.mech, q), bias_force(self.mech, q, v)
        pull = self._posture(q, v)
        drive = pull if self.compensate == "joints" else pull - resisting
        solve = partial(self._solved, mass, drive, wishes, pull)
        done, found = solve(None)
        close = np.zeros(v.shape, dtype=np.bool_)
        if self.limits is not None and self.limits.priority == "top":
            close, top = self._limited(q, v, done.acceleration)
            if top is not None:
                done, found = solve(top)
        tau, vdot = done.force + resisting, done.acceleration
        levels = tuple(self._report(*parts, vdot) for parts in zip(wishes, found, strict=True))
        return ControlReport(tau, vdot, levels, close, np.maximum(done.free, 0.0))

    def _asked(self, q: Array, v: Array, goals: Any, single: bool) -> list[Asked]:
        """What each level asks for."""
        names = [servo.name for level in self.servos for servo in level]
        given = iter(as_goals(goals, names))
        both = zip(self.servos, self.twins, strict=True)
        return [asked(self.mech, s, t, q, v, given, self.length, single) for s, t in both]

    def _posture(self, q: Array, v: Array) -> Array:
        """Γ₀ without the bias force (batch, nv)."""
        pull = np.zeros(v.shape)
        if self.posture is not None:
            pull = pull + self.posture.torque(self.mech, q, v)
        if self.limits is not None and self.limits.priority == "posture":
            pull = pull + self.limits.push(self.mech, q, v)
        return pull

    def _solved(
        self,
        mass: Array,
        drive: Array,
        wishes: list[Asked],
        posture: Array,
        top: tuple[NDArray[np.int64], Array, Array] | None,
    ) -> tuple[Hierarchy, list[Directions]]:
        """All levels, below freedoms (which, v̇, share) that come before them."""
        done = Hierarchy(mass, drive, self.tolerance)
        if top is not None:
            done.add_joints(*top)
        found = list[Directions]()
        for level, (kp, kv) in zip(wishes, self.gains, strict=True):
            gamma = task_bias(self.mech, level.q, level.v, level.twin.tasks)
            want = (level.J, level.wanted - gamma, level.scale)
            add = partial(done.add, *want, reach=level.twin.length())
            if self.damping:
                share = partial(damped_share, self.damping)
                found.append(add(share, inertial=True))
            elif self.singular is None:
                found.append(add(everything))
            else:
                aside = None
                if self.singular.remaining != "free":
                    aside = partial(self._aside, level, kp, kv, done.free_response(posture))
                brake = partial(self._brake, level, kv)
                found.append(add(self.singular.share, aside, brake))
        return done, found

    def _aside(
        self, level: Asked, kp: Array, kv: Array, posture: Array, found: Directions
    ) -> Array:
        """Accelerations v_i* v̇ (batch, m) of joints in directions that go away."""
        assert self.singular is not None
        stiff, damp = along(kp, found.rows), along(kv, found.rows)
        moving = (found.joints @ level.v[..., None])[..., 0]
        out = (found.joints @ posture[..., None])[..., 0] - damp * moving
        if self.singular.remaining == "rest":
            return out
        wish = (np.swapaxes(found.rows, -1, -2) @ (level.scale * level.pull)[..., None])[..., 0]
        held = found.hold > 0.0
        for i in np.flatnonzero(held.any(axis=0)):
            at = held[:, i]
            along_v = found.joints[at, i]
            bend = task_bias(self.mech, level.q[at], along_v, level.twin.tasks) * level.scale
            kappa = (found.rows[at, :, i] * bend).sum(axis=1)
            error, sigma = wish[at, i] / stiff[at, i], found.values[at, i]
            step = self.singular.step(error, sigma, kappa, found.largest[at])
            out[at, i] += stiff[at, i] * step
        return out

    def _brake(
        self, level: Asked, kv: Array, rows: Array, values: Array, joints: Array, largest: Array
    ) -> tuple[Array, Array]:
        """Between which v_i* v̇ (batch, m) joints keep to their speeds: k (± fastest - v_i* v).

        Args:
            level: The level.
            kv: Its damping (m, m).
            rows: U (batch, m, m).
            values: σ (batch, m).
            joints: V* (batch, m, nv).
            largest: Largest singular value of the level by itself (batch,).
        """
        assert self.singular is not None
        k, moving = BRAKE * along(kv, rows), (joints @ level.v[..., None])[..., 0]
        relative = values / np.where(largest > 0.0, largest, 1.0)[:, None]
        fastest = self.singular.fastest(relative, joints, self.mech.velocity_limit)
        return k * (-fastest - moving), k * (fastest - moving)

    def _limited(
        self, q: Array, v: Array, vdot: Array
    ) -> tuple[NDArray[np.bool_], tuple[NDArray[np.int64], Array, Array] | None]:
        """Joints near their limits, and (which, v̇, share) with which they come before all levels.

        Each is asked to do what it would do anyway, v̇, or the push if that is away from the limit,
        with a share that grows from 0 at the margin: nothing jumps where a joint comes near.
        """
        assert self.limits is not None
        push = self.limits.push(self.mech, q, v)
        lower, upper = (smooth(2.0 * x) for x in self.limits.nearness(self.mech, q))
        close = np.asarray((lower > 0.0) | (upper > 0.0), dtype=np.bool_)
        which = np.flatnonzero(close.any(axis=0))
        if not len(which):
            return close, None
        wanted = np.where(lower > 0.0, np.maximum(vdot, push), vdot)
        wanted = np.where(upper > 0.0, np.minimum(wanted, push), wanted)
        return close, (which, wanted[:, which], np.maximum(lower, upper)[:, which])

    def _report(self, level: Asked, found: Directions, vdot: Array) -> LevelReport:
        gamma = task_bias(self.mech, level.q, level.v, level.twin.tasks)
        achieved = (level.J @ vdot[..., None])[..., 0] + gamma
        return LevelReport(
            level.twin.tasks,
            row_labels(level.twin),
            level.wanted,
            achieved,
            (~found.lost).sum(axis=1),
            found.values,
            found.rows,
            found.share,
            np.asarray(found.hold > 0.0, dtype=np.bool_),
            found.slowed,
            bool(self.damping),
        )


@once_per_mechanism
def _law(
    mech: Mechanism, tasks: tuple[Task, ...], compensate: Compensate, loops: Loops
) -> ControlLaw:
    return control_law(mech, tasks, internal=True, compensate=compensate, loops=loops)


def _gains(level: tuple[Servo, ...], t: Twin) -> tuple[Array, Array]:
    """k_p and k_v of a level as matrices (m, m)."""
    kp, kv = np.zeros((2, t.size, t.size))
    for i, servo in enumerate(level):
        at, eye = t.rows(i), np.eye(t.sizes[i])
        kp[at, at] = times(cast(Array, servo.kp), eye)
        kv[at, at] = times(cast(Array, servo.kv), eye)
    return kp, kv


def _check_options(controller: TaskController) -> None:
    for name, kind in (
        ("posture", Posture),
        ("limits", JointLimits),
        ("singular", SingularStrategy),
    ):
        value = getattr(controller, name)
        if value is not None and not isinstance(value, kind):
            raise ModelError(
                f"{name} is a {type(value).__name__}; it must be a lw.{kind.__name__}."
            )
    if controller.compensate not in ("task", "joints"):
        owner = "lw.TaskController"
        raise unknown_name("compensate", controller.compensate, ("task", "joints"), owner=owner)
    d = controller.damping
    if d is not None:
        number(d, "damping", least=0.0)
    if d and controller.singular is STANDARD:
        object.__setattr__(controller, "singular", None)
    elif d and controller.singular is not None:
        raise ModelError(
            f"damping is {d!r} and singular a strategy of its own: both are for singular "
            "configurations; give one or the other."
        )
    for name in ("length", "tolerance"):
        if getattr(controller, name) is not None:
            number(getattr(controller, name), name, above=0.0)
    if controller.limits is not None:
        controller.limits.places(controller.mech)  # raises where there are none
    if controller.posture is not None:  # raises for gains, targets and names that do not fit
        mech = controller.mech
        controller.posture.pull(mech, mech.neutral(), np.zeros(mech.nv))
