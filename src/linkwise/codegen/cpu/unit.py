"""Text for the compiler, with what is needed to call the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Unit:
    """A module of LLVM text, ready to be compiled.

    Attributes:
        text: The text.
        lanes: States done together.
        itemsize: Bytes of a number.
        work: Numbers of scratch memory that a thread needs.
        tables: Arrays that the module reads, by the names of the pointers to them.
    """

    text: str
    lanes: int
    itemsize: int
    work: int
    tables: tuple[tuple[str, Any], ...] = ()
