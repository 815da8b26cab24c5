"""Formulas written as graphs: what `Formula.write` is given for kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from linkwise.codegen.derivative_form import DerivativeForm
from linkwise.codegen.formula import FormulaInputs, TooLongError
from linkwise.codegen.request import Request
from linkwise.codegen.scalar.arithmetic import objects
from linkwise.codegen.scalar.column_solve import Columns, ColumnSolve
from linkwise.codegen.scalar.graph import Loop, Scalar
from linkwise.codegen.scalar.trace import Axes, Sketch, Traced, variants
from linkwise.codegen.stages import derived, worth_rolling
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.factored import Factored
from linkwise.sweeps.lower import lower
from linkwise.sweeps.sparse import is_zero


class Writing(Sketch, FormulaInputs):
    """A formula that is being written.

    Attributes:
        plain: Whether values are computed so that they share most with each other, rather than
            each as cheaply as possible (`trace`).
        axes: Those of all values that may be written in several; None for the cheapest of each.
        chosen: Those that values with such a choice were written in.
        form: Which form of a derivative was taken, if it is one.
    """

    def __init__(self, request: Request, *, plain: bool = False, axes: Axes | None = None) -> None:
        Sketch.__init__(self)
        FormulaInputs.__init__(self, request)
        self.plain, self.chosen = plain, set[Axes]()
        self.axes: Axes | None = axes
        self._known = dict[object, dict[Axes, Traced]]()  # graphs that were traced before
        self.solve: ColumnSolve | None = None
        self.form: DerivativeForm | None = None

    def again(self, axes: Axes) -> Writing:
        """The same formula to be written once more, in these axes."""
        other = Writing(self.request, plain=self.plain, axes=axes)
        other._known = self._known
        return other

    def loop(
        self,
        step: Callable[[Writing, Any, Any], tuple[Any, Any]],
        x: Any,
        given: Any = (),
        *,
        most: int,
        when: Any = 1.0,
    ) -> tuple[Any, Any]:
        """x, again = step(at, x, given), as long as again > 0; returns the last of both.

        A state whose rounds are over stays as it is. Checks inside a round are left out: check the
        result.

        Args:
            step: One round; everything it needs is in x (n,) or given (m,).
            x: The initial values (n,).
            given: Values that stay the same (m,).
            most: The largest number of rounds.
            when: Without this being positive there is no round.
        """
        inner = Writing(self.request, axes=self.axes)
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
        nodes = tuple(self.scalar(e).node for e in (*x, when, *given))
        results = self.graph.loop(Loop(inner.traced(), nodes, len(x), most))
        out = objects([Scalar(self.graph, node) for node in results])
        return out[:-1], out[-1]

    def solved(self, inverse: Factored, rights: Sequence[Any]) -> list[Any]:
        """-A⁻¹ B for each B (n, m), and A⁻¹; the graph knows that columns are alike."""
        results = super().solved(inverse, rights)
        turned, identity = results[-1][:, ::-1], np.eye(len(inverse.pivots))[:, ::-1]
        matrices = [
            Columns(self._nodes(right), self._nodes(result), -1.0)
            for right, result in zip(rights, results[:-1], strict=True)
        ]
        matrices.append(Columns(self._nodes(identity), self._nodes(turned), 1.0))
        nodes = self._nodes(np.tril(inverse.lower, -1))
        lower = {(i, j): int(nodes[i, j]) for i, j in np.argwhere(nodes >= 0).tolist()}
        reciprocal = tuple(self.scalar(x).node for x in inverse.reciprocal)
        self.solve = ColumnSolve(lower, reciprocal, tuple(matrices))
        return results

    def _nodes(self, array: Any) -> Any:
        """The node of each entry, -1 for zeros."""
        rows = array.tolist()
        return np.array([[-1 if is_zero(x) else self.scalar(x).node for x in r] for r in rows])

    def values(self, requests: Sequence[Request], given: Mapping[str, Any]) -> list[Any]:
        """The values of expressions, as nodes of the graph."""
        key = tuple((x.expressions, x.nodes, x.chosen, x.parameters, x.mech) for x in requests)
        if key not in self._known:
            self._known[key] = self._traced(requests)
        kinds = self._known[key]
        axes: Axes = self.axes or min(kinds, key=lambda kind: kinds[kind].operations())
        if len(kinds) > 1:
            self.chosen.add(axes)
        traced = kinds.get(axes) or kinds["own"]
        arrays = {n: given[n] if n in given else self.read(n, k) for n, k in traced.inputs}
        flat = objects(self.replay(traced, arrays))
        shapes = traced.parts or (traced.shape,)
        pieces = np.split(flat, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        return [x.reshape(shape) for x, shape in zip(pieces, shapes, strict=True)]

    def _traced(self, requests: Sequence[Request]) -> dict[Axes, Traced]:
        """The graphs of expressions; raises where they would be too long."""
        request, mech = requests[0], requests[0].mech
        first, *rest = (derived(request, *each.expressions).result for each in requests)
        program = lower(first, request.chosen, rest)
        if isinstance(cast(object, mech), Mechanism) and worth_rolling(program, mech):
            raise TooLongError(mech)
        inputs, size = request.parameters, self.itemsize
        return variants(program, mech, request.nodes, inputs, itemsize=size, plain=self.plain)
