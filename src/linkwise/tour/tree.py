"""The tree of a mechanism as rows of a table, drawn with lines."""

from __future__ import annotations

import math
from collections.abc import Iterator

from linkwise.model.body import Body
from linkwise.model.mechanism import Mechanism

MAX_INDENT = 40
"""Widest drawing in front of a name [characters]; deeper branches are drawn at this depth."""

HEAD = ("#", "body", "hinge", "kind", "q", "v", "mass [kg]", "limits")


def tree_rows(mech: Mechanism) -> Iterator[list[str]]:
    """One row a body, under `HEAD`."""
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
    """Bodies in depth-first order with the lines drawn in front of their names."""
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


def _range(where: slice) -> str:
    if where.stop == where.start:
        return "-"
    return str(where.start) if where.stop == where.start + 1 else f"{where.start}..{where.stop - 1}"


def _limits(body: Body) -> str:
    lower, upper = (body.drive.array(x, body.hinge) for x in ("lower", "upper"))
    shown = [
        f"[{low:.4g}, {high:.4g}] {c.unit}"
        for low, high, c in zip(lower, upper, body.hinge.coordinates, strict=True)
        if math.isfinite(low) or math.isfinite(high)
    ]
    return ", ".join(shown)
