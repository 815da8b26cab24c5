"""A segment: straight code that reads registers and writes registers.

Registers are short arrays with names, one set of them for each motion. A step of an integrator is a
list of segments; a segment that stands in it more than once (the accelerations, at each stage) is
one function, called each time. What a segment writes is stored after everything was read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.codegen.scalar.graph import Graph, Scalar
from linkwise.codegen.scalar.trace import Check, Traced


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Straight code from registers to registers.

    Attributes:
        name: What it does, in one word.
        traced: Its graph; inputs are the registers that are read, with their lengths.
        writes: The registers that are written with their lengths, in the order of the outputs.
        again: A register of one number, which it writes: while that is above zero in some motion,
            the segment is run again. Nothing for one that is run once.
        most: How often it is run at most.
    """

    name: str
    traced: Traced
    writes: tuple[tuple[str, int], ...]
    again: str = ""
    most: int = 1

    @property
    def reads(self) -> tuple[tuple[str, int], ...]:
        """The registers that are read, with their lengths."""
        return self.traced.inputs


class Sketch:
    """A segment that is being written, in formulas on arrays of `Scalar`."""

    def __init__(self, name: str) -> None:
        self.name, self.graph = name, Graph()
        self.checks = list[Check]()
        self._reads = dict[str, Any]()
        self._writes = dict[str, list[Scalar]]()

    def read(self, register: str, size: int) -> Any:
        """The numbers of a register (size,)."""
        if register not in self._reads:
            out = np.empty(size, dtype=object)
            for i in range(size):
                out[i] = Scalar(self.graph, self.graph.input(f"{register}[{i}]"))
            self._reads[register] = out
        return self._reads[register]

    def write(self, register: str, values: Sequence[Any]) -> None:
        """Put numbers into a register, after all is read."""
        self._writes[register] = [self._scalar(x) for x in values]

    def _scalar(self, x: Any) -> Scalar:
        return x if isinstance(x, Scalar) else Scalar(self.graph, self.graph.constant(float(x)))

    def check(self, code: int, value: Any, low: float, high: float) -> None:
        """Trouble with a code (`scalar/status.py`) unless low < value < high."""
        self.checks.append(Check(code, self._scalar(value).node, low, high))

    def replay(self, traced: Traced, given: Mapping[str, Any]) -> list[Scalar]:
        """The outputs of another graph, with these values for its inputs; its checks come along.

        Args:
            traced: The graph.
            given: For each of its input arrays the values (size,).
        """
        graph, here = traced.graph, self.graph
        flat = [self._scalar(x).node for name, _ in traced.inputs for x in given[name]]
        node_of = dict[int, int]()
        binary = {"add": here.add, "sub": here.sub, "mul": here.mul}
        for node in graph.used(traced.wanted):
            op, a, b = graph.op[node], graph.a[node], graph.b[node]
            here.here = graph.body[node]
            if op == "const":
                node_of[node] = here.constant(graph.value[node])
            elif op == "input":
                node_of[node] = flat[a]
            elif op in binary:
                node_of[node] = binary[op](node_of[a], node_of[b])
            elif op == "neg":
                node_of[node] = here.neg(node_of[a])
            else:
                node_of[node] = here.unary(op, node_of[a])
        here.here = -1
        for c in traced.checks:
            self.checks.append(Check(c.code, node_of[c.node], c.low, c.high))
        return [Scalar(here, node_of[n]) for n in traced.outputs]

    def segment(self, *, again: str = "", most: int = 1) -> Segment:
        """What was written, to be run once or again and again."""
        outputs = [x.node for values in self._writes.values() for x in values]
        inputs = tuple((name, len(values)) for name, values in self._reads.items())
        writes = tuple((name, len(values)) for name, values in self._writes.items())
        traced = Traced(self.graph, inputs, outputs, (len(outputs),), tuple(self.checks))
        return Segment(self.name, traced, writes, again, most)
