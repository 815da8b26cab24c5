"""Controllers of tasks: a state and goals in, joint forces out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.arguments import number
from linkwise.dynamics.kernels import Loops, require_open, written
from linkwise.dynamics.velocity_space import states
from linkwise.errors import ModelError, unknown_name
from linkwise.model.closure import closure_nodes
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike
from linkwise.tasks.control.check import check_tasks
from linkwise.tasks.control.gain import spread_out
from linkwise.tasks.control.goal import GoalNumbers
from linkwise.tasks.control.hierarchy import TOLERANCE
from linkwise.tasks.control.joint_limits import JointLimits
from linkwise.tasks.control.posture import Posture
from linkwise.tasks.control.report import ControlReport, LevelReport, row_labels
from linkwise.tasks.control.servo import Level, Servo, as_levels
from linkwise.tasks.control.singular import STANDARD, SingularStrategy
from linkwise.tasks.control.tick import (
    OF_LEVEL,
    Driven,
    Kept,
    Near,
    Structure,
    report_formula,
    torque_formula,
)
from linkwise.tasks.dynamics import Compensate
from linkwise.tasks.task_stack import HOLDS, TaskStack, task_stack

if TYPE_CHECKING:
    from linkwise.codegen.c.source import CSource

PER_TICK = 5
"""The first inputs of the kernel change with every tick: q, v, goal, velocity, acceleration."""

UNBOUNDED = 1e30
"""Replaces a missing limit: inputs of kernels are finite."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TaskController:
    """Joint forces that drive tasks to their goals, in order of priority.

    Expression, for one level:
        τ = J* (Λ (F* - γ) + J̄* C) + N* Γ₀,        F* = ẍ_d + k_v (ẋ_d - ẋ) + k_p e
    with Γ₀ of the posture and the joint limits. Each further level acts in the dynamically
    consistent null space of all levels before it, the posture in that of all levels.

    Source: 003 (12), (14), (27), (69) and section 5.3; priorities after Sentis and Khatib (2005).

        hand = lw.tasks.Servo(lw.Task.pose("hand"), kp=100.0, kv=20.0)
        controller = lw.TaskController(arm, hand, posture=lw.tasks.Posture(q_mid, kp=20.0, kv=5.0))
        tau = controller(q, v, goal)

    It has no state: the same (q, v, goals) give the same τ.

    Attributes:
        mech: The mechanism.
        levels: Servos in order of priority, each level one servo or several of equal rank.
        posture: Motion in the null space of all levels.
        limits: Repulsion from the ends of joint ranges.
        singular: Strategy near singular configurations; None for the plain inverse, which grows
            without bounds there and drops directions exactly at them.
        damping: None, or the damping of `lw.tasks.task_space` in place of a strategy; reports show
            what it removes.
        compensate: Whether gravity, Coriolis and centrifugal forces are compensated in all
            "joints", or only as the "task"s see them, which lets the rest of the arm fall.
        length: At which turning is compared with moving [m]; default: the reach at the nodes.
        tolerance: Singular values of J below this fraction of the largest count as zero.
        loops: "open" leaves loops and couplings open; "closed" raises if there are any.

    Raises:
        ModelError: A task that the mechanism cannot do, or with too many rows; duplicate names.
        UnknownNameError: The mechanism has no such node or hinge.
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
    _stacks: tuple[TaskStack, ...] = field(init=False, repr=False)
    structure: Structure = field(init=False, repr=False)
    numbers: dict[str, Array] = field(init=False, repr=False)
    _goals: GoalNumbers = field(init=False, repr=False)
    _quick: list[Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put: Any = object.__setattr__
        servos = as_levels(self.levels)
        put(self, "servos", servos)
        every = [tuple(servo.task for servo in level) for level in servos]
        stacks = tuple(task_stack(self.mech, tasks, center=True) for tasks in every)
        put(self, "_stacks", stacks)
        _check_options(self)
        check_tasks(self.mech, stacks)
        require_open(self.mech, self.loops, "lw.TaskController", HOLDS)
        put(self, "structure", self._structure())
        put(self, "numbers", self._numbers())
        put(self, "_quick", [])  # the call for one state, and its numbers
        put(self, "_goals", GoalNumbers(self.mech, [s.task for level in servos for s in level]))

    def __repr__(self) -> str:
        levels = " > ".join(" + ".join(servo.name for servo in level) for level in self.servos)
        parts = [f"{self.mech.name!r}", levels]
        parts += [name for name in ("posture", "limits") if getattr(self, name) is not None]
        parts += [f"damping {self.damping:g}"] if self.damping else []
        parts += ["plain inverse"] if self.singular is None and not self.damping else []
        return f"TaskController({', '.join(parts)})"

    @property
    def kernel(self) -> Any:
        """The kernel of a call: of q, v, the goals and `numbers`, by their names, gives τ (nv,).

        It depends on the structure of the controller, not on its numbers. `goal` has the numbers of
        all positions (for a pose rotation and origin, row by row), `velocity` ẋ_d and
        `acceleration` ẍ_d of all servos in order.
        """
        stack = self._stack
        return written(stack.mech, torque_formula(self.structure), closure_nodes(stack.mech))

    def export_c(self, name: str | None = None, *, dtype: Any = np.float64) -> CSource:
        """The kernel as a C function; `.write(folder)` writes its two files.

        Args:
            name: Of the function and the files. Its inputs are those of `kernel`.
            dtype: float64 or float32.
        """
        mech, formula = self._stack.mech, torque_formula(self.structure)
        code: Any = compile(formula, mech, nodes=closure_nodes(mech), target="c", dtype=dtype)
        return code.named(name) if name else code

    def __call__(self, q: ArrayLike, v: ArrayLike, goals: Any) -> Array:
        """Joint forces for a state.

        Args:
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
            goals: For one servo its goal, a `lw.Goal` or a position alone; for several a dictionary
                of goals by the names of the tasks, or a list in their order.

        Returns:
            (nv,) or (batch, nv) [N or N m].
        """
        goal = self._goals.quickly(goals)
        if goal is not None and self._quick:
            call, numbers = self._quick
            tau = call(q, v, *goal, *numbers)
            if tau is not None:
                return tau
        if not self._quick and self.kernel.quick is not None:
            names = self.kernel.arguments[PER_TICK:]
            self._quick.extend([self.kernel.quick, [self.numbers[name] for name in names]])
        return self._called(self.kernel, q, v, goals)

    def explain(self, q: ArrayLike, v: ArrayLike, goals: Any) -> ControlReport:
        """What the controller does in a state, for printing.

        Args:
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
            goals: As for a call.
        """
        stack = self._stack
        kernel = written(stack.mech, report_formula(self.structure), closure_nodes(stack.mech))
        result = self._called(kernel, q, v, goals)
        levels = list[LevelReport]()
        for k, tasks in enumerate(self._stacks):
            parts = {name: result[f"{k}.{name}"] for name in OF_LEVEL}
            parts |= {name: parts[name] > 0.0 for name in ("held", "slowed")}
            rank = np.nan_to_num(parts["rank"]).astype(np.int64)
            parts["rank"] = rank if rank.ndim else int(rank)
            levels.append(
                LevelReport(tasks.tasks, row_labels(tasks), **parts, damped=bool(self.damping))
            )
        free = result["free"] if result["free"].ndim else float(result["free"])
        close = result["close"] > 0.0
        return ControlReport(result["tau"], result["acceleration"], tuple(levels), close, free)

    @property
    def _stack(self) -> TaskStack:
        """The tasks of all levels."""
        every = tuple(servo.task for level in self.servos for servo in level)
        return task_stack(self.mech, every, center=True)

    def _called(self, kernel: Any, q: ArrayLike, v: ArrayLike, goals: Any) -> Any:
        """A kernel in one state or in a batch."""
        single, q, (v,) = states(self.mech, q, v=v)
        goal = self._goals.carefully(goals, len(q), single)
        q, v = (q[0], v[0]) if single else (q, v)
        changing = zip(("q", "v", "goal", "velocity", "acceleration"), (q, v, *goal), strict=True)
        arrays = self.numbers | dict(changing)
        return kernel(*[arrays[name] for name in kernel.arguments])

    # ---------------------------------------------------------------------- structure and numbers

    def _structure(self) -> Structure:
        """What the kernel depends on."""
        levels = tuple(
            tuple(
                Driven(s.task, m, np.ndim(s.kp) == 2, np.ndim(s.kv) == 2, s.speed is not None)
                for s, m in zip(level, tasks.sizes, strict=True)
            )
            for level, tasks in zip(self.servos, self._stacks, strict=True)
        )
        near: Near = "damped" if self.damping else "plain"
        braked = False
        if self.singular is not None:
            near = self.singular.remaining
            braked = self.singular.speeds(self.mech.velocity_limit) is not None
        order = self._stack.order
        posture, limits = self.posture, self.limits
        drawn, kept = None if posture is None else posture.drawn(self.mech), None
        if limits is not None:
            q_at, v_at = (tuple(x.tolist()) for x in limits.places(self.mech))
            kept = Kept(q_at, v_at, limits.priority == "top")
        places = None if order is None else tuple(order.tolist())
        return Structure(levels, places, near, braked, drawn, kept, self.compensate == "joints")

    def _numbers(self) -> dict[str, Array]:
        """Inputs of the kernel that are the same in all states."""
        servos = [servo for level in self.servos for servo in level]
        sizes = [m for tasks in self._stacks for m in tasks.sizes]
        lengths = [t.length() if self.length is None else self.length for t in self._stacks]
        stacked = {
            "scale": [t.scale(length) for t, length in zip(self._stacks, lengths, strict=True)],
            "kp": [spread_out(s.kp, m) for s, m in zip(servos, sizes, strict=True)],
            "kv": [spread_out(s.kv, m) for s, m in zip(servos, sizes, strict=True)],
        }
        numbers = {name: np.concatenate(parts) for name, parts in stacked.items()}
        numbers["reach"] = np.array([tasks.length() for tasks in self._stacks])
        numbers["speed"] = np.array([s.speed for s in servos if s.speed is not None])
        numbers["tolerance"] = np.array([self.tolerance])
        numbers["damping"] = np.array([self.damping or 0.0])
        if self.singular is not None:
            numbers["threshold"] = np.array([self.singular.threshold])
            speeds = self.singular.speeds(self.mech.velocity_limit)
            numbers |= {} if speeds is None else {"speeds": speeds}
        if self.posture is not None:
            numbers |= self.posture.numbers(self.mech)
        if self.limits is not None:
            q_at, _ = self.limits.places(self.mech)
            for name, ends in (("lower", self.mech.lower), ("upper", self.mech.upper)):
                numbers[name] = np.clip(ends[q_at], -UNBOUNDED, UNBOUNDED)
            numbers["limits"] = np.array(self.limits.numbers)
        return numbers


def _check_options(controller: TaskController) -> None:
    for name, kind in (
        ("posture", Posture),
        ("limits", JointLimits),
        ("singular", SingularStrategy),
    ):
        value = getattr(controller, name)
        if value is not None and not isinstance(value, kind):
            raise ModelError(
                f"{name} is a {type(value).__name__}; it must be a lw.tasks.{kind.__name__}."
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
            f"damping is {d!r} and singular is a strategy; both handle singular configurations, so "
            "give only one."
        )
    for name in ("length", "tolerance"):
        if getattr(controller, name) is not None:
            number(getattr(controller, name), name, above=0.0)
    if controller.limits is not None:
        controller.limits.places(controller.mech)  # raises if there are none
    if controller.posture is not None:  # raises for gains, positions and names that do not fit
        controller.posture.numbers(controller.mech)
