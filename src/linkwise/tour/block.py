"""What a tour shows, piece by piece: the same pieces are printed and written as a page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Words:
    """A paragraph; `names` between backticks."""

    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Lines as they stand: a program, a report."""

    text: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Math:
    """A cell of a table that is LaTeX."""

    latex: str


Cell: TypeAlias = str | Math


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells: words, numbers, mathematics."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Formula:
    """An equation on lines of its own, with what justifies it."""

    latex: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Sweeps:
    """Loops over bodies: what each goes along, and its lines as LaTeX."""

    passes: tuple[tuple[str, tuple[str, ...]], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A claim, the figure that was seen and the largest that is good.

    Attributes:
        claim: What is checked.
        error: The figure that was seen.
        bound: The largest that is good.
        own: Whether it is about the visitor's robot, not about something built in.
    """

    claim: str
    error: float
    bound: float
    own: bool = True

    @property
    def good(self) -> bool:
        """A NaN is not good."""
        return bool(self.error <= self.bound)

    def __str__(self) -> str:
        mark = "ok  " if self.good else "FAIL"
        return f"{mark} {self.claim}: {self.error:.1e} (at most {self.bound:.0e})"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, once for light paper and once for dark, as data addresses."""

    light: str
    dark: str
    caption: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Playback:
    """A page of its own inside the page: a motion in space, for light paper and for dark."""

    light: str
    dark: str
    caption: str


@dataclass(frozen=True, slots=True)
class Missing:
    """What would stand here, and the extra it needs."""

    what: str
    extra: str


Block: TypeAlias = Words | Listing | Table | Formula | Sweeps | Check | Picture | Playback | Missing


@dataclass(slots=True)
class Section:
    """A station of the tour.

    Attributes:
        title: What it shows, in a sentence.
        short: The same in a word or two, for the table of contents.
        blocks: What it showed.
        seconds: How long that took.
        own: Whether it shows the visitor's robot, not something built in.
    """

    title: str
    short: str
    blocks: list[Block] = field(default_factory=list[Block])
    seconds: float = 0.0
    own: bool = True

    @property
    def checks(self) -> list[Check]:
        """Its checks."""
        return [block for block in self.blocks if isinstance(block, Check)]
