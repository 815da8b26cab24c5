"""What a formula of a large mechanism makes of the values of its expressions, as straight code.

The expressions are kernels with loops over the bodies. Where none of them depends on another, their
values are inputs of a kernel for the rest of the formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.codegen.formula import Formula, FormulaInputs, TooLongError
from linkwise.codegen.request import Request
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.graph import Scalar
from linkwise.codegen.scalar.trace import Traced
from linkwise.codegen.writing import Writing
from linkwise.spatial.array import Array
from linkwise.sweeps.result_part import ResultPart

if TYPE_CHECKING:
    from linkwise.codegen.cpu.device import Processor
    from linkwise.codegen.kernel import Kernel

MOST_OPERATIONS = 60_000
"""Of straight code that compiles in about two seconds."""

VALUE = "value of expression {}"
"""Inputs of the rest."""


class _Inputs(FormulaInputs):
    """What `Formula.write` is given: values of expressions are inputs of the graph.

    Like `evaluated.py` it shows no graph: derivatives of it would miss the expressions.

    Attributes:
        kernels: Those of the expressions, in order.
        given: What was given to each.
        writing: The graph.
    """

    def __init__(self, request: Request, kernels: Sequence[Kernel]) -> None:
        super().__init__(request)
        self.kernels, self.given = kernels, list[Mapping[str, Any]]()
        self.writing, self.entries = Writing(request), 0
        self.check, self.loop, self.solved = (
            self.writing.check, self.writing.loop, self.writing.solved
        )  # fmt: skip

    def read(self, name: str, size: int) -> Any:
        return self.writing.read(name, size)

    def values(
        self,
        exprs: tuple[Expr, ...],
        nodes: tuple[str, ...],
        part: ResultPart,
        request: Request,
        given: Mapping[str, Any],
    ) -> list[Any]:
        """Inputs; raises where the expressions depend on other ones, or are large."""
        for array in given.values():
            if any(isinstance(x, Scalar) for x in np.asarray(array, dtype=object).flat):
                raise TooLongError(self.mech)
        results = list[Any]()
        for _ in exprs:
            shape = self.kernels[len(self.given)].signature.shape
            self.entries += math.prod(shape)
            if self.entries > MOST_OPERATIONS:
                raise TooLongError(self.mech)
            name = VALUE.format(len(self.given))
            results.append(self.read(name, math.prod(shape)).reshape(shape))
            self.given.append(given)
        return results


class Rest:
    """The rest of a formula, compiled for one state.

    Attributes:
        kernels: Those of its expressions.
        given: What they are given.
        processor: The rest.
    """

    def __init__(self, at: _Inputs, traced: Traced, request: Request) -> None:
        from linkwise.codegen.cpu.build import built_rest
        from linkwise.codegen.cpu.device import Processor

        self.kernels, self.given = at.kernels, at.given
        self.processor: Processor = Processor(request, *built_rest(request, traced))
        self.ops = self.processor.signature.ops

    def run(
        self,
        called: Callable[[Kernel, Mapping[str, Any]], Array],
        array: Callable[[str, int], Array],
        out: Array,
        codes: Any,
    ) -> Any:
        """Fill `out` (batch, n); returns the codes of all states.

        Args:
            called: Gives the results of a kernel, and adds to the codes.
            array: Gives an input of the formula.
            out: The results.
            codes: Those of the inputs, and of the kernels.
        """
        results = [called(k, given) for k, given in zip(self.kernels, self.given, strict=True)]
        values = {VALUE.format(i): x.reshape(len(x), -1) for i, x in enumerate(results)}
        rows = [
            np.ascontiguousarray(values[name] if name in values else array(name, size), out.dtype)
            for name, size in self.processor.inputs
        ]
        trouble = np.empty(len(out), np.int32)
        self.processor.run(rows, len(out), out, trouble, None)
        trouble[trouble == status.INPUT] = status.RESULT  # a value of an expression is not finite
        return np.where(codes == 0, trouble, codes)


def rest_of(formula: Formula, request: Request, kernels: Sequence[Kernel]) -> Rest | None:
    """The rest of a formula, if it is straight code of a reasonable length."""
    at: Any = _Inputs(request, kernels)
    try:
        results = formula.write(at, *formula.options)
    except TooLongError:
        return None
    arrays = [np.asarray(x, dtype=object) for x in (results if formula.names else [results])]
    at.writing.write("0", [x for array in arrays for x in array.ravel().tolist()])
    made = at.writing.traced()
    if len(at.given) != len(kernels) or made.operations() > MOST_OPERATIONS:
        return None
    return Rest(at, made, request)
