"""The statements of a section, each written above its check.

    TIP = Section()

    @TIP('''(5.7)  the tips stay together
        printed  α_1(0) = α_2(0)
        holds    with f(0) of (5.11), the loops of both arms give their tips the same acceleration
        note     Against the dense system of both arms.
    ''')
    def _(case: Case) -> float: ...

The first line has the number and, after two spaces, the title. The others are labelled: `printed`,
what the paper prints, then what Linkwise checks. `holds` makes it a statement that holds, `means` a
definition, `instead` a misprint. Without `printed` the text that follows is printed as it is.
`note` comes last. Lines that continue a text are indented further than its label. A line that is
not indented starts another statement, which the same check serves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, Generic, TypeVar

from linkwise.algebra.expr import Expr
from linkwise.algebra.parse import parse_equation
from linkwise.errors import ExpressionError, ModelError
from linkwise_ledger.case import Case
from linkwise_ledger.entry import Check, Compare, Entry, Errors, On, Status, Subject, Where

Other = TypeVar("Other")

STATUS: dict[str, Status] = {"holds": "holds", "means": "definition", "instead": "misprint"}
"""What the label of a statement makes of it."""

EXPECTATION = re.compile(r"E\[(\([^)]*\)|\S+) ?(\([^)]*\)\*|\S+\*)\]")
LABEL = re.compile(r"(printed|holds|means|instead|note)\s+(.*)")


@dataclass
class Draft:
    """An entry in the making: its text has been read, its checks follow."""

    text: dict[str, str]
    where: Where
    check: Check | None = None
    check_printed: Check | None = None

    @property
    def statement(self) -> tuple[str, str]:
        """Label and text of what is checked."""
        return next((label, self.text[label]) for label in STATUS if label in self.text)

    def entry(self) -> Entry:
        """The entry, which needs the checks that its status requires."""
        label, said = self.statement
        return Entry(
            self.text["number"],
            self.text["title"],
            self.text.get("printed", said),
            said,
            STATUS[label],
            self.where,
            self.check,
            self.check_printed,
            self.text.get("note", ""),
        )


def drafts_of(text: str, where: Where) -> list[Draft]:
    """The statements of a text."""
    return [Draft(read(part), where) for part in re.split(r"\n(?=\S)", text.strip())]


def read(text: str) -> dict[str, str]:
    """Number, title and the labelled parts of the text of one statement."""
    first, *lines = text.splitlines()
    number, gap, title = first.partition("  ")
    parts, label = {"number": number, "title": title.strip()}, "title"
    for line in map(str.strip, lines):
        if match := LABEL.fullmatch(line):
            label = match[1]
            parts[label] = match[2]
        else:
            parts[label] += f" {line}"
    if not gap or not STATUS.keys() & parts.keys():
        raise ModelError(f"the statement {first!r} needs a title, and one of {', '.join(STATUS)}.")
    return parts


def equations(text: str, names: Mapping[str, Expr] | None = None) -> list[tuple[Expr, Expr]]:
    """The equations of a text: "a = b = c, d = e" is a = b, a = c and d = e.

    E[x y*], the covariance of quantities x and y that are operators on white noise, is x M y*.
    """
    pairs = list[tuple[Expr, Expr]]()
    text = EXPECTATION.sub(r"(\1) M (\2)", text)
    for part in re.split(r"[,;]\s+", text):
        first, *others = part.split(" = ")
        if not others:
            raise ExpressionError(f"{part!r}, in a statement of algebra, is not an equation.")
        pairs += [parse_equation(f"{first} = {other}", names=names) for other in others]
    return pairs


def residuals(sides: Sequence[tuple[Expr, Expr]], case: Case) -> Errors:
    """How far both sides of each equation are apart, as matrices."""
    return (case.residual(left, right) for left, right in sides)


def same(left: Expr, right: Expr) -> Check:
    """The check that two expressions are equal, as matrices."""
    return lambda case: case.residual(left, right)


def _itself(case: Case) -> Case:
    return case


class View(Generic[Subject]):
    """A section for statements about one kind of subject.

    Args:
        drafts: The statements of the section so far.
        build: Makes the subject from a case.
        each: Whether `build` gives a tuple of subjects, all of which are tried.
        where: What the statements are claimed for.
    """

    def __init__(
        self, drafts: list[Draft], build: Callable[[Case], Any], each: bool, where: Where
    ) -> None:
        self.drafts, self.build, self.each = drafts, build, each
        self.where: Where = where

    def __call__(self, text: str) -> Callable[[Compare[Subject]], Compare[Subject]]:
        """Add a statement, or several; the decorated function is their check.

        The check of a misprint may take `printed`: it is called with printed=True to evaluate what
        is printed. Otherwise `as_printed` follows.
        """
        added = drafts_of(text, self.where)
        self.drafts.extend(added)

        def attach(compare: Compare[Subject]) -> Compare[Subject]:
            for draft in added:
                draft.check = self._check(compare)
                if draft.statement[0] == "instead" and "printed" in signature(compare).parameters:
                    literal: Callable[..., Any] = compare
                    draft.check_printed = self._check(partial(literal, printed=True))
            return compare

        return attach

    def as_printed(self, compare: Compare[Subject]) -> Compare[Subject]:
        """Add the check of what is printed to the last statement, a misprint.

        It follows the text as literally as it can be read. It is infinite where the text makes no
        sense at all, for instance because shapes do not fit; the note then says why.
        """
        self.drafts[-1].check_printed = self._check(compare)
        return compare

    def _check(self, compare: Compare[Subject]) -> Check:
        return On(self.build, compare, self.each)


class Section(View[Case]):
    """Statements in the order in which a module writes them down; see the module's text.

    Args:
        names: Expressions that texts of operator algebra use besides the vocabulary.
        drafts: The statements so far, if this is a view of another section.
        where: What the statements are claimed for.
    """

    def __init__(
        self,
        names: Mapping[str, Expr] | None = None,
        drafts: list[Draft] | None = None,
        where: Where = "trees",
    ) -> None:
        super().__init__([] if drafts is None else drafts, _itself, False, where)
        self.names = names

    def on(self, build: Callable[[Case], Other]) -> View[Other]:
        """The section for statements about a subject that a case gives."""
        return View(self.drafts, build, False, self.where)

    def on_each(self, build: Callable[[Case], tuple[Other, ...]]) -> View[Other]:
        """The section for statements about several subjects that a case gives."""
        return View(self.drafts, build, True, self.where)

    @property
    def chains(self) -> Section:
        """The section for statements that are claimed for serial chains only."""
        return Section(self.names, self.drafts, "chains")

    def unchecked(self, text: str) -> None:
        """Add definitions that have nothing to check."""
        self.drafts.extend(drafts_of(text, self.where))

    def algebra(self, text: str) -> None:
        """Add statements of operator algebra: their texts are read, and both sides are compared.

        Of a misprint, what is printed is read as well; it has to fail.
        """
        for draft in drafts_of(text, self.where):
            draft.check = self._read(draft.statement[1])
            if draft.statement[0] == "instead":
                draft.check_printed = self._read(draft.text["printed"])
            self.drafts.append(draft)

    def _read(self, text: str) -> Check:
        sides = list[tuple[Expr, Expr]]()

        def compare(case: Case) -> Errors:
            if not sides:
                sides.extend(equations(text, self.names))
            return residuals(sides, case)

        return On(_itself, compare)

    def __iter__(self) -> Iterator[Entry]:
        return (draft.entry() for draft in self.drafts)
