"""Time in a page: a clock that plays, pauses, seeks and loops."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import cast

from linkwise.errors import ModelError

RATE = 60.0
"""Pictures a second."""

SPEEDS = ("0.1×", "0.25×", "0.5×", "1×", "2×", "4×")


class Playback:
    """Plays a span of time in a separate thread; no call waits for it.

    Args:
        start: When it begins [s].
        end: When it ends [s].
        show: Called with the time to be shown [s].
        loop: Whether it begins again at the end.
        speed: Seconds of the motion for each second of the clock.
    """

    def __init__(
        self,
        start: float,
        end: float,
        show: Callable[[float], None],
        *,
        loop: bool = True,
        speed: float = 1.0,
    ) -> None:
        self.start, self.end, self.loop = start, end, loop
        self._show = show
        self._speed = _positive(speed)
        self._time = start
        self._going = threading.Event()
        self._over = threading.Event()
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None

    @property
    def time(self) -> float:
        """Where it stands [s]."""
        return self._time

    @property
    def duration(self) -> float:
        """Length [s]."""
        return self.end - self.start

    @property
    def playing(self) -> bool:
        """Whether time goes on."""
        return self._going.is_set()

    @property
    def speed(self) -> float:
        """Seconds of the motion for each second of the clock."""
        return self._speed

    @speed.setter
    def speed(self, value: float) -> None:
        self._speed = _positive(value)

    def play(self) -> None:
        """Let time run; from the start, if it is at the end."""
        if self._over.is_set() or self.duration <= 0.0:
            return
        with self._lock:
            if self._time >= self.end:
                self._time = self.start
        self._going.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="playback", daemon=True)
            self._thread.start()

    def pause(self) -> None:
        """Stop time."""
        self._going.clear()

    def seek(self, t: float) -> None:
        """Go to a time [s], and show it; before the start it is the start, after the end the end.

        Raises:
            ModelError: It is no time.
        """
        value = _number(t)
        if value is None:
            raise ModelError(
                f"the time is {t!r}; it must be a number of seconds, from "
                f"{self.start:.6g} to {self.end:.6g}."
            )
        with self._lock:
            self._time = min(max(value, self.start), self.end)
            self._show(self._time)

    def close(self) -> None:
        """End the thread."""
        self._over.set()
        self._going.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=2.0)
        self._going.clear()

    def _run(self) -> None:
        before = time.perf_counter()
        while not self._over.is_set():
            if not self._going.is_set():
                self._going.wait()
                before = time.perf_counter()
                continue
            now = time.perf_counter()
            with self._lock:  # until it is shown: who pauses and seeks has the last word
                if self._over.is_set() or not self._going.is_set():
                    continue
                self._time += (now - before) * self._speed
                if self._time >= self.end:
                    over = (self._time - self.start) % self.duration
                    self._time = self.start + over if self.loop else self.end
                    if not self.loop:
                        self._going.clear()
                before = now
                self._show(self._time)
            left = 1.0 / RATE - (time.perf_counter() - now)
            if left > 0.0:
                time.sleep(left)


def _number(value: object) -> float | None:
    """A finite number, or None for what is none."""
    if isinstance(value, str | bytes):
        return None
    try:
        number = float(cast("float", value))
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _positive(speed: float) -> float:
    value = _number(speed)
    if value is None or not 0.0 < value < 1e6:
        raise ModelError(f"speed is {speed!r}; it must be a positive number, 1 for real time.")
    return value
