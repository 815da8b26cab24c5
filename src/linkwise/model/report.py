"""Which elements of a file are not fully used: approximated, ignored, or kept without acting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from linkwise.brief import counted

Effect = Literal["approximate", "ignored", "kept"]
Affects = Literal["motion", "control", "contact", "appearance", "other"]


@dataclass(frozen=True, slots=True)
class LoadItem:
    """One element that is not fully used.

    Attributes:
        file: The file it is in (or is written to).
        line: Its line, or None.
        element: The element in short form, for instance "<sensor> 'imu'".
        effect: "approximate", "ignored", or "kept": the mechanism has it as data, but it does not
            act in simulations and rollouts.
        reason: Why, and what was done instead.
        affects: What it can change. "motion": it moves differently from what the file says.
            "contact": details of contacts, which are themselves a "motion" item. "control": the
            commands and sensors around the mechanism. "appearance". "other": names, numerical
            settings and what other programs need.
    """

    file: str
    line: int | None
    element: str
    effect: Effect
    reason: str
    affects: Affects

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.element} {self.effect} ({self.affects}): {self.reason}"


@dataclass(frozen=True, slots=True)
class LoadReport:
    """All such elements of one file, in the order of the file.

    Attributes:
        source: The file; empty for a mechanism that was built.
        items: The elements.
    """

    source: str = ""
    items: tuple[LoadItem, ...] = ()

    def __iter__(self) -> Iterator[LoadItem]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def affecting(self, what: Affects) -> tuple[LoadItem, ...]:
        """The items that can change one thing, for instance "motion"."""
        return tuple(item for item in self.items if item.affects == what)

    def summary(self) -> str:
        """One line: how many items, and of which kind."""
        if not self.items:
            return "everything in the file was used"
        counts = Counter(item.affects for item in self.items)
        kinds = ", ".join(f"{n} {kind}" for kind, n in counts.most_common())
        some = counted(len(self.items), "element is", "elements are")
        return f"{some} not fully used ({kinds})"

    def __str__(self) -> str:
        return "\n".join([self.summary(), *(f"  {item}" for item in self.items)])
