"""When a search ends."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop: forms looked at, letters in all of their words, forms in a row without gain.

    None depends on how fast or how busy the computer is: a search always finds the same form.
    """

    forms: int = 60
    letters: int = 40_000
    idle: int = 15
