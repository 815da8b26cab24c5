"""What has to hold of a value while a kernel runs, and the status where it does not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """Trouble unless low < value < high.

    Attributes:
        code: What the status of the sample is then (`status.py`).
        node: The value.
        low: Bound from below.
        high: Bound from above.
    """

    code: int
    node: int
    low: float
    high: float
