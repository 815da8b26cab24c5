"""Kernels: compiled expressions that are called with arrays."""

from __future__ import annotations

import ctypes
import math
import operator
import os
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen import stages
from linkwise.codegen.cpu.build import built, unit
from linkwise.codegen.cpu.machine import Machine
from linkwise.codegen.request import Request
from linkwise.codegen.scalar import parameters, status
from linkwise.codegen.stages import Signature, Stages
from linkwise.errors import LinkwiseError, ModelError, ShapeError, TroubleWarning, caller
from linkwise.front_door import open_front_door
from linkwise.model.state import quaternion_advice
from linkwise.spatial.array import Array

Status = NDArray[np.int32]

SHOWN = 40
"""Lines of the source that `explain` has."""

CHUNK = 256
"""Fewest states that are worth a thread of their own."""


@dataclass(frozen=True, slots=True)
class Kernel(Stages):
    """A compiled expression of one mechanism.

    Called with the arrays it needs, in the order of `arguments` or by name; each is (n,) for one
    state or (batch, n) for many, and arrays without the batch axis are used for all states.

    Attributes:
        request: What was asked for.
        signature: What it takes and gives.
        machine: Its machine code for one state; that for batches is made when one comes.
    """

    request: Request
    signature: Signature
    machine: Machine
    _fast: Callable[..., Array | None] | None = field(init=False, repr=False)
    _scratch: threading.local = field(init=False, repr=False)
    _batch: list[Machine] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_fast", self.machine.fast)
        object.__setattr__(self, "_scratch", threading.local())
        object.__setattr__(self, "_batch", [])

    def __reduce__(self) -> tuple[Any, ...]:
        return kernel, (self.request,)  # machine code belongs to its process

    def __copy__(self) -> Kernel:
        return self  # it never changes

    def __deepcopy__(self, memo: object) -> Kernel:
        return self

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arrays it takes, in order."""
        return tuple(name for name, _ in self.signature.inputs)

    @property
    def quick(self) -> Callable[..., Array | None] | None:
        """The bare call for one state: no options, and None where `__call__` has to look closer."""
        return self._fast

    @property
    def ops(self) -> Counter[str]:
        """Scalar operations for one state, by kind."""
        return self.signature.ops

    @property
    def dtype(self) -> np.dtype[Any]:
        """Kind of its numbers."""
        return np.dtype(np.float64 if self.machine.itemsize == 8 else np.float32)

    @property
    def source(self) -> str:
        """The LLVM text, before optimisation."""
        return unit(stages.graph(self.request), self.request.itemsize).text

    def nominal(self, parameter: str) -> Array:
        """The value of a run-time parameter for the mechanism as it is."""
        return parameters.nominal(self.mech, parameter)

    def __call__(self, *arrays: Any, **named: Any) -> Array:
        """The value: the shape of the expression, with the batch axis in front if there is one.

        In a batch, rows in trouble are NaN and the others are right; without `status` a
        `TroubleWarning` tells how many and why. A single state in trouble raises.

        Args:
            arrays: The inputs, in the order of `arguments`.
            named: Inputs by name, and the options below.
            out: Where to put the result; otherwise a new array is made.
            status: Array of int32 (batch,), or () for one state, that receives a code for each
                state, 0 where all is well; `describe` says what others mean. Then nothing is raised
                for what the numbers are.
            threads: Processor cores for a batch; by default as many as are worth it.

        Raises:
            ShapeError: An array is missing or does not fit; says which.
            ModelError: An input of a single state is not finite, or a quaternion is not of unit
                length; says which.
            SingularHingeError: Nothing resists some hinge of a single state; says which.
        """
        if not named and self._fast is not None:
            quick = self._fast(*arrays)
            if quick is not None:
                return quick
        return self._careful(arrays, **named)

    def _careful(
        self,
        arrays: tuple[Any, ...],
        out: Array | None = None,
        status: Status | None = None,
        threads: int | None = None,
        **named: Any,
    ) -> Array:
        rows, batch = self._rows(arrays, named)
        count = batch if batch is not None else 1
        result = self._output(out, batch)
        codes = _codes(status, batch)
        rowwise = result if batch is not None else result[None]
        usable = _contiguous_rows(rowwise)
        usable = usable and not any(np.may_share_memory(result, row) for row in rows)
        width = math.prod(self.signature.shape)
        target = rowwise if usable else np.empty(rowwise.shape, self.dtype)
        target = target.reshape(count, width)
        self._run(rows, target, codes, threads)
        if codes.any():
            self._trouble(target, codes, rows, batch, quiet=status is not None)
        if not usable:
            result[...] = target.reshape(result.shape)
        return result

    def describe(self, code: int) -> str:
        """A code of the status in words, naming the body."""
        return status.describe(int(code), self.mech)

    def explain(self) -> str:
        """The derivation, the sweeps, the operation count and the beginning of the source."""
        counts = ", ".join(f"{n} {op}" for op, n in sorted(self.ops.items()))
        size, lines = 8 * self.machine.itemsize, self.source.splitlines()
        head = "\n".join(lines[:SHOWN])
        more = f"\n... {len(lines) - SHOWN} more lines: kernel.source" if len(lines) > SHOWN else ""
        return (
            f"{self.derivation}\n\n{self.program}\n\noperations for one state: {counts}\n"
            f"float{size}, {self.signature.lanes} states a vector register\n\n{head}{more}"
        )

    # ------------------------------------------------------------------------------- arrays

    def _rows(
        self, arrays: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[list[NDArray[Any]], int | None]:
        """The inputs as rows, and the size of the batch if there is one."""
        names = self.arguments
        if len(arrays) > len(names):
            raise ShapeError(f"{len(arrays)} arrays were given; this kernel takes {_list(names)}.")
        given = dict(zip(names, arrays, strict=False))
        twice = [name for name in named if name in given]
        unknown = [name for name in named if name not in names]
        if twice or unknown:
            what = f"{twice[0]} is given twice" if twice else f"{unknown[0]} is not known"
            raise ShapeError(f"{what}; this kernel takes {_list(names)}.")
        given |= named
        found, batch = list[NDArray[Any]](), None
        for name, size in self.signature.inputs:
            if name not in given:
                raise ShapeError(f"{name} is missing; this kernel takes {_list(names)}.")
            array = self._array(name, given[name])
            if array.ndim not in (1, 2) or array.shape[-1] != size:
                raise ShapeError(
                    f"{name} has shape {array.shape}; it must be ({size},) or (batch, {size})."
                )
            if array.ndim == 2:
                if batch not in (None, 1, len(array)) and len(array) != 1:
                    raise ShapeError(f"{name} has {len(array)} rows; the batch has {batch}.")
                batch = len(array) if batch in (None, 1) else batch
            found.append(array)
        return found, batch

    def _array(self, name: str, value: Any) -> NDArray[Any]:
        """Numbers of the right kind, contiguous within a row."""
        try:
            if type(value) is not np.ndarray and np.ma.is_masked(value):
                raise TypeError("some entries are masked")
            array = np.asarray(value)
            if array.dtype.kind not in "fiub":
                raise TypeError(f"numbers are wanted, not {array.dtype}")
            array = array.astype(self.dtype, copy=False)
        except (TypeError, ValueError) as error:
            raise ShapeError(f"{name} is not an array of real numbers: {error}.") from None
        within = array.ndim == 0 or array.shape[-1] < 2 or array.strides[-1] == array.itemsize
        whole = array.ndim < 2 or array.strides[0] % array.itemsize == 0
        usable = within and whole and array.flags.aligned and array.dtype.isnative
        return array if usable else np.ascontiguousarray(array, dtype=self.dtype)

    def _output(self, out: Any, batch: int | None) -> Array:
        shape = self.signature.shape if batch is None else (batch, *self.signature.shape)
        if out is None:
            return np.empty(shape, self.dtype)
        wanted = f"it must be an array of {self.dtype} {shape}."
        if not isinstance(out, np.ndarray):
            raise ShapeError(f"out is a {type(out).__name__}; {wanted}")
        given = cast("NDArray[Any]", out)
        if given.shape != shape or given.dtype != self.dtype:
            raise ShapeError(f"out is {given.dtype} {given.shape}; {wanted}")
        if not given.flags.writeable:
            raise ShapeError("out is read-only.")
        return given

    # ------------------------------------------------------------------------------ running

    def _run(self, rows: list[NDArray[Any]], out: Array, codes: Status, threads: Any) -> None:
        if self.machine.evaluated is not None:
            self.machine.evaluated.run(rows, out, codes, threads)
            return
        count = len(out)
        machines = [self.machine]
        if count >= self.signature.lanes > 1:
            machines.insert(0, self.batch_machine)
        most = max(1, count // CHUNK)
        wanted = min(most, cores() if threads is None else _whole(threads))
        small = threads is None and count * self.ops.total() < 2_000_000  # half a millisecond
        if wanted == 1 or small:
            self._part(machines, rows, out, codes, 0, count)
            return
        wide = self.signature.lanes
        step = -(-count // (wanted * wide)) * wide
        parts = [(i, min(i + step, count)) for i in range(0, count, step)]
        pool = thread_pool(wanted, os.getpid())
        try:
            begun = [pool.submit(self._part, machines, rows, out, codes, *part) for part in parts]
        except RuntimeError as error:
            if "shutdown" not in str(error):
                raise
            # The interpreter ends and starts no more threads.
            self._part(machines, rows, out, codes, 0, count)
            return
        for done in begun:
            done.result()

    @property
    def batch_machine(self) -> Machine:
        """The machine code for batches."""
        if not self._batch:
            self._batch.append(built(self.request, self.signature.lanes)[1])
        return self._batch[0]

    def _part(
        self,
        machines: list[Machine],
        rows: list[NDArray[Any]],
        out: Array,
        codes: Status,
        begin: int,
        end: int,
    ) -> None:
        """States from `begin` up to `end`: by registers of them first, the rest one by one."""
        size = self.machine.itemsize
        steps = [row.strides[0] // size if row.ndim == 2 and len(row) > 1 else 0 for row in rows]
        n = len(rows)
        addresses = [
            row.ctypes.data + begin * step * size for row, step in zip(rows, steps, strict=True)
        ]
        pointers = (ctypes.c_void_p * n)(*addresses)
        strides = (ctypes.c_int64 * n)(*steps)
        output, status = out.ctypes.data + begin * out.strides[0], codes.ctypes.data + 4 * begin
        start, stop = 0, end - begin
        for machine in machines:
            upto = stop - (stop - start) % machine.lanes
            machine.run(
                ctypes.addressof(pointers),
                ctypes.addressof(strides),
                output,
                out.strides[0] // size,
                status,
                start,
                upto,
                self._work(machine),
            )
            start = upto

    def _work(self, machine: Machine) -> int:
        """Scratch memory of this thread."""
        if not machine.work:
            return 0
        found = getattr(self._scratch, "array", None)
        if found is None or len(found) < machine.work:
            found = np.empty(machine.work, self.dtype)
            self._scratch.array = found
        return found.ctypes.data

    # ------------------------------------------------------------------------------ trouble

    def _trouble(
        self,
        out: Array,
        codes: Status,
        rows: list[NDArray[Any]],
        batch: int | None,
        *,
        quiet: bool,
    ) -> None:
        """Rows in trouble become NaN; then raise, warn, or leave it to the caller."""
        bad = np.flatnonzero(codes)
        out[bad] = np.nan
        if quiet:
            return
        if batch is None:
            raise self._error(int(codes[0]), rows)
        self.warn(codes)

    def warn(self, codes: Status) -> None:
        """Warn of the states of a batch that have a code (batch,), if there are any."""
        if np.ndim(codes) != 1 or np.asarray(codes).dtype.kind not in "iu":
            raise ShapeError(f"codes must be whole numbers (batch,); found {codes!r}.")
        codes = np.asarray(codes)
        bad, batch = np.flatnonzero(codes), len(codes)
        if len(bad) == 0:
            return
        kinds = Counter[int](int(code) for code in codes[bad])
        worst, times = kinds.most_common(1)[0]
        first = int(bad[0])
        told = self.describe(int(codes[first]))
        often = "" if len(kinds) == 1 else f" Most often ({times} times): {self.describe(worst)}."
        warnings.warn(
            f"{len(bad)} of {batch} states have no result and are NaN; row {first}: {told}.{often} "
            "Give status= to get a code for each state instead of this warning.",
            TroubleWarning,
            stacklevel=caller(),
        )

    def _error(self, code: int, rows: list[NDArray[Any]]) -> LinkwiseError:
        for (name, _), row in zip(self.signature.inputs, rows, strict=True):
            finite = np.isfinite(row.reshape(-1))
            if code == status.INPUT and not finite.all():
                entry = int(np.argmin(finite))
                known = {"q": self.mech.coordinate_names, "v": self.mech.velocity_names}
                which = f" at {known[name][entry]!r}" if name in known else ""
                return ModelError(f"{name} is not finite{which} (entry {entry}).")
            if name == "q" and (body := status.with_quaternion(code, self.mech)) is not None:
                k, tree = body
                own = row.reshape(-1)[int(tree.q_start[k]) : int(tree.q_start[k + 1])]
                return ModelError(
                    f"the quaternion of body {tree.bodies[k].name!r} is not of unit length: it has "
                    f"length {float(np.linalg.norm(own[:4])):.6g}. {quaternion_advice(own)}"
                )
        return status.error(code, self.mech)


def kernel(request: Request) -> Kernel:
    """The kernel of a request, compiled or loaded."""
    return Kernel(request, *built(request))


def _contiguous_rows(array: NDArray[Any]) -> bool:
    """Whether the numbers of one state stand one behind the other."""
    width = array.itemsize
    for size, stride in zip(reversed(array.shape[1:]), reversed(array.strides[1:]), strict=True):
        if size > 1 and stride != width:
            return False
        width *= size
    return bool(array.strides[0] % array.itemsize == 0) and bool(array.flags.aligned)


def _codes(status: Any, batch: int | None) -> Status:
    count = 1 if batch is None else batch
    if status is None:
        return np.empty(count, np.int32)
    shape = () if batch is None else (batch,)
    if isinstance(status, np.ndarray):
        given = cast("NDArray[Any]", status)
        usable = given.flags.c_contiguous and given.flags.writeable
        if usable and given.dtype == np.int32 and given.shape == shape:
            return given.reshape(count)
    raise ShapeError(f"status must be a contiguous array of int32 {shape}.")


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names)


def _whole(threads: Any) -> int:
    try:
        found = operator.index(threads)
    except TypeError:
        found = 0
    if found < 1:
        raise ShapeError(f"threads is {threads!r}; it must be a whole number, at least 1.")
    return found


def cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def thread_pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads of this process: a forked one has none of its parent's."""
    return ThreadPoolExecutor(threads, thread_name_prefix="linkwise")


open_front_door(globals(), ("Kernel",))
