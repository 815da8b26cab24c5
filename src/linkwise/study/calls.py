"""Cases that are computed one by one: calls of a function, and simulations."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from linkwise.arguments import flag, function as callable_, number
from linkwise.errors import ModelError, ShapeError, SimulationError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.recording import Recording
from linkwise.simulation.run import simulate
from linkwise.simulation.timetable import timetable
from linkwise.spatial.array import Array
from linkwise.study.address import (
    Address,
    Nominal,
    applied,
    check_apart,
    impossible,
    made_from,
    unknown,
    varied_mechanism,
)
from linkwise.study.kept import TRAJECTORY, Batch, Evaluated, Kept, lost, merged, reduced
from linkwise.study.noted import Noted

GROUPS = ("q", "v", "parameters")
"""What names can vary in a simulation."""

TINY = 1e-6
"""Of a step: times that are this near are equal."""


def one_by_one(
    compute: Callable[[dict[str, float]], Evaluated], values: Mapping[str, Array]
) -> Evaluated:
    """Cases one after another; what a case raises is its reason."""
    count, parts = len(next(iter(values.values()))), list[Evaluated]()
    for i in range(count):
        try:
            parts.append(compute({k: float(x[i]) for k, x in values.items()}))
        except (MemoryError, OSError):  # of the machine, not of the case
            raise
        except Exception as error:
            parts.append(lost([f"{type(error).__name__}: {error}"]))
    return merged(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Cases that are calls of a function of what varies: any quantity, any program.

        lw.study.Calls(lambda length, mass: {"period": ...})

    Attributes:
        function: Called with what varies by keyword; returns a number, or a dictionary of numbers
            and arrays. What it raises is stored as the reason of a failed case.
        batched: Whether it takes and returns arrays (cases,) or (cases, n) instead.
        motion: Function of the same arguments that gives a `Recording`, for `study.case`.
    """

    function: Callable[..., Any]
    batched: bool = False
    motion: Callable[..., Recording] | None = None

    def __post_init__(self) -> None:
        callable_(self.function, "function")
        flag(self.batched, "batched")

    @property
    def steps(self) -> int:
        """A call counts as many steps: chunks of functions are small."""
        return 100 if self.batched else 20_000

    @property
    def description(self) -> dict[str, Any]:
        """Everything that results depend on."""
        return {"kind": "function", "function": self.function, "batched": self.batched}

    def check(self, names: tuple[str, ...], kept: Sequence[Kept]) -> None:
        """Raise if the function does not take what varies."""
        try:
            inspect.signature(self.function).bind(**dict.fromkeys(names, 0.0))
        except TypeError as error:
            raise ModelError(
                f"{getattr(self.function, '__name__', 'the function')} is called with "
                f"{', '.join(names)} by keyword: {error}."
            ) from None
        except ValueError:  # a built-in function without a signature
            pass
        del kept

    def batch(
        self,
        values: Mapping[str, Array],
        first: int,
        kept: Sequence[Kept],
        threads: int | None,
        seed: int = 0,
    ) -> Evaluated:
        """Calls, in one or one by one."""
        del first, threads, seed
        if self.batched:
            count = len(next(iter(values.values())))
            return _results(self.function(**values), values, count, kept)

        def compute(one: dict[str, float]) -> Evaluated:
            given = _named(self.function(**one))
            _check_given(given)
            arrays = {k: np.asarray(x, np.float64)[None] for k, x in given.items()}
            return _results(arrays, {k: np.array([x]) for k, x in one.items()}, 1, kept)

        return one_by_one(compute, values)

    def unread(self, values: Mapping[str, Array]) -> tuple[str, ...]:
        """None: all are arguments of the function."""
        del values
        return ()

    def recording(self, values: Mapping[str, Array], case: int, seed: int = 0) -> Recording:
        """The motion of a case."""
        del case, seed
        if self.motion is None:
            raise ModelError(
                "the cases of this study are calls of a function, which has no motion to record: "
                "give Calls(function, motion=...) a function that returns a lw.Recording."
            )
        return self.motion(**{k: float(x[0]) for k, x in values.items()})


def _named(result: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", result) if isinstance(result, Mapping) else {"value": result}


def _check_given(result: Mapping[str, Any]) -> None:
    """Raise for None, which NumPy takes as a number that is not one."""
    for name, x in result.items():
        if x is None:
            raise ModelError(
                f"the function returned None for {name!r}; it must return a number, or a "
                "dictionary of numbers and arrays."
            )


def _results(
    result: Any, values: Mapping[str, Array], count: int, kept: Sequence[Kept]
) -> Evaluated:
    """What is kept of results by name (cases, ...); everything without `keep`."""
    _check_given(_named(result))
    arrays = {k: np.asarray(x, np.float64) for k, x in _named(result).items()}
    for name, x in arrays.items():
        if x.ndim == 0 or len(x) != count:
            raise ShapeError(
                f"the function returned {name!r} of shape {x.shape} for {count} cases; its first "
                "axis is that of the cases."
            )

    def channel(name: str) -> tuple[Array, tuple[str, ...]]:
        if name not in arrays:
            raise unknown_name("result", name, arrays, owner="the function of the study")
        x = arrays[name]
        x = x[:, None, None] if x.ndim == 1 else x[:, None] if x.ndim == 2 else x
        if name in along:  # (cases, k) or (cases, k, n)
            x = arrays[name].reshape(*arrays[name].shape[:2], -1)
        return x, tuple(str(i) for i in range(x.shape[-1]))

    along = {x.channel for x in kept if x.statistic == TRAJECTORY}
    chosen = kept or [Kept(name, name) for name in arrays]
    records = [arrays[x].shape[1] for x in along if x in arrays and arrays[x].ndim > 1]
    batch = Batch(values, np.arange(float(records[0] if records else 0)), channel)
    return reduced(batch, chosen, [""] * count, np.full(count, np.nan), [""] * count)


@dataclass(frozen=True, eq=False)
class Simulations:
    """Cases that are simulations by `lw.simulate`: controllers in Python, events, loops.

        lw.study.Simulations(four_bar, q, duration=1.0, controller=function)

    Attributes:
        mech: The mechanism, or a function that makes one from variables of these names.
        q: Initial joint positions (nq,), or a function of the mechanism.
        v: Initial joint velocities (nv,), likewise; None for rest.
        duration: How long to move [s].
        setup: Function (mech, values by name) to arguments of `lw.simulate`, for what names cannot
            express: {"q": ..., "controller": ...}.
        options: Further arguments of `lw.simulate`.
    """

    mech: Mechanism | Callable[..., Mechanism]
    q: Any
    v: Any = None
    duration: float = 1.0
    setup: Callable[[Mechanism, Mapping[str, float]], Mapping[str, Any]] | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __init__(
        self,
        mech: Mechanism | Callable[..., Mechanism],
        q: Any = None,
        v: Any = None,
        *,
        duration: float,
        setup: Callable[[Mechanism, Mapping[str, float]], Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> None:
        allowed = [
            x
            for x in inspect.signature(simulate).parameters
            if x not in ("mech", "q", "v", "duration", "progress")
        ]
        for name in options:
            if name not in allowed:
                raise unknown_name("option", name, allowed, owner="a simulation of a study")
        if setup is not None:
            callable_(setup, "setup")
        parts = {"mech": mech, "q": q, "v": v, "duration": number(duration, "duration", above=0.0),
                 "setup": setup, "options": options}  # fmt: skip
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    @property
    def steps(self) -> int:
        """A simulation counts as many steps: its chunks are small."""
        return 100_000

    @property
    def description(self) -> dict[str, Any]:
        """Everything that results depend on."""
        names = ("mech", "q", "v", "duration", "setup")
        return {"kind": "simulation"} | {n: getattr(self, n) for n in names} | dict(self.options)

    def check(self, names: tuple[str, ...], kept: Sequence[Kept]) -> None:
        """Raise for names that are neither addresses nor used by a function."""
        if isinstance(self.mech, Mechanism) and self.setup is None:
            nominal = self._nominal(self.mech)
            check_apart({x: cast(Address, self._address(nominal, x)) for x in names})
        elif not isinstance(self.mech, Mechanism):
            made_from(self.mech, names)
        for one in kept:
            if one.statistic == TRAJECTORY and self.options.get("integrator") == "dop853":
                raise ModelError("trajectories of adaptive steps have different times; keep none.")

    def _nominal(self, mech: Mechanism) -> Nominal:
        q, v = (cast(Any, x)(mech) if callable(x) else x for x in (self.q, self.v))
        start = mech.couple(mech.neutral()) if q is None else mech.check_q(q)
        speed = np.zeros(mech.nv) if v is None else mech.check_v(v)
        return Nominal(mech, self.options, start, speed, ())

    def _address(self, nominal: Nominal, name: str) -> Address | None:
        """Where a number goes; None for one that `setup` takes."""
        address = nominal.address(name)
        if address is not None and address.group in GROUPS:
            return address
        if self.setup is None:
            raise unknown(name, "a simulation; or give `setup`")
        return None

    def _varied(self, values: Mapping[str, float]) -> tuple[Mechanism, Any, Any, set[str]]:
        """The mechanism and the state of a case, and the names that have no place there."""
        mech = self.mech
        made = dict[str, float]()
        if not isinstance(mech, Mechanism):
            made = {k: values[k] for k in made_from(mech, tuple(values))}
            mech = mech(**made)
        nominal, pairs, rest = self._nominal(mech), list[Any](), set[str]()
        for name, x in values.items():
            address = None if name in made else self._address(nominal, name)
            if address is not None:
                pairs.append((address, np.array([x])))
            elif name not in made:
                rest.add(name)
        rows = applied(nominal, pairs, 1)
        for reason in impossible(mech, rows, 1):
            raise ModelError(reason)
        q = rows[("q", "")][0] if ("q", "") in rows else nominal.q
        v = rows[("v", "")][0] if ("v", "") in rows else nominal.v
        return varied_mechanism(mech, rows), q, v, rest

    def unread(self, values: Mapping[str, Array]) -> tuple[str, ...]:
        """Names that have no place and that `setup` does not read, in any of some cases."""
        if self.setup is None:
            return ()
        left = set(values)
        for i in range(len(next(iter(values.values())))):
            one = {k: float(x[i]) for k, x in values.items()}
            noted = Noted(one)
            with contextlib.suppress(Exception):  # of a case that fails
                changed, _, _, rest = self._varied(one)
                left &= rest
                self.setup(changed, noted)
            left -= noted.read
            if not left:
                break
        return tuple(x for x in values if x in left)

    def _simulated(self, values: Mapping[str, float]) -> Recording:
        changed, q, v, _ = self._varied(values)
        options: dict[str, Any] = dict(self.options)
        if self.setup is not None:
            more = dict(self.setup(changed, values))
            q, v = more.pop("q", q), more.pop("v", v)
            options |= more
        if callable(forget := getattr(options.get("controller"), "reset", None)):
            forget()  # a case does not depend on those before it
        return simulate(changed, q, v, duration=self.duration, **options)

    def batch(
        self,
        values: Mapping[str, Array],
        first: int,
        kept: Sequence[Kept],
        threads: int | None,
        seed: int = 0,
    ) -> Evaluated:
        """Simulations one by one."""
        del first, threads, seed

        def compute(one: dict[str, float]) -> Evaluated:
            rec = self._simulated(one)

            def channel(name: str) -> tuple[Array, tuple[str, ...]]:
                if name == "events":
                    return np.full((1, 1, 1), float(len(rec.events))), ("",)
                if name.startswith("time:"):  # of the first event of that name
                    when = [x.t for x in rec.events if x.name == name[5:]]
                    return np.full((1, 1, 1), when[0] if when else np.nan), ("",)
                series = rec.channel(name)
                x = series.values.reshape(1, len(rec), -1)
                return x, tuple(series.labels) or ("",) * x.shape[2]

            batch = Batch({k: np.array([x]) for k, x in one.items()}, rec.t, channel)
            result = reduced(batch, kept, [""], np.array([rec.t[-1]]), [rec.stopped or ""])
            return self._on_grid(result) if result.trajectories else result

        return one_by_one(compute, values)

    def _on_grid(self, result: Evaluated) -> Evaluated:
        """Trajectories at the planned times: without records of events, NaN after an early end."""
        given, start = self.options, float(self.options.get("start", 0.0))
        step, ticks, every = given.get("step", 1e-3), given.get("control_step"), "record_every"
        plan = timetable(self.duration, step, ticks, given.get(every), start)
        steps = np.append(np.arange(0, plan.steps, plan.record_every), plan.steps)
        grid = start + np.minimum(steps * plan.step, self.duration)
        place = np.minimum(np.searchsorted(grid, result.t - TINY * plan.step), len(grid) - 1)
        there = np.abs(grid[place] - result.t) <= TINY * plan.step
        placed = dict[str, Array]()
        for name, records in result.trajectories.items():
            placed[name] = np.full((1, len(grid), records.shape[2]), np.nan)
            placed[name][:, place[there]] = records[:, there]
        return replace(result, trajectories=placed, t=grid)

    def recording(self, values: Mapping[str, Array], case: int, seed: int = 0) -> Recording:
        """The recording of a case; one that cannot go on has what was computed until then."""
        del case, seed
        try:
            return self._simulated({k: float(x[0]) for k, x in values.items()})
        except SimulationError as error:
            if isinstance(error.recording, Recording):
                return error.recording
            raise
