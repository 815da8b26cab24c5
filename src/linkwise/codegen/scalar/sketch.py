"""Straight code that is being written, in formulas on arrays of graph nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.codegen.scalar.graph import Check, Graph, Loop, Scalar
from linkwise.codegen.scalar.trace import Traced


class Sketch:
    """Arrays of `Scalar` that are read, and those that are written when all is read."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.checks = list[Check]()
        self.reads = dict[str, Any]()
        self.writes = dict[str, list[Scalar]]()

    def read(self, name: str, size: int) -> Any:
        """The numbers of an input (size,), the same ones each time."""
        if name not in self.reads:
            out = np.empty(size, dtype=object)
            for i in range(size):
                out[i] = Scalar(self.graph, self.graph.input(f"{name}[{i}]"))
            self.reads[name] = out
        return self.reads[name]

    def write(self, name: str, values: Sequence[Any]) -> None:
        """Put numbers into an output."""
        self.writes[name] = [self.scalar(x) for x in values]

    def scalar(self, x: Any) -> Scalar:
        """A number as a node."""
        return x if isinstance(x, Scalar) else Scalar(self.graph, self.graph.constant(float(x)))

    def check(self, code: int, value: Any, low: float, high: float) -> None:
        """Trouble with a code (`scalar/status.py`) unless low < value < high."""
        self.checks.append(Check(code, self.scalar(value).node, low, high))

    def replay(self, traced: Traced, given: Mapping[str, Any]) -> list[Scalar]:
        """The outputs of another graph, with these values for its inputs; its checks come along.

        Args:
            traced: The graph.
            given: For each of its input arrays the values (size,).
        """
        graph, here = traced.graph, self.graph
        flat = [self.scalar(x).node for name, _ in traced.inputs for x in given[name]]
        node_of, loops = dict[int, int](), dict[int, list[int]]()
        binary = {"add": here.add, "sub": here.sub, "mul": here.mul, "gate": here.gate}
        for node in graph.used(traced.roots):
            op, a, b = graph.op[node], graph.a[node], graph.b[node]
            here.here = graph.body[node]
            if op == "const":
                node_of[node] = here.constant(graph.value[node])
            elif op == "input":
                node_of[node] = flat[a]
            elif op in binary:
                node_of[node] = binary[op](node_of[a], node_of[b])
            elif op == "part":
                if a not in loops:
                    loop = graph.loops[a]
                    inputs = tuple(node_of[x] for x in loop.inputs)
                    loops[a] = here.loop(Loop(loop.body, inputs, loop.size, loop.most))
                node_of[node] = loops[a][b]
            elif op == "neg":
                node_of[node] = here.neg(node_of[a])
            else:
                node_of[node] = here.unary(op, node_of[a])
        here.here = -1
        for c in traced.checks:
            check = Check(c.code, node_of[c.node], c.low, c.high)
            if check not in self.checks:
                self.checks.append(check)
        return [Scalar(here, node_of[n]) for n in traced.outputs]

    def traced(self) -> Traced:
        """The graph of what was written, one output behind the other."""
        outputs = [x.node for values in self.writes.values() for x in values]
        inputs = tuple((name, len(values)) for name, values in self.reads.items())
        return Traced(self.graph, inputs, outputs, (len(outputs),), tuple(self.checks))
