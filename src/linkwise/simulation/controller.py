"""What may be given as a controller, made a function of the time, q and v."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import check_arguments
from linkwise.errors import LinkwiseError, ModelError, ShapeError, SimulationError
from linkwise.model.mechanism import Mechanism
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


class Commands:
    """Joint forces of a controller, or of the argument `tau`, checked at each call.

    Attributes:
        constant: τ (nv,) if it never changes, else None.
        law: A compiled law and its goal, which stays; or None.
        what: What it is called in messages.
    """

    def __init__(
        self, mech: Mechanism, given: object, what: str, tick: float | None, duration: float
    ) -> None:
        self.mech, self.what = mech, what
        self.constant: Array | None = None
        self._table: Array | None = None
        self._law: Controller | None = None
        self.law: tuple[ControlLaw, Any] | None = None
        if given is None:
            self.constant = np.zeros(mech.nv)
        elif _is_pair(given):
            law, goal = cast("tuple[Any, Any]", given)
            self._law = _with_goal(law, goal)
            if isinstance(law, ControlLaw) and not callable(goal):
                self.law = law, goal
        elif callable(given):
            self._law = _function(given, what)
        elif not isinstance(given, Mapping | str | bytes) and floats(given, what).ndim == 2:
            self._table = _table(mech, given, what, tick, duration)
        else:
            self.constant = _one(mech, cast(Any, given))

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
            if tau.shape == v.shape and tau.dtype == np.float64 and np.isfinite(tau).all():
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
        mech, when = self.mech, f"{self.what} at t = {t:.9g} s"
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
                return _one(mech, cast(Any, given))
            except LinkwiseError as error:
                raise type(error)(f"{when}: {error}") from None
        raise SimulationError(_not_finite(mech, table, when))


def _one(mech: Mechanism, given: object) -> Array:
    """Joint forces of one instant (nv,): a copy of a number, an array, or numbers by hinge."""
    if isinstance(given, Mapping):
        tau = np.zeros(mech.nv)
        for name, value in cast("Mapping[str, ArrayLike]", given).items():
            part, force = mech.v_slice(name), floats(value, f"tau[{name!r}]")
            size = part.stop - part.start
            if force.shape not in ((), (size,)):
                raise ShapeError(
                    f"tau[{name!r}] has shape {force.shape}; the hinge has {size} velocities."
                )
            tau[part] = force
        return mech.check_v(tau, "tau")
    if given is None or isinstance(given, str | bytes | set):
        raise ShapeError(
            f"tau is {given!r}; it is a number, an array ({mech.nv},), a dictionary by the names "
            "of hinges, or a function of (t, q, v) that gives one of these."
        )
    tau = floats(cast(Any, given), "tau")
    tau = mech.check_v(np.full(mech.nv, tau) if tau.ndim == 0 else tau, "tau")
    if tau.shape != (mech.nv,):
        raise ShapeError(
            f"tau has the shape {tau.shape}; at one instant it is ({mech.nv},), a number for all, "
            "or numbers by the names of hinges."
        )
    return np.array(tau)


def _not_finite(mech: Mechanism, given: Mapping[str, Any], when: str) -> str:
    names, values = list[str](), list[float]()
    for name, value in given.items():
        numbers: list[float] = np.ravel(np.asarray(value, dtype=np.float64)).tolist()
        values += numbers
        complete = not name and len(numbers) == mech.nv
        names += mech.velocity_names if complete else [name or "all hinges"] * len(numbers)
    bad = [(n, x) for n, x in zip(names, values, strict=False) if not np.isfinite(x)]
    more = f", and for {len(bad) - 1} more" if len(bad) > 1 else ""
    name, value = bad[0] if bad else ("some hinge", np.nan)
    return (
        f"{when} gave {value} for {name!r}{more}; joint forces must be finite numbers. Look there "
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


def _table(mech: Mechanism, given: object, what: str, tick: float | None, duration: float) -> Array:
    """Joint forces (k, nv), one row for each tick."""
    table = mech.check_v(floats(cast(Any, given), what), what)
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
