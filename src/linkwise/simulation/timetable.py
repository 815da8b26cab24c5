"""When steps end, controllers run and records are made; and a progress bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import check_arguments
from linkwise.errors import ModelError
from linkwise.spatial.array import Array
from linkwise.tasks.force.positive import positive

PATIENCE = 1.0
"""A run shorter than this [s] says nothing."""

PAUSE = 0.1
"""From one line to the next [s]."""

WIDTH = 24
"""Of the bar, in characters."""


class Progress:
    """Says how far a run has come, as a context: the line is gone when it ends.

    Attributes:
        shown: Whether a line was written.
    """

    def __init__(
        self,
        given: bool | Callable[[float], None] | None,
        start: float,
        duration: float,
        *,
        stream: TextIO | None = None,
    ) -> None:
        self._start, self._duration = start, duration
        self._call = given if callable(given) else None
        if self._call is not None:
            check_arguments(self._call, "progress", "t")
        elif given not in (None, True, False):
            raise ModelError(
                f"progress is {given!r}; it is True or False for a bar on a terminal, None for one "
                "that comes with long runs, or a function of the time [s]."
            )
        self._stream = sys.stderr if stream is None else stream
        terminal = getattr(self._stream, "isatty", lambda: False)()
        self._bar = self._call is None and given is not False and terminal
        self._began = time.monotonic()
        self._due = self._began + (0.0 if given is True else PATIENCE)
        self.shown = False

    def __call__(self, t: float) -> None:
        """The run has come to the time t [s]."""
        if self._call is not None:
            self._call(t)
        elif self._bar and time.monotonic() >= self._due:
            self._write(t)

    def _write(self, t: float) -> None:
        now = time.monotonic()
        self._due = now + PAUSE
        done = (t - self._start) / self._duration if self._duration > 0.0 else 1.0
        done = min(max(done, 0.0), 1.0)
        full = round(WIDTH * done)
        left = (now - self._began) * (1.0 - done) / done if done > 0.0 else float("inf")
        line = (
            f"simulating {'█' * full}{'░' * (WIDTH - full)} {100.0 * done:3.0f} %  "
            f"{t - self._start:.4g} of {self._duration:.4g} s, {_duration_text(left)} left"
        )
        try:
            self._stream.write(f"\r\x1b[2K{line}")
            self._stream.flush()
        except (UnicodeEncodeError, OSError, ValueError):  # a terminal of few letters, or gone
            self._bar = False
            return
        self.shown = True

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.shown:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()


def _duration_text(seconds: float) -> str:
    if seconds >= 3600.0 * 100.0:
        return "some time"
    if seconds >= 3600.0:
        return f"{seconds / 3600.0:.1f} h"
    return f"{seconds / 60.0:.1f} min" if seconds >= 90.0 else f"{seconds:.0f} s"


Counts = NDArray[np.intp]
"""Numbers of steps."""

RECORDS = 1000
"""About how many records are made unless it is said how often."""

AHEAD = 10_000
"""Most steps made at once, so that progress and Ctrl-C are noticed."""


@dataclass(frozen=True, slots=True)
class Timetable:
    """Steps of one length, the last one perhaps shorter.

    Attributes:
        start: Time of the beginning [s].
        duration: How long it goes [s].
        step: The length of a step [s].
        steps: How many there are.
        per_tick: How many there are from one question to the controller to the next; 0 for none.
        record_every: How many there are from record to record.
    """

    start: float
    duration: float
    step: float
    steps: int
    per_tick: int
    record_every: int

    @property
    def tick(self) -> float:
        """From one question to the controller to the next [s]."""
        return self.per_tick * self.step

    @property
    def end(self) -> float:
        """Time of the end [s]."""
        return self.start + self.duration

    def time(self, made: int) -> float:
        """The time after `made` steps [s]."""
        return self.end if made >= self.steps else self.start + made * self.step

    def length(self, made: int) -> float:
        """Length of the step after `made` steps [s]."""
        if made < self.steps - 1:
            return self.step
        last = self.duration - (self.steps - 1) * self.step
        return self.step if abs(last - self.step) <= 1e-9 * self.step else last

    def ticks_at(self, made: int) -> bool:
        """Whether the controller runs after `made` steps."""
        return self.per_tick > 0 and made % self.per_tick == 0 and made < self.steps

    def records_at(self, made: int) -> bool:
        """Whether a record is due after `made` steps."""
        return made % self.record_every == 0

    def records_within(self, begin: float, end: float) -> list[float]:
        """Times of records after one time, up to another [s].

        Each record has one time, that of `time`, and belongs to one interval, whatever rounding
        does to the sums of which times are made.
        """
        every = self.record_every
        first, last = ((t - self.start) / (self.step * every) for t in (begin, end))
        near = range(max(0, int(first) - 1), int(last) + 3)
        times = dict.fromkeys(self.time(i * every) for i in near if i * every <= self.steps)
        return [t for t in times if begin < t <= end]

    def times(self, made: Counts) -> Array:
        """When each of these numbers of steps is made (k,) [s]."""
        return np.where(made >= self.steps, self.end, self.start + made * self.step)

    def ticks(self, made: Counts, begin: int | None = None) -> Counts:
        """The ticks (k,) in effect after `made` steps; with `begin`, in effect up to there."""
        if begin is not None:
            made = np.concatenate([[begin], made[:-1]])
        if not self.per_tick:
            return np.zeros(len(made), dtype=np.intp)
        return np.minimum(made, self.steps - 1) // self.per_tick

    def equal(self, made: int) -> int:
        """The number of equal steps after `made` steps, at most `AHEAD`."""
        short = self.length(self.steps - 1) != self.step
        return min(AHEAD, self.steps - int(short) - made)

    def breaks(self, made: int, steps: int) -> Counts:
        """Ends of the intervals between records and ticks in these steps after `made` steps."""
        ends = np.zeros(steps + 1, dtype=np.bool_)
        ends[steps] = steps > 0
        for every in (self.record_every, self.per_tick):
            if every:
                ends[every - made % every :: every] = True
        return np.flatnonzero(ends)

    def ahead(self, made: int, *, one: bool) -> int:
        """How many steps can be made at once: up to the next record, question, or the last one."""
        if one or made >= self.steps - 1:
            return 1
        ahead = min(AHEAD, self.record_every - made % self.record_every, self.steps - 1 - made)
        if self.length(self.steps - 1) == self.step:
            ahead = min(AHEAD, self.record_every - made % self.record_every, self.steps - made)
        return min(ahead, self.per_tick - made % self.per_tick) if self.per_tick else ahead


def timetable(
    duration: float, step: object, control_step: object, record_every: object, start: float
) -> Timetable:
    """The timetable of a run.

    Args:
        control_step: From one question to the controller to the next [s], or None. The step is made
            shorter, if need be, so that a whole number of them fit in.
        record_every: How many steps from record to record; None for about 1000 records.

    Raises:
        ModelError: A number that means nothing.
    """
    h, per_tick = positive("step", step, "s"), 0
    if control_step is not None:
        tick = positive("control_step", control_step, "s")
        per_tick = max(1, int(np.ceil(tick / h - 1e-9)))
        h = tick / per_tick
    if duration / h > 1e15:
        raise ModelError(
            f"{duration:.6g} s in steps of {h:.3g} s are {duration / h:.3g} steps, more than "
            "there is time for."
        )
    steps = int(np.ceil(duration / h - 1e-9))
    if record_every is None:
        return Timetable(start, duration, h, steps, per_tick, max(1, round(steps / RECORDS)))
    is_count = isinstance(record_every, int | np.integer) and not isinstance(record_every, bool)
    if not is_count or int(record_every) < 1:  # pyright: ignore[reportArgumentType]  # an int here
        raise ModelError(
            f"record_every={record_every!r}; it counts steps and is a whole number, at least 1."
        )
    return Timetable(start, duration, h, steps, per_tick, int(record_every))  # pyright: ignore[reportArgumentType]
