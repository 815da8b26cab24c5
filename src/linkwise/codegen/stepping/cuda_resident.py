# pyright: basic
# (CuPy is optional, and has no type information here)
"""Motions that stay on the GPU between calls: nothing is copied, and nothing waits.

A call reads the records of the last one and writes into those of the one before: what it returns
stays as it is for one more call. Motions are the innermost axis in memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen import arrays
from linkwise.codegen.stepping.device import Course
from linkwise.codegen.stepping.resident import first_seen, seen_range, viewed

if TYPE_CHECKING:
    from linkwise.codegen.stepping.cuda_device import Gpu


class CudaResident:
    """A batch of motions whose steps resume, on a GPU.

    Attributes:
        device: What moves them.
        inputs: What is held over the steps of a call, by name, each (batch, n); to be written.
        status: A code for each motion (batch,), 0 for success; on the GPU.
        turn: Which of the two arrays of records is that of the last call, 0 or 1.
    """

    def __init__(self, device: Gpu, inputs: Mapping[str, Any], course: Course) -> None:
        """Room for motions; the arguments are those of `Resident`."""
        cp = self._cp = arrays.cupy()
        self.device, self._course, self._past = device, course, 0
        self.inputs = {
            name: cp.asarray(np.ascontiguousarray(x.T, device.dtype)).T
            for name, x in inputs.items()
        }
        self.batch = len(next(iter(self.inputs.values())))
        last = device.facts.layout[-1]
        width = last.begin + math.prod(last.shape)
        self._records = [cp.zeros((1, width, self.batch), device.dtype) for _ in range(2)]
        self.status = cp.zeros(self.batch, np.int32)
        self._failed = cp.zeros(self.batch, np.int64)
        self._report = cp.zeros(1, np.uint64)
        self._nothing = cp.zeros(1, device.dtype)
        self.turn = 0
        self._calls = [
            self._arguments(self._records[k], self._records[1 - k], self.status, course.steps)
            for k in range(2)
        ]

    def _arguments(self, before: Any, after: Any, status: Any, steps: int) -> tuple[Any, ...]:
        """Of a launch from the records `before` to those `after`."""
        count, one, none = np.int64(self.batch), np.int64(1), np.int64(0)
        given: list[Any] = [before, one, count, self._nothing, none, none]
        for name, _ in self.device.facts.held:
            given += [self.inputs[name], one, none, count]
        counts = (np.int64(steps), np.int64(max(steps, 1)), one)
        length = self.device.dtype.type(self._course.step)
        chance = (np.int64(self._course.seed), none) if self.device.facts.noise else ()
        return (*given, length, *counts, self._failed, after, status, self._report, count, *chance)

    def advance(self) -> None:
        """Move all motions on: one launch on the current stream."""
        past = (np.int64(self._past),) if self.device.facts.noise else ()
        self.device.start(self._cp, (*self._calls[self.turn], *past), self.batch)
        self._past += self._course.steps
        self.turn = 1 - self.turn

    @property
    def rows(self) -> Any:
        """The records of the last call (batch, width)."""
        return self._records[self.turn][0].T

    @property
    def state(self) -> Any:
        """Everything that lasts (batch, n): to be saved and put back."""
        return self.rows[:, : first_seen(self.device.facts.layout)]

    def view(self, kind: str, name: str) -> Any:
        """Some numbers of the records (batch, ...), as they are in memory."""
        return viewed(self.rows, self.device.facts.layout, kind, name)

    def seen(self) -> Any:
        """All observations (batch, n), as they are in memory."""
        return self.rows[:, seen_range(self.device.facts.layout)]

    def begin(self, which: Any, q: Any, v: Any) -> None:
        """Begin some motions anew; the arguments are those of `Resident.begin`.

        All motions are begun, and the chosen ones taken: the processor waits for nothing.
        """
        cp, records = self._cp, self._records[self.turn]
        first, status = cp.zeros_like(records), cp.empty_like(self.status)
        first[0, 0] = 1.0
        nq, nv = q.shape[1], v.shape[1]
        first[0, 1 : 1 + nq] = self.taken("q", q).T
        first[0, 1 + nq : 1 + nq + nv] = self.taken("v", v).T
        after = cp.empty_like(records)
        past = (np.int64(0),) if self.device.facts.noise else ()
        arguments = (*self._arguments(first, after, status, 0), *past)
        self.device.start(cp, arguments, self.batch)
        if which is None:
            records[...], self.status[...] = after, status
        else:
            cp.copyto(records, after, where=which)
            cp.copyto(self.status, status, where=which)

    def taken(self, name: str, value: Any) -> Any:
        """An array of the caller as one of CuPy."""
        if arrays.is_on_gpu(value):
            return arrays.taken(name, value)
        return self._cp.asarray(np.asarray(value))
