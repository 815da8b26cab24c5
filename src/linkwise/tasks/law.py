"""A control law as one kernel: state and goal in, joint forces out.

    ẍ = ẍ_d + k_v (ẋ_d - ẋ) + k_p e
    F = Λ (ẍ - γ - J_t 𝓜⁻¹ (τ₀ - C)) + F_applied,   τ = τ₀ + J_t* F

is one expression. It is lowered to three passes over the tree and compiled for the CPU or a GPU, or
written as a C function for the controller of a robot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.dynamics.kernels import Loops, require_open
from linkwise.errors import ExpressionError, ModelError, ShapeError, unknown_name
from linkwise.model import task_rows
from linkwise.model.closure import closure_nodes
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.tasks.control.goal import Goal
from linkwise.tasks.dynamics import Compensate
from linkwise.tasks.measure import goal_numbers
from linkwise.tasks.quantity import TASK, Law, torque
from linkwise.tasks.task import Task, Tasks
from linkwise.tasks.task_stack import HOLDS, TaskStack, task_stack

if TYPE_CHECKING:
    from linkwise.codegen.c.source import CSource

ALSO = {
    "inertia": ("task_inertia", (-1, -2)),
    "inverse": ("task_inertia_inverse", (-1, -2)),
    "consistent_inverse": ("consistent_inverse", (-1,)),
    "coriolis": ("task_coriolis", (-1,)),
    "gravity": ("task_gravity", (-1,)),
    "jacobian": ("task_jacobian", (-2,)),
    "velocity": ("task_velocity", (-1,)),
}
"""Further results of a law: the quantities, and their axes over the rows."""

TARGETS = ("cpu", "cuda", "numpy")

GIVEN = {
    **{name: name for name in ("goal", "velocity", "acceleration", "applied")},
    "tau0": "tau",
}
"""Arguments of a call, and the corresponding inputs of the kernel."""


@dataclass(frozen=True, slots=True, eq=False)
class ControlLaw:
    """A compiled control law: from a state and a goal to joint forces.

    It has no state, and is exact where the tasks have full rank; near a singularity use
    `lw.TaskController`, which handles lost directions. Made by `lw.control_law`.

    The kernel and the C function take the same arguments as a call, under the same names. Only
    `tau0` is `tau` there, and `acceleration` is `closing` in a law without a servo. Their rows of
    joints follow those of nodes.

    Attributes:
        mech: The mechanism.
        tasks: Its tasks, whose rows are stacked.
        expression: The expressions of the kernel, by name; "torque" is the law itself.
        kernel: The kernel, which takes plain arrays in the order of its `arguments`.
        inputs: Default inputs of the kernel: gains, and zeros.
    """

    mech: Mechanism
    tasks: tuple[Task, ...]
    expression: dict[str, Expr]
    kernel: Any
    inputs: dict[str, Array]
    _stack: TaskStack
    _plan: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        quick = self.kernel.quick  # only CPU kernels have it
        plan = None
        # The goal of one direction could also be a position, which must be normalised.
        doubtful = len(self.tasks) == 1 and self.tasks[0].kind == "direction"
        if quick is not None and self._stack.order is None and not doubtful:
            arrays = [self.inputs.get(name) for name in self.arguments]
            at = {name: i for i, name in enumerate(self.arguments)}
            at.setdefault("acceleration", at.get("closing", -1))
            size = self.inputs["goal"].shape if "goal" in self.inputs else ()
            plan = (quick, arrays, at, size)
        object.__setattr__(self, "_plan", plan)

    def __reduce__(self) -> tuple[Any, ...]:  # machine code is loaded anew
        parts = (self.mech, self.tasks, self.expression, self.kernel, self.inputs, self._stack)
        return ControlLaw, parts

    def __repr__(self) -> str:
        tasks = " + ".join(task.name for task in self.tasks)
        return f"<ControlLaw of {self.mech.name!r}, {tasks}: ({', '.join(self.arguments)})>"

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arrays that the kernel, and the C function, take."""
        return tuple(self.kernel.arguments)

    @property
    def ops(self) -> int:
        """Scalar operations of one call."""
        return int(sum(self.kernel.ops.values()))

    def __call__(
        self,
        q: ArrayLike,
        v: ArrayLike,
        goal: Any = None,
        *,
        acceleration: Any = None,
        **given: Any,
    ) -> Any:
        """Joint forces (nv,) or (batch, nv) [N or N m]; a dictionary with further results.

        Args:
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
            goal: The desired `lw.tasks.task_position`, or a `lw.Goal`; for several tasks a list of
                these, or a dictionary by the names of the tasks. Its numbers, from `law.goal`, are
                faster.
            acceleration: ẍ_d (m,), default zero; without a servo ẍ itself.
            given: `velocity` ẋ_d (m,), default zero; `tau0` (nv,) and `applied` (m,) if the law was
                made for them.
        """
        if not given:
            result = self._quickly(q, v, goal, acceleration)
            if result is not None:
                return result
        if acceleration is not None:
            given["acceleration"] = acceleration
        arrays = self.inputs | {"q": q, "v": v}
        if goal is not None:
            given = self._with_goal(goal, given)
        for name, value in given.items():
            key = GIVEN.get(name, name)
            if name == "acceleration" and "closing" in self.inputs:
                key = "closing"
            if name not in GIVEN or key not in self.inputs:
                allowed = [x for x, y in GIVEN.items() if y in self.inputs]
                raise unknown_name("argument", name, allowed, owner="this control law")
            arrays[key] = self._numbers(name, value)
        if "goal" in self.inputs and "goal" not in given:
            raise ModelError(
                "goal is missing: the desired position of the tasks, see lw.tasks.task_position."
            )
        result = self.kernel(*[arrays[name] for name in self.kernel.arguments])
        if self._stack.order is None or not isinstance(result, dict):
            return result
        both = cast("dict[str, Array]", result)
        return {n: self._stack.sorted(x, *ALSO[n][1]) if n in ALSO else x for n, x in both.items()}

    def _quickly(self, q: Any, v: Any, goal: Any, acceleration: Any) -> Any:
        """One state, arrays in the form that the kernel takes; None if they need to be checked."""
        plan = self._plan
        if plan is None:
            return None
        quick, arrays, at, size = plan
        arrays = arrays.copy()
        arrays[at["q"]] = q
        if "v" in at:
            arrays[at["v"]] = v
        if "goal" in at:
            if type(goal) is not np.ndarray or goal.shape != size:
                return None
            arrays[at["goal"]] = goal
        elif goal is not None:
            return None
        if acceleration is not None:
            arrays[at["acceleration"]] = acceleration
        return quick(*arrays)

    def _with_goal(self, goal: Any, given: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call, with the parts of a goal or of several."""
        if isinstance(goal, Mapping):
            by_name = cast("Mapping[str, Any]", goal)
            names = [task.name for task in self.tasks]
            if set(by_name) != set(names):
                raise ModelError(f"goals are for {sorted(by_name)}; they must be for {names}.")
            goal = [by_name[name] for name in names]
            goal = goal[0] if len(names) == 1 else goal
        each = cast("list[Any]", goal) if isinstance(goal, list | tuple) else [goal]
        if not any(isinstance(x, Goal) for x in each):
            return {**given, "goal": goal}
        if len(each) != len(self.tasks):
            raise ModelError(f"{len(each)} goals were given for {len(self.tasks)} tasks.")
        places = [x.position if isinstance(x, Goal) else x for x in each]
        inputs = {**given, "goal": places if len(each) > 1 else places[0]}
        for what in ("velocity", "acceleration"):
            parts = [getattr(x, what, None) for x in each]
            if any(part is not None for part in parts):
                sizes = zip(self._stack.sizes, parts, strict=True)
                filled = [np.zeros(n) if x is None else floats(x, what) for n, x in sizes]
                lead = np.broadcast_shapes(*(x.shape[:-1] for x in filled))
                spread = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in filled]
                inputs.setdefault(what, np.concatenate(spread, axis=-1))
        return inputs

    def __str__(self) -> str:
        what = " and ".join(task.name for task in self.tasks)
        return f"control law of {what} on {self.mech.name!r}, {self.ops} operations a call"

    def _numbers(self, name: str, value: Any) -> Any:
        if name == "goal":
            size = self.inputs["goal"].shape[0]
            numbers = isinstance(value, np.ndarray) and np.shape(cast(Any, value))[-1:] == (size,)
            alone = len(self.tasks) == 1 and size <= 3  # a position is its own numbers
            return cast(Any, value) if numbers and not alone else self.goal(value)
        array = floats(value, name)
        if name == "tau0":
            return array
        if array.shape[-1:] != (self._stack.size,):
            names = ", ".join(self._stack.names)
            raise ShapeError(
                f"{name} has shape {array.shape}; it must be ({self._stack.size},), for {names}."
            )
        return self._stack.unsorted(array)

    def goal(self, positions: Any) -> Array:
        """The numbers of a goal (size,) or (batch, size), in the order of the kernel.

        Args:
            positions: The desired `lw.tasks.task_position`; for several tasks a list of these.
        """
        each = [positions] if len(self.tasks) == 1 else list(positions)
        if len(each) != len(self.tasks):
            raise ModelError(f"{len(each)} positions were given for {len(self.tasks)} tasks.")
        nodes, joints = list[Array](), list[Array]()
        for task, position in zip(self.tasks, each, strict=True):
            numbers = goal_numbers(self.mech, task, position)
            (joints if task.kind == "joints" else nodes).append(numbers)
        parts = [*nodes, *joints]
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in parts))
        spread = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in parts]
        return np.ascontiguousarray(np.concatenate(spread, axis=-1))

    def export_c(self, name: str | None = None, *, dtype: Any = np.float64) -> CSource:
        """The law as a C function; `.write(folder)` writes its two files.

        Gains and goals stay inputs: `NAME(q, v, ..., out)`, see its header.

        Args:
            name: Of the function and the files.
            dtype: float64 or float32.
        """
        nodes = closure_nodes(self._stack.mech)
        expression = self.expression if len(self.expression) > 1 else self.expression["torque"]
        code: Any = compile(expression, self._stack.mech, nodes=nodes, target="c", dtype=dtype)
        return code.named(name) if name else code


def control_law(
    mech: Mechanism,
    tasks: Tasks,
    *,
    kp: ArrayLike | None = None,
    kv: ArrayLike | None = None,
    internal: bool = False,
    applied: bool = False,
    compensate: Compensate = "joints",
    also: Sequence[str] = (),
    loops: Loops = "closed",
    target: str = "cpu",
    dtype: Any = np.float64,
) -> ControlLaw:
    """A control law compiled to one kernel: one level of tasks, and torques in their null space.

    Expression:
        τ = τ₀ + J_t* (Λ (ẍ - γ - J_t 𝓜⁻¹ (τ₀ - C)) + F_applied),  ẍ = ẍ_d + k_v (ẋ_d - ẋ) + k_p e
    with τ₀ + C instead of τ₀ unless `compensate` is "task", in three passes over the tree,
    O(n) + O(m³). Without gains ẍ is the argument `acceleration`.

    For a rotation error of θ, e is the chord 2 sin(θ/2) about its axis, which needs no branches;
    `lw.tasks.task_error` has the angle.

    Args:
        kp: Stiffness, a number or (m,) [1/s²].
        kv: Damping, a number or (m,) [1/s]; 2 √k_p is critical.
        internal: Whether a call takes `tau0`, joint forces in the null space.
        applied: Whether a call takes `applied`, an additional force along the rows.
        compensate: "joints" compensates gravity, Coriolis and centrifugal forces in all joints;
            "task" as the tasks see them, 003 (12), which lets their null space fall. See
            `task_torque`.
        also: Further results of the same kernel: "inertia", "inverse", "consistent_inverse",
            "coriolis", "gravity", "jacobian", "velocity". A call then returns a dictionary, with
            the joint forces as "torque".
        loops: "open" leaves loops and couplings open; "closed" raises if there are any.
        target: "cpu", "cuda" or "numpy"; for C see `export_c`.
        dtype: float64 or float32.

    Raises:
        ModelError: A gain that is not positive, or one without the other.
    """
    stack = task_stack(mech, tasks)
    require_open(mech, loops, "lw.control_law", HOLDS)
    if target not in TARGETS:
        if target == "c":
            raise ModelError("target is 'c'; make the law, and call law.export_c(name).")
        raise unknown_name("target", target, TARGETS, owner="lw.control_law")
    if stack.size > mech.nv:
        raise ModelError(
            f"the tasks have {stack.size} rows ({', '.join(stack.names)}), but {mech.name!r} has "
            f"{mech.nv} degrees of freedom: the rows cannot all be satisfied. Remove some."
        )
    also = (also,) if isinstance(also, str) else tuple(also)
    gains = {"kp": kp, "kv": kv}
    if (kp is None) != (kv is None):
        raise ModelError("only one of kp and kv was given; a servo needs both.")
    if compensate not in ("task", "joints"):
        raise unknown_name("compensate", compensate, ("task", "joints"), owner="lw.control_law")
    named = [task.name for task in stack.tasks if task.coordinates is not None]
    if named and kp is not None:
        raise ModelError(
            f"{named[0]!r} has coordinates, but a servo works in basic velocities: remove the "
            "coordinates, or the gains, and give the acceleration from "
            "lw.tasks.task_coordinates(...).acceleration."
        )
    law = Law(compensate == "joints", internal, applied, kp is not None)
    s = stack.setting
    expressions = {"torque": torque(s, law)}
    for name in also:
        if name not in ALSO:
            raise unknown_name("result", name, ALSO, owner="lw.control_law")
        expressions[name] = TASK[ALSO[name][0]](s)
    inputs = dict[str, Array]()
    if kp is not None:
        inputs["goal"] = np.zeros(sum(task_rows.goal_sizes(stack.mech)))
        inputs |= {x: np.zeros(stack.size) for x in ("velocity", "acceleration")}
        inputs |= {name: _gain(stack, name, value) for name, value in gains.items()}
    else:
        inputs["closing"] = np.zeros(stack.size)
    inputs |= {"tau": np.zeros(mech.nv)} if internal else {}
    inputs |= {"applied": np.zeros(stack.size)} if applied else {}
    expr: Any = expressions if also else expressions["torque"]
    nodes = closure_nodes(stack.mech)
    make = cast(Any, compile)
    try:
        made = make(expr, stack.mech, nodes=nodes, target=target, dtype=dtype)
    except ExpressionError as error:
        if "singular" not in str(error):
            raise
        raise ModelError(
            f"{mech.name!r} cannot do all rows of "
            f"{' and '.join(task.name for task in stack.tasks)} in any state: "
            f"{', '.join(stack.names)}."
        ) from None
    return ControlLaw(mech, stack.tasks, expressions, made, inputs, stack)


def _gain(stack: TaskStack, name: str, value: ArrayLike | None) -> Array:
    """A gain for each row, in the order of the kernel."""
    array = floats(0.0 if value is None else value, name)
    if array.shape not in ((), (stack.size,)):
        names = ", ".join(stack.names)
        raise ShapeError(
            f"{name} has shape {array.shape}; it must be a number or ({stack.size},), for {names}."
        )
    array = np.array(np.broadcast_to(array, (stack.size,)))
    if not np.all(np.isfinite(array) & (array > 0.0)):
        raise ModelError(f"{name} is {array.tolist()}; gains must be positive numbers.")
    return stack.unsorted(array)
