"""What a trajectory should do: costs that are weighed against each other, and bounds that hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkwise.arguments import all_are, function as checked_function, is_a, names, option
from linkwise.control.residual import Kind
from linkwise.errors import ModelError
from linkwise.spatial.array import ArrayLike
from linkwise.tasks.task import Task

if TYPE_CHECKING:
    from linkwise.control.phase import Foothold

WHEN = ("all", "final", "before")
"""Knots at which a bound holds: all of them, the last one, or all but the last one."""


@dataclass(frozen=True, slots=True, eq=False)
class Cost:
    """∫ ½ w |r|² dt + ½ w_N |r(T)|². Use the functions below to make one.

    Attributes:
        kind: "task", "posture", "velocity", "effort", "force" or "function".
        weight: w while the motion lasts [1/s]: a number, (m,) for the rows, or (N, m) for each
            step.
        final: w_N at its end: a number or (m,).
        goal: Where r is zero; None for zero, or for joint positions the neutral ones.
        task: The task.
        hinges: Names of hinges; None for all.
        function: Rows r in array code.
    """

    kind: Kind
    weight: ArrayLike = 0.0
    final: ArrayLike = 0.0
    goal: Any = None
    task: Task | None = None
    hinges: tuple[str, ...] | None = None
    function: Callable[[Any], Any] | None = None

    @staticmethod
    def of_task(task: Task, goal: Any, *, weight: ArrayLike = 0.0, final: ArrayLike = 0.0) -> Cost:
        """The error of a task, as in `lw.tasks.task_error`.

        Args:
            task: The task.
            goal: The desired `lw.tasks.task_position`. With (batch,) in front each problem has its
                own; for a single problem (N + 1,) in front gives one for each knot, and for any
                (1, N + 1).
            weight: w [1/s]: a number, (m,), or (N, m).
            final: w_N, a number or (m,).
        """
        return Cost("task", weight, final, goal, is_a(Task, task, "task"))

    @staticmethod
    def posture(
        q: ArrayLike | None = None,
        *,
        hinges: Sequence[str] | None = None,
        weight: ArrayLike = 0.0,
        final: ArrayLike = 0.0,
    ) -> Cost:
        """q ⊖ q₀, along velocities of the hinges.

        Args:
            q: q₀ (nq,), (batch, nq), for a single problem (N + 1, nq), or (1, N + 1, nq);
                default: the neutral configuration.
            hinges: Names of hinges; default: all.
            weight: w [1/s]: a number, (m,), or (N, m).
            final: w_N, a number or (m,).
        """
        return Cost("posture", weight, final, q, None, _hinges(hinges))

    @staticmethod
    def velocity(
        v: ArrayLike | None = None,
        *,
        hinges: Sequence[str] | None = None,
        weight: ArrayLike = 0.0,
        final: ArrayLike = 0.0,
    ) -> Cost:
        """v − v₀ of the hinges.

        Args:
            v: v₀ (nv,), (batch, nv) or for a single problem (N + 1, nv); default: zero.
            hinges: Names of hinges; default: all.
            weight: w [1/s]: a number, (m,), or (N, m).
            final: w_N, a number or (m,).
        """
        return Cost("velocity", weight, final, v, None, _hinges(hinges))

    @staticmethod
    def effort(tau: ArrayLike | None = None, *, weight: ArrayLike) -> Cost:
        """τ − τ₀ of the driven joints.

        Args:
            tau: τ₀ (nv,), (batch, nv) or for a single problem (N + 1, nv); default: zero.
            weight: w [1/s]: a number, (m,) for the driven joints, or (N, m).
        """
        return Cost("effort", weight, 0.0, tau)

    @staticmethod
    def force(*, weight: ArrayLike) -> Cost:
        """Forces of all contacts in parts of the weight of the mechanism, (x, y, z) of each.

        Args:
            weight: w [1/s]: a number, (m,) with three for each contact, or (N, m).
        """
        return Cost("force", weight)

    @staticmethod
    def of_function(
        rows: Callable[[Any], Any], *, weight: ArrayLike = 0.0, final: ArrayLike = 0.0
    ) -> Cost:
        """Rows r of the state in array code, such as `lambda at: at.value(J @ v, nodes=["hand"])`.

        Args:
            rows: Given what formulas are given: `at.q`, `at.v`, `at.mech` and `at.value`, which
                evaluates expressions. It runs once, on graph nodes.
            weight: w [1/s]: a number, (m,), or (N, m).
            final: w_N, a number or (m,).
        """
        return Cost("function", weight, final, function=checked_function(rows, "rows"))


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """low ≤ c ≤ high at knots; an equation where both are equal. Use the functions below.

    Attributes:
        kind: "task", "posture", "velocity" or "function"; "cone" for the forces of a contact.
        low: Lower bounds: a number, (m,), or (N + 1, m) for each knot.
        high: Upper bounds, likewise.
        goal: Of a task, where c is zero.
        task: The task.
        hinges: Names of hinges; None for all.
        function: Rows c in array code.
        when: Knots at which it holds: "all", "final" or "before".
        contact: Of a cone, the contact.
    """

    kind: Kind
    low: ArrayLike
    high: ArrayLike
    goal: Any = None
    task: Task | None = None
    hinges: tuple[str, ...] | None = None
    function: Callable[[Any], Any] | None = None
    when: str = "all"
    contact: Foothold | None = None

    @staticmethod
    def on_task(
        task: Task, goal: Any, low: ArrayLike = 0.0, high: ArrayLike = 0.0, *, when: str = "all"
    ) -> Bound:
        """The error of a task, goal minus position, within bounds.

        Args:
            task: The task.
            goal: The desired `lw.tasks.task_position`, as for `Cost.of_task`.
            low: Lower bounds of its rows, a number or (m,) [m or rad].
            high: Upper bounds; with both zero, the default, the goal is reached exactly.
            when: "all", "final" for the last knot, or "before" for all others.
        """
        is_a(Task, task, "task")
        return Bound("task", low, high, goal, task, when=option(when, WHEN, "when"))

    @staticmethod
    def on_position(
        low: ArrayLike, high: ArrayLike, *, hinges: Sequence[str] | None = None, when: str = "all"
    ) -> Bound:
        """Coordinates of plain hinges (pins and sliders).

        Args:
            low: Lower bounds, a number or one for each hinge [m or rad].
            high: Upper bounds.
            hinges: Names of hinges; default: all.
            when: "all", "final" or "before".
        """
        return Bound("posture", low, high, hinges=_hinges(hinges), when=option(when, WHEN, "when"))

    @staticmethod
    def on_velocity(
        low: ArrayLike, high: ArrayLike, *, hinges: Sequence[str] | None = None, when: str = "all"
    ) -> Bound:
        """Velocities of hinges.

        Args:
            low: Lower bounds, a number or one for each velocity [m/s or rad/s].
            high: Upper bounds.
            hinges: Names of hinges; default: all.
            when: "all", "final" or "before".
        """
        return Bound("velocity", low, high, hinges=_hinges(hinges), when=option(when, WHEN, "when"))

    @staticmethod
    def on_function(
        rows: Callable[[Any], Any], low: ArrayLike, high: ArrayLike, *, when: str = "all"
    ) -> Bound:
        """Rows c of the state in array code, as for `Cost.of_function`.

        Args:
            rows: Given what formulas are given.
            low: Lower bounds, a number or (m,).
            high: Upper bounds.
            when: "all", "final" or "before".
        """
        return Bound(
            "function", low, high, function=checked_function(rows, "rows"),
            when=option(when, WHEN, "when"),
        )  # fmt: skip


def _hinges(given: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if given is None else names(given, "hinges")


def checked_costs(costs: Any) -> tuple[Cost, ...]:
    """Costs as a tuple; raises where there are none."""
    each = all_are(Cost, (costs,) if isinstance(costs, Cost) else costs, "costs")
    if not each:
        raise ModelError("costs is empty; a trajectory needs one, like Cost.effort(weight=1e-3).")
    return each


def checked_bounds(bounds: Any) -> tuple[Bound, ...]:
    """Bounds as a tuple."""
    return all_are(Bound, (bounds,) if isinstance(bounds, Bound) else bounds, "bounds")
