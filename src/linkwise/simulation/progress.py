"""How far a long run has come: one line on a terminal, rewritten now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from linkwise.arguments import check_arguments
from linkwise.errors import ModelError

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
            f"{t - self._start:.4g} of {self._duration:.4g} s, {_told(left)} left"
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


def _told(seconds: float) -> str:
    if seconds >= 3600.0 * 100.0:
        return "some time"
    if seconds >= 3600.0:
        return f"{seconds / 3600.0:.1f} h"
    return f"{seconds / 60.0:.1f} min" if seconds >= 90.0 else f"{seconds:.0f} s"
