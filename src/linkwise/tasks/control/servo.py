"""A servo: the acceleration of a task towards its goal, like a unit mass on a spring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from linkwise.arguments import number
from linkwise.errors import ModelError
from linkwise.spatial.array import ArrayLike
from linkwise.spatial.choice import maximum, minimum, norm
from linkwise.tasks.control.gain import checked_gain, gain_in_words, over, times
from linkwise.tasks.task import Task


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Servo:
    """A task and the gains with which it is driven to its goal.

    Expression:
        F* = ẍ_d + k_v (ẋ_d - ẋ) + k_p e
    so that, with an exact model, ë + k_v ė + k_p e = 0. With a largest `speed`

        F* = ẍ_d + k_v (u - ẋ),   u = ẋ_d + k_v⁻¹ k_p e,  shortened if |u| exceeds the speed:

    a distant goal is approached at that speed, in a straight line if all rows have the same gain.

    Source: F* of 003 (12) and (69); the largest speed is Khatib's (1987).

    Attributes:
        task: The task.
        kp: Square of the frequency [1/s²]: a number, one for each row, or a symmetric positive
            matrix.
        kv: Damping [1/s], like kp; 2 √kp is critical.
        speed: Largest speed [m/s or rad/s]; for tasks whose rows all turn or all move.
    """

    task: Task
    kp: ArrayLike
    kv: ArrayLike
    speed: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.task, Task):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(
                f"a servo needs a task, not {self.task!r}; make one like lw.Task.position('hand')."
            )
        if self.task.coordinates is not None:
            raise ModelError(
                f"the task {self.task.name!r} has coordinates, {self.task.coordinates!r}; a servo "
                "controls the rotation vector of the error. Remove the coordinates."
            )
        name, m = self.task.name, len(self.task.rows) or None
        object.__setattr__(self, "kp", checked_gain(self.kp, f"kp of the servo {name!r}", m))
        object.__setattr__(self, "kv", checked_gain(self.kv, f"kv of the servo {name!r}", m))
        if self.speed is not None:
            number(self.speed, f"speed of the servo {name!r}", above=0.0)
            if self.task.kind == "pose":
                raise ModelError(
                    f"speed of the servo {name!r}: a pose has no single speed, since it turns and "
                    "moves; put servos of a position and of an orientation on one level."
                )

    @property
    def name(self) -> str:
        """The name of its task."""
        return self.task.name

    def __repr__(self) -> str:
        speed = "" if self.speed is None else f", speed={self.speed:g}"
        return (
            f"Servo({self.name!r}, kp={gain_in_words(self.kp)}, kv={gain_in_words(self.kv)}{speed})"
        )


def pulled(error: Any, velocity: Any, kp: Any, kv: Any, speed: Any = None) -> Any:
    """k_p e + k_v ẋ_d (m,), or less if the speed is limited; array code for one state.

    Args:
        error: e (m,).
        velocity: ẋ_d (m,).
        kp: Stiffness (m,) or (m, m).
        kv: Damping, like kp.
        speed: The largest speed; None for no bound.
    """
    if speed is None:
        return times(kp, error) + times(kv, velocity)
    u = velocity + over(kv, times(kp, error))
    size = norm(u)
    return times(kv, u) * minimum(1.0, speed / maximum(size, speed))


Level: TypeAlias = Servo | Sequence[Servo]
"""One servo, or several whose tasks have the same priority."""


def as_levels(levels: object) -> tuple[tuple[Servo, ...], ...]:
    """Levels as tuples of servos; raises for other objects and for duplicate names."""
    given = [levels] if isinstance(levels, Servo) else levels
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise ModelError(
            f"levels is {_kind(levels)}; it must be a lw.tasks.Servo, or several in order of "
            "priority, each a servo or a list of servos."
        )
    servos = list[tuple[Servo, ...]]()
    for level in cast("Sequence[object]", given):
        each = [level] if isinstance(level, Servo) else level
        if isinstance(each, str) or not isinstance(each, Sequence) or not each:
            raise ModelError(
                f"a level is {_kind(level)}; it must be a lw.tasks.Servo or a list of them."
            )
        for servo in cast("Sequence[object]", each):
            if not isinstance(servo, Servo):
                raise ModelError(
                    f"a level has {_kind(servo)} in it; it must be a lw.tasks.Servo: a task with "
                    "gains, like lw.tasks.Servo(lw.Task.position('hand'), kp=100, kv=20)."
                )
        servos.append(tuple(cast("Sequence[Servo]", each)))
    names = [servo.name for level in servos for servo in level]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ModelError(
            f"two servos are called {twice[0]!r}; goals are given by name, so the tasks need "
            "different names: lw.Task.position('hand', name='...')."
        )
    return tuple(servos)


def _kind(value: object) -> str:
    return f"a {type(value).__name__}" if value is not None and value != [] else repr(value)
