# pyright: basic
# (CuPy is optional, and has no type information here)
"""The device of GPUs: compiled at the first call, on arrays of the GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.brief import counted
from linkwise.codegen import arrays as caller_arrays, stages
from linkwise.codegen.c.text import plain_name
from linkwise.codegen.cuda.memory import ROOM, InGpuMemory, PerGpu, function_of, module_of
from linkwise.codegen.cuda.plan import KEPT, Room, planned
from linkwise.codegen.cuda.source import CudaSource, emit_cuda
from linkwise.codegen.device import Trouble
from linkwise.codegen.request import Request
from linkwise.codegen.scalar.passes import Passes
from linkwise.codegen.stages import Signature
from linkwise.errors import DeviceError, ShapeError

LARGEST = 100_000
"""Operations of a state beyond which the GPU's compiler takes too long."""


class Gpu(InGpuMemory):
    """Code of a request for GPUs. The source is available without one.

    Attributes:
        request: The request.
        dtype: Kind of its numbers.
    """

    fast = None

    def __init__(self, request: Request) -> None:
        self.request = request
        self.dtype = np.dtype(np.float64 if request.itemsize == 8 else np.float32)
        self._loaded = PerGpu(self._load)

    # ---------------------------------------------------------------------------- what it is

    @property
    def signature(self) -> Signature:
        """What it takes and gives."""
        return stages.straight(self.request)

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """For each input array its name and length."""
        return self.signature.inputs

    @property
    def emitted(self) -> CudaSource:
        """The source and the facts of a launch: for the GPU where it ran, if it did."""
        loaded = next(iter(self._loaded.made.values()), None)
        return self._for_most if loaded is None else loaded.source

    @cached_property
    def _for_most(self) -> CudaSource:
        return self._written(Room())

    def _written(self, room: Room) -> CudaSource:
        name, ops = self.request.mech.name, self.signature.ops.total()
        if any(isinstance(x, Passes) for x in stages.traced(self.request).graph.loops):
            raise DeviceError(
                f"{self.request.what} of {name!r} has matrices in loops over tiles, which are for "
                "the targets 'cpu' and 'c'. Give arrays that are not on a GPU."
            )
        if ops > LARGEST:
            raise DeviceError(
                f"{name} takes {ops} operations a state, as straight code on the GPU; the limit "
                f"is {LARGEST}. target='cpu' has loops over bodies."
            )
        traced, codes, shape = planned(self.request, room)
        names = ", ".join(f"{name} ({size})" for name, size in traced.inputs)
        title = [
            f"{self.request.what}  for {plain_name(name)}, written by Linkwise",
            f"inputs: {names}; result: {self.signature.shape}",
        ]
        return emit_cuda(traced, codes, shape, dtype=str(self.dtype), title=title)

    @property
    def source(self) -> str:
        """The CUDA source."""
        return self.emitted.text

    @property
    def description(self) -> str:
        """How it runs."""
        made = self.emitted
        warps = made.threads // made.states
        return (
            f"{counted(warps, 'thread')} a state, {made.threads} threads and "
            f"{made.shared} bytes of shared memory a block; the CUDA source:"
        )

    # ------------------------------------------------------------------------------- arrays

    def whole_batch(self, arrays: tuple[Any, ...], out: Any, codes: Any, threads: Any) -> Any:
        """The result for whole CuPy arrays on the current card, a row a state; else None.

        The cost of a call on the processor bounds the rate of small batches: the usual case looks
        at each array once.
        """
        if codes is None:
            return None
        cp = caller_arrays.cupy()
        device = cp.cuda.runtime.getDevice()
        loaded = self._loaded.made.get(device)
        inputs, kind = self.signature.inputs, cp.ndarray
        if loaded is None or len(arrays) != len(inputs) or not isinstance(codes, kind):
            return None
        batch, rows, dtype = codes.size, list[Any](), self.dtype

        def fits(array: Any, shape: tuple[int, ...], dtype: Any) -> bool:
            return (
                isinstance(array, kind)
                and array.shape == shape
                and array.dtype == dtype
                and array.flags.c_contiguous
                and array.device.id == device
            )

        if batch < 2 or not fits(codes, (batch,), np.int32):
            return None
        shape = (batch, *self.signature.shape)
        result = cp.empty(shape, dtype) if out is None else out
        if not result.size or not fits(result, shape, dtype):
            return None
        begin = result.data.ptr
        end = begin + result.nbytes
        for array, (_, size) in zip(arrays, inputs, strict=True):
            if not fits(array, (batch, size), dtype):
                return None
            at = array.data.ptr
            if at < end and begin < at + array.nbytes:
                return None
            rows += (array, np.int64(size))
        self._start(loaded, (*rows, result, codes, np.uint64(0)), batch)
        return result

    # ------------------------------------------------------------------------------ running

    def run(
        self, rows: list[Any], batch: int | None, out: Any, codes: Any, threads: Any
    ) -> tuple[Any, Trouble | None]:
        """The results of all states, on the current stream."""
        if threads is not None:
            raise ShapeError(
                "threads was given, which are processor cores; this kernel runs on a GPU."
            )
        cp, shape = caller_arrays.cupy(), self.signature.shape
        lead, count = () if batch is None else (batch,), 1 if batch is None else batch
        out = cp.empty((*lead, *shape), self.dtype) if out is None else out
        report = cp.zeros(2, np.uint64) if codes is None else None
        if count and math.prod(shape):
            self._launch(cp, rows, out, codes, report, count)
        if report is None:
            return out, None
        bad, last = (int(x) for x in report.get())
        if not bad:
            return out, None
        row = (1 << 64) - 1 - last
        one = [x if x.ndim == 1 else x[row if len(x) > 1 else 0] for x in rows]
        code = cp.zeros(1, np.int32)
        self._launch(cp, one, cp.empty(shape, self.dtype), code, None, 1)
        return out, Trouble(bad, row, int(code[0]))

    def _launch(
        self, cp: Any, rows: list[Any], out: Any, codes: Any, report: Any, count: int
    ) -> None:
        arguments = list[Any]()
        for row in rows:
            many = row.ndim == 2 and len(row) > 1
            arguments += (row, np.int64(row.strides[0] // row.itemsize if many else 0))
        arguments += (np.uint64(0) if x is None else x for x in (out, codes, report))
        card = cp.cuda.runtime.getDevice()
        self._start(self.loaded_on(card), tuple(arguments), count)

    def _start(self, loaded: _Loaded, arguments: tuple[Any, ...], count: int) -> None:
        """Launch on the current stream; arrays are passed by their addresses."""
        source = loaded.source
        blocks = -(-count // source.states)
        if source.stay:
            blocks = min(blocks, loaded.blocks)
        loaded.function(
            (blocks,), (source.threads,), (*arguments, np.int64(count)), shared_mem=source.shared
        )

    def loaded_on(self, device: int) -> _Loaded:
        """The machine code on a GPU; compiled once."""
        return self._loaded.on(device)

    def _load(self, cp: Any, device: int) -> _Loaded:
        """The machine code on a GPU, which CuPy keeps on disk."""
        block = cp.cuda.Device(device).attributes[ROOM]
        return _load(cp, self._written(Room(block, block + KEPT)), device)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """Machine code on one GPU: the function, how many blocks run there at a time, the source."""

    function: Any
    blocks: int
    source: CudaSource


def _load(cp: Any, source: CudaSource, device: int) -> _Loaded:
    attributes = cp.cuda.Device(device).attributes
    most = attributes[ROOM]
    if source.shared > most:
        raise DeviceError(
            f"the kernel takes {source.shared} bytes of shared memory a block; this GPU has {most}"
        )
    function = function_of(module_of(cp, source.text), "run", source.shared)
    function.preferred_shared_memory_carveout = 100
    each = cp.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
        function.kernel.ptr, source.threads, source.shared
    )
    needed = 100 * max(1, each) * (source.shared + KEPT)
    share = -(-needed // attributes["MaxSharedMemoryPerMultiprocessor"])
    function.preferred_shared_memory_carveout = min(100, share)  # the rest caches what is spilled
    return _Loaded(function, max(1, each) * attributes["MultiProcessorCount"], source)
