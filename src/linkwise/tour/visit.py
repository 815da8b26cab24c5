"""One visit: prints what stations show as they run, and keeps it for the page."""

from __future__ import annotations

import base64
import importlib
import io
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

from linkwise.algebra.show import LATEX
from linkwise.errors import LinkwiseError, MissingExtraError
from linkwise.model.mechanism import Mechanism
from linkwise.plot.canvas import DARK, LIGHT, Figure, Theme, matplotlib, off_screen
from linkwise.sweeps.program import Program
from linkwise.sweeps.show import LOOPS, statement_text
from linkwise.tour.page import (
    Block,
    Check,
    Formula,
    Listing,
    Missing,
    Picture,
    Playback,
    Section,
    Sweeps,
    Table,
    Words,
)
from linkwise.tour.text import paragraph, table

LONGEST_TABLE = 60
"""Rows that the page shows of a table."""

DOTS = 160
"""Resolution of pictures [1/inch]: two dots for each that the page shows."""

Draw: TypeAlias = Callable[[Theme], Figure]
Form: TypeAlias = Literal["png", "svg"]


class Visit:
    """What a visitor has seen.

    Attributes:
        mech: The visitor's robot.
        quick: Whether to skip what takes long.
        pictures: Whether a page will be written, with pictures.
        quiet: Whether to print nothing.
        sections: The stations so far.
        notes: Stations that had nothing to show for this robot, and why.
        stand_ins: Stations that used a built-in mechanism instead of this robot.
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
        """Extras without which pictures were left out."""
        blocks = [block for section in self.sections for block in section.blocks]
        return tuple(sorted({block.extra for block in blocks if isinstance(block, Missing)}))

    @property
    def failed(self) -> int:
        """The number of checks that failed."""
        return sum(not check.good for check in self.checks)

    # ------------------------------------------------------------------------------ stations

    def go(self, stations: Sequence[Station]) -> None:
        """Visit every station in order; one that cannot handle the robot is noted."""
        for station in stations:
            name, text = station.__name__.strip("_").replace("_", " "), station.__doc__
            title = (text or name).strip().splitlines()[0].rstrip(".")
            self.sections.append(Section(title, name))
            self.print(f"\n{len(self.sections)}. {title}\n")
            begin = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", RuntimeWarning)
                try:
                    station(self)
                except LinkwiseError as error:
                    self.sorry(name, str(error))
            self._report(caught)
            self.sections[-1].seconds = time.perf_counter() - begin

    def _report(self, caught: Sequence[warnings.WarningMessage]) -> None:
        """NumPy's warnings as a sentence; other warnings are passed on."""
        numeric = {str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)}
        if numeric:
            self.say(f"NumPy warned here: {'; '.join(sorted(numeric))}.")
        for w in caught:
            if not issubclass(w.category, RuntimeWarning):
                warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)

    def instead(self, mech: Mechanism, why: str) -> Mechanism:
        """Continue with a built-in mechanism, since the robot `why`, as in "floats"."""
        section = self.sections[-1]
        section.of_robot = False
        self.stand_ins.append(section.short)
        self.say(f"{self.mech.name} {why}: the built-in `{mech.name}` replaces it here.")
        return mech

    def example(self, what: str) -> None:
        """Say that this station shows something built in, whatever the robot is."""
        self.sections[-1].of_robot = False
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

    def lines(self, text: str, caption: str = "") -> None:
        """Preformatted lines."""
        self._add(Listing(text, caption))
        self.print("\n".join(f"  {line}".rstrip() for line in text.splitlines()) + "\n")

    def formula(self, latex: str, text: str, remark: str = "") -> None:
        """An equation: LaTeX for the page, text for the terminal."""
        self._add(Formula(latex, remark))
        self.print(f"  {text}" + (f"\n        {remark}" if remark else ""))

    def sweeps(self, program: Program, caption: str) -> None:
        """The loops of a program; statements outside of them come first."""
        passes = [
            (
                LOOPS[step.direction],
                tuple(
                    statement_text(statement, LATEX)
                    for statement in sorted(step.statements, key=lambda s: not s.at_once)
                ),
            )
            for step in program.passes
        ]
        self._add(Sweeps(tuple(passes), caption))
        self.print("\n".join(f"  {line}".rstrip() for line in str(program).splitlines()) + "\n")

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> None:
        """A table; the page shows at most `LONGEST_TABLE` rows."""
        cells = [tuple(row) for row in rows]
        shown = cells[:LONGEST_TABLE]
        if len(cells) > len(shown):
            caption = f"{caption} The first {len(shown)} of {len(cells)} rows.".strip()
        self._add(Table(tuple(head), tuple(shown), caption))
        self.print("\n".join(table(head, cells)) + "\n")

    def check(self, claim: str, error: float, bound: float, *, of_robot: bool = True) -> None:
        """A claim with its measured error; `of_robot=False` for a built-in mechanism beside it."""
        about_robot = of_robot and self.sections[-1].of_robot
        self._add(check := Check(claim, float(error), bound, about_robot))
        self.print(f"  {check}")

    def picture(self, draw: Draw, caption: str, *, form: Form = "svg") -> None:
        """A figure of Matplotlib, for the page alone."""
        self._try(lambda: picture(draw, caption, form), caption, "plot")

    def image(self, draw: Callable[[str], Any], caption: str) -> None:
        """Pixels for light and for dark paper, for the page alone."""
        self._try(lambda: _image(draw, caption), caption, "video")

    def playback(self, page: Callable[[str], str], caption: str) -> None:
        """A motion in space on light and on dark paper, for the page alone."""
        self._try(lambda: Playback(page("light"), page("dark"), caption), caption, "viewer")

    def _try(self, make: Callable[[], Block], caption: str, extra: str) -> None:
        if not self.pictures:
            return
        try:
            self._add(make())
        except MissingExtraError:
            self._add(Missing(caption.partition(". ")[0].rstrip(".") + ".", extra))
        except LinkwiseError as error:
            self._add(Words(f"Not drawn: {error}"))

    def print(self, text: str) -> None:
        """Text for the terminal alone."""
        if not self.quiet:
            print(text)

    def _add(self, block: Block) -> None:
        self.sections[-1].blocks.append(block)


Station: TypeAlias = Callable[[Visit], None]


def picture(draw: Draw, caption: str, form: Form = "svg") -> Picture:
    """A figure of Matplotlib on light and on dark paper.

    Args:
        draw: Makes the figure in a theme.
        caption: A description, which is also the text for those who cannot see it.
        form: "svg" for lines, "png" for surfaces of many small faces.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    library = matplotlib("matplotlib", "a picture")
    packed, size = list[str](), (0, 0)
    for theme in (LIGHT, DARK):
        with library.rc_context(_look(theme)), warnings.catch_warnings(), off_screen():
            warnings.simplefilter("ignore")  # glyphs that a font lacks become boxes
            figure = draw(theme)
            file = io.BytesIO()
            bare = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
            figure.savefig(file, format=form, dpi=DOTS, facecolor=theme.paper, metadata=bare)
            packed.append(_address(file.getvalue(), "svg+xml" if form == "svg" else "png"))
            size = (round(96 * figure.get_figwidth()), round(96 * figure.get_figheight()))
    return Picture(packed[0], packed[1], caption, *size)


def _look(theme: Theme) -> dict[str, Any]:
    return {
        "font.size": 10.0,
        "svg.hashsalt": "linkwise",
        "text.color": theme.ink,
        "axes.labelcolor": theme.ink,
        "xtick.color": theme.faint,
        "ytick.color": theme.faint,
        "legend.frameon": False,
        "figure.facecolor": theme.paper,
        "axes.facecolor": theme.paper,
    }


def _image(draw: Callable[[str], Any], caption: str) -> Picture:
    try:
        pil: Any = importlib.import_module("PIL.Image")
    except ImportError:
        raise MissingExtraError("a picture", package="pillow", extra="video") from None
    packed, size = list[str](), (0, 0)
    for theme in ("light", "dark"):
        image, file = pil.fromarray(draw(theme)), io.BytesIO()
        image.save(file, format="PNG")
        packed.append(_address(file.getvalue(), "png"))
        size = image.size
    return Picture(packed[0], packed[1], caption, *size)


def _address(data: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
