"""Time in a page: a clock that plays, pauses, seeks and loops."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from linkwise.errors import ModelError

RATE = 60.0
"""Pictures a second."""

SPEEDS = ("0.1×", "0.25×", "0.5×", "1×", "2×", "4×")


class Playback:
    """Plays a span of time in a thread of its own; the caller is never kept waiting.

    Args:
        duration: Length [s].
        show: Called with the time to be shown [s].
        loop: Whether it begins again at the end.
        speed: Seconds of the motion for each second of the clock.
    """

    def __init__(
        self,
        duration: float,
        show: Callable[[float], None],
        *,
        loop: bool = True,
        speed: float = 1.0,
    ) -> None:
        self.duration, self.loop = duration, loop
        self._show = show
        self._speed = _positive(speed)
        self._time = 0.0
        self._going = threading.Event()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def time(self) -> float:
        """Where it stands [s]."""
        return self._time

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
        """Let time go on; from the beginning, if it stands at the end."""
        if self._over.is_set() or self.duration <= 0.0:
            return
        with self._lock:
            if self._time >= self.duration:
                self._time = 0.0
        self._going.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="playback", daemon=True)
            self._thread.start()

    def pause(self) -> None:
        """Stop time."""
        self._going.clear()

    def seek(self, t: float) -> None:
        """Go to a time, and show it."""
        with self._lock:
            self._time = min(max(float(t), 0.0), self.duration)
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
            with self._lock:
                self._time += (now - before) * self._speed
                if self._time >= self.duration:
                    self._time = self._time % self.duration if self.loop else self.duration
                    if not self.loop:
                        self._going.clear()
                shown = self._time
            before = now
            if self._over.is_set():
                return
            self._show(shown)
            left = 1.0 / RATE - (time.perf_counter() - now)
            if left > 0.0:
                time.sleep(left)


def _positive(speed: float) -> float:
    value = float(speed)
    if not 0.0 < value < 1e6:
        raise ModelError(f"speed is {speed!r}; it must be a positive number, 1 for real time.")
    return value
