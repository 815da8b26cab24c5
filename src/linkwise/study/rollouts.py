"""Cases that are motions of one kernel: `lw.rollout` with numbers that vary."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol, cast

import numpy as np

from linkwise.arguments import count as checked_count, function as callable_, number
from linkwise.codegen.stepping.kernel import describe
from linkwise.errors import ModelError, ShapeError, StudyWarning, caller, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.implicit.touching import contact_points
from linkwise.simulation.inactive import of_contacts
from linkwise.simulation.planned import Planner
from linkwise.simulation.recording import Recording
from linkwise.simulation.rollout import rollout
from linkwise.simulation.rollout_input import mechanism_numbers
from linkwise.simulation.rollout_report import REPORTED
from linkwise.simulation.rollout_result import Rollout
from linkwise.spatial.array import Array
from linkwise.study.address import (
    Address,
    Nominal,
    Rows,
    Setup,
    applied,
    arguments,
    check_apart,
    impossible,
    made_from,
    unknown,
    varied_mechanism,
)
from linkwise.study.channels import Look
from linkwise.study.held import check_steps, of_cases
from linkwise.study.kept import Batch, Evaluated, Kept, lost, lost_cases, merged, reduced
from linkwise.study.noted import Noted

LANES = 16
"""Batches are filled up to multiples of this, the most motions of a vector register: then each
motion is computed by the same instructions, whatever its batch."""


class Work(Protocol):
    """What a case is: a rollout, a simulation, a function."""

    def check(self, names: tuple[str, ...], kept: Sequence[Kept]) -> None:
        """Raise for names or channels that it does not know."""
        ...

    def batch(
        self,
        values: Mapping[str, Array],
        first: int,
        kept: Sequence[Kept],
        threads: int | None,
        seed: int = 0,
    ) -> Evaluated:
        """Compute cases whose numbers follow `first`, from values (cases,) by name.

        Args:
            seed: Of the noise, unless the work has one.
        """
        ...

    def recording(self, values: Mapping[str, Array], case: int, seed: int = 0) -> Recording:
        """One case with everything that happens in it."""
        ...

    def unread(self, values: Mapping[str, Array]) -> tuple[str, ...]:
        """Names of values (cases,) that nothing takes."""
        ...

    @property
    def description(self) -> dict[str, Any]:
        """Everything that results depend on."""
        ...

    @property
    def steps(self) -> int:
        """Time steps of a case, for the size of chunks."""
        ...


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Cases that are motions computed by `lw.rollout`, thousands at a time.

        lw.study.Rollouts(arm, q, duration=0.2, controller=(law, goal))

    What varies is named as in the table of the study's guide: `q[elbow]`, `payload:hand`, `kp`.

    Attributes:
        mech: The mechanism, or a function that makes one from variables of these names. Then q, v
            and options may be functions of the mechanism, and each one is compiled by itself.
        q: Initial joint positions (nq,).
        v: Initial joint velocities (nv,); None for rest.
        duration: How long to move [s].
        step: Length of a step [s].
        setup: Function from values (cases,) by name to arguments of `lw.rollout`, for what names
            cannot express: {"q": (cases, nq), "tau": (cases, nv), "parameters": {...}, ...}. Arrays
            (cases, n) have a row for each case; (1, steps, n) has one for each step. It has the
            last word: what it returns replaces numbers that vary by name.
        record_every: Steps from one record to the next; None for the end alone where final values
            are kept, else 1.
        options: Further arguments of `lw.rollout`. Noise has the seed of the study, unless one is
            given here.
    """

    mech: Mechanism | Callable[..., Mechanism]
    q: Any
    v: Any = None
    duration: float = 1.0
    step: float = 1e-3
    setup: Setup | None = None
    record_every: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __init__(
        self,
        mech: Mechanism | Callable[..., Mechanism],
        q: Any,
        v: Any = None,
        *,
        duration: float,
        step: float = 1e-3,
        setup: Setup | None = None,
        record_every: int | None = None,
        **options: Any,
    ) -> None:
        allowed = [
            x
            for x in inspect.signature(rollout).parameters
            if x not in ("mech", "q", "v", "duration", "step", "record_every", "first", "threads")
        ]
        for name in options:
            if name not in allowed:
                raise unknown_name("option", name, allowed, owner="a rollout of a study")
        if setup is not None:
            callable_(setup, "setup")
        if not isinstance(mech, Mechanism) and not callable(mech):
            raise ModelError(
                f"mech is {type(mech).__name__}; it must be a Mechanism, or a function that makes "
                "one from what varies."
            )
        every = (
            None if record_every is None else checked_count(record_every, "record_every", least=1)
        )
        parts = {
            "mech": mech, "q": q, "v": v, "duration": number(duration, "duration", above=0.0),
            "step": number(step, "step", above=0.0), "setup": setup,
            "record_every": every, "options": options,
        }  # fmt: skip
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {k: x for k, x in vars(self).items() if not k.startswith("_")}

    @property
    def steps(self) -> int:
        """Time steps of a case."""
        return max(1, round(self.duration / self.step))

    @property
    def description(self) -> dict[str, Any]:
        """Everything that results depend on."""
        names = ("mech", "q", "v", "duration", "step", "setup", "record_every")
        return {"kind": "rollout"} | {n: getattr(self, n) for n in names} | dict(self.options)

    # --------------------------------------------------------------------------- variants

    def _makes(self, names: Sequence[str]) -> tuple[str, ...]:
        """Variables that the mechanism is made from."""
        if isinstance(self.mech, Mechanism):
            return ()
        return made_from(self.mech, names)

    def nominal(self, made: tuple[tuple[str, float], ...] = ()) -> Nominal:
        """The mechanism of these values with its numbers; the last few are kept."""
        cache = self.__dict__.get("_nominal")
        if cache is None:
            cache = lru_cache(maxsize=16)(self._nominal_of)
            object.__setattr__(self, "_nominal", cache)
        return cache(made)

    def _nominal_of(self, made: tuple[tuple[str, float], ...]) -> Nominal:
        mech: Any = self.mech
        options, q, v = dict(self.options), self.q, self.v
        if not isinstance(mech, Mechanism):
            mech = mech(**dict(made))
            if not isinstance(mech, Mechanism):
                raise ModelError(f"mech returned {type(mech).__name__}; it must make a Mechanism.")
            q, v = (cast(Any, x)(mech) if callable(x) else x for x in (q, v))
            options = {k: cast(Any, x)(mech) if callable(x) else x for k, x in options.items()}
        points = contact_points(mech, options.get("contacts"), options.get("integrator", "rk4"))
        start = np.zeros(mech.nv) if v is None else mech.check_v(v)
        place = mech.check_q(q)
        for name, state in (("q", place), ("v", start)):
            if state.ndim != 1:
                raise ShapeError(
                    f"{name} has shape {state.shape}; for all cases of a study it is one row. Give "
                    "`setup` a function that returns one for each case."
                )
        check_steps(options, self.steps)
        return Nominal(mech, options, place, start, points)

    def check(self, names: tuple[str, ...], kept: Sequence[Kept]) -> None:
        """Raise for names that are neither addresses nor used by a function."""
        makes = self._makes(names)
        if isinstance(self.mech, Mechanism):
            check_apart(self._addresses(self.nominal(), names, makes))
        del kept

    def _addresses(
        self, nominal: Nominal, names: Sequence[str], makes: Sequence[str]
    ) -> dict[str, Address]:
        """Where numbers go, by name; those that functions take have no place."""
        addresses = {x: nominal.address(x) for x in names if x not in makes}
        for name, address in addresses.items():
            if address is None and self.setup is None:
                raise unknown(name, "a rollout; or give `setup`", nominal.inputs)
        return {name: x for name, x in addresses.items() if x is not None}

    def unread(self, values: Mapping[str, Array]) -> tuple[str, ...]:
        """Names that have no place and that `setup` does not read, in any of some cases."""
        if self.setup is None:
            return ()
        makes, left = self._makes(tuple(values)), set(values)
        for i in range(len(next(iter(values.values())))):
            one = {k: np.repeat(x[i], LANES) for k, x in values.items()}
            with contextlib.suppress(Exception):  # of a case that fails
                nominal = self.nominal(tuple((x, float(one[x][0])) for x in makes))
                left -= {*makes, *self._addresses(nominal, tuple(values), makes)}
            if not left:
                break
            noted = Noted(one)
            with contextlib.suppress(Exception):
                self.setup(noted)
            left -= noted.read
        return tuple(x for x in values if x in left)

    # ----------------------------------------------------------------------------- motions

    def _rows(self, nominal: Nominal, values: Mapping[str, Array]) -> Rows:
        """Rows (cases, n) of everything that varies by name."""
        count = len(next(iter(values.values())))
        addresses = self._addresses(nominal, tuple(values), self._makes(tuple(values)))
        return applied(nominal, [(x, values[name]) for name, x in addresses.items()], count)

    def _prepared(
        self, nominal: Nominal, values: Mapping[str, Array], rows: Rows
    ) -> tuple[Any, Any, dict[str, Any]]:
        """The arguments of the rollout."""
        count = len(next(iter(values.values())))
        q, v, options = arguments(nominal, rows)
        if self.setup is not None:
            more = of_cases(self.setup(values), count, self.steps)
            q, v = more.pop("q", q), more.pop("v", v)
            for name, value in more.items():
                old = options.get(name)
                both = isinstance(old, Mapping) and isinstance(value, Mapping)
                options[name] = {**cast("Any", old), **value} if both else value
        return q, v, options

    def _run(
        self,
        nominal: Nominal,
        values: Mapping[str, Array],
        rows: Rows,
        first: int,
        every: int,
        threads: int | None,
        seed: int,
    ) -> tuple[Rollout, dict[str, Any]]:
        q, v, options = self._prepared(nominal, values, rows)
        count = len(next(iter(values.values())))
        q = np.broadcast_to(q, (count, nominal.mech.nq))
        shared: dict[str, Any] = {"duration": self.duration, "step": self.step, "threads": threads}
        if "noise" in options:
            shared["first"] = first
            options.setdefault("seed", seed)
        token = REPORTED.set(False)  # of this thread: each case has its reason instead
        try:
            return rollout(nominal.mech, q, v, record_every=every, **shared, **options), options
        finally:
            REPORTED.reset(token)

    def batch(
        self,
        values: Mapping[str, Array],
        first: int,
        kept: Sequence[Kept],
        threads: int | None,
        seed: int = 0,
    ) -> Evaluated:
        """Motions whose numbers follow `first`."""
        makes = self._makes(tuple(values))
        if not makes:
            return self._of_one(self.nominal(), values, first, kept, threads, seed)
        keys = np.stack([values[x] for x in makes], axis=1)
        ends = [0, *(np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1), len(keys)]
        parts = list[Evaluated]()
        for a, b in pairwise(ends):
            made = tuple(zip(makes, keys[a].tolist(), strict=True))
            some = {k: x[a:b] for k, x in values.items()}
            begin, one = first + int(a), self.nominal(made)
            parts.append(self._of_one(one, some, begin, kept, threads, seed))
        return merged(parts)

    def _of_one(
        self,
        nominal: Nominal,
        values: Mapping[str, Array],
        first: int,
        kept: Sequence[Kept],
        threads: int | None,
        seed: int,
    ) -> Evaluated:
        count = len(next(iter(values.values())))
        fill = -count % LANES
        full = {k: np.concatenate([x, np.repeat(x[-1:], fill)]) for k, x in values.items()}
        rows = self._rows(nominal, full)
        bad = [x and f"ModelError: {x}" for x in impossible(nominal.mech, rows, count + fill)]
        if not any(bad):
            return self._moved(nominal, full, rows, first, kept, threads, seed).taken(count)
        if all(bad):
            return lost(bad[:count])
        failed = lost_cases(bad)  # a case that can be computed takes their places
        place = np.where(failed, np.flatnonzero(~failed)[0], np.arange(len(bad)))
        chosen = {k: x[place] for k, x in full.items()}
        moved = {k: x[place] for k, x in rows.items()}
        result = self._moved(nominal, chosen, moved, first, kept, threads, seed)
        return result.failing(bad).taken(count)

    def _moved(
        self,
        nominal: Nominal,
        full: Mapping[str, Array],
        rows: Rows,
        first: int,
        kept: Sequence[Kept],
        threads: int | None,
        seed: int,
    ) -> Evaluated:
        """Motions of full vector registers."""
        plans = isinstance(nominal.options.get("controller"), Planner)  # forces are in the records
        records = any(x.needs_records or (plans and x.channel == "tau") for x in kept)
        every = self.record_every or (1 if records else self.steps)
        runs, options = self._run(nominal, full, rows, first, every, threads, seed)
        look = Look(runs, options)
        ended = (np.asarray(runs.status) != 0) & (runs.stopped < 0)
        reasons = [""] * len(ended)
        for i in np.flatnonzero(ended):
            when = float(runs.failed_step[i]) * self.step
            reasons[i] = f"{describe(runs.mech, int(runs.status[i]))}, after t = {when:.6g} s"
        stops, stopped = [""] * len(ended), np.asarray(runs.stopped)
        for i in np.flatnonzero(stopped >= 0):
            stops[i] = runs.conditions[int(stopped[i])]
        early = np.asarray(runs.failed_step) >= 0
        reached = np.asarray(runs.failed_step) + (stopped >= 0)  # a condition is met after its step
        ends = np.where(early, reached * self.step, self.duration)
        batch = Batch(full, np.asarray(runs.t), look.channel)
        return reduced(batch, kept, reasons, ends, stops)

    def _numbers(
        self, nominal: Nominal, options: Mapping[str, Any]
    ) -> dict[tuple[str, str], Array]:
        """Rows (1, n) of the numbers of the mechanism in the first case of a batch."""
        given = mechanism_numbers(nominal.mech, options.get("parameters"), nominal.contacts)
        first = {k: np.atleast_2d(x if x.ndim < 3 else x[0]) for k, x in given.items()}
        if moving := [k for k, x in first.items() if (x != x[0]).any()]:
            warnings.warn(
                f"parameters has {', '.join(moving)}, which changes from step to step: the "
                "mechanism of this recording, with its energies and momenta, is that of the first "
                "step.",
                StudyWarning,
                stacklevel=caller(),
            )
        return {("parameters", k): x[:1] for k, x in first.items()}

    def recording(self, values: Mapping[str, Array], case: int, seed: int = 0) -> Recording:
        """One case, recorded at every step, with the mechanism of that case."""
        makes = self._makes(tuple(values))
        nominal = self.nominal(tuple((x, float(values[x][0])) for x in makes))
        full = {k: np.repeat(x, LANES) for k, x in values.items()}
        plans = isinstance(nominal.options.get("controller"), Planner)
        every = 1 if plans else self.record_every or 1
        rows = self._rows(nominal, full)
        for reason in impossible(nominal.mech, rows, LANES):
            raise ModelError(reason)
        runs, options = self._run(nominal, full, rows, case, every, None, seed)
        last = int(runs.failed_step[0])
        fine = np.isfinite(runs.q[0]).all(axis=1)
        if last >= 0:
            fine &= np.asarray(runs.t) <= (last + 1) * self.step + 1e-12
        records = np.flatnonzero(fine)
        stopped = None
        if runs.stopped[0] >= 0:
            stopped = runs.conditions[int(runs.stopped[0])]
        elif runs.status[0]:
            stopped = describe(runs.mech, int(runs.status[0]))
        tau = Look(runs, options).channel("tau")[0][0]
        implicit = runs.integrator == "implicit"
        return Recording.of(
            varied_mechanism(nominal.mech, self._numbers(nominal, options)),
            np.asarray(runs.t)[records],
            np.asarray(runs.q)[0, records],
            np.asarray(runs.v)[0, records],
            tau[records],
            integrator=runs.integrator,
            step=self.step,
            stopped=stopped,
            held=True,
            limits="impulse" if implicit else "ignore",
            contacts=of_contacts(
                runs.mech,
                implicit=implicit,
                described=options.get("contacts") is None,
                touches=runs.pushes is not None,
            ),
            friction=implicit,
            passive=bool(options.get("passive", True)),
            actuated=options.get("controls") is not None,
            pushed="noise" in options,
            works={"noise": None} if "noise" in options else None,
        )
