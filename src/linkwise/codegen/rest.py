"""What a formula of a large mechanism makes of the values of its expressions, as straight code.

The expressions are kernels with loops over the bodies. A formula is cut where it calls one, or
where it makes a triangle of long rows: what was made so far comes in as inputs of the next piece.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.codegen.formula import Formula, FormulaInputs, TooLongError
from linkwise.codegen.request import Request
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.trace import Traced
from linkwise.codegen.writing import Writing
from linkwise.spatial.array import Array

if TYPE_CHECKING:
    from linkwise.codegen.cpu.device import Processor
    from linkwise.codegen.kernel import Kernel

MOST_OPERATIONS = 60_000
"""Of straight code that compiles in about two seconds."""

LONG = 64
"""Entries of rows from which on their triangle is made outside of the code."""

FOUND = "made {}"
"""Inputs of a piece."""


_Called = Callable[["Kernel", Mapping[str, Any]], Array]
"""Gives the results of a kernel, and adds to the codes."""

_Act = Callable[[_Called, Array], Array]
"""What makes results (batch, ...) of the numbers (batch, n) of a piece."""


class _Cut(NamedTuple):
    """A place where a formula is cut.

    Attributes:
        piece: What was made of earlier results so far, as far as it is needed here; or None.
        act: What is called there.
    """

    piece: Traced | None
    act: _Act


class _Inputs(FormulaInputs):
    """What `Formula.write` is given: values of expressions are inputs of the graph.

    Like `evaluated.py` it shows no graph: derivatives of it would miss the expressions.

    Attributes:
        kernels: Those of the expressions, in order.
        cuts: Where the formula is cut.
        writing: The graph.
    """

    def __init__(self, request: Request, kernels: Sequence[Kernel]) -> None:
        super().__init__(request)
        self.kernels, self.called = kernels, 0
        self.writing, self.cuts, self.entries = Writing(request), list[_Cut](), 0
        self.check, self.loop, self.solved = (
            self.writing.check, self.writing.loop, self.writing.solved
        )  # fmt: skip

    def read(self, name: str, size: int) -> Any:
        return self.writing.read(name, size)

    def values(self, requests: Sequence[Request], given: Mapping[str, Any]) -> list[Any]:
        return [self._value(given) for _ in requests]

    def _value(self, given: Mapping[str, Any]) -> Any:
        kernel = self.kernels[self.called]
        self.called += 1
        arrays = {name: given[name] for name, _ in kernel.signature.inputs if name in given}
        ends = np.cumsum([0, *map(len, arrays.values())]).tolist()
        places = {x: slice(*ends[i : i + 2]) for i, x in enumerate(arrays)}

        def act(called: _Called, numbers: Array) -> Array:
            return called(kernel, {name: numbers[:, x].T for name, x in places.items()})

        numbers = np.concatenate([np.zeros(0), *arrays.values()])
        return self._results(numbers, kernel.signature.shape, act)

    def shortened(self, W: Any) -> Any:
        m, n = W.shape
        if n < LONG:
            return super().shortened(W)

        def act(called: _Called, numbers: Array) -> Array:
            del called
            return triangles(numbers.reshape(-1, m, n))

        return self._results(W.ravel(), (m, m), act)

    def _results(self, numbers: Any, shape: tuple[int, ...], act: _Act) -> Any:
        """The results of an act as inputs; raises where they are too many."""
        self.entries += math.prod(shape)
        if self.entries > MOST_OPERATIONS:
            raise TooLongError(self.mech)
        piece = None
        if len(numbers):
            writing, nodes = self.writing, [self.writing.scalar(x).node for x in numbers]
            piece = Traced(writing.graph, writing.traced().inputs, nodes, (len(nodes),))
        self.cuts.append(_Cut(piece, act))
        name = FOUND.format(len(self.cuts) - 1)
        return self.read(name, math.prod(shape)).reshape(shape)


def triangles(W: Array) -> Array:
    """Lower triangles L (batch, m, m) with L L* = W W*, for W (batch, m, n), m ≤ n."""
    return np.swapaxes(np.linalg.qr(np.swapaxes(W, -1, -2), mode="r"), -1, -2)


class Rest:
    """The pieces of a formula, compiled for one state, and what is called between them.

    Attributes:
        steps: For each cut the piece before it, if it needs one, and what is called there.
        last: The rest.
        ops: Scalar operations of all pieces, by kind.
    """

    def __init__(self, at: _Inputs, traced: Traced, request: Request) -> None:
        self.steps = [
            (None if cut.piece is None else _processor(cut.piece, request, i), cut.act)
            for i, cut in enumerate(at.cuts)
        ]
        self.last = _processor(traced, request, len(at.cuts))
        pieces = [piece for piece, _ in self.steps if piece is not None]
        self.ops = sum((x.signature.ops for x in pieces), self.last.signature.ops)

    def run(
        self, called: _Called, array: Callable[[str, int], Array], out: Array, codes: Any
    ) -> Any:
        """Fill `out` (batch, n); returns the codes of all states.

        Args:
            called: Gives the results of a kernel, and adds to the codes.
            array: Gives an input of the formula.
            out: The results.
            codes: Those of the inputs, and of the kernels.
        """
        made, trouble = dict[str, Array](), np.empty(len(out), np.int32)

        def computed(piece: Processor, result: Array) -> Array:
            rows = [
                np.ascontiguousarray(made[name] if name in made else array(name, size), out.dtype)
                for name, size in piece.inputs
            ]
            piece.run(rows, len(out), result, trouble, None)
            return result

        for i, (piece, act) in enumerate(self.steps):
            size = 0 if piece is None else piece.signature.shape[0]
            numbers = np.empty((len(out), size), out.dtype)
            results = act(called, numbers if piece is None else computed(piece, numbers))
            made[FOUND.format(i)] = results.reshape(len(results), -1)
        computed(self.last, out)
        trouble[trouble == status.INPUT] = status.RESULT  # a value of an expression is not finite
        return np.where(codes == 0, trouble, codes)


def _processor(traced: Traced, request: Request, number: int) -> Processor:
    from linkwise.codegen.cpu.build import built_piece
    from linkwise.codegen.cpu.device import Processor

    return Processor(request, *built_piece(request, traced, number))


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
    pieces = [made, *(cut.piece for cut in at.cuts if cut.piece is not None)]
    if at.called != len(kernels) or sum(x.operations() for x in pieces) > MOST_OPERATIONS:
        return None
    return Rest(at, made, request)
