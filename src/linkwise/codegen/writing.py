"""Formulas written as graphs: what `Formula.write` is given for kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.codegen.formula import FormulaInputs, TooLongError
from linkwise.codegen.request import Request
from linkwise.codegen.scalar.arithmetic import objects
from linkwise.codegen.scalar.graph import Loop, Scalar
from linkwise.codegen.scalar.trace import Sketch, Traced, trace
from linkwise.codegen.stages import derived, worth_rolling
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.lower import lower
from linkwise.sweeps.result_part import ResultPart


class Writing(Sketch, FormulaInputs):
    """A formula that is being written."""

    def __init__(self, request: Request) -> None:
        Sketch.__init__(self)
        FormulaInputs.__init__(self, request)
        self._known = dict[object, Traced]()  # graphs that were traced before

    def loop(
        self,
        step: Callable[[Writing, Any, Any], tuple[Any, Any]],
        x: Any,
        given: Any = (),
        *,
        most: int,
    ) -> tuple[Any, Any]:
        """x, again = step(at, x, given), as long as again > 0; returns the last of both.

        A state whose rounds are over stays as it is. Checks inside a round are left out: check the
        result.

        Args:
            step: One round; everything it needs is in x (n,) or given (m,).
            x: The initial values (n,).
            given: Values that stay the same (m,).
            most: The largest number of rounds.
        """
        inner = Writing(self.request)
        inner._known = self._known
        first = inner.read("x", len(x)), inner.read("given", len(given))
        after, again = step(inner, *first)
        inner.write("x", after)
        inner.write("again", [again])
        if list(inner.reads) != ["x", "given"]:
            raise AssertionError(
                f"a round reads {list(inner.reads)}; only x and given are available."
            )
        inner.checks.clear()
        nodes = tuple(self.scalar(e).node for e in (*x, *given))
        results = self.graph.loop(Loop(inner.traced(), nodes, len(x), most))
        out = objects([Scalar(self.graph, node) for node in results])
        return out[:-1], out[-1]

    def values(
        self,
        exprs: tuple[Expr, ...],
        nodes: tuple[str, ...],
        part: ResultPart,
        parameters: tuple[str, ...],
        given: Mapping[str, Any],
    ) -> list[Any]:
        """The values of expressions, as nodes of the graph."""
        key = (exprs, nodes, part, parameters)
        if key not in self._known:
            self._known[key] = self._traced(*key)
        traced = self._known[key]
        arrays = {n: given[n] if n in given else self.read(n, k) for n, k in traced.inputs}
        flat = objects(self.replay(traced, arrays))
        shapes = traced.parts or (traced.shape,)
        pieces = np.split(flat, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        return [x.reshape(shape) for x, shape in zip(pieces, shapes, strict=True)]

    def _traced(
        self,
        exprs: tuple[Expr, ...],
        nodes: tuple[str, ...],
        part: ResultPart,
        parameters: tuple[str, ...],
    ) -> Traced:
        """The graph of expressions; raises where it would be too long."""
        tree: object = self.mech
        request = replace(self.request, parameters=parameters)
        first, *rest = (derived(request, expr).result for expr in exprs)
        program = lower(first, part.checked(exprs[0], self.mech, nodes), rest)
        if isinstance(tree, Mechanism) and worth_rolling(program, tree):
            raise TooLongError
        return trace(program, self.mech, nodes, parameters, itemsize=self.itemsize)
