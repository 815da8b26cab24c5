"""Goals: where tasks should be, and how they should move there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from linkwise.errors import ModelError, unknown_name
from linkwise.spatial.array import ArrayLike


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """Where a task should be, and how it should move there.

    Attributes:
        target: What `lw.task_position` should become: a `Pose`, a point, a rotation, a direction or
            joint coordinates; a batch of them has (batch,) in front.
        velocity: ẋ_d (m,) or (batch, m) along the rows of the task; None for zero.
        acceleration: ẍ_d (m,) or (batch, m); None for zero.
    """

    target: Any
    velocity: ArrayLike | None = None
    acceleration: ArrayLike | None = None


def as_goals(goals: Any, names: Sequence[str]) -> list[Goal]:
    """A goal for each servo."""
    if isinstance(goals, Mapping):
        given = cast("Mapping[object, Any]", goals)
        for name in given:
            if name not in names:
                raise unknown_name("servo", name, names, owner="the controller")
        missing = [name for name in names if name not in given]
        if missing:
            raise ModelError(
                f"no goal was given for {_listed(missing)}; the controller needs one for each of "
                f"{_listed(names)}."
            )
        each = [given[name] for name in names]
    elif len(names) == 1:
        each = [goals]
    elif isinstance(goals, list | tuple):
        each = list(cast("Sequence[Any]", goals))
        if len(each) != len(names):
            raise ModelError(
                f"{len(each)} goals were given for {len(names)} servos; give one for each, in the "
                f"order {_listed(names)}, or a dictionary by name."
            )
    else:
        raise ModelError(
            f"goals is a {type(goals).__name__}; for {len(names)} servos it must be a dictionary "
            f"with the keys {_listed(names)}, or a list in that order."
        )
    return [goal if isinstance(goal, Goal) else Goal(goal) for goal in each]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
