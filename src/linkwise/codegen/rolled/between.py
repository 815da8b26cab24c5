"""What a rolled kernel does between its loops: numbers that belong to no body.

Sums over all bodies start from what other such numbers contribute; small dense systems over nodes
are solved by L D L*.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.algebra.expr import Identity, Symbol
from linkwise.algebra.role import Vector
from linkwise.algebra.space import ONE, Space
from linkwise.codegen.rolled.layout import Layout
from linkwise.codegen.rolled.stage import Plan
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.arithmetic import not_symmetric
from linkwise.codegen.scalar.graph import Check, Graph, Scalar
from linkwise.codegen.scalar.pivots import SINGULAR
from linkwise.errors import ExpressionError, LoweringError
from linkwise.sweeps.factored import factored
from linkwise.sweeps.program import Quantity, Statement
from linkwise.sweeps.result_part import SIZES
from linkwise.sweeps.structured_block import mirrored


@dataclass(slots=True)
class Between:
    """Straight code in front of a loop.

    Attributes:
        graph: Its graph.
        slots: Input nodes that are numbers of the frame: slot, and whether columns differ.
        arrays: Input nodes that are entries of inputs: (array, entry).
        stores: (slot, node) to put into the frame.
        results: (entry, node) of the result.
        checks: What has to hold.
    """

    graph: Graph = field(default_factory=Graph)
    slots: dict[int, tuple[int, bool]] = field(default_factory=lambda: {})
    arrays: dict[int, tuple[int, int]] = field(default_factory=lambda: {})
    stores: list[tuple[int, int]] = field(default_factory=lambda: [])
    results: list[tuple[int, int]] = field(default_factory=lambda: [])
    checks: list[Check] = field(default_factory=lambda: [])

    def number(self, x: Any) -> int:
        """The node of a number."""
        return x.node if isinstance(x, Scalar) else self.graph.constant(float(x))


def between_loops(plan: Plan, layout: Layout, itemsize: int) -> list[Between]:
    """The straight code before each stage; the last one comes after all of them."""
    straight = list[Between]()
    for stage in plan.stages:
        code = Between()
        reader = _Reader(plan, layout, code)
        for statement in stage.solves:
            _solve(reader, statement, SINGULAR[itemsize])
        for statement in stage.statements:
            if statement.target.rows is ONE:
                _start(reader, statement)
        straight.append(code)
    last = Between()
    result = plan.program.result
    if result.rows is ONE:
        values = _Reader(plan, layout, last).matrix(result)
        last.results = [(c, last.number(x)) for c, x in enumerate(values[0])]
    return [*straight, last]


class _Reader:
    """Numbers of the frame as nodes."""

    def __init__(self, plan: Plan, layout: Layout, code: Between) -> None:
        self.plan, self.layout, self.code = plan, layout, code

    def size(self, space: Space) -> int:
        if space is ONE or space is self.plan.looped:
            return 1
        assert space.block == "node"
        return SIZES[space] * self.layout.n_nodes

    def _input(self, name: str) -> Scalar:
        return Scalar(self.code.graph, self.code.graph.input(name))

    def matrix(self, quantity: Quantity) -> Any:
        rows = 1 if quantity.rows is ONE else self.size(quantity.rows)
        columns = self.size(quantity.columns)
        out = np.empty((rows, columns), dtype=object)
        slot = self.layout.slot.get(quantity.ident)
        for r in range(rows):
            for c in range(columns):
                if slot is not None:
                    out[r, c] = self._input("slot")
                    each = quantity.ident in self.plan.each
                    self.code.slots[out[r, c].node] = (slot + r * columns + c, each)
                elif isinstance(quantity.key, Symbol) and isinstance(quantity.key.role, Vector):
                    out[r, c] = self._input("entry")
                    array = self.layout.arrays.index(quantity.key.role.source)
                    self.code.arrays[out[r, c].node] = (array, r)
                else:
                    assert isinstance(quantity.key, Identity) and out.size == 1  # I of numbers
                    out[r, c] = 1.0
        return out


def _solve(reader: _Reader, statement: Statement, small: float) -> None:
    """A⁻¹ X for a symmetric A; a pivot that is a small part of its diagonal entry is zero."""
    (matrix, _), (right, _) = statement.reads
    if not matrix.key.symmetric:
        raise LoweringError(not_symmetric(matrix.key))
    code = reader.code
    A = mirrored(reader.matrix(matrix))
    try:
        factors = factored(A)
    except ZeroDivisionError:
        raise ExpressionError(f"{matrix.key} is singular in every state.") from None
    x = factors.matrix if isinstance(right.key, Identity) else factors @ reader.matrix(right)
    for j, d in enumerate(factors.pivots):
        left = d - small * A[j, j]
        if isinstance(left, Scalar):
            code.checks.append(Check(status.MATRIX, left.node, 0.0, np.inf))
    slot = reader.layout.slot[statement.target.ident]
    code.stores += [(slot + i, code.number(value)) for i, value in enumerate(x.ravel())]


def _start(reader: _Reader, statement: Statement) -> None:
    """A sum over the bodies starts with the terms that are numbers themselves."""
    slot = reader.layout.slot[statement.target.ident]
    total: Any = np.full((1, reader.size(statement.target.columns)), 0.0, dtype=object)
    for term in statement.terms:
        if term.operand is not None and term.operand.rows is ONE:
            assert not term.left and not term.right
            total = total + term.number * reader.matrix(term.operand)
    code = reader.code
    code.stores += [(slot + c, code.number(x)) for c, x in enumerate(total[0])]
