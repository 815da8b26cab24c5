"""Several kernels on one batch of states, whose troubles are told as if they were one kernel's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.scalar import status
from linkwise.dynamics.kernels import Status
from linkwise.errors import ShapeError
from linkwise.spatial.array import Array

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel


class Codes:
    """Runs kernels and collects their codes; `told` warns of them, once, or hands them over.

    Args:
        given: What the caller gave: an array for the codes of a batch, or None.
        arrays: The inputs of all kernels, to see how large the batch is.
    """

    def __init__(self, given: Status | None, *arrays: Any) -> None:
        try:
            self.lead = np.broadcast_shapes(*(np.shape(array)[:-1] for array in arrays))
        except ValueError:  # rows that do not fit, or no arrays at all: the kernel will say so
            self.lead = ()
        self.status = given
        self._found: list[tuple[Kernel, Status]] = []
        self._last: Kernel | None = None

    def run(self, kernel: Kernel, *arrays: Any, **options: Any) -> Array:
        """Run a kernel. A single state in trouble raises, unless its code is asked for."""
        asked = {name: value for name, value in options.items() if value is not None}
        self._last = kernel
        if self.lead == () and self.status is None:
            return kernel(*arrays, **asked)  # without options, the quick way
        codes = np.zeros(Codes(None, *arrays).lead, dtype=np.int32)
        result = kernel(*arrays, status=codes, **asked)
        self._found.append((kernel, codes))
        return result

    @property
    def bad(self) -> Any:
        """Which states are in trouble so far: a mask of the batch's shape."""
        return np.any([np.broadcast_to(codes != 0, self.lead) for _, codes in self._found], axis=0)

    def told(self, result: Array) -> Array:
        """The result, with NaN for states in trouble, which are told of.

        What was made of kernels' results may have overflowed where they have not.
        """
        finite = np.isfinite(result).all(axis=tuple(range(len(self.lead), result.ndim)))
        if not self._found:
            if not finite.all() and self._last is not None:
                raise status.error(status.RESULT, self._last.mech)
            return result
        merged = np.zeros(self.lead, dtype=np.int32)
        for _, codes in self._found:
            np.copyto(merged, codes, where=merged == 0)
        np.copyto(merged, status.RESULT, where=(merged == 0) & ~finite)
        if self.status is not None:
            self._hand_over(self.status, merged)
        if merged.any():
            result[merged != 0] = np.nan
            if self.status is None:
                self._found[0][0].warn(merged)
        return result

    def _hand_over(self, target: Any, merged: Status) -> None:
        if isinstance(target, np.ndarray):
            given = cast("NDArray[Any]", target)
            if given.flags.writeable and given.dtype == np.int32 and given.shape == self.lead:
                given[...] = merged
                return
        raise ShapeError(f"status must be a contiguous array of int32 {self.lead}.")
