"""How much work a call does, counted: a bound on calls of functions holds on any machine.

Tests do not read a clock: a busy machine is no failure of the code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Effort:
    """Calls of Python functions.

    Attributes:
        calls: How many there were.
    """

    def __init__(self) -> None:
        self.calls = 0


@contextmanager
def at_most(calls: float) -> Iterator[Effort]:
    """Fails as soon as what is inside has called more functions than this."""
    effort = Effort()

    def profile(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            effort.calls += 1
            if effort.calls > calls:
                sys.setprofile(None)
                raise AssertionError(f"more than {calls} calls of functions")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield effort
    finally:
        sys.setprofile(before)


def calls(work: Callable[[], object]) -> int:
    """How many Python functions a piece of work calls."""
    with at_most(float("inf")) as effort:
        work()
    return effort.calls
