"""A controller that plans anew at each tick: the first joint forces of a trajectory that moves on.

The trajectory of the last tick, moved on by the time that has passed, is the guess of the next. Its
first state is replaced by the measured one, which leaves a gap behind it; multiple shooting closes
it. Each tick makes a fixed number of iterations in memory that was taken at the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.arguments import count, number
from linkwise.control.cost import Bound, Cost, checked_costs
from linkwise.control.optimize import problem_of
from linkwise.control.problem import goal_numbers_of, goal_place
from linkwise.control.solver import OUT_OF_TIME, RUNNING, Iteration, Limits
from linkwise.dynamics.kernels import Loops
from linkwise.errors import ModelError, ShapeError
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
        self._problem = problem_of(
            mech, mech.neutral(), None, costs=self.costs, step=step, horizon=horizon,
            bounds=bounds, limits=limits, driven=driven, integrator=integrator, passive=passive,
            loops=loops,
        )  # fmt: skip
        self.mech, self.step = self._problem.program.mech, self._problem.step
        self.iterations = count(iterations, "iterations", least=1)
        self._first = count(first, "first", least=1)
        self._iteration = Iteration(
            self._problem.program, self._problem.data, self.step, Limits(1, 1e-9, 1e-4)
        )
        self._begun: float | None = None

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
        self._iteration.set_goal(goal_place(self.mech, structure, index).start, rows)

    def reset(self) -> None:
        """Forget the plan; the next call begins anew."""
        self._begun = None

    @property
    def cost(self) -> float:
        """What the latest plan costs, with penalties."""
        return float(self._iteration.cost[0])

    @property
    def plan(self) -> tuple[Array, Array]:
        """q (N + 1, nq) and v (N + 1, nv) of the latest plan."""
        it = self._iteration
        x = it.trajectory[0, : it.knots]
        return x[:, : it.nq].copy(), x[:, it.nq : it.nx].copy()

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
        it, t = self._iteration, number(t, "t")
        state = self.mech.check_q(q), self.mech.check_v(v)
        if state[0].ndim != 1 or state[1].ndim != 1:
            raise ShapeError(
                f"q has shape {state[0].shape} and v {state[1].shape}; a tick takes one state, "
                f"({self.mech.nq},) and ({self.mech.nv},)."
            )
        x = np.concatenate(state)
        if self._begun is None or t < self._begun:
            it.restart(x)
            self._begun, rounds = t, self._first
        else:
            passed = int(min((t - self._begun) / self.step + 1e-9, 2**53))
            it.move_on(x, passed)
            self._begun += passed * self.step
            rounds = self.iterations
        for _ in range(rounds):
            if it.ended[0] not in (RUNNING, OUT_OF_TIME):
                break
            it.step()
        tau = np.zeros(self.mech.nv)
        tau[list(self._problem.program.structure.driven)] = it.command
        if not np.isfinite(tau).all():
            raise ModelError(
                f"the plan for {self.mech.name!r} at {t:g} s is not finite; shorten the step, or "
                "weigh the joint forces more."
            )
        return tau
