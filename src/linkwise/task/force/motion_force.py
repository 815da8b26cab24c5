"""Unified control of motion and force of a node (003 section 2.2).

With the contact force F_contact that the mechanism exerts, its node moves by

    Λ ẍ + μ + p + F_contact = F₀                                    (10)

and the control structure is

    F₀ = F_motion + F_active                                        (11)
    F_motion = Λ Ω F*_motion + μ + p                                (12)
    F_active = Λ Ω̄ F*_active + F_sensor                             (13)
    τ = J* F₀ + N* Γ₀                                               (14), and (27) for redundancy

so that with a right model and right sensing two systems are left that know nothing of each other:

    Ω ẍ = Ω F*_motion,          Ω̄ ẍ = Ω̄ F*_active                   (15), (16)

each a unit mass. The servos put on them are

    F*_motion = ẍ_d + K_v (ẋ_d - ẋ) + K_p e
    F*_active = k_f (f_d - f) + k_i ∫ (f_d - f) dt - k_v ẋ          `ForceServo`

F_sensor = J̄* J₆* f takes all six components f that were sensed to the task, so that a moment at the
node disturbs no task of position either; for the pose it is f itself.

Near a singular configuration Λ fades out along what goes: `fading_inertia`.

On a curved surface that the selection follows, the normal turns while the node slides. The
acceleration that keeps the distance, - n (ṅ · ẋ), is added to F*_active.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from linkwise.arguments import number
from linkwise.dynamics.kinematics import forward_kinematics, node_velocity
from linkwise.dynamics.loops import Loops, require_open
from linkwise.dynamics.velocity_space import states
from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats, frozen
from linkwise.spatial.pose import Pose
from linkwise.spatial.vector import cross, six
from linkwise.task.control.check import check_tasks
from linkwise.task.control.gain import checked_gain, gain_in_words, times
from linkwise.task.control.goal import Goal, as_goals
from linkwise.task.control.posture import Posture
from linkwise.task.control.singular import STANDARD
from linkwise.task.dynamics import task_dynamics, task_torque
from linkwise.task.force.fading_inertia import faded_space, faded_torque
from linkwise.task.force.force_servo import ForceServo
from linkwise.task.force.selection import Selection, check_task, task_axes
from linkwise.task.force.surface import CompliantSurface
from linkwise.task.force.transition import (
    ContactPhase,
    ContactTransition,
    PhaseName,
    check_phase,
)
from linkwise.task.measure import task_error, task_jacobian, task_velocity
from linkwise.task.task import Task
from linkwise.task.twin import HOLDS, twin

Target: TypeAlias = Pose | ArrayLike | Goal | Mapping[str, Any]
"""Where the node should be, as `task_position` tells it: a pose, or a point (3,).

Or a `Goal`, which has velocity and acceleration too; or either by the name of the task.
"""


@dataclass(frozen=True, slots=True, eq=False)
class MotionForceCommand:
    """What a controller asks for in one state, or in each of a batch.

    Attributes:
        tau: Joint forces (..., nv) [N or N m].
        motion: F_motion (..., m), in the rows of the task [N m, N].
        active: F_active (..., m).
        acceleration: Ω F*_motion + Ω̄ F*_active (..., m): what ẍ will be if the model is right and
            no direction is on its way out.
        motion_error: Ω e (..., m): what is missing of the path [rad, m].
        force_error: Ω̄ (f_d - f) (..., m): what is missing of the force [N m, N].
        integral: ∫ of the force error so far (..., m), as it was given.
        Omega: Ω (..., m, m).
    """

    tau: Array
    motion: Array
    active: Array
    acceleration: Array
    motion_error: Array
    force_error: Array
    integral: Array
    Omega: Array

    @property
    def force(self) -> Array:
        """F₀ (..., m)."""
        return self.motion + self.active

    def integral_after(self, step: float) -> Array:
        """The integral to give to the next call, one step [s] later."""
        return self.integral + number(step, "step [s]") * self.force_error

    def __str__(self) -> str:
        if self.tau.ndim > 1:
            return f"joint forces of {len(self.tau)} states"
        return (
            f"joint forces up to {np.abs(self.tau).max():.4g} N or N m; off the path by "
            f"{np.linalg.norm(self.motion_error):.3g} m or rad, off the force by "
            f"{np.linalg.norm(self.force_error):.3g} N or N m"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """What both servos ask for, selected, and the joint forces that a contact acts with."""

    q: Array
    v: Array
    along: Array
    across: Array
    missing: Array
    error: Array
    integral: Array
    Omega: Array
    pushed: Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MotionForceController:
    """Motion along some directions of a node, force along the others: state in, torque out.

    It has no memory. The integral of the force error goes in and comes out with each call, and so
    does the phase of a contact (`ContactTransition.after`).

        controller = lw.MotionForceController(
            mech, lw.Task.pose("flange"), lw.Selection.along_normal(wall),
            kp=100.0, kv=20.0, servo=lw.ForceServo.for_surface(wall, 20.0))
        command = controller.command(q, v, target=pose, force=15.0, contact=sensed)
        command.tau

    Expression:
        τ = J* (Λ (Ω F*_motion + Ω̄ F*_active) + μ + p + F_sensor) + N* Γ₀
    Source: 003, equations (10) to (16) and (27).

    Attributes:
        mech: The mechanism as the controller knows it.
        task: The pose or position of a node, in basic coordinates.
        selection: Which directions are motion and which are force.
        kp: Stiffness of the motion [1/s²]: a number, one for each row, or a symmetric matrix.
        kv: Damping of the motion [1/s]; 2 √kp is critical.
        servo: Gains of the force.
        posture: What a redundant mechanism does besides.
        transition: How a contact begins; needed for the phases "approach" and "impact".
        threshold: Directions in which a singular value of J is below this part of the largest one
            are on their way out: they are given less and less of what is asked for, and nothing
            where they are lost; all others are as always. None for the plain inverse, which grows
            without bounds there.
        loops: "open" leaves loops and couplings open; "closed" refuses mechanisms with any.
    """

    mech: Mechanism
    task: Task
    selection: Selection
    kp: ArrayLike
    kv: ArrayLike
    servo: ForceServo
    posture: Posture | None = None
    transition: ContactTransition | None = None
    threshold: float | None = STANDARD.threshold
    loops: Loops = "closed"
    _fixed: tuple[Array, Array] | None = field(init=False, default=None, repr=False)
    _fixed_normal: Array | None = field(init=False, default=None, repr=False)
    _whole: Task = field(init=False, repr=False)
    _S: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put: Any = object.__setattr__
        check_task(self.mech, self.task)
        check_tasks(self.mech, (twin(self.mech, self.task),))
        require_open(self.mech, self.loops, "lw.MotionForceController", HOLDS)
        for name, kind in (
            ("selection", Selection),
            ("servo", ForceServo),
            ("posture", Posture),
            ("transition", ContactTransition),
        ):
            given, optional = getattr(self, name), name in ("posture", "transition")
            if not isinstance(given, kind) and not (optional and given is None):
                raise ModelError(
                    f"{name} is {given!r}; it must be a lw.{kind.__name__}{' or None' * optional}."
                )
        if self.threshold is not None and not 0.0 < self.threshold < 1.0:
            raise ModelError(
                f"threshold is {self.threshold!r}; it is a fraction of the largest singular value, "
                "between 0 and 1, or None."
            )
        m, who = len(self.task.rows), f"of task {self.task.name!r}"
        put(self, "kp", checked_gain(self.kp, f"kp {who}", m))
        put(self, "kv", checked_gain(self.kv, f"kv {who}", m))
        surface = self.selection.frame
        if not isinstance(surface, CompliantSurface) or surface.normal is not None:
            # Rows that do not fit, and frames of nodes that are not there, are told now.
            found = self.selection.matrices(self.mech, self.mech.neutral(), self.task)
            if self.selection.constant(self.task):
                put(self, "_fixed", found)
                pushed = [k for k, moves in enumerate(self.selection.motion) if not moves]
                if len(pushed) == 1 and pushed[0] >= 3:
                    put(self, "_fixed_normal", self._normal(self.mech.neutral()))
        task = self.task
        put(self, "_S", frozen(task.matrix))
        whole = Task.pose(task.node, relative_to=task.relative_to, axes=task.axes)
        put(self, "_whole", task if task.kind == "pose" else whole)

    def __repr__(self) -> str:
        kp, kv = gain_in_words(self.kp), gain_in_words(self.kv)
        parts = [f"{self.mech.name!r}", self.task.name, str(self.selection), f"kp={kp}, kv={kv}"]
        parts += [str(self.servo)]
        parts += [name for name in ("posture", "transition") if getattr(self, name) is not None]
        return f"MotionForceController({'; '.join(parts)})"

    @property
    def size(self) -> int:
        """Number of rows m of the task."""
        return len(self.task.rows)

    def command(
        self,
        q: ArrayLike,
        v: ArrayLike,
        *,
        target: Target,
        velocity: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        force: ArrayLike = 0.0,
        contact: ArrayLike | None = None,
        integral: ArrayLike | None = None,
        phase: PhaseName | ContactPhase = "contact",
    ) -> MotionForceCommand:
        """Joint forces for one state or a batch, and what they are made of.

        Args:
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
            target: Where the node should be, as `task_position` tells it; or a `lw.Goal`, which
                has velocity and acceleration in it; or a dictionary of one, by the task's name.
            velocity: ẋ_d (m,), in the rows of the task; zero by default.
            acceleration: ẍ_d (m,); zero by default.
            force: f_d (m,): (moment, force) that the mechanism should exert, in the rows of the
                task [N m, N]. A number presses against the one axis of force control, that is along
                minus the normal [N].
            contact: What was sensed: (moment, force) (6,) that acts on the node, at its origin and
                in the task's axes; or (3,), the force alone. None where nothing touches. For a task
                relative to a moving node it is what acts between the two.
            integral: ∫ (f_d - f) dt so far (m,) [N m s, N s]; zero by default.
            phase: The phase of the contact.
        """
        asked = self._asked(q, v, target, velocity, acceleration, force, contact, integral, phase)
        q, v, star = asked.q, asked.v, asked.along + asked.across
        single, rows, (speeds, pushed) = states(self.mech, q, v=v, contact=asked.pushed)
        dynamics = task_dynamics(self.mech, rows, speeds, self.task, loops=self.loops)
        space = faded_space(self.mech, rows, dynamics.space, self.threshold)
        motion = _apply(space.inertia, asked.along + dynamics.falling - dynamics.bias)
        sensor = -_apply(np.swapaxes(space.consistent_inverse, -1, -2), pushed)
        active = _apply(space.inertia, asked.across) + sensor
        tau = _apply(np.swapaxes(space.jacobian, -1, -2), motion + active)
        if self.posture is not None:
            tau = tau + space.null_torque(self.posture.torque(self.mech, rows, speeds))
        if single:
            tau, motion, active = tau[0], motion[0], active[0]
        told = (asked.missing, asked.error, asked.integral, asked.Omega)
        return MotionForceCommand(tau, motion, active, star, *told)

    def torque(
        self,
        q: ArrayLike,
        v: ArrayLike,
        *,
        target: Target,
        velocity: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        force: ArrayLike = 0.0,
        contact: ArrayLike | None = None,
        integral: ArrayLike | None = None,
        phase: PhaseName | ContactPhase = "contact",
    ) -> Array:
        """The joint forces of `command` alone (..., nv), by one kernel (`task_torque`): quicker.

        With τ_c = J₆* (what acts on the node), N* (Γ₀ + τ_c) - τ_c = N* Γ₀ - J* J̄* τ_c: the sensed
        force is made up for by one that is not applied. Arguments as for `command`.
        """
        asked = self._asked(q, v, target, velocity, acceleration, force, contact, integral, phase)
        internal = asked.pushed
        if self.posture is not None:
            internal = internal + self.posture.torque(self.mech, asked.q, asked.v)
        star = asked.along + asked.across
        tau = faded_torque(self.mech, asked.q, asked.v, self.task, star, internal, self.threshold)
        if tau is None:
            tau = task_torque(
                self.mech, asked.q, asked.v, self.task, star, tau0=internal, loops=self.loops
            )
        return tau - asked.pushed

    def sense(self, q: ArrayLike, v: ArrayLike, surface: CompliantSurface) -> Array:
        """What a perfect sensor at the node tells of a surface: (..., 6), in the task's axes."""
        force = surface.force(self.mech, q, v, self.task.node, frame="world")
        back = np.swapaxes(task_axes(self.mech, q, self.task), -1, -2)
        return six(_apply(back, force[..., :3]), _apply(back, force[..., 3:]))

    # -------------------------------------------------------------------------------------- pieces

    def _asked(
        self,
        q: ArrayLike,
        v: ArrayLike,
        target: Target,
        velocity: ArrayLike | None,
        acceleration: ArrayLike | None,
        force: ArrayLike,
        contact: ArrayLike | None,
        integral: ArrayLike | None,
        phase: PhaseName | ContactPhase,
    ) -> _Asked:
        """Both servos."""
        q, v = self.mech.check_q(q), self.mech.check_v(v)
        target, velocity, acceleration = self._goal(target, velocity, acceleration)
        Omega, Omega_bar = self._fixed or self.selection.matrices(self.mech, q, self.task)
        moving = task_velocity(self.mech, q, v, self.task)
        missing = task_error(self.mech, q, self.task, target)
        slower = self._rows(velocity, "velocity") - moving
        F_motion = self._rows(acceleration, "acceleration")
        F_motion = F_motion + times(np.asarray(self.kv), slower)
        F_motion = F_motion + times(np.asarray(self.kp), missing)
        sensed, total = self._six(contact), self._rows(integral, "integral")
        short = self._wanted(force, q) + sensed @ self._S.T  # f_d - f with f = - sensed
        error = _apply(Omega_bar, short)
        F_active = self._active(phase, error, total, moving, q, v)
        return _Asked(
            q=q,
            v=v,
            along=_apply(Omega, F_motion),
            across=_apply(Omega_bar, F_active),
            missing=_apply(Omega, missing),
            error=error,
            integral=total,
            Omega=Omega,
            pushed=self._pushed(q, sensed),
        )

    def _active(
        self,
        phase: PhaseName | ContactPhase,
        error: Array,
        integral: Array,
        moving: Array,
        q: Array,
        v: Array,
    ) -> Array:
        """F*_active by the phase."""
        name = phase.name if isinstance(phase, ContactPhase) else phase
        check_phase(name)
        found = self._following(q, v)
        if name == "contact":
            servo = self.servo
            return found + servo.kf * error + servo.ki * integral - servo.kv * moving
        if self.transition is None:
            raise ModelError(
                f"phase is {name!r}, but the controller has no transition; give it one, "
                "transition=lw.ContactTransition(approach_speed=..., impact_damping=...)."
            )
        if name == "impact":
            return found - self.transition.impact_damping * moving
        ahead = self.transition.approach_speed * -self._normal(q)
        return found + self.servo.kv * (ahead - moving)

    def _normal(self, q: Array) -> Array:
        """The one axis of force control, in the rows of the task (..., m)."""
        if self._fixed_normal is not None:
            return self._fixed_normal
        return self.selection.normal(self.mech, q, self.task)

    def _following(self, q: Array, v: Array) -> Array:
        """- n (ṅ · ẋ) of a surface that the selection follows (..., m).

        It makes d/dt (n · ẋ) what the servo asks for. n are components in the task's axes: they
        change on a curved surface, and in the node's axes while the node turns.
        """
        surface = self.selection.frame
        turning = self.task.axes == "node"
        if not isinstance(surface, CompliantSurface) or self.selection.motion[5]:
            return np.zeros(self.size)  # z of a surface's axes is its normal
        if surface.shape == "plane" and not turning:
            return np.zeros(self.size)
        point = forward_kinematics(self.mech, q, self.task.node).p
        V = node_velocity(self.mech, q, v, self.task.node, frame="world")
        rate = surface.following(point, V[..., 3:])
        if turning:
            rate = rate + (V[..., 3:] * cross(V[..., :3], surface.normal_at(point))).sum(axis=-1)
        return rate[..., None] * self.selection.axis(self.mech, q, self.task, 2)

    def _pushed(self, q: Array, sensed: Array) -> Array:
        """J₆* (what acts on the node): the joint forces a contact acts with (..., nv)."""
        if not sensed.any():
            return np.zeros(self.mech.nv)
        return _apply(np.swapaxes(task_jacobian(self.mech, q, self._whole), -1, -2), sensed)

    def _goal(
        self, target: Target, velocity: ArrayLike | None, acceleration: ArrayLike | None
    ) -> tuple[Any, ArrayLike | None, ArrayLike | None]:
        """Target, velocity and acceleration, of a goal or by themselves."""
        if not isinstance(target, Goal | Mapping):
            return target, velocity, acceleration
        (goal,) = as_goals(target, [self.task.name])
        for name, given in (("velocity", velocity), ("acceleration", acceleration)):
            if given is not None and getattr(goal, name) is not None:
                raise ModelError(
                    f"{name} was given twice, with the goal and by itself; leave one of them out."
                )
        ahead = goal.acceleration if acceleration is None else acceleration
        return goal.target, goal.velocity if velocity is None else velocity, ahead

    def _wanted(self, force: ArrayLike, q: Array) -> Array:
        """f_d (..., m)."""
        found = floats(force, "force")
        if found.ndim == 0:
            _finite(found, "force")
            return np.zeros(self.size) if found == 0.0 else -found * self._normal(q)
        return self._rows(found, "force")

    def _rows(self, given: ArrayLike | None, what: str) -> Array:
        """Something over the rows of the task, zero by default."""
        if given is None:
            return np.zeros(self.size)
        found = floats(given, what)
        if found.shape[-1:] != (self.size,):
            raise ShapeError(
                f"{what} has shape {found.shape}; task {self.task.name!r} has {self.size} rows."
            )
        return _finite(found, what)

    def _six(self, contact: ArrayLike | None) -> Array:
        """(moment, force) that acts on the node (..., 6)."""
        if contact is None:
            return np.zeros(6)
        found = floats(contact, "contact")
        if found.shape[-1:] == (3,):
            found = np.concatenate([np.zeros_like(found), found], axis=-1)
        if found.shape[-1:] != (6,):
            raise ShapeError(
                f"contact has shape {found.shape}; it is (moment, force) (6,) or a force (3,)."
            )
        return _finite(found, "contact")


def _finite(found: Array, what: str) -> Array:
    if not np.isfinite(found).all():
        raise ModelError(f"{what} is not finite: {found.tolist()}; give numbers.")
    return found


def _apply(matrix: Array, x: Array) -> Array:
    """A matrix (..., m, n) times vectors (..., n)."""
    return (matrix @ x[..., None])[..., 0]
