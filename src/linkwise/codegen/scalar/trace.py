"""Tracing: the interpreter run on graph nodes instead of numbers gives the scalar graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.codegen.scalar.arithmetic import Nodes
from linkwise.codegen.scalar.graph import Check, Graph
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.bodies import bodies_of
from linkwise.sweeps.interpret import Interpreter
from linkwise.sweeps.program import Program


@dataclass(frozen=True, slots=True)
class Traced:
    """A program of one mechanism as a graph.

    Attributes:
        graph: All nodes.
        inputs: For each input array its name and length, in order.
        outputs: Node of each entry of the result, row by row.
        shape: Shape of the result for one state.
        checks: What has to hold for the result to mean something.
        parts: Of several results that stand one after another, the shape of each.
    """

    graph: Graph
    inputs: tuple[tuple[str, int], ...]
    outputs: list[int]
    shape: tuple[int, ...]
    checks: tuple[Check, ...] = ()
    parts: tuple[tuple[int, ...], ...] = ()

    @property
    def roots(self) -> list[int]:
        """The nodes that are stored or checked."""
        return [*self.outputs, *(check.node for check in self.checks)]

    def by_columns(self) -> list[int]:
        """All nodes that are needed, in an order in which values are used soon after they are made.

        That is the order they were made in, the sweeps. In a matrix, what serves one column only
        comes after what all share, a few columns at a time: few values are then waiting.
        """
        needed = self.graph.used(self.roots)
        if len(self.shape) != 2:
            return needed
        shared, width = -1, self.shape[1]
        column = dict.fromkeys((check.node for check in self.checks), shared)
        for i, node in enumerate(self.outputs):
            column.setdefault(node, i % width)  # of a symmetric matrix, the upper half
        for node in reversed(needed):
            here = column[node]
            for x in self.graph.arguments(node):
                column[x] = here if column.get(x, here) == here else shared
        return sorted(needed, key=lambda node: (column[node] // ABREAST, node))


ABREAST = 2
"""Columns of a matrix that are done together: one would leave the processor waiting."""


def trace(
    program: Program,
    mech: Mechanism | Embedded,
    nodes: Sequence[str] = (),
    parameters: Sequence[str] = (),
    *,
    itemsize: int = 8,
    rank: int | None = None,
) -> Traced:
    """The scalar graph of a program on a mechanism.

    Args:
        program: The sweeps.
        mech: The mechanism.
        nodes: Nodes of the space NODE.
        parameters: Numbers of the mechanism that stay inputs (`parameters.py`).
        itemsize: Bytes of a number, on which the bounds of the checks depend.
        rank: How many rows of loops and couplings have to be independent; None for any number.
    """
    bodies = bodies_of(mech, nodes)
    arithmetic = Nodes(program, bodies, parameters, itemsize)
    arithmetic.counted = rank is not None
    return traced_run(Interpreter(program, bodies, arithmetic), arithmetic, rank)


def traced_run(run: Interpreter, arithmetic: Nodes, rank: int | None = None) -> Traced:
    """The graph of a run on nodes."""
    result = np.asarray(run.result(), dtype=object)
    outputs = [arithmetic.node(x) for x in result.ravel()]
    arithmetic.check_parameters(outputs)
    checks = arithmetic.needed_checks(outputs) + arithmetic.rank_checks(rank)
    parts = tuple(arithmetic.parts) if run.program.more else ()
    inputs = tuple(arithmetic.arrays)
    return Traced(arithmetic.graph, inputs, outputs, result.shape, tuple(checks), parts)
