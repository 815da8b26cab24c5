"""One visit: prints what stations show as they go, and keeps it for the page."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from linkwise.algebra.show import LATEX
from linkwise.errors import LinkwiseError, MissingExtraError
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.program import Pass, Program
from linkwise.sweeps.show import LOOPS, statement_text
from linkwise.tour.block import (
    Block,
    Cell,
    Check,
    Formula,
    Listing,
    Missing,
    Playback,
    Section,
    Sweeps,
    Table,
    Words,
)
from linkwise.tour.picture import Draw, Form, picture
from linkwise.tour.text import paragraph, table

LONGEST_TABLE = 60
"""Rows of a table that the page shows; a longer one is cut there."""


class Visit:
    """What a visitor has seen.

    Attributes:
        mech: The visitor's robot.
        quick: Whether to leave out what takes long.
        pictures: Whether a page is going to be written, with pictures.
        quiet: Whether nothing is printed.
        sections: The stations seen so far.
        notes: Stations that had nothing to show for this robot, and why.
        stand_ins: Stations where a built-in mechanism stood in for this robot.
    """

    def __init__(
        self, mech: Mechanism, *, quick: bool = False, pictures: bool = True, quiet: bool = False
    ) -> None:
        self.mech, self.quick, self.pictures, self.quiet = mech, quick, pictures, quiet
        self.sections = list[Section]()
        self.notes = list[str]()
        self.stand_ins = list[str]()

    @property
    def checks(self) -> list[Check]:
        """All checks of all stations."""
        return [check for section in self.sections for check in section.checks]

    @property
    def missing(self) -> tuple[str, ...]:
        """Extras that pictures were left out for."""
        blocks = [block for section in self.sections for block in section.blocks]
        return tuple(sorted({block.extra for block in blocks if isinstance(block, Missing)}))

    @property
    def failed(self) -> int:
        """How many of them are not good."""
        return sum(not check.good for check in self.checks)

    # ------------------------------------------------------------------------------ stations

    def go(self, stations: Sequence[Station]) -> None:
        """To every station, in order.

        A robot that a station cannot do anything with is told of, and the tour goes on.
        """
        for station in stations:
            short, title = station.__name__.strip("_").replace("_", " "), _title(station)
            self.sections.append(Section(title, short))
            self.print(f"\n{len(self.sections)}. {title}\n")
            begin = time.perf_counter()
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always", RuntimeWarning)
                try:
                    station(self)
                except LinkwiseError as error:
                    self.sorry(short, str(error))
            self._tell(heard)
            self.sections[-1].seconds = time.perf_counter() - begin

    def _tell(self, heard: Sequence[warnings.WarningMessage]) -> None:
        """What NumPy warned of, in a sentence; other warnings are passed on."""
        numeric = {str(w.message) for w in heard if issubclass(w.category, RuntimeWarning)}
        if numeric:
            self.say(f"NumPy warned here: {'; '.join(sorted(numeric))}.")
        for w in heard:
            if not issubclass(w.category, RuntimeWarning):
                warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)

    def instead(self, mech: Mechanism, why: str) -> Mechanism:
        """Go on with a built-in mechanism, as this cannot be shown on the robot.

        Args:
            mech: What stands in for it.
            why: What is in the way, as in "floats".

        Returns:
            The mechanism that stands in.
        """
        section = self.sections[-1]
        section.own = False
        self.stand_ins.append(section.short)
        self.say(f"{self.mech.name} {why}: the built-in `{mech.name}` stands in for it here.")
        return mech

    def example(self, what: str) -> None:
        """Say that this station shows something built in, whatever the robot is."""
        self.sections[-1].own = False
        self.say(f"Shown on {what}, whatever the robot is.")

    def sorry(self, what: str, reason: str) -> None:
        """Say that something cannot be shown, and why."""
        self.notes.append(f"{what}: {reason}")
        self.say(f"Not for {self.mech.name}: {reason}")

    # ------------------------------------------------------------------------------- pieces

    def say(self, text: str) -> None:
        """A paragraph."""
        self._add(Words(text))
        self.print("\n".join(paragraph(text)) + "\n")

    def note(self, text: str) -> None:
        """A paragraph for the page alone."""
        self._add(Words(text))

    def lines(self, text: str, caption: str = "") -> None:
        """Lines as they stand."""
        self._add(Listing(text, caption))
        self.print("\n".join(f"  {line}".rstrip() for line in text.splitlines()) + "\n")

    def formula(self, latex: str, text: str, remark: str = "") -> None:
        """An equation: LaTeX for the page, text for the terminal."""
        self._add(Formula(latex, remark))
        self.print(f"  {text}" + (f"\n        {remark}" if remark else ""))

    def sweeps(self, program: Program, caption: str) -> None:
        """The loops of a program."""
        passes = [(LOOPS[step.direction], tuple(_rows(step))) for step in program.passes]
        self._add(Sweeps(tuple(passes), caption))
        self.print("\n".join(f"  {line}".rstrip() for line in str(program).splitlines()) + "\n")

    def table(
        self,
        head: Sequence[str],
        rows: Iterable[Sequence[str]],
        caption: str = "",
        page: Sequence[Sequence[Cell]] | None = None,
    ) -> None:
        """A table; `page` has its rows as the page shows them, with mathematics."""
        found = [list(row) for row in rows]
        shown: Sequence[Sequence[Cell]] = found if page is None else page
        cut = shown[:LONGEST_TABLE]
        if len(shown) > len(cut):
            caption = f"{caption} The first {len(cut)} of {len(shown)} rows.".strip()
        self._add(Table(tuple(head), tuple(tuple(row) for row in cut), caption))
        self.print("\n".join(table(head, found)) + "\n")

    def check(self, claim: str, error: float, bound: float, *, own: bool = True) -> None:
        """Say the claim with the figure that was seen.

        Args:
            claim: What is checked.
            error: The figure that was seen.
            bound: The largest that is good.
            own: Whether it is about what the station shows; False for something built in beside it.
        """
        self._add(found := Check(claim, float(error), bound, own and self.sections[-1].own))
        self.print(f"  {found}")

    def picture(self, draw: Draw, caption: str, *, form: Form = "svg") -> None:
        """A picture, for the page alone."""
        if not self.pictures:
            return
        try:
            self._add(picture(draw, caption, form))
        except MissingExtraError:
            self._add(Missing(_sentence(caption), "plot"))
        except LinkwiseError as error:
            self._add(Words(f"No picture of this: {error}"))

    def playback(self, page: Callable[[str], str], caption: str) -> None:
        """A motion in space, for the page alone; `page` makes one on light or on dark paper."""
        if not self.pictures:
            return
        try:
            self._add(Playback(page("light"), page("dark"), caption))
        except MissingExtraError:
            self._add(Missing(_sentence(caption), "viewer"))
        except LinkwiseError as error:
            self._add(Words(f"No playback of this: {error}"))

    def print(self, text: str) -> None:
        """For the terminal alone."""
        if not self.quiet:
            print(text)

    def _add(self, block: Block) -> None:
        self.sections[-1].blocks.append(block)


def _sentence(caption: str) -> str:
    """The first of a caption."""
    return caption.partition(". ")[0].rstrip(".") + "."


def _rows(step: Pass) -> Iterator[str]:
    """The lines of one loop; what is done at once comes first."""
    for statement in sorted(step.statements, key=lambda s: not s.whole):
        yield statement_text(statement, LATEX)


Station: TypeAlias = Callable[[Visit], None]


def _title(station: Station) -> str:
    """The first line of its docstring."""
    return (station.__doc__ or station.__name__).strip().splitlines()[0].rstrip(".")
