"""The processor: machine code on arrays in the memory of the computer."""

from __future__ import annotations

import ctypes
import math
import operator
import os
import struct
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen import stages
from linkwise.codegen.cpu import fastcall
from linkwise.codegen.cpu.build import built, unit
from linkwise.codegen.cpu.machine import Machine
from linkwise.codegen.device import InMemory, Trouble, trouble
from linkwise.codegen.request import Request
from linkwise.codegen.stages import Signature
from linkwise.errors import ShapeError
from linkwise.spatial.array import Array

LINE = 64
"""Bytes of a cache line, and of the widest register: neither should cross two lines."""

CHUNK = 256
"""Fewest states for which a thread is worth it."""

SMALL = 2_000_000
"""Operations of a batch that are done by one thread: half a millisecond."""

CODES = np.dtype(np.int32)
"""Kind of the codes of a status."""


class Processor(InMemory):
    """Machine code of a request.

    Attributes:
        request: The request.
        signature: Its inputs and results.
        machine: For one state; that for batches is made for the first batch.
        inputs: For each input array its name and length.
        fast: The Python callable for one state, if this interpreter can have one.
    """

    def __init__(self, request: Request, signature: Signature, machine: Machine) -> None:
        self.request, self.signature, self.machine = request, signature, machine
        self.inputs: tuple[tuple[str, int], ...] = signature.inputs
        self.fast: Callable[..., Any] | None = machine.fast
        self.dtype = np.dtype(np.float64 if request.itemsize == 8 else np.float32)
        self._scratch, self._batch = Scratch(), list[Machine]()
        self._operations = signature.ops.total()
        self._packed = struct.Struct(f"{len(self.inputs)}q").pack  # as machine code reads them

    @staticmethod
    def of(request: Request) -> Processor:
        """Compiled, or loaded from disk."""
        return Processor(request, *built(request))

    @property
    def source(self) -> str:
        """The LLVM text for one state, before optimisation."""
        return unit(stages.graph(self.request), self.request.itemsize).text

    @property
    def description(self) -> str:
        """How it runs."""
        return f"{self.signature.lanes} states a vector register"

    @property
    def batch_machine(self) -> Machine:
        """The machine code for batches."""
        if not self._batch:
            self._batch.append(built(self.request, self.signature.lanes)[1])
        return self._batch[0]

    # ------------------------------------------------------------------------------- arrays

    def usable(self, out: NDArray[Any], rows: list[NDArray[Any]]) -> bool:
        """Whether its rows are contiguous, and none of them an input."""
        single = out.ndim == len(self.signature.shape)
        contiguous = _contiguous_rows(out[None] if single else out)
        return contiguous and not any(np.may_share_memory(out, row) for row in rows)

    # ------------------------------------------------------------------------------ running

    def whole_batch(self, arrays: tuple[Any, ...], out: Any, codes: Any, threads: Any) -> Any:
        """The result for whole NumPy arrays, a row a state, if each state has one; else None.

        The usual case looks at each array once.
        """
        first, dtype = arrays[0] if arrays else None, self.dtype
        if type(first) is not np.ndarray or len(arrays) != len(self.inputs) or not first.ndim:
            return None
        count = len(first)
        if not count or self.machine.evaluated is not None:
            return None
        sizes, addresses = list[int](), list[int]()
        for array, (_, size) in zip(arrays, self.inputs, strict=True):
            address = _address(array, (count, size), dtype)
            if not address:  # before memory is taken: one state of n numbers is no batch of n
                return None
            sizes.append(size)
            addresses.append(address)
        shape = (count, *self.signature.shape)
        result = np.empty(shape, dtype) if out is None else out
        status = np.empty(count, np.int32) if codes is None else codes
        output = _address(result, shape, dtype, written=True)
        at = _address(status, (count,), CODES, written=True)
        if not (output and at):
            return None
        bytes_out, itemsize = result.nbytes, self.request.itemsize
        if out is not None:
            for address, size in zip(addresses, sizes, strict=True):
                if address < output + bytes_out and output < address + count * size * itemsize:
                    return None
        place = Rows(addresses, sizes, output, bytes_out // (count * itemsize), at)
        self._spread(place, count, threads)
        if not np.count_nonzero(status):
            return result
        if codes is not None:
            result[np.flatnonzero(status)] = np.nan
        return None if codes is None else result

    def run(
        self, rows: list[NDArray[Any]], batch: int | None, out: Any, codes: Any, threads: Any
    ) -> tuple[Array, Trouble | None]:
        """The results of all states."""
        lead, shape = () if batch is None else (batch,), self.signature.shape
        count = 1 if batch is None else batch
        out = np.empty((*lead, *shape), self.dtype) if out is None else out
        target = (out if batch is not None else out[None]).reshape(count, math.prod(shape))
        status = np.empty(count, np.int32) if codes is None else codes.reshape(count)
        if self.machine.evaluated is not None:
            self.machine.evaluated.run(rows, target, status, threads)
        else:
            size = self.dtype.itemsize
            steps = [x.strides[0] // size if x.ndim == 2 and len(x) > 1 else 0 for x in rows]
            addresses, stride = [start_of(x) for x in rows], target.strides[0] // size
            place = Rows(addresses, steps, start_of(target), stride, start_of(status))
            self._spread(place, count, threads)
        if not status.any():
            return out, None
        target[np.flatnonzero(status)] = np.nan
        return out, trouble(status) if codes is None else None

    def _spread(self, place: Rows, count: int, threads: Any) -> None:
        """Run the states on several threads, where that is worth it."""
        wide = self.signature.lanes
        machines = [self.machine]
        if count >= wide > 1:
            machines.insert(0, self.batch_machine)

        def part(begin: int, end: int) -> None:
            self._part(machines, place, begin, end)

        few = count * self._operations < SMALL
        workers = (1 if few else cores()) if threads is None else _positive(threads)
        workers = min(max(1, count // CHUNK), workers)
        if workers == 1:
            part(0, count)
        else:
            spread(part, count, wide, workers)

    def _part(self, machines: list[Machine], place: Rows, begin: int, end: int) -> None:
        """States from `begin` up to `end`: by registers of them first, the rest one by one."""
        addresses, steps, output, stride, status = place
        pointers, strides = self._packed(*addresses), self._packed(*steps)
        for machine in machines:
            upto = end - (end - begin) % machine.lanes
            if begin < upto:
                work = self._scratch.address(machine.work * machine.itemsize)
                machine.run(pointers, strides, output, stride, status, begin, upto, work)
            begin = upto


class Rows(NamedTuple):
    """Where the states of a batch are in memory, and their results."""

    addresses: list[int]  # of the first row of each input
    steps: list[int]  # from one row to the next, in numbers; 0 where all states share one
    output: int  # the address of the first result
    stride: int  # from one result to the next, in numbers
    status: int  # the address of the first code


def _address(
    array: Any, shape: tuple[int, ...], dtype: np.dtype[Any], *, written: bool = False
) -> int:
    """That of a plain contiguous array of a shape; 0 for anything else."""
    if type(array) is not np.ndarray or array.shape != shape or array.dtype != dtype:
        return 0
    flags = array.flags
    usable = flags.carray or (not written and flags.c_contiguous and flags.aligned)
    return start_of(array) if usable else 0


HAS_RECORDS = fastcall.available()


def start_of(array: NDArray[Any]) -> int:
    """The address of its first number.

    It is read from NumPy's record of the array: `array.ctypes.data` takes ten times as long.
    """
    if not HAS_RECORDS:
        return array.ctypes.data
    return ctypes.c_void_p.from_address(id(array) + fastcall.DATA).value or 0


def _contiguous_rows(array: NDArray[Any]) -> bool:
    width = array.itemsize
    for size, stride in zip(reversed(array.shape[1:]), reversed(array.strides[1:]), strict=True):
        if size > 1 and stride != width:
            return False
        width *= size
    return bool(array.strides[0] % array.itemsize == 0) and bool(array.flags.aligned)


def _positive(threads: Any) -> int:
    try:
        number = operator.index(threads)
    except TypeError:
        number = 0
    if number < 1:
        raise ShapeError(f"threads is {threads!r}; it must be an integer, at least 1.")
    return number


class Scratch(threading.local):
    """Scratch memory, for each thread its own."""

    room, at = 0, 0
    array: NDArray[Any] | None = None

    def address(self, size: int) -> int:
        """The address of room for `size` bytes; 0 for none."""
        if size > self.room:
            self.array = np.empty(size + LINE, np.uint8)
            self.room, self.at = size, -(-start_of(self.array) // LINE) * LINE
        return self.at if size else 0


def spread(part: Callable[[int, int], None], count: int, lanes: int, threads: int) -> None:
    """Run part(begin, end) for ranges of a batch on several threads, in multiples of `lanes`.

    One range of the main thread has a thread too, so that Ctrl-C is heard meanwhile. Other threads
    run it themselves: in a pool of one thread, they would wait for each other.
    """
    if threads == 1 and threading.current_thread() is not threading.main_thread():
        part(0, count)
        return
    pool = thread_pool(threads, os.getpid())
    try:
        begun = [pool.submit(part, *ends) for ends in ranges(count, lanes, threads)]
    except RuntimeError as error:
        if "shutdown" not in str(error):
            raise
        part(0, count)  # the interpreter ends and starts no more threads
        return
    for done in begun:
        done.result()


def ranges(count: int, lanes: int, threads: int) -> list[tuple[int, int]]:
    """A batch in parts for several threads, as (begin, end), in multiples of `lanes`."""
    step = -(-count // (threads * lanes)) * lanes
    return [(i, min(i + step, count)) for i in range(0, count, step)]


def cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def thread_pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads of this process: a forked one has none of its parent's."""
    return ThreadPoolExecutor(threads, thread_name_prefix="linkwise")
