"""Arrays in the memory of the computer, as devices take them that run there."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen import arrays
from linkwise.errors import ShapeError


class InMemory:
    """Half of a device (`device.py`): its arrays are NumPy's.

    Attributes:
        dtype: Kind of its numbers.
    """

    dtype: np.dtype[Any]

    def whole_batch(self, arrays: tuple[Any, ...], out: Any, codes: Any) -> Any:
        """Nothing: looking closer is quick."""
        return None

    def entered(self, arrays: list[Any], like: Any) -> AbstractContextManager[Any]:
        """Nothing to enter."""
        return nullcontext()

    def taken(self, name: str, value: Any) -> NDArray[Any]:
        """Numbers of the right kind, contiguous within a row; raises for what is none."""
        try:
            if type(value) is not np.ndarray and np.ma.is_masked(value):
                raise TypeError("some entries are masked")
            array: NDArray[Any] = arrays.here(name, value)
            if array.dtype.kind not in "fiub":
                raise TypeError(f"numbers are wanted, not {array.dtype}")
            array = array.astype(self.dtype, copy=False)
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            if isinstance(error, ShapeError):
                raise
            why = str(error).rstrip(".")
            raise ShapeError(f"{name} is not an array of real numbers: {why}.") from None
        within = array.ndim == 0 or array.shape[-1] < 2 or array.strides[-1] == array.itemsize
        even = array.ndim < 2 or array.strides[0] % array.itemsize == 0
        usable = within and even and array.flags.aligned and array.dtype.isnative
        return array if usable else np.ascontiguousarray(array, dtype=self.dtype)

    def place(self, name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Where to write, as NumPy sees it."""
        dtype = np.dtype(dtype)
        kind = "an array" if name == "out" else "a contiguous array"
        allowed = f"it must be {kind} of {dtype} {shape}."
        if not hasattr(value, "__dlpack__"):
            raise ShapeError(f"{name} is a {type(value).__name__}; {allowed}")
        array: NDArray[Any] = arrays.here(name, value)
        contiguous = name == "out" or array.flags.c_contiguous
        if array.shape != shape or array.dtype != dtype or not contiguous:
            raise ShapeError(f"{name} is {array.dtype} {array.shape}; {allowed}")
        if not array.flags.writeable:
            raise ShapeError(f"{name} is read-only.")
        return array

    def numbers(self, array: NDArray[Any]) -> NDArray[Any]:
        """Itself."""
        return array
