"""Compiled motions: many steps of many motions in one call."""

from __future__ import annotations

import contextlib
import ctypes
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.cpu import cache
from linkwise.codegen.cpu.digest import file_key
from linkwise.codegen.scalar import status
from linkwise.codegen.stepping.stepping import Place, Stepping
from linkwise.errors import ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

POINTER, INT = ctypes.c_void_p, ctypes.c_int64

NUMBER: dict[int, Any] = {8: ctypes.c_double, 4: ctypes.c_float}
"""By bytes of a number."""

QUICK = 2_000_000
"""Operations below which a batch runs on one thread."""

UNHEARD = 20 * QUICK
"""Operations below which one motion runs on the thread of the caller: some milliseconds."""


@dataclass(frozen=True, slots=True)
class Motions:
    """What a call gives."""

    records: Array  # (batch, records, width): q, v, and what else is shown, side by side
    status: NDArray[np.int32]  # a code for each motion, 0 for success (batch,)
    failed: NDArray[np.int64]  # the step in which that code came, -1 for none (batch,)


def rollout_key(
    mech: Mechanism, integrator: str, itemsize: int, content: tuple[Any, ...]
) -> str | None:
    """The key under which such a kernel is filed; None where its content is not known."""
    from linkwise.codegen.cpu.machine import versions

    return file_key("rollout", mech, integrator, itemsize, *content, versions())


class RolloutKernel:
    """An integrator on one mechanism, compiled.

    Attributes:
        mech: The mechanism.
        integrator: Name of the integrator.
        itemsize: Bytes of a number.
        begins: What is given at the beginning besides q and v, with lengths.
        layout: What records of steps that resume are made of.
    """

    begins: tuple[tuple[str, int], ...]
    layout: tuple[Place, ...]

    def __init__(
        self,
        mech: Mechanism,
        integrator: str,
        make: Callable[[], Stepping],
        content: tuple[Any, ...],
        *,
        itemsize: int = 8,
        alone: bool = False,
    ) -> None:
        """Compile it, or load it from disk.

        Args:
            mech: The mechanism.
            integrator: Name of the integrator.
            make: Makes the segments, when they are needed.
            content: Everything the segments depend on, besides the mechanism.
            itemsize: Bytes of a number.
            alone: Whether it runs single motions, without code that has motions in the lanes.
        """
        self.mech, self.integrator, self.itemsize = mech, integrator, itemsize
        self._make = make
        self._compile(("alone", *content) if alone else content, alone=alone)

    def _take(self, facts: dict[str, Any], code: bytes) -> None:
        """Load machine code, and what is known of it."""
        from linkwise.codegen.cpu.machine import linked

        self._held, self.begins = (
            tuple((str(name), int(size)) for name, size in facts[kind])
            for kind in ("held", "begins")
        )
        self.shown = {str(name): int(size) for name, size in facts["shown"]}
        self._ops = Counter[str](facts["ops"])
        self._stops = int(facts["stops"])
        self._work, self._lanes = int(facts["work"]), int(facts["lanes"])
        self._nq, self._nv = int(facts["nq"]), int(facts["nv"])
        self.layout = tuple(Place(x[0], x[1], int(x[2]), tuple(x[3])) for x in facts["layout"])
        arrays = [*[POINTER] * 4, INT, INT, POINTER, POINTER, INT, INT, INT, INT]
        self._engine = linked(code)  # which owns the function
        address = self._engine.get_function_address("rollout")
        tail = NUMBER[self.itemsize], POINTER, POINTER, POINTER
        self._run = ctypes.CFUNCTYPE(None, *arrays, *tail)(address)

    @cached_property
    def stepping(self) -> Stepping:
        """The segments."""
        return self._make()

    @property
    def width(self) -> int:
        """Numbers of a record: q, v, and what else is shown."""
        return self._nq + self._nv + sum(self.shown.values())

    @property
    def held(self) -> tuple[tuple[str, int], ...]:
        """What is held over each step, with lengths."""
        return self._held

    @property
    def ops(self) -> Counter[str]:
        """Scalar operations of one step, by kind.

        A loop counts once: for a variational step that is one round, while solving it takes
        several.
        """
        return self._ops

    @property
    def lanes(self) -> int:
        """Motions in one vector register."""
        return self._lanes

    @property
    def dtype(self) -> np.dtype[Any]:
        """Kind of its numbers."""
        return np.dtype(np.float64 if self.itemsize == 8 else np.float32)

    def _compile(self, content: tuple[Any, ...], *, alone: bool) -> None:
        """Machine code, from disk if it is there."""
        from linkwise.codegen.cpu.device import Scratch
        from linkwise.codegen.cpu.machine import lanes, object_code
        from linkwise.codegen.stepping.llvm import emit_stepping

        self._scratch = Scratch()
        key = rollout_key(self.mech, self.integrator, self.itemsize, content)
        filed = cache.read(key) if key else None
        if filed is not None:
            with contextlib.suppress(*cache.UNREADABLE):
                head, _, code = filed.partition(b"\n")
                self._take(json.loads(head), code)
                return
        wide = 1 if alone else lanes(self.itemsize)
        unit = emit_stepping(self.stepping, itemsize=self.itemsize, lanes=wide)
        code = object_code(unit)
        facts: dict[str, Any] = {
            "held": self.stepping.held,
            "begins": self.stepping.begins,
            "shown": self.stepping.shown,
            "ops": self.stepping.ops,
            "stops": self.stepping.stops,
            "work": unit.work,
            "lanes": unit.lanes,
            "nq": self.stepping.nq,
            "nv": self.stepping.nv,
            "layout": [(x.kind, x.name, x.begin, x.shape) for x in self.stepping.layout],
        }
        if key:
            cache.write(key, json.dumps(facts).encode() + b"\n" + code)
        self._take(facts, code)

    # ------------------------------------------------------------------------------- calls

    def advance(
        self, q: Array, v: Array, held: Mapping[str, Array], step: float, steps: int = 1
    ) -> tuple[Array, Array, int, int]:
        """One motion, some steps further, with the same inputs throughout.

        Args:
            q: Joint positions (nq,).
            v: Joint velocities (nv,).
            held: Inputs by name, each (length,).
            step: Length of a step [s].
            steps: How many.

        Returns:
            q, v, the status (0 for success) and the step that failed (-1 for none).
        """
        done = self.run(q[None], v[None], held, step, steps, steps)
        row, nq = done.records[0, 0], self._nq
        return row[:nq], row[nq : nq + self._nv], int(done.status[0]), int(done.failed[0])

    def run(
        self,
        q: Array,
        v: Array,
        held: Mapping[str, Array],
        step: float,
        steps: int,
        every: int,
        threads: int | None = None,
        out: Array | None = None,
        seed: int = 0,
        first: int = 0,
    ) -> Motions:
        """A batch of motions.

        Args:
            q: Joint positions (batch, nq).
            v: Joint velocities (batch, nv).
            held: Inputs by name: (length,), (steps, length) or (batch, steps, length); a batch or
                a number of steps of 1 applies to all. Steps may be in any distance in memory, also
                a negative one. Of `begins` the first step counts.
            step: Length of a step [s].
            steps: How many.
            every: How many steps from one record to the next; the last state is recorded too.
            threads: Processor cores; default: chosen from the batch size.
            out: The array of records (batch, records, width), with contiguous rows.
            seed: Of random numbers.
            first: Number of the first motion in their counters.
        """
        call, done = self.repeated(q, v, held, step, steps, every, threads, out, seed, first)
        call()
        out, codes, failed = done.records, done.status, done.failed
        for i in np.flatnonzero(codes):
            last = int(failed[i]) // every
            if self._stops and codes[i] >= self._stops:
                out[i, last + 1 :] = out[i, last]
            else:
                out[i, last:] = np.nan
        return done

    def repeated(
        self,
        q: Array,
        v: Array,
        held: Mapping[str, Array],
        step: float,
        steps: int,
        every: int,
        threads: int | None = None,
        out: Array | None = None,
        seed: int = 0,
        first: int = 0,
    ) -> tuple[Callable[[], None], Motions]:
        """A call without arguments that runs a batch of motions, and where it puts the results.

        It reads the arrays each time anew, where they have contiguous rows of its kind of numbers,
        and fills the same results. Records of motions with a code are as far as they came. The
        arguments are those of `run`.
        """
        from linkwise.codegen.cpu.device import cores, ranges, spread  # with llvmlite

        count = len(q)
        arrays, strides, times = list[Array](), list[int](), list[int]()
        for x in (q, v):
            rows = np.asarray(x, self.dtype)
            close = rows.strides[-1:] == (self.itemsize,) and rows.flags.aligned
            arrays.append(rows if close else np.ascontiguousarray(rows))
            strides.append(arrays[-1].strides[0] // self.itemsize if count > 1 else 0)
            times.append(0)
        for name, size in (*self.begins, *self._held):
            array, over_batch, over_time = self._input(name, held[name], size, count, steps)
            arrays.append(array)
            strides.append(over_batch)
            times.append(over_time)
        records = -(-steps // every)
        width = self.width
        out = np.empty((count, records, width), self.dtype) if out is None else out
        assert out.shape == (count, records, width) and out.strides[2] == self.itemsize
        between, apart_records = (x // self.itemsize for x in out.strides[:2])
        codes, failed = np.zeros(count, np.int32), np.full(count, -1, np.int64)
        stop, n, size = np.zeros(1, np.int32), len(arrays), self.itemsize
        apart, over_time = (INT * n)(*strides), (INT * n)(*times)
        workers = min(-(-count // self._lanes), cores() if threads is None else threads)
        # One motion has no use for threads, except that Ctrl-C is heard meanwhile.
        most = UNHEARD if count == 1 else QUICK
        quick = count * steps * self._ops.total() < most
        alone = quick and (threads is None or workers <= 1)

        def part(begin: int, end: int) -> Callable[[], None]:
            pairs = zip(arrays, strides, strict=True)
            pointers = (POINTER * n)(*(a.ctypes.data + begin * s * size for a, s in pairs))
            chance = (INT * 3)(seed, first + begin, 0)
            given = (
                ctypes.addressof(pointers),
                ctypes.addressof(apart),
                ctypes.addressof(over_time),
                out.ctypes.data + begin * between * size,
                between,
                apart_records,
                codes.ctypes.data + 4 * begin,
                failed.ctypes.data + 8 * begin,
                end - begin,
                records,
                every,
                steps,
                step,
            )
            more = stop.ctypes.data, ctypes.addressof(chance)
            kept = pointers, chance, apart, over_time, stop, arrays, out, codes, failed

            def call() -> None:
                work = self._scratch.address(max(self._work, 1), self.dtype)
                self._run(*given, work, *more)

            call.__dict__["kept"] = kept
            return call

        if alone:
            return part(0, count), Motions(out, codes, failed)
        parts = [part(*ends) for ends in ranges(count, self._lanes, max(workers, 1))]

        def some(begin: int, end: int) -> None:
            for call in parts[begin:end]:
                call()

        def call() -> None:
            stop[0] = 0
            try:  # other threads, be it one: this one can be interrupted then
                spread(some, len(parts), 1, len(parts))
            except BaseException:  # control-C: running motions end after their step
                stop[0] = 1
                raise

        return call, Motions(out, codes, failed)

    def bound(
        self,
        rows: Array,
        held: Mapping[str, Array],
        codes: NDArray[np.int32],
        step: float,
        steps: int,
        threads: int | None = None,
        seed: int = 0,
    ) -> list[Callable[[], None]]:
        """Calls without arguments that move motions on in place, each some of them.

        For steps that resume: "q" of a record is what they go on from. Each call keeps its arrays
        and has its own scratch memory, so that several may run at the same time.

        Args:
            rows: The records (batch, width), with contiguous rows.
            held: Inputs by name, each (batch, length), with contiguous rows.
            codes: The status of each motion (batch,), set by each call.
            step: Length of a step [s].
            steps: How many.
            threads: Processor cores; default: chosen from the batch size.
            seed: Of random numbers, whose steps are counted on from call to call.
        """
        from linkwise.codegen.cpu.device import cores, ranges  # with llvmlite

        count, size, number = len(rows), self.itemsize, NUMBER[self.itemsize]
        arrays = [rows, np.zeros((1, self._nv), self.dtype), *(held[n] for n, _ in self._held)]
        strides = [x.strides[0] // size if len(x) > 1 else 0 for x in arrays]
        failed, quick = np.empty(count, np.int64), count * steps * self._ops.total() < QUICK
        most = min(-(-count // self._lanes), cores() if threads is None else threads)
        calls = list[Callable[[], None]]()
        random = any(name.startswith("noise:") for name, _ in self._held)
        for begin, end in ranges(count, self._lanes, 1 if quick and threads is None else most):
            work, zeros = np.empty(max(self._work, 1), self.dtype), np.zeros(len(arrays), np.int64)
            pointers = (POINTER * len(arrays))(
                *(a.ctypes.data + begin * s * size for a, s in zip(arrays, strides, strict=True))
            )
            between, chance = (INT * len(arrays))(*strides), (INT * 3)(seed, begin, 0)
            call = partial(
                self._run,
                POINTER(ctypes.addressof(pointers)),
                POINTER(ctypes.addressof(between)),
                POINTER(zeros.ctypes.data),
                POINTER(rows.ctypes.data + begin * rows.strides[0]),
                INT(rows.strides[0] // size),
                INT(0),
                POINTER(codes.ctypes.data + 4 * begin),
                POINTER(failed.ctypes.data + 8 * begin),
                INT(end - begin),
                INT(1),
                INT(steps),
                INT(steps),
                number(step),
                POINTER(work.ctypes.data),
                POINTER(zeros.ctypes.data),
                POINTER(ctypes.addressof(chance)),
            )
            call.__dict__["kept"] = (self, pointers, between, work, zeros, failed, arrays, chance)
            calls.append(_counting(call, chance, steps) if random else call)
        return calls

    def _input(
        self, name: str, given: Array, size: int, count: int, steps: int
    ) -> tuple[Array, int, int]:
        """An input, and its strides from motion to motion and from step to step."""
        array = np.asarray(given, self.dtype)
        if array.strides[-1:] != (self.itemsize,) or not array.flags.aligned:
            array = np.ascontiguousarray(array)
        shape = (1,) * (3 - array.ndim) + array.shape
        fits = array.ndim in (1, 2, 3) and shape[0] in (1, count) and shape[1] in (1, steps)
        if not fits or shape[2] != size:
            raise ShapeError(
                f"{name} has shape {array.shape}; it must be ({size},), (steps, {size}) or "
                f"(batch, steps, {size}), with {steps} steps and a batch of {count}."
            )
        over_batch, over_time = (0, 0, *(x // self.itemsize for x in array.strides))[-3:-1]
        return array, over_batch if shape[0] > 1 else 0, over_time if shape[1] > 1 else 0

    def describe(self, code: int) -> str:
        """The meaning of a status code, naming the body."""
        return describe(self.mech, code)


def describe(mech: Mechanism, code: int) -> str:
    """A code of the status of a motion in words, naming the body."""
    k = code - status.turned(mech, 0)
    if 0 <= k < mech.n_bodies:
        return (
            f"body {mech.bodies[k].name!r} turns by more than half a turn in one step: the step is "
            "too long, or the motion grows without bounds"
        )
    if code == status.unsolved(mech):
        return "a variational step is not solved: the step is too long for the speed of the motion"
    if code == status.RESULT:
        return "numbers are no longer finite: the motion grows without bounds"
    return status.describe(code, mech)


def _counting(call: Callable[[], None], chance: Any, steps: int) -> Callable[[], None]:
    """A call after which the next one draws the random numbers of the steps that follow."""

    def counted() -> None:
        call()
        chance[2] += steps

    return counted
