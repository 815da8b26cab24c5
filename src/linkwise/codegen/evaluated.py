"""Formulas of large mechanisms: the function runs on numbers, expressions are kernels with loops.

Straight code of a thousand bodies would take minutes to compile. What the formula makes of the
values of its expressions is straight code in pieces (`rest.py`). Where that is too long, or rounds
of a loop have expressions, each entry of an array is the row of its values in all states of a
batch, and the same function runs on these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.formula import Formula, FormulaInputs
from linkwise.codegen.request import Request
from linkwise.codegen.rest import LONG, rest_of, triangles
from linkwise.codegen.scalar import status
from linkwise.spatial.array import Array

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel


class Evaluated:
    """A formula on a mechanism, evaluated for a batch of states.

    Attributes:
        inputs: For each input array its name and length, in order.
        parts: Shape of each result for one state.
        ops: Scalar operations of its expressions for one state, by kind.
    """

    def __init__(self, formula: Formula, request: Request) -> None:
        self.formula, self.request = formula, request
        self.kernels: list[Kernel] = []
        dtype = np.dtype(f"f{request.itemsize}")
        trial = _Evaluating(self, {}, 1, dtype)  # to see what it reads, and what it makes
        results = self._results(trial)
        self.inputs = tuple((name, x.shape[-1]) for name, x in trial.given.items())
        self.parts = tuple(x.shape for x in results)
        self.ops = sum((k.ops for k in self.kernels), Counter[str]())
        self.rest = rest_of(formula, request, self.kernels)
        if self.rest is not None:
            self.ops += self.rest.ops

    def run(self, rows: Sequence[Any], out: Array, codes: Any, threads: int | None) -> None:
        """Results and codes of all states."""
        given = {n: np.atleast_2d(x) for (n, _), x in zip(self.inputs, rows, strict=True)}
        at = _Evaluating(self, given, len(out), out.dtype, threads)
        for x in given.values():
            at.codes[np.broadcast_to(~np.isfinite(x).all(axis=1), at.codes.shape)] = status.INPUT
        if self.rest is not None:
            codes[...] = self.rest.run(at.called, at.array, out, at.codes)
            return
        start = 0
        for array in self._results(at):
            part = out[:, start : start + array.size]
            entries = array.ravel().tolist()
            _, lanes, numbers = at.made.get(id(array), (None, None, None))
            if lanes == entries:  # the value of an expression, as it was
                part[...] = numbers
            else:
                for column, x in enumerate(entries):
                    part[:, column] = _row(x)
            start += array.size
        bad = ~np.isfinite(out).all(axis=1) & (at.codes == 0)
        at.codes[bad] = status.RESULT
        codes[...] = at.codes

    def _results(self, at: _Evaluating) -> list[Any]:
        formula, at.calls = self.formula, 0
        with np.errstate(all="ignore"):  # trouble has its codes
            results = formula.write(at, *formula.options)
        return [np.asarray(x, dtype=object) for x in (results if formula.names else [results])]


class _Evaluating(FormulaInputs):
    """What `Formula.write` is given, on numbers."""

    def __init__(
        self,
        of: Evaluated,
        given: dict[str, Any],
        count: int,
        dtype: Any,
        threads: int | None = None,
    ) -> None:
        super().__init__(of.request)
        self.of, self.given, self.count, self.dtype, self.threads = of, given, count, dtype, threads
        self.codes, self.calls = np.zeros(count, np.int32), 0
        # values of expressions by their address: arrays, their entries, and numbers (batch, n)
        self.made = dict[int, tuple[Any, list[Any], Array]]()

    def read(self, name: str, size: int) -> Any:
        return _objects_of(self.array(name, size))

    def array(self, name: str, size: int) -> Any:
        """An input (1, size) or (batch, size)."""
        if name not in self.given:  # in the trial: any state
            of_q = name.startswith("q") and size == self.mech.nq
            sample = self.mech.neutral() if of_q else np.zeros(size)
            self.given[name] = sample[None].astype(self.dtype)
        return self.given[name]

    def check(self, code: int, value: Any, low: float, high: float) -> None:
        """Trouble with a code unless low < value < high."""
        x = _row(value)
        bad = ~((low < x) & (x < high)) & (self.codes == 0)
        self.codes[bad] = np.where(np.isnan(x), status.RESULT, code)[bad]

    def shortened(self, W: Any) -> Any:
        m, n = W.shape
        if n < LONG:
            return super().shortened(W)
        rows = [np.broadcast_to(_row(x), self.count) for x in W.ravel()]
        return _objects_of(triangles(np.stack(rows, axis=-1).reshape(-1, m, n)))

    def loop(
        self,
        step: Callable[[Any, Any, Any], tuple[Any, Any]],
        x: Any,
        given: Any = (),
        *,
        most: int,
        when: Any = 1.0,
    ) -> tuple[Any, Any]:
        """x, again = step(at, x, given), as long as again > 0; returns the last of both."""
        again = np.array(np.broadcast_to(_row(when), self.count), self.dtype)
        active, calls, codes = again > 0.0, self.calls, self.codes.copy()
        rows = [np.array(np.broadcast_to(_row(e), self.count), self.dtype) for e in x]
        end = calls
        for _ in range(most):
            self.calls = calls
            after, more = step(self, _lanes(rows), _lanes([_row(e) for e in given]))
            end = self.calls
            for row, e in zip(rows, after, strict=True):
                np.copyto(row, _row(e), where=active)
            np.copyto(again, _row(more), where=active)
            active = again > 0.0
            if not active.any():
                break
        self.calls, self.codes = end, codes
        return _lanes(rows), Lane(again)

    def values(self, requests: Sequence[Request], given: Mapping[str, Any]) -> list[Any]:
        return [self._value(request, given) for request in requests]

    def _value(self, request: Request, given: Mapping[str, Any]) -> Any:
        from linkwise.codegen.kernel import kernel as kernel_of

        if self.calls == len(self.of.kernels):  # kernels are called in the same order each time
            self.of.kernels.append(kernel_of(request))
        kernel = self.of.kernels[self.calls]
        self.calls += 1
        result = self.called(kernel, given)
        lanes = _objects_of(result)
        self.made[id(lanes)] = lanes, lanes.ravel().tolist(), result.reshape(len(result), -1)
        return lanes

    def called(self, kernel: Kernel, given: Mapping[str, Any]) -> Array:
        """The results of a kernel (batch, ...), with its trouble among the codes."""
        arrays, codes = list[Any](), np.zeros(self.count, np.int32)
        for name, size in kernel.signature.inputs:
            if name not in given:
                arrays.append(self.array(name, size))
            else:
                wide = np.empty((self.count, size), self.dtype)
                for i, x in enumerate(given[name]):
                    wide[:, i] = _row(x)
                arrays.append(wide)
        lead = np.broadcast_to(arrays[0], (self.count, arrays[0].shape[-1]))
        result = kernel(lead, *arrays[1:], status=codes, threads=self.threads)
        np.copyto(self.codes, codes, where=self.codes == 0)
        return result


def _objects_of(array: Array) -> Any:
    """(batch, ...) as an array of lanes, one for each entry."""
    out = np.empty(array[0].size, dtype=object)
    out[:] = [Lane(row) for row in array.reshape(len(array), -1).T]
    return out.reshape(array.shape[1:])


def _row(x: Any) -> Any:
    return x.row if isinstance(x, Lane) else x


def _lanes(rows: Sequence[Any]) -> Any:
    out = np.empty(len(rows), dtype=object)
    out[:] = [Lane(np.asarray(row)) for row in rows]
    return out


def _lane(op: Callable[[Any, Any], Any]) -> Callable[[Lane, Any], Any]:
    def build(self: Lane, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented  # NumPy does it entry by entry
        return Lane(op(self.row, other.row if isinstance(other, Lane) else other))

    return build


class Lane:
    """One number in all states of a batch, with the arithmetic of `Scalar`."""

    __slots__ = ("row",)

    def __init__(self, row: Any) -> None:
        self.row = row

    def gate(self, other: Any) -> Any:
        """The other one where this is positive, else 0."""
        return _lane(lambda a, b: np.where(a > 0.0, b, np.zeros((), a.dtype)))(self, other)

    def __neg__(self) -> Lane:
        return Lane(-self.row)

    def reciprocal(self) -> Lane:
        """1 / x."""
        return Lane(1.0 / self.row)

    def sqrt(self) -> Lane:
        """√x."""
        return Lane(np.sqrt(self.row))

    def sin(self) -> Lane:
        """The sine."""
        return Lane(np.sin(self.row))

    def cos(self) -> Lane:
        """The cosine."""
        return Lane(np.cos(self.row))

    __add__ = __radd__ = _lane(np.add)
    __mul__ = __rmul__ = _lane(np.multiply)
    __sub__, __rsub__ = _lane(np.subtract), _lane(lambda a, b: b - a)
    __truediv__, __rtruediv__ = _lane(np.divide), _lane(lambda a, b: b / a)
