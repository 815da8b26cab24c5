"""Formulas: kernels written in array code, on top of the values of expressions.

    def speed(at: Writing) -> Any:
        V = at.value(J @ v)
        return root(sum(V[3:] * V[3:]))

The function runs on graph nodes instead of numbers, as hinges do. Whatever it computes is one
kernel, for every target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.codegen.scalar.orthogonal import reflected
from linkwise.errors import LoweringError
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.result_part import Names, choice

if TYPE_CHECKING:
    from linkwise.codegen.request import Request
    from linkwise.codegen.scalar.trace import Axes, Traced
    from linkwise.codegen.writing import Writing
    from linkwise.sweeps.factored import Factored


class TooLongError(LoweringError):
    """Straight code of an expression would be too long: see `evaluated.py`."""

    def __init__(self, mech: Mechanism) -> None:
        from linkwise.codegen.stages import MOST_BODIES

        super().__init__(
            f"straight code for {mech.name!r} of {mech.n_bodies} bodies would be too long to "
            f"compile; it is for about {MOST_BODIES} bodies. The target 'cpu' evaluates such "
            "formulas on kernels with loops over bodies."
        )


class FormulaInputs:
    """What a formula reads: inputs of the kernel, and values of expressions at them.

    Attributes:
        mech: The mechanism.
        nodes: Nodes of the space NODE.
        itemsize: Bytes of a number.
    """

    def __init__(self, request: Request) -> None:
        self.mech: Any = request.mech
        self.nodes, self.itemsize, self.request = request.nodes, request.itemsize, request

    @property
    def q(self) -> Any:
        """Joint positions (nq,)."""
        return self.read("q", self.mech.nq)

    @property
    def v(self) -> Any:
        """Joint velocities (nv,)."""
        return self.read("v", self.mech.nv)

    def read(self, name: str, size: int) -> Any:
        """The numbers of an input (size,), the same ones each time."""
        raise NotImplementedError  # abstract: graphs and numbers each have their own

    def value(
        self,
        *exprs: Expr,
        nodes: Sequence[str] | None = None,
        rows: Names | None = None,
        columns: Names | None = None,
        blocks: bool = False,
        parameters: Sequence[str] = (),
        mech: Mechanism | None = None,
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
            mech: Another mechanism that has the same bodies, with other loops or couplings.
            given: Values for its inputs; others are inputs of the kernel of the same name.
        """
        like: dict[str, Any] = {
            "mech": self.request.mech if mech is None else mech,
            "nodes": self.nodes if nodes is None else tuple(nodes),
            "chosen": choice(rows, columns, blocks),
            "parameters": tuple(parameters),
            "names": (),
        }
        requests = [replace(self.request, quantity=(x,), **like) for x in exprs]
        values = self.values(requests, given)
        return values[0] if len(values) == 1 else values

    def values(self, requests: Sequence[Request], given: Mapping[str, Any]) -> list[Any]:
        """The values of expressions, a request for each, alike but for the expression."""
        raise NotImplementedError  # abstract: graphs and numbers each have their own

    def parameters_of(
        self,
        *exprs: Expr,
        among: tuple[str, ...] | None = None,
        nodes: tuple[str, ...] | None = None,
    ) -> tuple[str, ...]:
        """Those parameters that an expression, or one of several, depends on.

        Args:
            exprs: The expressions.
            among: The parameters; default: those of the kernel.
            nodes: Nodes of the space NODE; by default those of the formula.
        """
        from linkwise.codegen.stages import influential_in

        request = self.request if among is None else replace(self.request, parameters=among)
        if not request.parameters:
            return ()
        return influential_in(request, exprs, self.nodes if nodes is None else nodes)

    def shortened(self, W: Any) -> Any:
        """Rows with the same products as those of W (m, n), m of each: a triangle, if n is more."""
        return reflected(W).triangle if W.shape[1] > len(W) + 1 else W

    def solved(self, inverse: Factored, rights: Sequence[Any]) -> list[Any]:
        """-A⁻¹ B for each B (n, m), and A⁻¹."""
        return [*(-(inverse @ right) for right in rights), inverse.matrix]


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A function that writes a kernel. Make each once: kernels are found again by it.

    Attributes:
        write: Given a `Writing` and the options, returns an array, or a tuple of several. A
            function of a module, so that its kernels can be kept on disk.
        options: What else it depends on.
        names: Of its results, where it returns several.
    """

    write: Callable[..., Any]
    options: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.write.__name__

    def traced(self, request: Request, axes: Axes | None = None) -> Traced:
        """Its graph on a mechanism.

        Values written in different axes share less: where the cheapest of each differ, all are
        written in either, and the smallest graph counts.

        Args:
            request: The request.
            axes: Those of all values; None for the cheapest.

        Raises:
            TooLongError: The mechanism is large.
        """
        return self.written(request, axes)[0]

    def written(self, request: Request, axes: Axes | None = None) -> tuple[Traced, Writing]:
        """Its graph on a mechanism, and what wrote it: see `traced`."""
        from linkwise.codegen.stages import MOST_BODIES
        from linkwise.codegen.writing import Writing

        mech = cast(object, request.mech)  # or an embedded one
        if isinstance(mech, Mechanism) and mech.n_bodies > MOST_BODIES:
            raise TooLongError(mech)
        at = Writing(request, axes=axes)
        graphs = [(self._written(at), at)]
        if len(at.chosen) > 1:
            others = [at.again(kind) for kind in sorted(at.chosen)]
            graphs += [(self._written(other), other) for other in others]
        return min(graphs, key=lambda each: each[0].operations())

    def _written(self, at: Writing) -> Traced:
        """Its graph, written once."""
        from linkwise.codegen.scalar.trace import Traced

        results = self.write(at, *self.options)
        arrays = [np.asarray(x, dtype=object) for x in (results if self.names else [results])]
        for i, array in enumerate(arrays):
            at.write(str(i), array.ravel().tolist())
        made, shapes = at.traced(), tuple(x.shape for x in arrays)
        shape, parts = (made.shape, shapes) if self.names else (shapes[0], ())
        return Traced(made.graph, made.inputs, made.outputs, shape, made.checks, parts, at.solve)
