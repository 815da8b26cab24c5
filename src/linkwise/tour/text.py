"""Tables and paragraphs for the terminal, and the tree of a mechanism as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from textwrap import wrap

from linkwise.algebra.lexeme import width
from linkwise.model.body import Body
from linkwise.model.mechanism import Mechanism

COLUMNS = 96
"""Width of a paragraph [characters]."""

MAX_INDENT = 40
"""Largest indentation of a tree [characters]; deeper branches are drawn at this depth."""

TREE_HEAD = ("#", "body", "hinge", "kind", "q", "v", "mass [kg]", "limits")


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
    """The lines of a paragraph."""
    yield from wrap(text, COLUMNS, initial_indent=indent, subsequent_indent=indent)


def tree_rows(mech: Mechanism) -> Iterator[list[str]]:
    """One row per body, under `TREE_HEAD`, with branches drawn as lines."""
    for k, indent in _walk(mech):
        body = mech.bodies[k]
        yield [
            str(k),
            indent + body.name,
            body.hinge_name,
            body.hinge.describe(),
            _range(mech.q_slice(body.hinge_name)),
            _range(mech.v_slice(body.hinge_name)),
            f"{float(mech.inertias.mass[k]):.4g}",
            _limits(body),
        ]


def _walk(mech: Mechanism) -> Iterator[tuple[int, str]]:
    """Bodies in depth-first order, each with the lines in front of its name."""
    stack = [(k, "", "") for k in reversed(mech.children[-1])]
    while stack:
        k, first, rest = stack.pop()
        yield k, first
        children = mech.children[k]
        if len(children) == 1:  # a serial chain stays in its column
            stack.append((children[0], rest, rest))
            continue
        for i, child in reversed(list(enumerate(children))):
            last = i == len(children) - 1
            below = rest + ("  " if last else "│ ")
            if len(below) > MAX_INDENT:
                below = rest
            stack.append((child, rest + ("└ " if last else "├ "), below))


def _range(part: slice) -> str:
    if part.stop == part.start:
        return "-"
    return str(part.start) if part.stop == part.start + 1 else f"{part.start}..{part.stop - 1}"


def _limits(body: Body) -> str:
    lower, upper = (body.drive.array(x, body.hinge) for x in ("lower", "upper"))
    return ", ".join(
        f"[{low:.4g}, {high:.4g}] {c.unit}"
        for low, high, c in zip(lower, upper, body.hinge.coordinates, strict=True)
        if math.isfinite(low) or math.isfinite(high)
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
