"""What a kernel needs from the device it runs on: memory, and a call for many states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen import arrays
from linkwise.codegen.stages import Signature
from linkwise.errors import ShapeError

ANY = -1
"""The length of an input that is checked where it is used."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """States without a result."""

    count: int  # how many
    first: int  # row of the first one
    code: int  # its code (`scalar/status.py`)
    often: tuple[int, int] = (0, 0)  # the code that most of them have, and how many have it


def trouble(codes: NDArray[Any]) -> Trouble | None:
    """The states of a batch that failed, by their codes (batch,); None if all are fine."""
    bad = np.flatnonzero(codes)
    if not len(bad):
        return None
    kinds = Counter[int](int(code) for code in codes[bad])
    return Trouble(len(bad), int(bad[0]), int(codes[bad[0]]), kinds.most_common(1)[0])


class Device(Protocol):
    """Where a kernel runs. Arrays are NumPy's or CuPy's: views of the caller's."""

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """For each input array its name and length, in order."""
        ...

    @property
    def signature(self) -> Signature:
        """The inputs and results of the kernel."""
        ...

    @property
    def fast(self) -> Callable[..., Any] | None:
        """The fast call for one state: the result, or None where the careful call is needed."""
        ...

    @property
    def source(self) -> str:
        """The text of the code."""
        ...

    @property
    def description(self) -> str:
        """How it runs, for `explain`."""
        ...

    def whole_batch(self, arrays: tuple[Any, ...], out: Any, codes: Any, threads: Any) -> Any:
        """The result of a batch in the usual form, or None where the careful call is needed."""
        ...

    def entered(self, arrays: list[Any], like: Any) -> AbstractContextManager[Any]:
        """A context for the call: the device of the arrays, the stream of their library."""
        ...

    def taken(self, name: str, value: Any) -> Any:
        """An input as it can be read here, with contiguous rows."""
        ...

    def place(self, name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        """A caller's array for results; raises where it does not fit."""
        ...

    def usable(self, out: Any, rows: list[Any]) -> bool:
        """Whether results can be written to an array directly, while inputs are read."""
        ...

    def run(
        self, rows: list[Any], batch: int | None, out: Any, codes: Any, threads: Any
    ) -> tuple[Any, Trouble | None]:
        """The results of all states, in `out` unless that is None; rows in trouble are NaN.

        Codes go to `codes`; where that is None, it returns the trouble instead.
        """
        ...

    def numbers(self, array: Any) -> NDArray[Any]:
        """An array in the memory of the computer."""
        ...


class InMemory:
    """Half of a device (`device.py`): its arrays are NumPy's."""

    dtype: np.dtype[Any]  # kind of its numbers

    def whole_batch(self, arrays: tuple[Any, ...], out: Any, codes: Any, threads: Any) -> Any:
        """None: the careful call is fast enough."""
        return None

    def entered(self, arrays: list[Any], like: Any) -> AbstractContextManager[Any]:
        """Nothing to enter."""
        return nullcontext()

    def taken(self, name: str, value: Any) -> NDArray[Any]:
        """Numbers of the right dtype, contiguous within a row; raises for other values."""
        try:
            if type(value) is not np.ndarray and np.ma.is_masked(value):
                raise TypeError("some entries are masked")
            array: NDArray[Any] = arrays.here(name, value)
            if array.dtype.kind not in "fiub":
                raise TypeError(f"it has {array.dtype}, not numbers")
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

        def allowed() -> str:
            kind = "an array" if name == "out" else "a contiguous array"
            return f"it must be {kind} of {dtype} {shape}."

        if not hasattr(value, "__dlpack__"):
            raise ShapeError(f"{name} is a {type(value).__name__}; {allowed()}")
        array: NDArray[Any] = arrays.here(name, value)
        contiguous = name == "out" or array.flags.c_contiguous
        if array.shape != shape or array.dtype != dtype or not contiguous:
            raise ShapeError(f"{name} is {array.dtype} {array.shape}; {allowed()}")
        if not array.flags.writeable:
            raise ShapeError(f"{name} is read-only.")
        return array

    def numbers(self, array: NDArray[Any]) -> NDArray[Any]:
        """Itself."""
        return array
