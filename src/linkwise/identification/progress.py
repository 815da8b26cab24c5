"""How far a search is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from linkwise.arguments import function


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """How far a search is.

    Attributes:
        stage: What is done, in words.
        done: Rounds or trials so far.
        most: How many there will be at most.
        cost: What becomes smaller: the residual of positions [m or rad] of `identify_rollout`,
            −log det W* W of `exciting_motion`.
        elapsed: Time since the beginning [s].
        left: Time that the rest of this stage takes at most [s].
    """

    stage: str
    done: int
    most: int
    cost: float
    elapsed: float
    left: float

    def __str__(self) -> str:
        return (
            f"{self.stage}, {self.done} of at most {self.most}: cost {self.cost:.6g}, at most "
            f"{self.left:.1f} s left"
        )


class Reporter:
    """Calls a function with the progress of one stage after the other; or does nothing."""

    def __init__(self, progress: Callable[[Progress], None] | None) -> None:
        self._call = None if progress is None else function(progress, "progress")
        self._begun = time.monotonic()
        self.begin("", 0)

    def begin(self, stage: str, most: int) -> None:
        """Begin a stage of at most `most` rounds."""
        self._stage, self._most, self._from = stage, most, time.monotonic()

    def __call__(self, done: int, cost: float) -> None:
        """Report the rounds that were made, and the cost."""
        if self._call is None:
            return
        now = time.monotonic()
        left = (now - self._from) * (self._most - done) / max(done, 1)
        self._call(Progress(self._stage, done, self._most, cost, now - self._begun, left))
