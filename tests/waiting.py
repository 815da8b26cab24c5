"""Waiting for what other threads and programs do, without a clock."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 300.0
"""Seconds, for sockets and processes: far more than anything takes on a busy machine."""


def until(
    condition: Callable[[], bool],
    pause: Callable[[float], object] = time.sleep,
    *,
    tries: int = 3000,
) -> None:
    """Looks again and again, with pauses; fails where it never comes true."""
    for _ in range(tries):
        if condition():
            return
        pause(0.05)
    raise AssertionError("it never came true")
