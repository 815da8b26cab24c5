"""Kernels: compiled expressions that are called with arrays."""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra.derivation import Derivation
from linkwise.codegen.llvm import Machine
from linkwise.codegen.trace import Traced
from linkwise.errors import ModelError, ShapeError, SingularHingeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.sweeps.program import Program


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled expression of one mechanism.

    Called with the arrays it needs, in the order of `arguments` or by name; each is (n,) for one
    state or (batch, n) for many, and arrays without the batch axis are used for all states.

    Attributes:
        mech: The mechanism.
        derivation: How the form that runs was found.
        program: Its sweeps.
        traced: Its scalar graph.
        machine: Its machine code.
    """

    mech: Mechanism
    derivation: Derivation
    program: Program
    traced: Traced
    machine: Machine
    _fast: Callable[..., Array | None] | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        fast = self.machine.fast
        object.__setattr__(self, "_fast", None if fast is None else fast.function)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arrays it takes, in order."""
        return tuple(name for name, _ in self.traced.inputs)

    @property
    def ops(self) -> Counter[str]:
        """Scalar operations for one state, by kind."""
        return self.traced.graph.count(self.traced.outputs)

    @property
    def source(self) -> str:
        """The LLVM text."""
        return self.machine.source

    def __call__(self, *arrays: Any, **named: Any) -> Array:
        """The value: the shape of the expression, with the batch axis in front if there is one.

        Raises:
            ShapeError: An array is missing or does not fit; says which.
            ModelError: An input is not finite; says which.
            SingularHingeError: The result is not finite; says for which states.
        """
        if self._fast is not None and not named:
            out = self._fast(*arrays)
            if out is not None:
                return out
        given = dict(zip(self.arguments, arrays, strict=False)) | named
        rows, batch = list[Array](), 0
        for name, size in self.traced.inputs:
            if name not in given:
                raise ShapeError(
                    f"{name} is missing; this kernel takes {', '.join(self.arguments)}."
                )
            array = np.ascontiguousarray(given.pop(name), dtype=np.float64)
            if array.ndim not in (1, 2) or array.shape[-1] != size:
                raise ShapeError(
                    f"{name} has shape {array.shape}; it must be ({size},) or (batch, {size})."
                )
            if not _all_finite(array):
                raise ModelError(f"{name} is not finite.")
            batch = max(batch, len(array) if array.ndim == 2 else 0)
            rows.append(array)
        if given:
            raise ShapeError(
                f"{', '.join(given)} is not known; this kernel takes {', '.join(self.arguments)}."
            )
        return self._run(rows, batch)

    def _run(self, rows: list[Array], batch: int) -> Array:
        count = batch or 1
        wide = self.machine.lanes
        padded = count if count == 1 else -(-count // wide) * wide
        arrays = [
            self._rows(name, array, count, padded)
            for (name, _), array in zip(self.traced.inputs, rows, strict=True)
        ]
        out = np.empty((padded, len(self.traced.outputs)))
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        function = self.machine.single if padded == 1 else self.machine.batch
        function(ctypes.addressof(pointers), out.ctypes.data, padded)
        out = out[:count]
        if not _all_finite(out):
            finite = np.isfinite(out).all(axis=1)
            raise SingularHingeError(self._trouble(np.flatnonzero(~finite), batch))
        out = out.reshape(count, *self.traced.shape)
        return out if batch else out[0]

    def _trouble(self, rows: NDArray[np.intp], batch: int) -> str:
        listed = ", ".join(str(i) for i in rows[:5]) + (" ..." if len(rows) > 5 else "")
        where = f" for {len(rows)} of {batch} states (rows {listed})" if batch else ""
        return (
            f"the result is not finite{where}: some hinge has nothing to resist it, or numbers "
            "are too large. mech.validate() names hinges that move nothing."
        )

    def _rows(self, name: str, array: Array, count: int, padded: int) -> Array:
        """One row a state; the last vector register is filled up with copies of the last state."""
        if array.ndim == 2 and len(array) not in (1, count):
            raise ShapeError(f"{name} has {len(array)} rows; the batch has {count}.")
        rows = array if array.ndim == 2 else array[None]
        if len(rows) == padded:
            return rows
        if len(rows) == 1:
            return np.repeat(rows, padded, axis=0)
        return np.concatenate([rows, np.repeat(rows[-1:], padded - count, axis=0)])

    def explain(self) -> str:
        """The derivation, the sweeps and the operation count."""
        counts = ", ".join(f"{n} {op}" for op, n in sorted(self.ops.items()))
        return f"{self.derivation}\n\n{self.program}\n\noperations for one state: {counts}"


def _all_finite(array: Array) -> bool:
    """Quick where all is well: one sum, and a look at every entry only if that is odd."""
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(array.sum()) or bool(np.isfinite(array).all())
