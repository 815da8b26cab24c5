"""What an entry of the ledger is: one statement of a document, and a check that executes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from linkwise.algebra.expr import Expr
from linkwise.errors import ModelError
from linkwise_ledger.case import Case

Status: TypeAlias = Literal["holds", "definition", "misprint"]
Where: TypeAlias = Literal["trees", "chains"]
Check: TypeAlias = Callable[[Case], float]
"""Evaluates a statement on a mechanism: how far its two sides are apart, relative to their size."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One statement of a source document.

    Attributes:
        number: As the document numbers it: "(4.2)", "Lemma 4.1", "FD2"; for a displayed statement
            without a number, the section and what it is about: "sec. 6, residuals".
        title: What it is about, in a few words.
        printed: What the document prints, in its own notation.
        statement: What it says in the notation of Linkwise; of a misprint, what holds instead.
            "the same" stands for `printed`.
        status: What the writer of the entry claims; `verdict` finds out.
        where: "trees" if it holds on branched trees too, "chains" if it says so only of chains.
        check: Evaluates `statement`. Only a definition may be without.
        check_printed: Of a misprint: evaluates what is printed.
        note: Anything a reader should know: where the misprint is, what is meant, what departs.
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
                f"the entry {self.number} {self.title!r} is a {self.status}: what is printed is "
                "checked for misprints, and only for them."
            )

    @property
    def said(self) -> str:
        """`statement` to be read by itself: "the same" is what is printed."""
        if self.statement.startswith("the same"):
            return self.printed + self.statement.removeprefix("the same")
        return self.statement

    def on_chains(self) -> Entry:
        """The same, claimed for serial chains only."""
        return replace(self, where="chains")


def definition(
    number: str,
    title: str,
    printed: str,
    statement: str = "",
    check: Check | None = None,
    *,
    note: str = "",
) -> Entry:
    """A statement that only gives a name; with a check where our object is a computed one."""
    return Entry(
        number, title, printed, statement or printed, "definition", "trees", check, None, note
    )


def holds(
    number: str, title: str, printed: str, statement: str, check: Check, *, note: str = ""
) -> Entry:
    """A statement that holds as printed, up to notation."""
    return Entry(number, title, printed, statement, "holds", "trees", check, None, note)


def misprint(
    number: str,
    title: str,
    printed: str,
    statement: str,
    check: Check,
    check_printed: Check,
    *,
    note: str = "",
) -> Entry:
    """A statement that fails as printed: what holds instead, and checks of both.

    Args:
        number: As the document numbers it.
        title: What it is about.
        printed: What is printed.
        statement: What holds.
        check: Evaluates what holds.
        check_printed: Evaluates what is printed, as literally as it can be read. Infinity where it
            makes no sense at all, for instance because shapes do not fit: the note then says why.
        note: Where the mistake is.
    """
    return Entry(number, title, printed, statement, "misprint", "trees", check, check_printed, note)


def same(left: Expr, right: Expr) -> Check:
    """The check that two expressions are equal, as matrices."""

    def check(case: Case) -> float:
        return case.residual(left, right)

    return check
