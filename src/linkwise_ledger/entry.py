"""An entry of the ledger: one statement of a paper, and a check that executes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from linkwise.errors import ModelError
from linkwise_ledger.case import Case, apart

Status: TypeAlias = Literal["holds", "definition", "misprint"]
Where: TypeAlias = Literal["trees", "chains"]
Subject = TypeVar("Subject")

Check: TypeAlias = Callable[[Case], float]
"""Evaluates a statement on a mechanism: how far its two sides are apart, relative to their size."""

Errors: TypeAlias = Iterator[Any]
"""What a check yields, once for each comparison: the two sides, or how far they are apart."""

Compare: TypeAlias = Callable[[Subject], Any]
"""Compares both sides on a subject; returns or yields the two sides, or how far they are apart."""


@dataclass(frozen=True)
class On(Generic[Subject]):
    """The check of a statement about something that a case gives.

    Attributes:
        build: What the statement is about, made from a case; a tuple of several for `each`.
        compare: Compares both sides on it.
        each: Whether `build` gives several subjects; the worst of them counts.
    """

    build: Callable[[Case], Any]
    compare: Compare[Subject]
    each: bool = False

    def __call__(self, case: Case) -> float:
        """How far the sides are apart on a case."""
        return self.on(self.build(case))

    def on(self, subject: Any) -> float:
        """How far the sides are apart on what `build` has made."""
        subjects = subject if self.each else (subject,)
        return max(map(number, (error for s in subjects for error in _errors(self.compare(s)))))


def _errors(outcome: Any) -> list[float]:
    if isinstance(outcome, Iterator):
        return [error for part in cast("Errors", outcome) for error in _errors(part)]
    if isinstance(outcome, tuple):
        return [apart(*outcome)]
    return [float(outcome)]


def number(error: float) -> float:
    """An error to compare with others: NaN is as wrong as can be."""
    return error if error == error else float("inf")


@dataclass(frozen=True, slots=True)
class Entry:
    """One statement of a paper.

    Attributes:
        number: As the paper numbers it: "(4.2)", "Lemma 4.1", "FD2"; for a displayed statement
            without a number, the section and the subject: "sec. 6, residuals".
        title: What it is about, in a few words.
        printed: What the paper prints, in its own notation.
        statement: What it says in the notation of Linkwise; of a misprint, what holds instead.
            "the same" refers to `printed`.
        status: What the entry claims; `run` finds out.
        where: "trees" if it holds on branched trees too, "chains" if it is claimed for chains only.
        check: Evaluates `statement`. Only a definition may lack one.
        check_printed: Evaluates what is printed; misprints only.
        note: Where the misprint is, how the statement is read, what differs.
    """

    number: str
    title: str
    printed: str
    statement: str
    status: Status
    where: Where = "trees"
    check: Check | None = None
    check_printed: Check | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.status != "definition" and self.check is None:
            raise ModelError(f"the entry {self.number} {self.title!r} needs a check.")
        if (self.status == "misprint") != (self.check_printed is not None):
            raise ModelError(
                f"the entry {self.number} {self.title!r} is a {self.status}: misprints need a "
                "check of the printed form, and no other entry has one."
            )

    @property
    def said(self) -> str:
        """`statement` in full: "the same" is replaced by the printed text."""
        if self.statement.startswith("the same"):
            return self.printed + self.statement.removeprefix("the same")
        return self.statement
