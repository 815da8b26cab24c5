"""The spaces that operators map between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_KNOWN: dict[tuple[str, str], Space] = {}


@dataclass(frozen=True, slots=True)
class Space:
    """A space of stacked vectors, by name.

    Attributes:
        name: Its name in messages.
        block: What one block belongs to: "body" for spaces stacked over the tree, else the name.
    """

    name: str
    block: str = "body"

    def __post_init__(self) -> None:
        _KNOWN.setdefault((self.name, self.block), self)

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:  # spaces are compared by `is`, also after unpickling
        return _known, (self.name, self.block)


def _known(name: str, block: str) -> Space:
    return _KNOWN.get((name, block)) or Space(name, block)


JOINT = Space("JOINT")
"""One block for each body, with as many entries as its hinge has velocities."""

COORDINATE = Space("COORDINATE")
"""One block for each body, with as many entries as its hinge has coordinates."""

TREE_JOINT = Space("TREE_JOINT")
"""All velocities of the hinges, where those of JOINT are the independent ones of aggregates."""

BODY = Space("BODY")
"""Six numbers for each body, in its own frame."""

INBOARD = Space("INBOARD")
"""Six numbers for each body, in the frame of its parent: where a force arrives after one step."""

INERTIA = Space("INERTIA")
"""Ten numbers for each body: m, m c (3), Jxx Jyy Jzz Jxy Jxz Jyz about its origin."""

NODE_INERTIA = Space("NODE_INERTIA", block="node")
"""Ten numbers for each chosen node, as in INERTIA: of what is welded to it."""

NODE = Space("NODE", block="node")
"""Six numbers for each chosen node."""

PLACE = Space("PLACE")
"""Twelve numbers for each body: the rows of (rot | p), its pose in the world."""

NODE_PLACE = Space("NODE_PLACE", block="node")
"""Twelve numbers for each chosen node: the rows of (rot | p), its pose in the world."""

CONSTRAINT = Space("CONSTRAINT", block="constraint")
"""Rows of loops and grasps, or of tasks, which are constraints that are driven."""

GOAL = Space("GOAL", block="constraint")
"""The numbers of the goals of tasks, as a servo takes them."""

GRAVITY = Space("GRAVITY", block="one")
"""Three numbers: the acceleration of free fall, in world axes."""

ONE = Space("ONE", block="one")
"""A single number: the domain of a stacked vector, which is an operator with one column."""
