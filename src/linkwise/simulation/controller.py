"""What may be given as a controller, made a function of the time, q and v."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import check_arguments
from linkwise.dynamics.state_feedback import StateFeedback
from linkwise.errors import (
    LinkwiseError,
    ModelError,
    ShapeError,
    SimulationError,
    unknown_name,
)
from linkwise.model.mechanism import Mechanism
from linkwise.model.state import checked
from linkwise.spatial.array import Array, ArrayLike, floats, read_only
from linkwise.tasks.law import ControlLaw

JointForces: TypeAlias = ArrayLike | Mapping[str, ArrayLike]
"""A number for all, (nv,), or numbers by the names of hinges; others are zero then."""

Force: TypeAlias = Callable[[float, Array, Array], JointForces]
"""Joint forces from the time [s], q (nq,) and v (nv,)."""

Controller: TypeAlias = Callable[[float, Array, Array], Any]
"""Joint forces from the time [s], q (nq,) and v (nv,): (nv,), a number, or numbers by hinge."""

GivenController: TypeAlias = Controller | ArrayLike | Mapping[str, ArrayLike] | tuple[Any, Any]
"""A function of (t, q, v); (law, goal); joint forces (nv,); or a table of them (k, nv)."""

GivenCommands: TypeAlias = Controller | ArrayLike | Mapping[str, ArrayLike]
"""Commands of actuators: a function of (t, q, v), (a,), numbers by name, or a table (k, a)."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What a row of commands consists of.

    Attributes:
        owner: Whose commands they are, in messages.
        word: What it is called: "tau" or "controls".
        names: The name of each number.
        part: The place of the numbers of a name; raises for an unknown one.
        kind: What the numbers are.
        owners: What has them.
        many: What one of the owners has several of.
    """

    owner: str
    word: str
    names: tuple[str, ...]
    part: Callable[[str], slice]
    kind: str
    owners: str
    many: str

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return len(self.names)

    def checked(self, given: Any, what: str) -> Array:
        """Rows of finite numbers (..., size)."""
        return checked(self.owner, given, what, self.names)


def joint_layout(mech: Mechanism) -> Layout:
    """Joint forces."""
    names = tuple(mech.velocity_names)
    return Layout(
        repr(mech.name), "tau", names, mech.v_slice, "joint forces", "hinges", "velocities"
    )


def actuator_layout(mech: Mechanism) -> Layout:
    """Commands of actuators."""
    names = tuple(x.name for x in mech.actuators)

    def part(name: str) -> slice:
        if name not in names:
            raise unknown_name("actuator", name, names, owner=f"mechanism {mech.name!r}")
        return slice(names.index(name), names.index(name) + 1)

    return Layout(repr(mech.name), "controls", names, part, "commands", "actuators", "commands")


class Commands:
    """Joint forces of a controller, or of the argument `tau`, checked at each call.

    Commands of actuators are given in the same ways.

    Attributes:
        layout: What a row consists of.
        constant: τ (nv,) if it never changes, else None.
        law: A compiled law and its goal, which stays; or None.
        what: What it is called in messages.
    """

    def __init__(
        self,
        layout: Layout | Mechanism,
        given: object,
        what: str,
        tick: float | None,
        duration: float,
    ) -> None:
        layout = layout if isinstance(layout, Layout) else joint_layout(layout)
        self.layout, self.what = layout, what
        self.constant: Array | None = None
        self._table: Array | None = None
        self._law: Controller | None = None
        self.law: tuple[ControlLaw, Any] | None = None
        if given is None:
            self.constant = np.zeros(layout.size)
        elif _is_pair(given):
            law, goal = cast("tuple[Any, Any]", given)
            self._law = _with_goal(law, goal)
            if isinstance(law, ControlLaw | StateFeedback) and not callable(goal):
                self.law = cast("ControlLaw", law), goal
        elif callable(given):
            self._law = _function(given, what)
        elif not isinstance(given, Mapping | str | bytes) and floats(given, what).ndim == 2:
            self._table = _table(layout, given, what, tick, duration)
        else:
            self.constant = _one(layout, cast(Any, given))

    @property
    def sees_state(self) -> bool:
        """Whether it is a function, and no number or table."""
        return self._law is not None

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        """τ (nv,) at one instant.

        Raises:
            SimulationError: A number that is not finite; says when and for which hinge.
        """
        if self.constant is not None:
            return self.constant
        assert self._law is not None, "rows of a table are looked up by tick"
        given: object = self._law(t, read_only(q), read_only(v))
        if type(given) is np.ndarray:
            tau = cast(Array, given)
            if (
                tau.shape == (self.layout.size,)
                and tau.dtype == np.float64
                and np.isfinite(tau).all()
            ):
                return tau.copy()  # most calls; the user may write into it again
        return self._checked(cast(object, given), t)

    def at_tick(self, tick: int, t: float, q: Array, v: Array) -> Array:
        """τ (nv,) from the tick of that number on, which is at t [s]; a row of a table has one."""
        if self._table is None:
            return self(t, q, v)
        return self._table[min(tick, len(self._table) - 1)]

    def at_ticks(self, ticks: NDArray[np.intp]) -> Array:
        """τ (nv,) or (k, nv) from the ticks of these numbers on, if it is no function."""
        if self.constant is not None:
            return self.constant
        assert self._table is not None
        return self._table[np.minimum(ticks, len(self._table) - 1)]

    def _checked(self, given: object, t: float) -> Array:
        layout, when = self.layout, f"{self.what} at t = {t:.9g} s"
        if hasattr(given, "tau"):  # the report of a controller
            given = getattr(given, "tau")  # noqa: B009
        elif isinstance(given, Mapping) and "torque" in given:  # a law that tells more
            given = cast("Mapping[str, object]", given)["torque"]
        table = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {"": given}
        try:
            arrays = [np.asarray(x, dtype=np.float64) for x in table.values() if x is not None]
        except (TypeError, ValueError):
            arrays = []
        if all(np.isfinite(x).all() for x in arrays):
            try:
                return _one(layout, cast(Any, given))
            except LinkwiseError as error:
                raise type(error)(f"{when}: {error}") from None
        raise SimulationError(_not_finite(layout, table, when))


def _one(layout: Layout, given: object) -> Array:
    """Commands of one instant (size,): a copy of a number, an array, or numbers by name."""
    word, size = layout.word, layout.size
    if isinstance(given, Mapping):
        row = np.zeros(size)
        for name, value in cast("Mapping[str, ArrayLike]", given).items():
            part, numbers = layout.part(name), floats(value, f"{word}[{name!r}]")
            count = part.stop - part.start
            if numbers.shape not in ((), (count,)):
                raise ShapeError(
                    f"{word}[{name!r}] has shape {numbers.shape}; the {layout.owners[:-1]} has "
                    f"{count} {layout.many}."
                )
            row[part] = numbers
        return layout.checked(row, word)
    if given is None or isinstance(given, str | bytes | set):
        raise ShapeError(
            f"{word} is {given!r}; it is a number, an array ({size},), a dictionary by the names "
            f"of {layout.owners}, or a function of (t, q, v) that gives one of these."
        )
    row = floats(cast(Any, given), word)
    row = layout.checked(np.full(size, row) if row.ndim == 0 else row, word)
    if row.shape != (size,):
        raise ShapeError(
            f"{word} has the shape {row.shape}; at one instant it is ({size},), a number for all, "
            f"or numbers by the names of {layout.owners}."
        )
    return np.array(row)


def _not_finite(layout: Layout, given: Mapping[str, Any], when: str) -> str:
    names, values = list[str](), list[float]()
    for name, value in given.items():
        numbers: list[float] = np.ravel(np.asarray(value, dtype=np.float64)).tolist()
        values += numbers
        complete = not name and len(numbers) == layout.size
        names += layout.names if complete else [name or f"all {layout.owners}"] * len(numbers)
    bad = [(n, x) for n, x in zip(names, values, strict=False) if not np.isfinite(x)]
    more = f", and for {len(bad) - 1} more" if len(bad) > 1 else ""
    name, value = bad[0] if bad else (f"some {layout.owners[:-1]}", np.nan)
    return (
        f"{when} gave {value} for {name!r}{more}; {layout.kind} must be finite numbers. Look there "
        "for a division by zero, a square root or arccos of what is out of its range, or a gain "
        "that is too large for the step."
    )


def _is_pair(given: object) -> bool:
    if not isinstance(given, tuple):
        return False
    parts = cast("tuple[object, ...]", given)
    return len(parts) == 2 and callable(parts[0])


def _with_goal(law: Any, goal: Any) -> Controller:
    """law(q, v, goal), with a goal that may be a function of the time."""
    if callable(goal):
        check_arguments(goal, "the goal of a controller", "t")
        return lambda t, q, v: law(q, v, goal(t))
    numbers = getattr(law, "goal", None)
    if callable(numbers) and not hasattr(goal, "acceleration") and not isinstance(goal, Mapping):
        goal = numbers(goal)  # a goal that stays is looked at once
    return lambda t, q, v: law(q, v, goal)


def _function(given: Callable[..., Any], what: str) -> Controller:
    """A function of (t, q, v), or one of (q, v) alone; refuses what wants a goal."""
    inputs = getattr(given, "inputs", None)
    if isinstance(inputs, dict) and "goal" not in inputs and hasattr(given, "tasks"):
        return lambda t, q, v: given(q, v)
    try:
        signature = inspect.signature(given)
    except (TypeError, ValueError):  # some built-in functions do not tell
        return given
    kind = str(getattr(given, "__name__", type(given).__name__))
    if _fits(signature, 2) and not _fits(signature, 3):
        named = kind.isidentifier()
        raise ModelError(
            f"{what}{f'={kind}' if named else ''} takes {_arguments(signature)}, and a simulation "
            f"calls (t, q, v): write {what}=lambda t, q, v: {f'{kind}(q, v)' if named else '...'}"
        )
    if list(signature.parameters)[:2] == ["q", "v"]:
        raise ModelError(
            f"{what}={kind} is called with (q, v, goal), and a simulation calls (t, q, v): give "
            f"the goal with it, {what}=({kind}, goal), where the goal may be a function of t; or "
            f"write {what}=lambda t, q, v: ..."
        )
    check_arguments(given, what, "t, q, v")
    return given


def _fits(signature: inspect.Signature, count: int) -> bool:
    """Whether a function can be called with `count` arguments."""
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _arguments(signature: inspect.Signature) -> str:
    """The names of the arguments that are given in order."""
    names = [x.name for x in signature.parameters.values() if x.kind is not x.KEYWORD_ONLY]
    return f"({', '.join(names)})"


def _table(layout: Layout, given: object, what: str, tick: float | None, duration: float) -> Array:
    """Commands (k, size), one row for each tick."""
    table = layout.checked(given, what)
    if tick is None:
        raise ModelError(
            f"{what} is a table {table.shape}; say with control_step=... how long [s] each row "
            "acts."
        )
    ticks = int(np.ceil(duration / tick - 1e-9))
    if len(table) < ticks:
        raise ShapeError(
            f"{what} has {len(table)} rows; {duration:.6g} s in ticks of {tick:.6g} s need {ticks}."
        )
    return np.array(table)
