"""What stands at the edges of a step: where its inputs come from and where its results go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from linkwise.algebra.space import BODY, INBOARD, JOINT, PLACE, Space
from linkwise.sweeps.program import Ident

Where = Literal["q", "v", "body", "place", "inertia", "node", "start", "parent_body", "block"]
"""What an entry of an array is counted from: a body's q, v, its 6, 12 or 10 numbers, a node ..."""

WHERE: dict[Space, Where] = {JOINT: "v", BODY: "body", INBOARD: "body", PLACE: "place"}
"""What the entries of a space are counted from."""

Key: TypeAlias = tuple[Ident, int, int]
"""An entry of a quantity that is handed from body to body."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """What an input node of a step stands for.

    Attributes:
        kind: "input" (entry of an array), "column" (of the table), "parent" (a quantity there),
            "sum" (over children), "unit" (entry of a column of the identity), "whole" (a number
            that belongs to no body).
        index: Which array, column or number.
        where: What the entry of an array is counted from.
        offset: The entry, from there.
        node: For entries of nodes, which node of the body.
        stride: Numbers of one node.
        key: The entry of a quantity.
        level: The stage from which on it is known.
        kept: Whether it can be read again later.
        each: Whether it has another value for each column.
    """

    kind: Literal["input", "column", "parent", "sum", "unit", "whole"]
    level: int
    kept: bool
    index: int = 0
    where: Where = "start"
    offset: int = 0
    node: int = -1
    stride: int = 6
    key: Key | None = None
    each: bool = False


@dataclass(frozen=True, slots=True)
class Out:
    """An entry that a step writes: of the result, or of numbers that belong to no body.

    Attributes:
        stage: The first stage in which it can be written.
        node: Its value.
        where: What the entry is counted from.
        offset: The entry, from there.
        on: For entries of nodes, which node of the body.
        index: Where the numbers begin.
        stride: Numbers of one node.
    """

    stage: int
    node: int
    where: Where
    offset: int
    on: int = -1
    index: int = 0
    stride: int = 6


class Fold:
    """Entries handed between bodies that are the same constant everywhere."""

    def __init__(self) -> None:
        self.parent: dict[Key, float | None] = {}
        self.sums: dict[Key, float | None] = {}
