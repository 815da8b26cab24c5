"""Segments run in NumPy, node by node, all motions of a batch at a time: the plain reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.scalar import status as code_of
from linkwise.codegen.stepping.stepping import STEP, Segment, Stepping
from linkwise.spatial.array import Array

_UNARY = {"inv": np.reciprocal, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "neg": np.negative}
_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "gate": lambda a, b: np.where(a > 0.0, b, 0.0),
}

Registers = dict[str, Array]
"""Each register as (length, batch)."""


class Interpreted:
    """A batch of motions, step by step.

    Attributes:
        stepping: What is done.
        registers: Their values.
        status: A code for each motion, 0 as long as all is well (batch,).
        failed: The step in which that code came, -1 for none (batch,).
    """

    def __init__(self, stepping: Stepping, q: Array, v: Array, step: float) -> None:
        self.stepping, count = stepping, len(q)
        self.registers: Registers = {
            name: np.zeros((size, count)) for name, size in stepping.registers.items()
        }
        self.registers["q"], self.registers["v"] = q.T.copy(), v.T.copy()
        self.registers[STEP][:] = step
        self.status = np.zeros(count, np.int32)
        self.failed = np.full(count, -1, np.int64)
        self._steps = 0
        self._run(stepping.enter)

    def step(self, held: dict[str, Array]) -> None:
        """One step with these inputs held, each (batch, length)."""
        for name, values in held.items():
            self.registers[name] = values.T.copy()
        self._run(self.stepping.step)
        state = np.concatenate([self.registers[name] for name in self.stepping.state])
        lost = ~np.isfinite(state).all(axis=0) & (self.status == 0)
        self.status[lost] = 2
        new = (self.status != 0) & (self.failed < 0)
        self.failed[new] = self._steps
        self._steps += 1

    def shown(self) -> tuple[Array, Array]:
        """q and v, (batch, nq) and (batch, nv)."""
        self._run(self.stepping.leave)
        return self.registers["q"].T.copy(), self.registers["v"].T.copy()

    def _run(self, segments: tuple[Segment, ...]) -> None:
        with np.errstate(all="ignore"):  # trouble has its codes
            for segment in segments:
                for _ in range(segment.most):
                    evaluate(segment, self.registers, self.status)
                    if segment.again and not (self.registers[segment.again] > 0.0).any():
                        break


def evaluate(segment: Segment, registers: Registers, status: NDArray[np.int32]) -> None:
    """Run one segment."""
    traced, graph = segment.traced, segment.traced.graph
    flat = [row for name, _ in segment.reads for row in registers[name]]
    value = dict[int, Array]()
    for node in graph.used(traced.roots):
        op, a, b = graph.op[node], graph.a[node], graph.b[node]
        if op == "const":
            value[node] = np.full(len(status), graph.value[node])
        elif op == "input":
            value[node] = flat[a]
        elif op in _BINARY:
            value[node] = _BINARY[op](value[a], value[b])
        else:
            value[node] = _UNARY[op](value[a])
    for check in traced.checks:
        x = value[check.node]
        bad = ~((check.low < x) & (x < check.high)) & (status == 0)
        status[bad] = np.where(np.isnan(x[bad]), code_of.RESULT, check.code)
    start = 0
    for name, size in segment.writes:
        registers[name] = np.array([value[n] for n in traced.outputs[start : start + size]])
        registers[name] = registers[name].reshape(size, len(status))
        start += size
