"""The scalar graph: every number of a kernel as a node, equal ones the same node, folded as made.

Nodes are made in the order of the sweeps and that order is kept: it is the schedule. `Scalar` wraps
a node so that NumPy formulas on arrays of dtype object build the graph by running.

Folding uses what holds for finite numbers: 0 x = 0, 1 x = x, x - x = 0, x (1/x) = 1. A graph is
therefore only used for states that passed the checks for finite input.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Any, Final, Literal

import numpy as np

from linkwise.codegen.scalar.passes import Passes
from linkwise.model.hinges.jet import Jet
from linkwise.spatial.choice import taken

Op = Literal[
    "const",
    "input",
    "part",
    "add",
    "sub",
    "mul",
    "gate",
    "neg",
    "inv",
    "sqrt",
    "sin",
    "cos",
    "take",
]

COUNTED: Final = ("add", "sub", "mul", "gate", "neg", "inv", "sqrt", "sin", "cos", "take")

_INVERSES: Final = ("mul", "inv")
"""Operations in whose products something may cancel."""


def table_name(table: bytes) -> str:
    """A name for a table in generated code, by its content and length."""
    return f"table_{sha1(table, usedforsecurity=False).hexdigest()[:16]}_{len(table) // 8}"


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """Numbers that are changed again and again: while again > 0, x, again = body(x, given)."""

    body: Any  # the graph of one round (a `Traced`), of x and given; its outputs are x and again
    inputs: tuple[int, ...]  # the nodes that x and again begin with, and those that are given
    size: int  # how many numbers x has
    most: int  # how many rounds there are at most

    @property
    def count(self) -> int:
        """How many results there are."""
        return self.size + 1

    @property
    def operations(self) -> Counter[str]:
        """Operations of one round."""
        return self.body.graph.count(self.body.roots)


@dataclass(slots=True)
class Graph:
    """Nodes as parallel lists; an index is a node."""

    op: list[Op] = field(default_factory=lambda: [])  # operation of each node
    # first argument (an index), or the number of an input, or that of a loop
    a: list[int] = field(default_factory=lambda: [])
    b: list[int] = field(default_factory=lambda: [])  # second argument, or which number of the loop
    value: list[float] = field(default_factory=lambda: [])  # value of constants
    inputs: list[str] = field(default_factory=lambda: [])  # names of the inputs, by number
    # body whose statement first made each node, -1 for none
    body: list[int] = field(default_factory=lambda: [])
    here: int = -1  # body whose statement is being traced; marks the nodes made now
    # loops, whose results are nodes "part": x behind one another, then again; and passes
    loops: list[Loop | Passes] = field(default_factory=lambda: [])
    # numbers that nodes "take" from, as bytes of float64; b of such a node is -2 - its table
    tables: list[bytes] = field(default_factory=lambda: [])
    _table: dict[tuple[Op, int, int] | float, int] = field(default_factory=lambda: {})

    def _node(self, op: Op, a: int, b: int = -1) -> int:
        key = (op, a, b)
        node = self._table.get(key)
        return self._new(key, op, a, b, 0.0) if node is None else node

    def _new(self, key: tuple[Op, int, int] | float, op: Op, a: int, b: int, value: float) -> int:
        self._table[key] = node = len(self.op)
        self.op.append(op)
        self.a.append(a)
        self.b.append(b)
        self.value.append(value)
        self.body.append(self.here)
        return node

    def constant(self, value: float) -> int:
        """A constant; the two zeros are one."""
        value = float(value) + 0.0
        node = self._table.get(value)
        return self._new(value, "const", -1, -1, value) if node is None else node

    def input(self, name: str) -> int:
        """A new input."""
        self.inputs.append(name)
        return self._node("input", len(self.inputs) - 1)

    def is_constant(self, node: int, value: float) -> bool:
        """Whether a node is this constant."""
        return self.op[node] == "const" and self.value[node] == value

    def add(self, a: int, b: int) -> int:
        """a + b."""
        x, y = self.op[a], self.op[b]
        if x == "const" or y == "const":
            if x == y:
                return self.constant(self.value[a] + self.value[b])
            if self.is_constant(a, 0.0):
                return b
            if self.is_constant(b, 0.0):
                return a
        if y == "neg":
            return self.sub(a, self.a[b])
        if x == "neg":
            return self.sub(b, self.a[a])
        if x == y == "sub" and (self.a[a], self.b[a]) == (self.b[b], self.a[b]):
            return self.constant(0.0)  # (x - y) + (y - x)
        return self._node("add", a, b) if a < b else self._node("add", b, a)

    def sub(self, a: int, b: int) -> int:
        """a - b."""
        if a == b:
            return self.constant(0.0)
        if self.is_constant(b, 0.0):
            return a
        if self.is_constant(a, 0.0):
            return self.neg(b)
        if self.op[a] == self.op[b] == "const":
            return self.constant(self.value[a] - self.value[b])
        if self.op[b] == "neg":
            return self.add(a, self.a[b])
        if self.op[a] == "neg":
            return self.neg(self.add(self.a[a], b))
        return self._node("sub", a, b)

    def neg(self, a: int) -> int:
        """-a."""
        if self.op[a] == "const":
            return self.constant(-self.value[a])
        if self.op[a] == "neg":
            return self.a[a]
        if self.op[a] == "sub":
            return self._node("sub", self.b[a], self.a[a])
        return self._node("neg", a)

    def mul(self, a: int, b: int) -> int:
        """a b."""
        if self.op[b] == "const":
            a, b = b, a
        x, y = self.op[a], self.op[b]
        if x == "const":
            if y == "const":
                return self.constant(self.value[a] * self.value[b])
            if self.value[a] == 0.0:
                return a
            if self.value[a] == 1.0:
                return b
            if self.value[a] == -1.0:
                return self.neg(b)
        if x == "neg":
            return self.neg(self.mul(self.a[a], b))
        if y == "neg":
            return self.neg(self.mul(a, self.a[b]))
        if x in _INVERSES or y in _INVERSES:
            cancelled = self._cancelled(a, b)
            if cancelled is not None:
                return cancelled
        return self._node("mul", a, b) if a < b else self._node("mul", b, a)

    def gate(self, a: int, b: int) -> int:
        """b where a > 0, else 0: all choices are made of it."""
        if self.op[a] == "const":
            return b if self.value[a] > 0.0 else self.constant(0.0)
        return b if self.is_constant(b, 0.0) else self._node("gate", a, b)

    def _cancelled(self, a: int, b: int) -> int | None:
        """x (1/x) = 1 and (y (1/x)) x = y."""
        for x, y in ((a, b), (b, a)):
            if self.op[y] == "inv" and self.a[y] == x:
                return self.constant(1.0)
            if self.op[y] == "mul":
                for one, other in ((self.a[y], self.b[y]), (self.b[y], self.a[y])):
                    if self.op[one] == "inv" and self.a[one] == x:
                        return other
        return None

    def unary(self, op: Op, a: int) -> int:
        """1/a, √a, sin a or cos a."""
        if self.op[a] == "const":
            x = self.value[a]
            done = {
                "inv": lambda: 1.0 / x,
                "sqrt": lambda: math.sqrt(x),
                "sin": lambda: math.sin(x),
                "cos": lambda: math.cos(x),
            }
            return self.constant(done[op]())
        if op == "sin" and self.op[a] == "neg":
            return self.neg(self.unary("sin", self.a[a]))
        if op == "cos" and self.op[a] == "neg":
            return self.unary("cos", self.a[a])
        return self._node(op, a)

    def take(self, a: int, table: bytes) -> int:
        """The number of a table at a place, rounded down and kept within the table."""
        if self.op[a] == "const":
            return self.constant(taken(table, self.value[a]))
        if table not in self.tables:
            self.tables.append(table)
        return self._node("take", a, -2 - self.tables.index(table))

    def table(self, node: int) -> bytes:
        """The table of a node "take"."""
        return self.tables[-2 - self.b[node]]

    def loop(self, loop: Loop | Passes) -> list[int]:
        """The results of a loop, x and again; or those of passes."""
        self.loops.append(loop)
        return [self._node("part", len(self.loops) - 1, i) for i in range(loop.count)]

    @property
    def plain_loops(self) -> list[Loop]:
        """All loops, of a graph without passes: a GPU takes no others."""
        loops = [x for x in self.loops if isinstance(x, Loop)]
        assert len(loops) == len(self.loops)
        return loops

    def arguments(self, node: int) -> tuple[int, ...]:
        """The nodes that a node is made of."""
        op = self.op[node]
        if op == "const" or op == "input":
            return ()
        if op == "part":
            loop, which = self.loops[self.a[node]], self.b[node]
            if which and isinstance(loop, Passes):  # which run where the first one is requested
                return (self._table["part", self.a[node], 0],)
            return loop.inputs
        return (self.a[node],) if self.b[node] < 0 else (self.a[node], self.b[node])

    def used(self, outputs: list[int], known: Collection[int] = ()) -> list[int]:
        """The nodes that the outputs need, in the order they were made; known ones need none."""
        needed = bytearray(max(outputs, default=-1) + 1)
        for node in outputs:
            needed[node] = 1
        for node in range(len(needed) - 1, -1, -1):  # what a node needs was made before it
            if needed[node] and node not in known:
                op = self.op[node]
                if op == "part":
                    for x in self.arguments(node):
                        needed[x] = 1
                elif op not in ("const", "input"):
                    needed[self.a[node]] = 1
                    if self.b[node] >= 0:
                        needed[self.b[node]] = 1
        return [node for node, is_needed in enumerate(needed) if is_needed]

    def count(self, outputs: list[int]) -> Counter[str]:
        """How many of each operation the outputs take; of a loop, one round; of passes, all."""
        used = self.used(outputs)
        total = Counter[str](self.op[n] for n in used if self.op[n] in COUNTED)
        for number in {self.a[n] for n in used if self.op[n] == "part"}:
            total += self.loops[number].operations
        return total


@dataclass(frozen=True, slots=True)
class Check:
    """A state has no result unless low < value < high."""

    code: int  # the status of the state otherwise (`status.py`)
    node: int  # the value
    low: float  # lower bound
    high: float  # upper bound


LARGER = (np.ndarray, Jet)
"""What a node is an entry or a coefficient of."""


class Scalar:
    """A node as a number: arithmetic on it extends the graph."""

    __slots__ = ("graph", "node")

    def __init__(self, graph: Graph, node: int) -> None:
        self.graph = graph
        self.node = node

    @property
    def constant(self) -> float | None:
        """Its value if it is the same in every state, else None."""
        return self.graph.value[self.node] if self.graph.op[self.node] == "const" else None

    @property
    def is_zero(self) -> bool:
        """Whether it is zero in every state."""
        graph, node = self.graph, self.node
        return graph.op[node] == "const" and graph.value[node] == 0.0

    def _other(self, other: Any) -> int:
        return other.node if type(other) is Scalar else self.graph.constant(float(other))

    def __add__(self, other: Any) -> Any:
        if type(other) is Scalar:
            return Scalar(self.graph, self.graph.add(self.node, other.node))
        if isinstance(other, LARGER):
            return NotImplemented  # NumPy does it entry by entry, a series term by term
        if other == 0.0:
            return self
        return Scalar(self.graph, self.graph.add(self.node, self._other(other)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, LARGER):
            return NotImplemented
        return Scalar(self.graph, self.graph.sub(self.node, self._other(other)))

    def __rsub__(self, other: Any) -> Any:
        if isinstance(other, LARGER):
            return NotImplemented
        return Scalar(self.graph, self.graph.sub(self._other(other), self.node))

    def __mul__(self, other: Any) -> Any:
        if type(other) is Scalar:
            return Scalar(self.graph, self.graph.mul(self.node, other.node))
        if isinstance(other, LARGER):
            return NotImplemented
        if other == 1.0:
            return self
        return Scalar(self.graph, self.graph.mul(self.node, self._other(other)))

    __rmul__ = __mul__

    def __neg__(self) -> Scalar:
        return Scalar(self.graph, self.graph.neg(self.node))

    def reciprocal(self) -> Scalar:
        """1 / x."""
        return Scalar(self.graph, self.graph.unary("inv", self.node))

    def __truediv__(self, other: Any) -> Any:
        return self * (other.reciprocal() if isinstance(other, Scalar) else 1.0 / other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.reciprocal() * other

    def __pow__(self, power: Any) -> Any:
        """A whole power, or a half one, by products, a root and a reciprocal."""
        if isinstance(power, (*LARGER, Scalar)) or float(power) * 2.0 % 1.0:
            return NotImplemented
        count, half = divmod(abs(float(power)), 1.0)
        out, square, left = Scalar(self.graph, self.graph.constant(1.0)), self, int(count)
        while left:
            out = out * square if left % 2 else out
            square, left = square * square, left // 2
        out = out * self.sqrt() if half else out
        return out.reciprocal() if power < 0.0 else out

    def sqrt(self) -> Scalar:
        """√x."""
        return Scalar(self.graph, self.graph.unary("sqrt", self.node))

    def sin(self) -> Scalar:
        """The sine."""
        return Scalar(self.graph, self.graph.unary("sin", self.node))

    def cos(self) -> Scalar:
        """The cosine."""
        return Scalar(self.graph, self.graph.unary("cos", self.node))

    def take(self, table: bytes) -> Scalar:
        """The number of a table at this place."""
        return Scalar(self.graph, self.graph.take(self.node, table))

    def gate(self, other: Any) -> Scalar:
        """The other one where this is positive, else 0."""
        return Scalar(self.graph, self.graph.gate(self.node, self._other(other)))
