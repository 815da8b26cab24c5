# pyright: basic
# (CuPy is optional, and has no type information here)
"""Kernels on the card: compiled there when first called, called with arrays that are there."""

from __future__ import annotations

import math
import threading
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.codegen import stages
from linkwise.codegen.c.text import plain_name
from linkwise.codegen.cuda import device_arrays
from linkwise.codegen.cuda.device_arrays import CUPY, JAX
from linkwise.codegen.cuda.plan import KEPT, Room, planned
from linkwise.codegen.cuda.source import CudaSource, Shape, emit_cuda
from linkwise.codegen.cuda.worker_code import WorkerCode
from linkwise.codegen.request import Request
from linkwise.codegen.scalar import parameters, status
from linkwise.codegen.scalar.trace import Traced
from linkwise.codegen.stages import Signature, Stages
from linkwise.errors import DeviceError, ModelError, ShapeError, TroubleWarning, caller
from linkwise.spatial.array import Array

LARGEST = 100_000
"""Operations of a state beyond which the card's compiler would not come to an end."""

ROOM = "MaxSharedMemoryPerBlockOptin"
"""What a block may have, which is all that a multiprocessor has but for what the card keeps."""

Plan = tuple[Traced, list[WorkerCode], Shape]


@dataclass(frozen=True)
class CudaKernel(Stages):
    """An expression of one mechanism for a CUDA card.

    Called with arrays of CuPy, Torch or JAX on the card, in the order of `arguments` or by name;
    each is (n,) for one state or (batch, n) for many, and arrays without the batch axis are used
    for all states. The result is an array of the same library. Nothing is copied, except rows whose
    numbers do not stand one behind the other. The source can be had without a card.

    Attributes:
        request: What was asked for.
        plan: Graph, workers and shape, if not those that suit the size.
    """

    request: Request
    plan: Plan | None = None
    _loaded: dict[int, Any] = field(default_factory=lambda: {}, init=False, repr=False)
    _lock: Any = field(default_factory=threading.Lock, init=False, repr=False)

    # ---------------------------------------------------------------------------- what it is

    @cached_property
    def signature(self) -> Signature:
        """What it takes and gives."""
        return stages.signature(self.traced)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arrays it takes, in order."""
        return tuple(name for name, _ in self.signature.inputs)

    @property
    def ops(self) -> Counter[str]:
        """Scalar operations for one state, by kind."""
        return self.signature.ops

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Kind of its numbers."""
        return np.dtype(np.float64 if self.request.itemsize == 8 else np.float32)

    @property
    def emitted(self) -> CudaSource:
        """The source and what a launch has to know: for the card where it ran, if it did."""
        loaded = next(iter(self._loaded.values()), None)
        return self._for_most if loaded is None else loaded.source

    @cached_property
    def _for_most(self) -> CudaSource:
        return self._written(Room())

    def _written(self, room: Room) -> CudaSource:
        """The source for a card with so much shared memory."""
        request = self.request
        if self.ops.total() > LARGEST:
            raise DeviceError(
                f"{self.mech.name} takes {self.ops.total()} operations a state, written out one by "
                f"one on the card; the most is {LARGEST}. target='cpu' has loops over bodies."
            )
        traced, codes, shape = self.plan or planned(request, room)
        names = ", ".join(f"{name} ({size})" for name, size in traced.inputs)
        title = [
            f"{request.what}  for {plain_name(self.mech.name)}, written by Linkwise",
            f"inputs: {names}; result: {self.signature.shape}",
        ]
        return emit_cuda(traced, codes, shape, dtype=str(self.dtype), title=title)

    @property
    def source(self) -> str:
        """The CUDA source."""
        return self.emitted.text

    def nominal(self, parameter: str) -> Array:
        """The value of a run-time parameter for the mechanism as it is."""
        return parameters.nominal(self.mech, parameter)

    def describe(self, code: int) -> str:
        """A code of the status in words, naming the body."""
        return status.describe(int(code), self.mech)

    def explain(self) -> str:
        """The derivation, the sweeps, the operation count and where the source is."""
        counts = ", ".join(f"{n} {op}" for op, n in sorted(self.ops.items()))
        made = self.emitted
        warps = made.threads // made.states
        return (
            f"{self.derivation}\n\n{self.program}\n\noperations for one state: {counts}\n"
            f"{self.dtype}, {warps} thread{'' if warps == 1 else 's'} a state, {made.threads} "
            f"threads and {made.shared} bytes of shared memory a block; kernel.source has the CUDA "
            "source"
        )

    # ------------------------------------------------------------------------------- calling

    def __call__(self, *arrays: Any, out: Any = None, status: Any = None, **named: Any) -> Any:
        """The value: the shape of the expression, with the batch axis in front if there is one.

        Rows in trouble are NaN and the others are right. With `status` nothing waits for the card;
        without it the call does, and a `TroubleWarning` tells of trouble in a batch, an exception
        of that in a single state.

        Args:
            arrays: The inputs, in the order of `arguments`.
            named: Inputs by name.
            out: Where to put the result, an array of CuPy or Torch; otherwise one is made.
            status: Array of int32 (batch,), or () for one state, on the card, that receives a code
                for each state, 0 where all is well; `describe` says what others mean.

        Raises:
            MissingExtraError: CuPy is not installed.
            DeviceError: There is no card.
            ShapeError: An array is missing, does not fit or is not on the card; says which.
            ModelError: An input of a single state is not finite, or a quaternion is not of unit
                length; says which.
            SingularHingeError: Nothing resists some hinge of a single state; says which.
        """
        cp = device_arrays.cupy()
        if status is not None and not named:
            result = self._quick(cp, arrays, out, status)
            if result is not None:
                return result
        given = self._named(arrays, named)
        library = next(
            (x for x in map(device_arrays.library_of, given.values()) if x != CUPY), CUPY
        )
        first = next(iter(given.values()), None)
        device = _device(cp, first)
        with cp.cuda.Device(device), device_arrays.stream(library):
            rows, batch = self._rows(given, device)
            count = 1 if batch is None else batch
            shape = self.signature.shape if batch is None else (batch, *self.signature.shape)
            result, target, final = self._output(out, shape, library, device, rows)
            codes = None if status is None else _codes(status, batch)
            report = cp.zeros(2, np.uint64) if codes is None else None
            if count and math.prod(self.signature.shape):
                self._launch(cp, device, rows, target, codes, report, count)
            if final is not None:
                final[...] = target
            if report is not None:
                self._tell(report, codes, rows, batch)
            return result if result is not None else device_arrays.given_back(library, target)

    def _quick(self, cp: Any, arrays: tuple[Any, ...], out: Any, codes: Any) -> Any:
        """The result for whole CuPy arrays on the current card, a row a state; else None.

        What a call costs on the processor bounds the rate of small batches, so that the usual
        case looks at each array once.
        """
        device = cp.cuda.runtime.getDevice()
        loaded = self._loaded.get(device)
        inputs, kind = self.signature.inputs, cp.ndarray
        if loaded is None or len(arrays) != len(inputs) or not isinstance(codes, kind):
            return None
        batch, rows, dtype = codes.size, list[Any](), self.dtype

        def whole(array: Any, shape: tuple[int, ...], dtype: Any) -> bool:
            return (
                isinstance(array, kind)
                and array.shape == shape
                and array.dtype == dtype
                and array.flags.c_contiguous
                and array.device.id == device
            )

        if batch < 2 or not whole(codes, (batch,), np.int32):
            return None
        shape = (batch, *self.signature.shape)
        result = cp.empty(shape, dtype) if out is None else out
        if not result.size or not whole(result, shape, dtype):
            return None
        begin = result.data.ptr
        end = begin + result.nbytes
        for array, (_, size) in zip(arrays, inputs, strict=True):
            if not whole(array, (batch, size), dtype):
                return None
            at = array.data.ptr
            if at < end and begin < at + array.nbytes:
                return None
            rows += (array, np.int64(size))
        self._start(loaded, (*rows, result, codes, np.uint64(0)), batch)
        return result

    def _named(self, arrays: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        names = self.arguments
        takes = f"this kernel takes {', '.join(names)}"
        if len(arrays) > len(names):
            raise ShapeError(f"{len(arrays)} arrays were given; {takes}.")
        given = dict(zip(names, arrays, strict=False))
        for name in named:
            if name in given or name not in names:
                what = "is given twice" if name in given else "is not known"
                raise ShapeError(f"{name} {what}; {takes}.")
        given |= named
        for name in names:
            if name not in given:
                raise ShapeError(f"{name} is missing; {takes}.")
        return {name: given[name] for name in names}

    def _rows(self, given: dict[str, Any], device: int) -> tuple[list[Any], int | None]:
        """The inputs as CuPy sees them, and the size of the batch if there is one."""
        found, batch = list[Any](), None
        for (name, size), value in zip(self.signature.inputs, given.values(), strict=True):
            array = device_arrays.taken(name, value).array
            if array.ndim not in (1, 2) or array.shape[-1] != size:
                raise ShapeError(
                    f"{name} has shape {array.shape}; it must be ({size},) or (batch, {size})."
                )
            if array.dtype != self.dtype:
                raise ShapeError(
                    f"{name} is {array.dtype}, and this kernel computes in {self.dtype}; convert "
                    f"it, or compile with dtype={str(array.dtype)!r}."
                )
            if array.device.id != device:
                raise ShapeError(f"{name} is on card {array.device.id}, not on card {device}.")
            if array.ndim == 2:
                if batch not in (None, 1, len(array)) and len(array) != 1:
                    raise ShapeError(f"{name} has {len(array)} rows; the batch has {batch}.")
                batch = len(array) if batch in (None, 1) else batch
            step = array.strides[0] if array.ndim == 2 else 0
            within = size < 2 or array.strides[-1] == array.itemsize
            if not within or step % array.itemsize or array.data.ptr % array.itemsize:
                array = device_arrays.cupy().ascontiguousarray(array)
            found.append(array)
        return found, batch

    def _output(
        self, out: Any, shape: tuple[int, ...], library: str, device: int, rows: list[Any]
    ) -> tuple[Any, Any, Any]:
        """What is returned (None: made of the next), where the kernel writes, what to copy to."""
        if out is None:
            result, target = device_arrays.made(library, shape, self.dtype, device)
            return result, target, None
        if device_arrays.library_of(out) == JAX:
            raise ShapeError("out is an array of JAX, which does not change; leave it out.")
        view = device_arrays.taken("out", out).array
        if view.shape != shape or view.dtype != self.dtype or view.device.id != device:
            raise ShapeError(
                f"out is {view.dtype} {view.shape}; it must be {self.dtype} {shape} on card "
                f"{device}."
            )
        if view.flags.c_contiguous and not any(_overlap(view, row) for row in rows):
            return out, view, None
        return out, device_arrays.cupy().empty(shape, self.dtype), view

    # ------------------------------------------------------------------------------- running

    def _launch(
        self,
        cp: Any,
        device: int,
        rows: list[Any],
        out: Any,
        codes: Any,
        report: Any,
        count: int,
    ) -> None:
        arguments = list[Any]()
        for row in rows:
            many = row.ndim == 2 and len(row) > 1
            arguments += (row, np.int64(row.strides[0] // row.itemsize if many else 0))
        arguments += (np.uint64(0) if x is None else x for x in (out, codes, report))
        self._start(self._on(cp, device), tuple(arguments), count)

    def _start(self, loaded: _Loaded, arguments: tuple[Any, ...], count: int) -> None:
        """On the current stream. Arrays stand for their addresses."""
        source = loaded.source
        blocks = -(-count // source.states)
        if source.stay:
            blocks = min(blocks, loaded.blocks)
        loaded.function(
            (blocks,), (source.threads,), (*arguments, np.int64(count)), shared_mem=source.shared
        )

    def _on(self, cp: Any, device: int) -> _Loaded:
        """The machine code on a card; compiled once, and kept on disk by CuPy."""
        with self._lock:
            found = self._loaded.get(device)
            if found is None:
                block = cp.cuda.Device(device).attributes[ROOM]
                source = self._written(Room(block, block + KEPT))
                found = self._loaded[device] = _load(cp, source, device)
            return found

    def _tell(self, report: Any, codes: Any, rows: list[Any], batch: int | None) -> None:
        """Trouble, if there is any: raise for one state, warn for a batch."""
        count, first = (int(x) for x in report.get())
        if not count:
            return
        row = (1 << 64) - 1 - first
        one = [x if x.ndim == 1 else x[row if len(x) > 1 else 0] for x in rows]
        code = self._code(one)
        if batch is None:
            if code == status.INPUT:
                for (name, _), x in zip(self.signature.inputs, one, strict=True):
                    finite = np.isfinite(x.get())
                    if not finite.all():
                        entry = int(np.argmin(finite))
                        raise ModelError(f"{name} is not finite (entry {entry}).")
            raise status.error(code, self.mech)
        warnings.warn(
            f"{count} of {batch} states have no result and are NaN; row {row}: "
            f"{self.describe(code)}. Give status= to get a code for each state instead of this "
            "warning.",
            TroubleWarning,
            stacklevel=caller(),
        )

    def _code(self, rows: list[Any]) -> int:
        """The status of one state."""
        cp = device_arrays.cupy()
        codes = cp.zeros(1, np.int32)
        target = cp.empty(self.signature.shape, self.dtype)
        self._launch(cp, rows[0].device.id, rows, target, codes, None, 1)
        return int(codes[0])


@dataclass(frozen=True, slots=True)
class _Loaded:
    """Machine code on one card: the function, how many blocks run there at a time, the source."""

    function: Any
    blocks: int
    source: CudaSource


def _load(cp: Any, source: CudaSource, device: int) -> _Loaded:
    attributes = cp.cuda.Device(device).attributes
    most = attributes[ROOM]
    if source.shared > most:
        raise DeviceError(
            f"the kernel takes {source.shared} bytes of shared memory a block; this card has {most}"
        )
    module = cp.RawModule(code=source.text, options=("--std=c++17",), backend="nvrtc")
    function = module.get_function("run")
    function.max_dynamic_shared_size_bytes = source.shared
    function.preferred_shared_memory_carveout = 100
    each = cp.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
        function.kernel.ptr, source.threads, source.shared
    )
    return _Loaded(function, max(1, each) * attributes["MultiProcessorCount"], source)


def _device(cp: Any, value: Any) -> int:
    """The card on which an array is."""
    if isinstance(value, cp.ndarray):
        return int(value.device.id)
    if hasattr(value, "__dlpack_device__"):
        kind, number = value.__dlpack_device__()
        if int(kind) in device_arrays.ON_CARD:
            return int(number)
    return int(cp.cuda.runtime.getDevice())


def _codes(codes: Any, batch: int | None) -> Any:
    shape = () if batch is None else (batch,)
    view = device_arrays.taken("status", codes).array
    if view.dtype != np.int32 or view.shape != shape or not view.flags.c_contiguous:
        raise ShapeError(f"status must be a contiguous array of int32 {shape} on the card.")
    return view


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
