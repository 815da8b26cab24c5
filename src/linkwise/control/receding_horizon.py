"""A controller that plans anew at each tick: the first joint forces of a trajectory that moves on.

The trajectory of the last tick, moved on by the time that has passed, is the guess of the next. Its
first state is replaced by the measured one, which leaves a gap behind it; multiple shooting closes
it. Each tick makes a fixed number of iterations in memory that was taken at the beginning.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.arguments import count, number
from linkwise.codegen.c.source import default_name
from linkwise.codegen.stepping.stepping import Stepping
from linkwise.control.cost import Bound, Cost, checked_costs
from linkwise.control.export import HorizonSource, export
from linkwise.control.optimize import Problem, problem_of, routine_of
from linkwise.control.problem import goal_numbers_of, goal_place
from linkwise.control.tick import PREFIX, Plan, Tick, in_steps
from linkwise.dynamics.kernels import Loops, tree_of
from linkwise.errors import ModelError, ShapeError, TroubleWarning, caller
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike


class RecedingHorizon:
    """Model predictive control: τ(t, q, v) for `lw.simulate(..., controller=...)`.

    Each call plans from the given state; the plan moves on by a step whenever that time has passed.

    Attributes:
        mech: The mechanism.
        step: Length of a step of the horizon [s].
        iterations: Iterations of each tick.
    """

    def __init__(
        self,
        mech: Mechanism,
        *,
        costs: Cost | Sequence[Cost],
        step: float,
        horizon: int,
        iterations: int = 1,
        first: int = 50,
        bounds: Bound | Sequence[Bound] = (),
        limits: Sequence[str] = ("effort",),
        driven: Sequence[str] | None = None,
        integrator: str = "euler",
        passive: bool = True,
        loops: Loops = "closed",
    ) -> None:
        """Compile it.

        Args:
            mech: The mechanism.
            costs: As for `lw.optimize`, of a single problem.
            step: Length of a step [s]; the plan moves on by one whenever that time has passed.
            horizon: The number of steps.
            iterations: Iterations of each tick.
            first: Iterations of the first call, which starts without a plan.
            bounds: As for `lw.optimize`.
            limits: As for `lw.optimize`.
            driven: Names of the hinges that have a motor; default: all.
            integrator: "euler" or "rk4".
            passive: Whether dampers and springs act.
            loops: "open" controls the tree of a mechanism that has loops or couplings.
        """
        self.costs = checked_costs(costs)
        self._given: dict[str, Any] = {
            "mech": mech, "costs": self.costs, "step": step, "horizon": horizon,
            "iterations": iterations, "first": first, "bounds": bounds, "limits": limits,
            "driven": driven, "integrator": integrator, "passive": passive, "loops": loops,
        }  # fmt: skip
        self._goals = dict[int, Any]()
        problem = problem_of(
            mech, mech.neutral(), None, costs=self.costs, step=step, horizon=horizon,
            bounds=bounds, limits=limits, driven=driven, integrator=integrator, passive=passive,
            loops=loops,
        )  # fmt: skip
        self._problem = _from_measured(problem)
        if self._problem.shape.batch is not None:
            raise ShapeError(
                f"a goal has rows for {self._problem.shape.batch} problems; a controller has one. "
                "Give one goal; set_goal changes it."
            )
        self.mech, self.step = self._problem.program.mech, self._problem.step
        self.iterations = count(iterations, "iterations", least=1)
        if self.iterations == 1:
            _warn_of_equations(self._problem)
        self._first = count(first, "first", least=1)
        self._planned = _Planned(self._problem)
        self._begun: float | None = None

    def __repr__(self) -> str:
        rounds = f"{self.iterations} iteration{'s' * (self.iterations > 1)}"
        steps = f"{self._problem.shape.steps} steps of {self.step:g} s"
        return f"<RecedingHorizon of {self.mech.name!r}: {steps}, {rounds} in each tick>"

    def set_goal(self, cost: int, goal: Any) -> None:
        """Give a cost another goal, from the next tick on.

        Args:
            cost: Its number among the costs.
            goal: As for the cost, for a single problem.

        Raises:
            ModelError: There is no such cost, or it has no goal.
        """
        index = count(cost, "cost", most=len(self.costs) - 1)
        structure, shape = self._problem.program.structure, self._problem.shape
        rows = goal_numbers_of(self.mech, structure, shape, self.costs[index], index, goal)
        self._planned.set_goal(goal_place(self.mech, structure, index).start, rows)
        self._goals[index] = goal

    def __reduce__(self) -> tuple[Any, ...]:
        """Machine code and memory stay here: a copy is made anew, and begins without a plan."""
        return _made_anew, (self._given, self._goals)

    @property
    def description(self) -> dict[str, Any]:
        """What it was made of and the goals given since: everything its forces depend on."""
        return {"kind": "receding horizon", **self._given, "goals": self._goals}

    def reset(self) -> None:
        """Forget the plan; the next call begins anew."""
        self._begun = None

    @property
    def cost(self) -> float:
        """What the latest plan costs, with penalties."""
        return self._planned.cost

    @property
    def plan(self) -> tuple[Array, Array]:
        """q (N + 1, nq) and v (N + 1, nv) of the latest plan."""
        x, nq = self._planned.states, self.mech.nq
        return x[:, :nq].copy(), x[:, nq : nq + self.mech.nv].copy()

    def export_c(self, name: str | None = None) -> HorizonSource:
        """A tick as a C function; `.write(folder)` writes its two files.

        The function takes its memory, and allocates nothing; see its header. Goals can be changed
        there; weights, limits and the horizon are constants.

        Args:
            name: Of the function and the files; default: the name of the robot and "_horizon".
        """
        return export(
            self._planned.tick, dict(self._problem.data.held), self.step,
            default_name(self.mech.name, "horizon") if name is None else name,
            self._first, self.iterations,
        )  # fmt: skip

    def compiled_into(self, stepping: Stepping) -> Stepping:
        """A motion each of whose steps begins with a tick, for `lw.rollout`.

        Args:
            stepping: The motion.
        """
        tick = self._planned.tick
        return in_steps(tick, stepping, self.step, self._first, self.iterations)

    def planned_for(self, mech: Mechanism) -> tuple[dict[str, Array], Any]:
        """The numbers of the problem for kernels of `lw.rollout`, and what these depend on.

        Args:
            mech: The mechanism that moves.

        Raises:
            ModelError: It is another one.
        """
        if mech is not self.mech and tree_of(mech) is not self.mech:
            raise ModelError(
                f"the receding horizon belongs to {self.mech.name!r}, made apart from the "
                f"mechanism {mech.name!r} that should move: make it for this one."
            )
        r = self._planned.tick.routine
        given = {PREFIX + x: self._planned.given(x) for x in r.inputs}
        depends = r.program.structure, r.knots, r.timed, self.step, self._first, self.iterations
        return given, depends

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:
        """Joint forces (nv,).

        Args:
            t: The time [s].
            q: Joint positions (nq,).
            v: Joint velocities (nv,).

        Raises:
            ModelError: The state or the plan is not finite.
            ShapeError: Several states; each tick takes one.
        """
        t = number(t, "t")
        state = self.mech.check_q(q), self.mech.check_v(v)
        if state[0].ndim != 1 or state[1].ndim != 1:
            raise ShapeError(
                f"q has shape {state[0].shape} and v {state[1].shape}; a tick takes one state, "
                f"({self.mech.nq},) and ({self.mech.nv},)."
            )
        x = np.concatenate(state)
        if self._begun is None or t < self._begun:
            self._planned.begin(x, self._first)
            self._begun = t
        else:
            passed = int(min((t - self._begun) / self.step + 1e-9, 2**53))
            self._planned.move_on(x, passed, self.iterations)
            self._begun += passed * self.step
        tau = np.zeros(self.mech.nv)
        tau[list(self._problem.program.structure.driven)] = self._planned.command
        if not np.isfinite(tau).all():
            raise ModelError(
                f"the plan for {self.mech.name!r} at {t:g} s is not finite; shorten the step, or "
                "weigh the joint forces more."
            )
        return tau


def _warn_of_equations(problem: Problem) -> None:
    """Warn of bounds with equal ends, whose multipliers hardly change in single iterations."""
    held = problem.data.held
    if "active" not in held or not np.any((held["low"] == held["high"]) & (held["active"] > 0.0)):
        return
    warnings.warn(
        f"{problem.mech.name!r}: a bound has equal ends, and one iteration in each tick follows "
        "such a bound slowly: it may be off by centimetres. Give iterations=2 or more.",
        TroubleWarning,
        stacklevel=caller(),
    )


def _from_measured(problem: Problem) -> Problem:
    """The problem without bounds on its first state: that is measured, and no force changes it."""
    held = problem.data.held
    if "active" not in held:
        return problem
    active = held["active"].copy()
    active[:, 0] = 0.0
    return replace(problem, data=replace(problem.data, held={**held, "active": active}))


def _made_anew(given: dict[str, Any], goals: dict[int, Any]) -> RecedingHorizon:
    """A controller of the same arguments, with the goals that it had."""
    made = RecedingHorizon(**given)
    for cost, goal in goals.items():
        made.set_goal(cost, goal)
    return made


class _Planned:
    """A plan and the kernel of its ticks."""

    def __init__(self, problem: Problem) -> None:
        self.tick = Tick(routine_of(problem))
        self._plan = Plan(self.tick, dict(problem.data.held), problem.step)

    def given(self, name: str) -> Array:
        """Numbers of an input."""
        return self._plan.given[name].copy()

    @property
    def cost(self) -> float:
        return self._plan.cost

    @property
    def states(self) -> Array:
        return self._plan.trajectory

    @property
    def command(self) -> Array:
        r = self.tick.routine
        return self._plan.trajectory[0, r.nx :]

    def set_goal(self, at: int, rows: Array) -> None:
        r = self.tick.routine
        goal = self._plan.given["goal"].reshape(r.knots if "goal" in r.timed else 1, -1)
        if rows.shape[1] > len(goal):
            raise ShapeError(
                f"a goal for each of {rows.shape[1]} knots was given; the costs were made with one "
                "goal for all. Make the controller with a goal for each knot."
            )
        goal[:, at : at + rows.shape[2]] = rows[0]

    def begin(self, x: Array, rounds: int) -> None:
        self._plan.advance(x, -1, rounds)

    def move_on(self, x: Array, steps: int, rounds: int) -> None:
        for _ in range(min(steps, self.tick.routine.knots) - 1):
            self._plan.advance(x, 1, 0)
        self._plan.advance(x, min(steps, 1), rounds)
