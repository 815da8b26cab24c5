"""Passes over a memory: straight code that runs at many places, such as the tiles of a matrix.

A graph whose matrices are large takes their products in loops instead of straight code, whose
length would grow with the third power of their sides. All matrices are in one memory. A round of a
pass reads some numbers of it, and writes others; a table has where. Rounds of one pass do not
depend on each other, so eight of them, whose numbers are next to each other, may run at once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

WIDTH = 8
"""Columns that are done together."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Numbers of the memory that a round reads or writes, from an address on."""

    count: int  # how many
    stride: int = 1  # from one to the next
    step: int = 0  # from one column to the next: 1, or 0 where all columns read the same


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """Rounds of the same code; first all is read, then all is written."""

    body: Any  # the graph of a round (a `Traced`) of what is read
    reads: tuple[Piece, ...]  # what it reads, piece by piece
    writes: tuple[Piece, ...]  # its outputs, piece by piece
    rows: tuple[tuple[int, ...], ...]  # for each round the address of each piece
    width: int  # columns of a round: 1 or `WIDTH`

    @property
    def operations(self) -> Counter[str]:
        """Operations of all rounds."""
        once = self.body.graph.count(self.body.roots)
        return Counter({op: n * len(self.rows) * self.width for op, n in once.items()})


@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """Passes one after another, over a memory that begins with some nodes."""

    passes: tuple[Pass, ...]
    inputs: tuple[int, ...]  # nodes that are in the memory from the beginning
    places: tuple[int, ...]  # and their addresses
    outputs: tuple[int, ...]  # addresses of what is read afterwards
    size: int  # numbers of the memory

    @property
    def count(self) -> int:
        """How many results there are."""
        return len(self.outputs)

    @property
    def operations(self) -> Counter[str]:
        """Operations of all passes."""
        return sum((x.operations for x in self.passes), Counter[str]())
