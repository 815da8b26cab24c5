"""Unified control of motion and force of a node (003 section 2.2).

With the contact force F_contact that the mechanism exerts, its node moves by

    Λ ẍ + μ + p + F_contact = F₀                                    (10)

and the control structure is

    F₀ = F_motion + F_active                                        (11)
    F_motion = Λ Ω F*_motion + μ + p                                (12)
    F_active = Λ Ω̄ F*_active + F_sensor                             (13)
    τ = J* F₀ + N* Γ₀                                               (14), and (27) for redundancy

so that with an exact model and exact sensing two independent systems remain:

    Ω ẍ = Ω F*_motion,          Ω̄ ẍ = Ω̄ F*_active                   (15), (16)

each a unit mass. Their servos are

    F*_motion = ẍ_d + K_v (ẋ_d - ẋ) + K_p e
    F*_active = k_f (f_d - f) + k_i ∫ (f_d - f) dt - k_v ẋ          `ForceServo`

F_sensor = J̄* J₆* f projects all six sensed components f to the task, so that a moment at the node
does not disturb a position task either; for the pose it is f itself.

Near a singular configuration Λ fades out along the lost directions: `fading_inertia`.

On a curved surface that the selection follows, the normal turns while the node slides. The
acceleration that keeps the distance, - n (ṅ · ẋ), is added to F*_active.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from linkwise.arguments import number
from linkwise.dynamics.kernels import Loops, require_open, written
from linkwise.errors import ModelError, ShapeError
from linkwise.model.closure import closure_nodes
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.pose import Pose
from linkwise.spatial.vector import six
from linkwise.tasks.control.check import check_tasks
from linkwise.tasks.control.gain import checked_gain, gain_in_words, spread_out
from linkwise.tasks.control.goal import Goal, GoalNumbers, as_goals
from linkwise.tasks.control.posture import Posture
from linkwise.tasks.control.singular import STANDARD
from linkwise.tasks.force.commanded import Commanded, formula
from linkwise.tasks.force.force_servo import ForceServo
from linkwise.tasks.force.selection import Selection, axes_of, check_task, task_axes, upright
from linkwise.tasks.force.surface import CompliantSurface
from linkwise.tasks.force.transition import (
    ContactPhase,
    ContactTransition,
    PhaseName,
    check_phase,
)
from linkwise.tasks.task import Task
from linkwise.tasks.task_stack import HOLDS, task_stack

if TYPE_CHECKING:
    from linkwise.codegen.c.source import CSource

INTEGRAL = 6
"""Index of the integral among the inputs of the kernel."""

GoalLike: TypeAlias = Pose | ArrayLike | Goal | Mapping[str, Any]
"""The desired `task_position`: a pose or a point (3,); or a `Goal`, with velocity and acceleration;
or either in a dictionary by the name of the task."""


@dataclass(frozen=True, slots=True, eq=False)
class MotionForceCommand:
    """The command of a controller in one state, or in each of a batch.

    Attributes:
        tau: Joint forces (..., nv) [N or N m].
        motion: F_motion (..., m), in the rows of the task [N m, N].
        active: F_active (..., m).
        acceleration: Ω F*_motion + Ω̄ F*_active (..., m): ẍ if the model is exact and no
            direction fades out.
        motion_error: Ω e (..., m): error of the path [rad, m].
        force_error: Ω̄ (f_d - f) (..., m): error of the force [N m, N].
        integral: ∫ of the force error so far (..., m), as given.
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MotionForceController:
    """Motion along some directions of a node, force along the others: state in, torque out.

    It has no state. The integral of the force error is an argument and a result of each call, and
    so is the phase of a contact (`ContactTransition.after`).

        controller = lw.tasks.MotionForceController(
            mech, lw.Task.pose("flange"), lw.tasks.Selection.along_normal(wall),
            kp=100.0, kv=20.0, servo=lw.tasks.ForceServo.for_surface(wall, 20.0))
        command = controller.command(q, v, goal=pose, force=15.0, contact=sensed)
        command.tau

    Expression:
        τ = J* (Λ (Ω F*_motion + Ω̄ F*_active) + μ + p + F_sensor) + N* Γ₀
    Source: 003, equations (10) to (16) and (27).

    Attributes:
        mech: The model of the mechanism.
        task: The pose or position of a node, in basic coordinates.
        selection: Which directions are motion and which are force.
        kp: Stiffness of the motion [1/s²]: a number, one for each row, or a symmetric matrix.
        kv: Damping of the motion [1/s]; 2 √kp is critical.
        servo: Gains of the force.
        posture: The posture of a redundant mechanism.
        transition: How a contact begins; needed for the phases "approach" and "impact".
        threshold: Directions whose singular value of J is below this fraction of the largest fade
            out: they get a decreasing share of the request, and nothing where they are lost; all
            others are exact. None for the plain inverse, which grows without bounds there.
        loops: "open" leaves loops and couplings open; "closed" raises if there are any.
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
    structure: Commanded = field(init=False, repr=False)
    numbers: dict[str, Array] = field(init=False, repr=False)
    _goals: GoalNumbers = field(init=False, repr=False)
    _made: dict[bool, Any] = field(init=False, repr=False)
    _last: list[Array] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put: Any = object.__setattr__
        check_task(self.mech, self.task)
        check_tasks(self.mech, (task_stack(self.mech, self.task),))
        require_open(self.mech, self.loops, "lw.tasks.MotionForceController", HOLDS)
        for name, kind in (
            ("selection", Selection),
            ("servo", ForceServo),
            ("posture", Posture),
            ("transition", ContactTransition),
        ):
            given, optional = getattr(self, name), name in ("posture", "transition")
            if not isinstance(given, kind) and not (optional and given is None):
                raise ModelError(
                    f"{name} is {given!r}; it must be a "
                    f"lw.tasks.{kind.__name__}{' or None' * optional}."
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
            # Raises now for rows that do not fit and for unknown nodes.
            self.selection.matrices(self.mech, self.mech.neutral(), self.task)
        put(self, "structure", self._structure())
        put(self, "numbers", self._numbers())
        put(self, "_goals", GoalNumbers(self.mech, [self.task]))
        put(self, "_made", {})
        put(self, "_last", [])  # constant inputs of kernels, in their order

    def _structure(self) -> Commanded:
        """The structure that the kernel depends on."""
        motion, surface, shape = self.selection.motion, self.selection.frame, ""
        pushed = [k for k, moves in enumerate(motion) if not moves]
        normal = pushed[0] - 3 if len(pushed) == 1 and pushed[0] >= 3 else None
        if isinstance(surface, CompliantSurface) and not motion[5]:  # z of its axes is its normal
            changes = surface.shape != "plane" or self.task.axes == "node"
            shape = surface.shape if changes else ""
        drawn = None if self.posture is None else self.posture.drawn(self.mech)
        frames = (self.selection.turn_frame, self.selection.frame)
        turn, move = (axes_of(frame) for frame in frames)
        gains = (np.ndim(self.kp) == 2, np.ndim(self.kv) == 2)
        fades = self.threshold is not None
        return Commanded(self.task, motion, turn, move, normal, shape, *gains, drawn, fades)

    def _numbers(self) -> dict[str, Array]:
        """Inputs of the kernel that are the same in all states."""
        stack = task_stack(self.mech, self.task)
        numbers = {"kp": spread_out(self.kp, self.size), "kv": spread_out(self.kv, self.size)}
        numbers |= {"scale": stack.scale(stack.length()), "reach": np.array([stack.length()])}
        if self.threshold is not None:
            numbers["threshold"] = np.array([self.threshold])
        if self.posture is not None:
            numbers |= self.posture.numbers(self.mech)
        for name, frame in (("turn", self.selection.turn_frame), ("move", self.selection.frame)):
            if isinstance(frame, CompliantSurface):
                numbers[f"{name}_surface"] = frame.numbers
                if frame.normal is not None:
                    numbers[f"{name}_axes"] = upright(frame.normal).ravel()
            elif isinstance(frame, np.ndarray):
                numbers[f"{name}_axes"] = np.ravel(frame)
        return numbers

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
        goal: GoalLike,
        velocity: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        force: ArrayLike = 0.0,
        contact: ArrayLike | None = None,
        integral: ArrayLike | None = None,
        phase: PhaseName | ContactPhase = "contact",
    ) -> MotionForceCommand:
        """Joint forces for one state or a batch, and their terms.

        Args:
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
            goal: The desired `task_position`; or a `lw.Goal`, which includes velocity and
                acceleration; or a dictionary of one, by the task's name.
            velocity: ẋ_d (m,), in the rows of the task; default: zero.
            acceleration: ẍ_d (m,); default: zero.
            force: f_d (m,): (moment, force) that the mechanism should exert, in the rows of the
                task [N m, N]. A number presses against the one axis of force control, that is along
                minus the normal [N].
            contact: The sensed (moment, force) (6,) on the node, at its origin and in the task's
                axes; or (3,), the force alone. None without contact. For a task relative to a
                moving node it acts between the two.
            integral: ∫ (f_d - f) dt so far (m,) [N m s, N s]; default: zero.
            phase: The phase of the contact.
        """
        given = self._given(q, v, goal, velocity, acceleration, force, contact, integral, phase)
        result = self._run(self._kernel(full=True), given)
        return MotionForceCommand(**result, integral=given[INTEGRAL])

    def torque(
        self,
        q: ArrayLike,
        v: ArrayLike,
        *,
        goal: GoalLike,
        velocity: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        force: ArrayLike = 0.0,
        contact: ArrayLike | None = None,
        integral: ArrayLike | None = None,
        phase: PhaseName | ContactPhase = "contact",
    ) -> Array:
        """The joint forces of `command` alone (..., nv); arguments are the same."""
        given = self._given(q, v, goal, velocity, acceleration, force, contact, integral, phase)
        return self._run(self.kernel, given)

    @property
    def kernel(self) -> Any:
        """The kernel of `torque`; its `arguments` name q, v, goal, velocity, acceleration ..."""
        return self._kernel(full=False)

    def export_c(self, name: str | None = None, *, dtype: Any = np.float64) -> CSource:
        """`kernel` as a C function; `.write(folder)` writes its two files.

        Of its inputs `servo` has the number to press with, kf, ki, the damping times the speed of
        an approach, and the damping, by the phase; `contact` is (moment, force); all after it are
        the arrays of `numbers`.

        Args:
            name: Of the function and the files. Its inputs are those of `kernel`.
            dtype: float64 or float32.
        """
        mech = self._mech
        drawn, nodes = formula(self.structure, False), closure_nodes(mech)
        code: Any = compile(drawn, mech, nodes=nodes, target="c", dtype=dtype)
        return code.named(name) if name else code

    @property
    def _mech(self) -> Mechanism:
        """The mechanism of the kernel, with the pose of the task among its nodes."""
        task = self.task
        pose = Task.pose(task.node, relative_to=task.relative_to, axes=task.axes)
        return task_stack(self.mech, pose).mech

    def _kernel(self, *, full: bool) -> Any:
        """The kernel, made once."""
        if full not in self._made:
            mech = self._mech
            kernel = written(mech, formula(self.structure, full), closure_nodes(mech))
            self._made[full] = kernel
        return self._made[full]

    def _run(self, kernel: Any, given: list[Any]) -> Any:
        """A kernel on its inputs, checking q and v if it has no result."""
        result = None if kernel.quick is None else kernel.quick(*given)
        if result is None:
            given[0], given[1] = self.mech.check_q(given[0]), self.mech.check_v(given[1])
            result = kernel(*given)
        return result

    def sense(self, q: ArrayLike, v: ArrayLike, surface: CompliantSurface) -> Array:
        """The reading of a perfect sensor at the node on a surface (..., 6), in the task's axes."""
        force = surface.force(self.mech, q, v, self.task.node, frame="world")
        back = np.swapaxes(task_axes(self.mech, q, self.task), -1, -2)
        return six(_apply(back, force[..., :3]), _apply(back, force[..., 3:]))

    # -------------------------------------------------------------------------------------- pieces

    def _given(
        self,
        q: ArrayLike,
        v: ArrayLike,
        goal: GoalLike,
        velocity: ArrayLike | None,
        acceleration: ArrayLike | None,
        force: ArrayLike,
        contact: ArrayLike | None,
        integral: ArrayLike | None,
        phase: PhaseName | ContactPhase,
    ) -> list[Any]:
        """Inputs of the kernel, in its order."""
        if self.size < 3 and not self.selection.constant(self.task):
            self.selection.matrices(self.mech, q, self.task)  # rows must fit in this state too
        position, velocity, acceleration = self._goal(goal, velocity, acceleration)
        numbers = self._goals.quickly(position)
        if numbers is None:
            q, v = self.mech.check_q(q), self.mech.check_v(v)
            single = q.ndim == 1 and v.ndim == 1
            batch = 1 if single else len(q if q.ndim > 1 else v)
            numbers = self._goals.carefully(position, batch, single)
        rate, ahead = self._rows(velocity, "velocity"), self._rows(acceleration, "acceleration")
        along, press = self._rows(None, "force"), floats(force, "force")
        if press.ndim:
            along, press = self._rows(force, "force"), np.zeros(())
        _finite(press, "force")
        servo = np.array([press, *self._gains(phase)])
        if (servo[0] or servo[3]) and self.structure.normal is None:
            self.selection.normal(self.mech, q, self.task)  # raises: there is no one normal
        arrays = (
            q,
            v,
            numbers[0],
            rate,
            ahead,
            along,
            self._rows(integral, "integral"),
            self._six(contact),
        )
        if not self._last:
            names = self.kernel.arguments[len(arrays) + 1 :]
            self._last.extend(self.numbers[name] for name in names)
        return [*arrays, servo, *self._last]

    def _gains(self, phase: PhaseName | ContactPhase) -> tuple[float, float, float, float]:
        """k_f, k_i, a and k_v of F*_active by the phase."""
        name = phase.name if isinstance(phase, ContactPhase) else phase
        check_phase(name)
        if name == "contact":
            return self.servo.kf, self.servo.ki, 0.0, self.servo.kv
        if self.transition is None:
            raise ModelError(
                f"phase is {name!r}, but the controller has no transition; give it one, "
                "transition=lw.tasks.ContactTransition(approach_speed=..., impact_damping=...)."
            )
        if name == "impact":
            return 0.0, 0.0, 0.0, self.transition.impact_damping
        return 0.0, 0.0, self.servo.kv * self.transition.approach_speed, self.servo.kv

    def _goal(
        self, goal: GoalLike, velocity: ArrayLike | None, acceleration: ArrayLike | None
    ) -> tuple[Any, ArrayLike | None, ArrayLike | None]:
        """Position, velocity and acceleration, of a goal or separate."""
        if not isinstance(goal, Goal | Mapping):
            return goal, velocity, acceleration
        (goal,) = as_goals(goal, [self.task.name])
        for name, given in (("velocity", velocity), ("acceleration", acceleration)):
            if given is not None and getattr(goal, name) is not None:
                raise ModelError(f"{name} was given twice, in the goal and separately; remove one.")
        ahead = goal.acceleration if acceleration is None else acceleration
        return goal.position, goal.velocity if velocity is None else velocity, ahead

    def _rows(self, given: ArrayLike | None, what: str) -> Array:
        """A vector over the rows of the task; zero for None."""
        if given is None:
            return np.zeros(self.size)
        array = floats(given, what)
        if array.shape[-1:] != (self.size,):
            raise ShapeError(
                f"{what} has shape {array.shape}; task {self.task.name!r} has {self.size} rows."
            )
        return _finite(array, what)

    def _six(self, contact: ArrayLike | None) -> Array:
        """(moment, force) that acts on the node (..., 6)."""
        if contact is None:
            return np.zeros(6)
        wrench = floats(contact, "contact")
        if wrench.shape[-1:] == (3,):
            wrench = np.concatenate([np.zeros_like(wrench), wrench], axis=-1)
        if wrench.shape[-1:] != (6,):
            raise ShapeError(
                f"contact has shape {wrench.shape}; it is (moment, force) (6,) or a force (3,)."
            )
        return _finite(wrench, "contact")


def _finite(array: Array, what: str) -> Array:
    if not np.isfinite(array).all():
        raise ModelError(f"{what} is not finite: {array.tolist()}; give numbers.")
    return array


def _apply(matrix: Array, x: Array) -> Array:
    """A matrix (..., m, n) times vectors (..., n)."""
    return (matrix @ x[..., None])[..., 0]
