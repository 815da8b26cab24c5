"""Entries, run: what came out of their checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from linkwise_ledger.case import cases
from linkwise_ledger.entry import Entry

HOLDS = 1e-9
"""A statement holds if its sides are closer than this, on every mechanism it is claimed for."""

FAILS = 1e-6
"""A statement fails if its sides are further apart than this on some mechanism."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came out of running an entry.

    Attributes:
        entry: The entry.
        error: How far its statement is off, at worst; None for a definition without a check.
        worst: The mechanism where that was.
        printed_error: Of a misprint: how far what is printed is off, at worst.
        tree_error: Of a statement about chains: how far it is off on branched trees.
    """

    entry: Entry
    error: float | None
    worst: str = ""
    printed_error: float | None = None
    tree_error: float | None = None

    @property
    def confirmed(self) -> bool:
        """Whether the entry is what it claims to be."""
        if self.error is not None and not self.error < HOLDS:
            return False
        return self.printed_error is None or self.printed_error > FAILS

    @property
    def evidence(self) -> str:
        """In words."""
        if self.error is None:
            return "by definition"
        said = f"{self.error:.0e}"
        if self.printed_error is not None:
            infinite = self.printed_error == float("inf")
            off = "it does not fit" if infinite else f"{self.printed_error:.1e}"
            said += f"; as printed {off}"
        if self.tree_error is not None and self.tree_error > FAILS:
            said += f"; on branched trees {self.tree_error:.1e}"
        return said if self.confirmed else f"NOT CONFIRMED: {said} (on {self.worst})"


def run(entries: Iterable[Entry]) -> Iterator[Verdict]:
    """The verdict on each entry, in sequence."""
    for entry in entries:
        yield _verdict(entry)


def _verdict(entry: Entry) -> Verdict:
    if entry.check is None:
        return Verdict(entry, None)
    errors = {case.name: float(entry.check(case)) for case in cases(entry.where)}
    worst = max(errors, key=lambda name: _size(errors[name]))
    printed = tree = None
    if entry.check_printed is not None:
        check = entry.check_printed
        printed = max((float(check(case)) for case in cases(entry.where)), key=_size)
    elif entry.where == "chains":
        tree = max((float(entry.check(c)) for c in cases() if not c.is_chain), key=_size)
    return Verdict(entry, errors[worst], worst, printed, tree)


def _size(error: float) -> float:
    return error if error == error else float("inf")  # NaN is as wrong as can be


def counts(verdicts: Iterable[Verdict]) -> Counter[str]:
    """How many entries of each status, and how many are not confirmed."""
    computed = Counter[str]()
    for verdict in verdicts:
        computed[verdict.entry.status if verdict.confirmed else "not confirmed"] += 1
    return computed
