"""What formulas are written with: inputs of the kernel, and values of expressions at them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.codegen.formula import TooLongError
from linkwise.codegen.request import Request
from linkwise.codegen.rolled.worth import worth_rolling
from linkwise.codegen.scalar.graph import Loop, Scalar
from linkwise.codegen.scalar.sketch import Sketch
from linkwise.codegen.scalar.trace import Traced, trace
from linkwise.codegen.stages import derived
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.lower import lower
from linkwise.sweeps.result_part import Names, ResultPart, choice


class Writing(Sketch):
    """A formula that is being written.

    Attributes:
        mech: The mechanism.
        nodes: Nodes of the space NODE.
        itemsize: Bytes of a number.
    """

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.mech: Any = request.mech
        self.nodes, self.itemsize, self._request = request.nodes, request.itemsize, request
        self._known = dict[object, Traced]()  # graphs that were traced before

    @property
    def q(self) -> Any:
        """Joint positions (nq,)."""
        return self.read("q", self.mech.nq)

    @property
    def v(self) -> Any:
        """Joint velocities (nv,)."""
        return self.read("v", self.mech.nv)

    def loop(
        self,
        step: Callable[[Writing, Any, Any], tuple[Any, Any]],
        x: Any,
        given: Any = (),
        *,
        most: int,
    ) -> tuple[Any, Any]:
        """x, again = step(at, x, given), as long as again > 0; returns the last of both.

        A state whose rounds are over stays as it is. What is checked in a round is left out: look
        at what comes of it.

        Args:
            step: One round; whatever it needs is x (n,) or given (m,).
            x: What it begins with (n,).
            given: What stays the same (m,).
            most: How many rounds there are at most.
        """
        inner = Writing(self._request)
        inner._known = self._known
        first = inner.read("x", len(x)), inner.read("given", len(given))
        after, again = step(inner, *first)
        inner.write("x", after)
        inner.write("again", [again])
        if list(inner.reads) != ["x", "given"]:
            raise AssertionError(f"a round reads {list(inner.reads)}; it has x and given.")
        inner.checks.clear()
        nodes = tuple(self.scalar(e).node for e in (*x, *given))
        results = self.graph.loop(Loop(inner.traced(), nodes, len(x), most))
        out = np.empty(len(results), dtype=object)
        out[:] = [Scalar(self.graph, node) for node in results]
        return out[:-1], out[-1]

    def value(
        self,
        *exprs: Expr,
        nodes: Sequence[str] | None = None,
        rows: Names | None = None,
        columns: Names | None = None,
        blocks: bool = False,
        parameters: Sequence[str] = (),
        **given: Any,
    ) -> Any:
        """The value of an expression, or of several that share what they have in common.

        Args:
            exprs: The expressions.
            nodes: Nodes of the space NODE; by default those of the formula.
            rows: As in `lw.compile`.
            columns: As in `lw.compile`.
            blocks: As in `lw.compile`.
            parameters: As in `lw.compile`.
            given: Values for its inputs; others are inputs of the kernel of the same name.
        """
        nodes = self.nodes if nodes is None else tuple(nodes)
        part = choice(rows, columns, blocks)
        key = (exprs, nodes, part, tuple(parameters))
        if key not in self._known:
            self._known[key] = self._traced(*key)
        traced = self._known[key]
        arrays = {n: given[n] if n in given else self.read(n, k) for n, k in traced.inputs}
        flat = np.empty(len(traced.outputs), dtype=object)
        flat[:] = self.replay(traced, arrays)
        if len(exprs) == 1:
            return flat.reshape(traced.shape)
        ends = np.cumsum([int(np.prod(shape)) for shape in traced.parts])
        pieces = np.split(flat, ends[:-1])
        return [x.reshape(shape) for x, shape in zip(pieces, traced.parts, strict=True)]

    def _traced(
        self,
        exprs: tuple[Expr, ...],
        nodes: tuple[str, ...],
        part: ResultPart,
        parameters: tuple[str, ...],
    ) -> Traced:
        """The graph of expressions; raises where it would be too long."""
        tree: object = self.mech
        request = replace(self._request, parameters=parameters)
        first, *rest = (derived(request, expr).result for expr in exprs)
        program = lower(first, part.checked(exprs[0], self.mech, nodes), rest)
        if isinstance(tree, Mechanism) and worth_rolling(program, tree):
            raise TooLongError
        return trace(program, self.mech, nodes, parameters, itemsize=self.itemsize)
