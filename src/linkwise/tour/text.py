"""Tables and paragraphs for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from linkwise.algebra.lexeme import width

COLUMNS = 96
"""Of paragraphs."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns padded to their widest entry, numbers to the right."""
    wide = [max(width(row[i]) for row in [head, *rows]) for i in range(len(head))]
    right = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(head))]
    for row in [head, ["-" * w for w in wide], *rows]:
        cells = [
            " " * (w - width(cell)) + cell if r else cell + " " * (w - width(cell))
            for cell, w, r in zip(row, wide, right, strict=True)
        ]
        yield ("  " + "  ".join(cells)).rstrip()


def paragraph(text: str, *, indent: str = "  ") -> Iterator[str]:
    """Lines of a paragraph."""
    yield from wrap(text, COLUMNS, initial_indent=indent, subsequent_indent=indent)


def count(n: int, one: str, many: str = "") -> str:
    """1 body, 2 bodies."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
