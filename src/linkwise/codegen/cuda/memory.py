# pyright: basic
# (CuPy is optional, and has no type information here)
"""What devices of GPUs have in common: arrays in their memory, and code that is loaded on each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Generic, TypeVar

import numpy as np

from linkwise.codegen import arrays as caller_arrays
from linkwise.errors import ShapeError

ROOM = "MaxSharedMemoryPerBlockOptin"
"""The attribute with the shared memory that a block may have."""

Made = TypeVar("Made")


class PerGpu(Generic[Made]):
    """Something that is made once for each GPU, when it is first needed there.

    Attributes:
        made: What was made, by the number of the GPU.
    """

    def __init__(self, make: Callable[[Any, int], Made]) -> None:
        """Keep what makes it, of CuPy and the number of the GPU."""
        self._make, self._lock = make, threading.Lock()
        self.made = dict[int, Made]()

    def on(self, device: int) -> Made:
        """That of a GPU."""
        with self._lock:
            if device not in self.made:
                self.made[device] = self._make(caller_arrays.cupy(), device)
            return self.made[device]

    def here(self) -> Made:
        """That of the current GPU."""
        return self.on(int(caller_arrays.cupy().cuda.runtime.getDevice()))


def module_of(cp: Any, source: str) -> Any:
    """The functions of a CUDA source, compiled for the current GPU."""
    return cp.RawModule(code=source, options=("--std=c++17",), backend="nvrtc")


def function_of(module: Any, name: str, shared: int) -> Any:
    """A function, and the shared memory of a block [bytes].

    Where registers are not in shared memory, they may be in the cache that has the same place.
    """
    function = module.get_function(name)
    function.max_dynamic_shared_size_bytes = shared
    function.preferred_shared_memory_carveout = 100 if shared else 0
    return function


class InGpuMemory:
    """Half of a device (`device.py`): its arrays are CuPy's."""

    dtype: np.dtype[Any]  # kind of its numbers

    def entered(self, arrays: list[Any], like: Any) -> AbstractContextManager[Any]:
        """The GPU of the arrays, and the stream of their library."""
        cp, both = caller_arrays.cupy(), ExitStack()
        both.enter_context(cp.cuda.Device(caller_arrays.device_of(arrays)))
        both.enter_context(caller_arrays.stream(like))
        return both

    def taken(self, name: str, value: Any) -> Any:
        """An input as CuPy sees it."""
        array, cp = caller_arrays.taken(name, value), caller_arrays.cupy()
        card = cp.cuda.runtime.getDevice()
        if array.dtype != self.dtype:
            raise ShapeError(
                f"{name} is {array.dtype}, and this kernel computes in {self.dtype}; convert it, "
                f"or compile with dtype={str(array.dtype)!r}."
            )
        if array.device.id != card:
            raise ShapeError(f"{name} is on GPU {array.device.id}, not on GPU {card}.")
        size, steps = array.itemsize, array.strides
        within = array.ndim == 0 or array.shape[-1] < 2 or steps[-1] == size
        if not within or any(step % size for step in steps) or array.data.ptr % size:
            array = cp.ascontiguousarray(array)
        return array

    def place(self, name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        """Where to write, as CuPy sees it."""
        if caller_arrays.library(value) in caller_arrays.JAX:
            raise ShapeError(f"{name} is an array of JAX, which is immutable; leave it out.")
        view, dtype = caller_arrays.taken(name, value), np.dtype(dtype)
        card = caller_arrays.cupy().cuda.runtime.getDevice()
        contiguous = name == "out" or view.flags.c_contiguous
        if view.shape != shape or view.dtype != dtype or view.device.id != card or not contiguous:
            kind = "an array" if name == "out" else "a contiguous array"
            raise ShapeError(
                f"{name} is {view.dtype} {view.shape}; it must be {kind} of {dtype} {shape} on "
                f"GPU {card}."
            )
        return view

    def usable(self, out: Any, rows: list[Any]) -> bool:
        """Whether it is contiguous, and no part of it an input."""
        return bool(out.flags.c_contiguous) and not any(_overlap(out, row) for row in rows)

    def numbers(self, array: Any) -> Any:
        """Copied from the GPU."""
        return array.get()


def _overlap(a: Any, b: Any) -> bool:
    """Whether two arrays may share memory, by the ranges of their addresses."""

    def ends(x: Any) -> tuple[int, int]:
        reach = [(n - 1) * s for n, s in zip(x.shape, x.strides, strict=True)]
        low = x.data.ptr + sum(r for r in reach if r < 0)
        return low, x.data.ptr + sum(r for r in reach if r > 0) + x.itemsize

    if not a.size or not b.size:
        return False
    (a_low, a_high), (b_low, b_high) = ends(a), ends(b)
    return a_low < b_high and b_low < a_high
