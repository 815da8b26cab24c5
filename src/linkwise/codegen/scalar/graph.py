"""The scalar graph: every number of a kernel as a node, equal ones the same node, folded as made.

Nodes are made in the order of the sweeps and that order is kept: it is the schedule. `Scalar` wraps
a node so that NumPy formulas on arrays of dtype object build the graph by running.

Folding uses what holds for finite numbers: 0 x = 0, 1 x = x, x - x = 0, x (1/x) = 1. A graph is
therefore only used for states that passed the checks for finite input.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

Op = Literal["const", "input", "add", "sub", "mul", "gate", "neg", "inv", "sqrt", "sin", "cos"]

COUNTED: Final = ("add", "sub", "mul", "gate", "neg", "inv", "sqrt", "sin", "cos")


@dataclass(slots=True)
class Graph:
    """Nodes as parallel lists; an index is a node.

    Attributes:
        op: Operation of each node.
        a: First argument (an index), or the input's number.
        b: Second argument.
        value: Value of constants.
        inputs: Names of the inputs, by number.
        body: Body whose statement first made each node, -1 for none.
        here: Body whose statement is being traced; marks the nodes made now.
    """

    op: list[Op] = field(default_factory=lambda: [])
    a: list[int] = field(default_factory=lambda: [])
    b: list[int] = field(default_factory=lambda: [])
    value: list[float] = field(default_factory=lambda: [])
    inputs: list[str] = field(default_factory=lambda: [])
    body: list[int] = field(default_factory=lambda: [])
    here: int = -1
    _table: dict[tuple[Op, int, int, float], int] = field(default_factory=lambda: {})

    def _node(self, op: Op, a: int = -1, b: int = -1, value: float = 0.0) -> int:
        key = (op, a, b, value)
        found = self._table.get(key)
        if found is None:
            found = len(self.op)
            self._table[key] = found
            self.op.append(op)
            self.a.append(a)
            self.b.append(b)
            self.value.append(value)
            self.body.append(self.here)
        return found

    def constant(self, value: float) -> int:
        """A constant; the two zeros are one."""
        return self._node("const", value=float(value) + 0.0)

    def input(self, name: str) -> int:
        """A new input."""
        self.inputs.append(name)
        return self._node("input", len(self.inputs) - 1)

    def _is(self, node: int, value: float) -> bool:
        return self.op[node] == "const" and self.value[node] == value

    def add(self, a: int, b: int) -> int:
        """a + b."""
        if self._is(a, 0.0):
            return b
        if self._is(b, 0.0):
            return a
        if self.op[a] == self.op[b] == "const":
            return self.constant(self.value[a] + self.value[b])
        if self.op[b] == "neg":
            return self.sub(a, self.a[b])
        if self.op[a] == "neg":
            return self.sub(b, self.a[a])
        if self.op[a] == self.op[b] == "sub" and (self.a[a], self.b[a]) == (self.b[b], self.a[b]):
            return self.constant(0.0)  # (x - y) + (y - x)
        return self._node("add", min(a, b), max(a, b))

    def sub(self, a: int, b: int) -> int:
        """a - b."""
        if a == b:
            return self.constant(0.0)
        if self._is(b, 0.0):
            return a
        if self._is(a, 0.0):
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
        if self.op[a] == "const" and self.op[b] == "const":
            return self.constant(self.value[a] * self.value[b])
        if self.op[b] == "const":
            a, b = b, a
        if self.op[a] == "const":
            if self.value[a] == 0.0:
                return a
            if self.value[a] == 1.0:
                return b
            if self.value[a] == -1.0:
                return self.neg(b)
        if self.op[a] == "neg":
            return self.neg(self.mul(self.a[a], b))
        if self.op[b] == "neg":
            return self.neg(self.mul(a, self.a[b]))
        cancelled = self._cancelled(a, b)
        if cancelled is not None:
            return cancelled
        return self._node("mul", min(a, b), max(a, b))

    def gate(self, a: int, b: int) -> int:
        """b where a > 0, else 0: all choices are made of it."""
        if self.op[a] == "const":
            return b if self.value[a] > 0.0 else self.constant(0.0)
        return b if self._is(b, 0.0) else self._node("gate", a, b)

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

    def used(self, outputs: list[int]) -> list[int]:
        """The nodes that the outputs need, in the order they were made."""
        needed, stack = set[int](), list(outputs)
        while stack:
            node = stack.pop()
            if node in needed:
                continue
            needed.add(node)
            if self.op[node] not in ("const", "input"):
                stack.append(self.a[node])
                if self.b[node] >= 0:
                    stack.append(self.b[node])
        return sorted(needed)

    def count(self, outputs: list[int]) -> Counter[str]:
        """How many of each operation the outputs take."""
        return Counter(self.op[n] for n in self.used(outputs) if self.op[n] in COUNTED)


class Scalar:
    """A node as a number: arithmetic on it extends the graph."""

    __slots__ = ("graph", "node")

    def __init__(self, graph: Graph, node: int) -> None:
        self.graph = graph
        self.node = node

    def _with(self, op: Callable[[int, int], int], other: Any, *, swapped: bool = False) -> Any:
        if isinstance(other, Scalar):
            node = other.node
        elif isinstance(other, np.ndarray):
            return NotImplemented  # NumPy does it entry by entry
        else:
            node = self.graph.constant(float(other))
        return Scalar(self.graph, op(node, self.node) if swapped else op(self.node, node))

    def __add__(self, other: Any) -> Any:
        return self._with(self.graph.add, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(self.graph.sub, other)

    def __rsub__(self, other: Any) -> Any:
        return self._with(self.graph.sub, other, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self._with(self.graph.mul, other)

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

    def sqrt(self) -> Scalar:
        """√x."""
        return Scalar(self.graph, self.graph.unary("sqrt", self.node))

    def sin(self) -> Scalar:
        """The sine."""
        return Scalar(self.graph, self.graph.unary("sin", self.node))

    def cos(self) -> Scalar:
        """The cosine."""
        return Scalar(self.graph, self.graph.unary("cos", self.node))

    def gate(self, other: Any) -> Scalar:
        """The other one where this is positive, else 0."""
        return self._with(self.graph.gate, other)
