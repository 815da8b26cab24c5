"""Motions on the processor: machine code, and calls of it on some threads."""

from __future__ import annotations

import contextlib
import ctypes
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen import arrays
from linkwise.codegen.cpu import cache
from linkwise.codegen.cpu.digest import file_key
from linkwise.codegen.stepping.device import Course, Facts, Motions, Records, StepRequest
from linkwise.codegen.stepping.resident import Resident
from linkwise.codegen.stepping.stepping import Stepping
from linkwise.spatial.array import Array

if TYPE_CHECKING:
    from linkwise.codegen.cpu.ir import Unit

POINTER, INT = ctypes.c_void_p, ctypes.c_int64

NUMBER: dict[int, Any] = {8: ctypes.c_double, 4: ctypes.c_float}
"""By bytes of a number."""

QUICK = 2_000_000
"""Operations below which a batch runs on one thread."""

UNHEARD = 20 * QUICK
"""Operations below which one motion runs on the thread of the caller: some milliseconds."""


def file_of(request: StepRequest) -> str | None:
    """The key under which such machine code is filed; None where its content is not known."""
    from linkwise.codegen.cpu.machine import versions

    what = request.mech, request.integrator, request.itemsize, request.alone, request.content
    return file_key("motions", *what, versions())


class Processor:
    """The machine code of a request (`MotionDevice`), made or loaded from disk.

    Attributes:
        facts: What a call has to know.
        lanes: Motions in one vector register.
        dtype: Kind of its numbers.
    """

    facts: Facts
    lanes: int

    def __init__(self, request: StepRequest) -> None:
        from linkwise.codegen.cpu.device import Scratch
        from linkwise.codegen.cpu.machine import object_code

        self._request, self._scratch, self._size = request, Scratch(), request.itemsize
        self.dtype: np.dtype[Any] = np.dtype(f"float{8 * request.itemsize}")
        key = file_of(request)
        filed = cache.read(key) if key else None
        if filed is not None:
            with contextlib.suppress(*cache.UNREADABLE):
                head, _, code = filed.partition(b"\n")
                self._take(json.loads(head), code)
                return
        stepping = request.stepping("cpu")
        unit = self._unit(stepping)
        code = object_code(unit)
        kept = {"facts": Facts.of(stepping).kept(), "work": unit.work, "lanes": unit.lanes}
        if key:
            cache.write(key, json.dumps(kept).encode() + b"\n" + code)
        self._take(kept, code)

    def _take(self, kept: dict[str, Any], code: bytes) -> None:
        """Load machine code, and what is known of it."""
        from linkwise.codegen.cpu.machine import linked

        self.facts = Facts.read(kept["facts"])
        self._work, self.lanes = int(kept["work"]), int(kept["lanes"])
        self._engine = linked(code)  # which owns the function
        address = self._engine.get_function_address("rollout")
        given = [*[POINTER] * 4, INT, INT, POINTER, POINTER, INT, INT, INT, INT]
        tail = NUMBER[self._size], POINTER, POINTER, POINTER
        self._run = ctypes.CFUNCTYPE(None, *given, *tail)(address)

    @property
    def source(self) -> str:
        """The LLVM text, written once more."""
        return self._unit(self._request.stepping("cpu")).text

    def _unit(self, stepping: Stepping) -> Unit:
        """The module of a stepping, for single motions or with motions in the lanes, too."""
        from linkwise.codegen.cpu.machine import lanes
        from linkwise.codegen.stepping.llvm import emit_stepping

        request, wide = self._request, lanes(self._size)
        return emit_stepping(
            stepping,
            itemsize=self._size,
            lanes=1 if request.alone else wide,
            packed=wide,
            mech=request.mech,
        )

    def entered(self, q: Any) -> contextlib.AbstractContextManager[Any]:
        """Nothing to enter."""
        return contextlib.nullcontext()

    def taken(self, name: str, value: Any) -> Array:
        """Numbers of the right kind, contiguous within a row."""
        array = np.asarray(arrays.here(name, value), self.dtype)
        close = array.strides[-1:] == (self._size,) and array.flags.aligned
        return array if close else np.ascontiguousarray(array)

    # ----------------------------------------------------------------------------------- calls

    def moved(
        self, given: Mapping[str, Array], count: int, course: Course, like: Any = None
    ) -> Motions:
        """All motions, the beginning first: `MotionDevice.moved`.

        The code writes into the final array: copying the records would take as long as the motion.
        """
        nq, end = self.facts.nq, self.facts.nq + self.facts.nv
        records = np.empty((count, 1 + course.records, self.facts.width), self.dtype)
        q, v, more = records[..., :nq], records[..., nq:end], records[..., end:]
        q[:, 0], v[:, 0], more[:, 0] = given["q"][:, 0], given["v"][:, 0], 0.0
        done = self.run(given, count, course, records[:, 1:])
        return Motions(q, v, more, done.status, done.failed)

    def run(
        self, given: Mapping[str, Array], count: int, course: Course, out: Array | None = None
    ) -> Records:
        """All motions without their beginning, in `out` (batch, records, width).

        Motions that fail are NaN from there; those that a condition ends keep their last state.
        """
        call, done = self.repeated(given, count, course, out)
        if course.steps:
            call()
        records, codes, failed = done.records, done.status, done.failed
        for i in np.flatnonzero(codes):
            last = int(failed[i]) // course.every
            if self.facts.stops and codes[i] >= self.facts.stops:
                records[i, last + 1 :] = records[i, last]
            else:
                records[i, last:] = np.nan
        return done

    def repeated(
        self, given: Mapping[str, Array], count: int, course: Course, out: Array | None = None
    ) -> tuple[Callable[[], None], Records]:
        """A call without arguments that runs all motions, and where it puts the results."""
        from linkwise.codegen.cpu.device import cores, ranges, spread  # with llvmlite

        size, width, threads = self._size, self.facts.width, course.threads
        records, steps = course.records, course.steps
        inputs = list(given.values())
        apart, over_time = self._distances(inputs, count, steps)
        out = np.empty((count, records, width), self.dtype) if out is None else out
        assert out.shape == (count, records, width) and out.strides[2] == size
        between, apart_records = (x // size for x in out.strides[:2])
        codes, failed = np.zeros(count, np.int32), np.full(count, -1, np.int64)
        stop = np.zeros(1, np.int32)
        workers = min(-(-count // self.lanes), cores() if threads is None else threads)
        # One motion has no use for threads, except that Ctrl-C is heard meanwhile.
        most = UNHEARD if count == 1 else QUICK
        quick = count * steps * self.facts.ops.total() < most
        alone = quick and (threads is None or workers <= 1)

        def part(begin: int, end: int) -> Callable[[], None]:
            pointers = _pointers(inputs, apart, begin)
            chances = (INT * 3)(course.seed, course.first + begin, 0)
            arguments = (
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
                course.every,
                steps,
                course.step,
            )
            more = stop.ctypes.data, ctypes.addressof(chances)
            kept = pointers, chances, apart, over_time, stop, inputs, out, codes, failed

            def call() -> None:
                work = self._scratch.address(max(self._work, 1) * self._size)
                self._run(*arguments, work, *more)

            call.__dict__["kept"] = kept
            return call

        if alone:
            return part(0, count), Records(out, codes, failed)
        parts = [part(*ends) for ends in ranges(count, self.lanes, max(workers, 1))]

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

        return call, Records(out, codes, failed)

    def _distances(self, inputs: list[Array], count: int, steps: int) -> tuple[Any, Any]:
        """Numbers from motion to motion, and from step to step, of each input (., ., n)."""
        motions = [x.strides[0] // self._size if len(x) > 1 else 0 for x in inputs]
        times = [x.strides[1] // self._size if x.shape[1] > 1 else 0 for x in inputs]
        return (INT * len(inputs))(*motions), (INT * len(inputs))(*times)

    def resident(self, inputs: Mapping[str, Array], course: Course) -> Resident:
        """A batch of motions that stay in memory."""
        return Resident(self, inputs, course)

    def bound(
        self,
        rows: Array,
        held: Mapping[str, Array],
        codes: NDArray[np.int32],
        course: Course,
    ) -> list[Callable[[], None]]:
        """Calls without arguments that move motions on in place, each some of them.

        For steps that resume: "q" of a record is what they go on from. Each call keeps its arrays
        and has its own scratch memory, so that several may run at the same time.

        Args:
            rows: The records (batch, width), with contiguous rows.
            held: Inputs by name, each (batch, length), with contiguous rows.
            codes: The status of each motion (batch,), set by each call.
            course: How far they go; steps of random numbers are counted on from call to call.
        """
        from linkwise.codegen.cpu.device import cores, ranges  # with llvmlite

        count, size, facts = len(rows), self._size, self.facts
        steps, threads = course.steps, course.threads
        zero = np.zeros((1, facts.nv), self.dtype)
        inputs = [x[:, None] for x in (rows, zero, *(held[n] for n, _ in facts.held))]
        between, still = self._distances(inputs, count, 1)
        failed, quick = np.empty(count, np.int64), count * steps * facts.ops.total() < QUICK
        most = min(-(-count // self.lanes), cores() if threads is None else threads)
        calls = list[Callable[[], None]]()
        for begin, end in ranges(count, self.lanes, 1 if quick and threads is None else most):
            work, stop = np.empty(max(self._work, 1), self.dtype), np.zeros(1, np.int32)
            pointers, chance = _pointers(inputs, between, begin), (INT * 3)(course.seed, begin, 0)
            call = partial(
                self._run,
                POINTER(ctypes.addressof(pointers)),
                POINTER(ctypes.addressof(between)),
                POINTER(ctypes.addressof(still)),
                POINTER(rows.ctypes.data + begin * rows.strides[0]),
                INT(rows.strides[0] // size),
                INT(0),
                POINTER(codes.ctypes.data + 4 * begin),
                POINTER(failed.ctypes.data + 8 * begin),
                INT(end - begin),
                INT(1),
                INT(steps),
                INT(steps),
                NUMBER[size](course.step),
                POINTER(work.ctypes.data),
                POINTER(stop.ctypes.data),
                POINTER(ctypes.addressof(chance)),
            )
            kept = self, pointers, between, still, work, stop, failed, inputs, chance
            call.__dict__["kept"] = kept
            calls.append(_counting(call, chance, steps) if facts.noise else call)
        return calls


def _pointers(inputs: list[Array], between: Any, begin: int) -> Any:
    """Addresses of the rows of a motion."""
    each = zip(inputs, between, strict=True)
    return (POINTER * len(inputs))(*(x.ctypes.data + begin * n * x.itemsize for x, n in each))


def _counting(call: Callable[[], None], chance: Any, steps: int) -> Callable[[], None]:
    """A call after which the next one draws the random numbers of the steps that follow."""

    def counted() -> None:
        call()
        chance[2] += steps

    return counted
