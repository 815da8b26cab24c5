"""How many problems goals, parameters and guesses are given for, where the start is a single one.

A goal with rows in front is one for each problem, or one for each knot of a single problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linkwise.codegen.scalar import parameters as numbers_of
from linkwise.control.cost import Bound, Cost
from linkwise.errors import ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import ArrayLike, floats
from linkwise.tasks.measure import goal_numbers


def batch_of(
    mech: Mechanism,
    each: tuple[Cost | Bound, ...],
    parameters: Mapping[str, ArrayLike],
    guess: Mapping[str, Any] | None,
    knots: int,
) -> int | None:
    """The number of problems that belong to a single start; None for one.

    Args:
        mech: The mechanism.
        each: Costs and bounds.
        parameters: Numbers of the mechanism by name.
        guess: Arrays of a trajectory by name.
        knots: N + 1.

    Raises:
        ShapeError: Numbers that differ, or N + 1 goals that may belong to problems or to knots.
    """
    sizes = dict[str, int]()
    for name, given in parameters.items():
        axes = numbers_of.nominal(mech, name).ndim
        _note(sizes, f"parameters[{name!r}]", floats(given, name).shape[: -axes or None])
    for name, given in (guess or {}).items():
        shape = floats(given, name).shape
        _note(sizes, f"guess[{name!r}]", shape[:1] if len(shape) > 2 else ())
    rows = list[tuple[str, bool]]()
    for x in each:
        lead, what = _lead(mech, x), _name(x)
        if lead == (knots,) and knots > 1:
            rows.append((what, _at_end(x)))
        else:
            _note(sizes, what, lead)
    if len(set(sizes.values())) > 1:
        said = ", ".join(f"{size} of {what}" for what, size in sizes.items())
        raise ShapeError(
            f"the start is a single one, and the other rows differ in number: {said}. Each belongs "
            "to one problem; give as many of all."
        )
    count = next(iter(sizes.values()), None)
    for what, at_end in rows:
        if at_end or count == knots:
            raise ShapeError(
                f"{what} has {knots} rows, which may be one for each of {knots} problems or for "
                f"each of the {knots} knots. For {knots} problems, give q as ({knots}, {mech.nq}); "
                f"for the knots, give the goal with (1, {knots}) in front."
            )
        if count is not None:
            raise ShapeError(
                f"{what} has {knots} rows, and {next(iter(sizes))} has {count}. If these rows "
                f"belong to knots, give the goal with (1, {knots}) in front."
            )
    return count


def _note(sizes: dict[str, int], what: str, lead: tuple[int, ...]) -> None:
    if lead and lead[0] > 1:
        sizes[what] = lead[0]


def _at_end(x: Cost | Bound) -> bool:
    """Whether it counts at the last knot only, where rows for all knots have no use."""
    if isinstance(x, Bound):
        return x.when == "final"
    return not floats(x.weight, "weight").any()


def _name(x: Cost | Bound) -> str:
    kind = "bound on" if isinstance(x, Bound) else "cost of"
    return f"the goal of a {kind} {x.kind if x.task is None else repr(x.task.name)}"


def _lead(mech: Mechanism, x: Cost | Bound) -> tuple[int, ...]:
    """Axes in front of a goal."""
    if x.goal is None:
        return ()
    if x.task is not None:
        return goal_numbers(mech, x.task, x.goal).shape[:-1]
    array = mech.check_q(x.goal) if x.kind == "posture" else mech.check_v(x.goal, _name(x))
    return array.shape[:-1]
