"""What is random in a motion, as data."""

from __future__ import annotations

import zlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chance:
    """A register that is filled with random numbers before each step.

    Attributes:
        name: Of the channel: its streams do not depend on those of other channels.
        size: How many numbers.
        period: Steps for which numbers are held.
        active: Of these, steps in which they are not zero.
    """

    name: str
    size: int
    period: int = 1
    active: int = 1

    @property
    def register(self) -> str:
        """The name of the register."""
        return f"chance:{self.name}"

    @property
    def channel(self) -> int:
        """The word of the counter."""
        return zlib.crc32(self.name.encode())
