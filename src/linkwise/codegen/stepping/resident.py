"""Motions that stay in memory between calls: each call moves all of them on, in place."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen import arrays
from linkwise.codegen.stepping.device import Course
from linkwise.codegen.stepping.stepping import Place
from linkwise.spatial.array import Array

if TYPE_CHECKING:
    from linkwise.codegen.stepping.processor import Processor


class Resident:
    """A batch of motions whose steps resume, in the memory of the computer.

    Attributes:
        device: What moves them.
        inputs: What is held over the steps of a call, by name, each (batch, n); to be written.
        rows: The records (batch, width).
        status: A code for each motion (batch,), 0 for success.
        advance: Moves all motions on; without arguments or a result.
        turn: 0: there is one array of records.
    """

    turn = 0

    def __init__(self, device: Processor, inputs: Mapping[str, Array], course: Course) -> None:
        """Room for motions.

        Args:
            device: What moves them.
            inputs: The first values of what is held, by name, each (batch, n).
            course: How far a call moves them.
        """
        self.device, self._course, dtype = device, course, device.dtype
        self.inputs = {name: np.array(x, dtype, order="C") for name, x in inputs.items()}
        batch = len(next(iter(self.inputs.values())))
        self.rows: Array = np.zeros((batch, device.facts.width), dtype)
        self.status: NDArray[np.int32] = np.zeros(batch, np.int32)
        calls = device.bound(self.rows, self.inputs, self.status, course)
        self.advance = together(calls)

    @property
    def state(self) -> Array:
        """Everything that lasts (batch, n): to be saved and put back."""
        return self.rows[:, : first_seen(self.device.facts.layout)]

    def view(self, kind: str, name: str) -> Array:
        """Some numbers of the records (batch, ...), as they are in memory."""
        return viewed(self.rows, self.device.facts.layout, kind, name)

    def seen(self) -> Array:
        """All observations (batch, n), as they are in memory."""
        return self.rows[:, seen_range(self.device.facts.layout)]

    def begin(self, which: Any, q: Any, v: Any) -> None:
        """Begin some motions anew.

        Args:
            which: A flag for each motion (batch,); None for all.
            q: Joint positions (batch, nq).
            v: Joint velocities (batch, nv).
        """
        index = slice(None) if which is None else np.flatnonzero(which)
        rows = self.rows[index] * 0.0
        if not len(rows):
            return
        rows[:, 0] = 1.0
        rows[:, 1 : 1 + q.shape[1] + v.shape[1]] = np.concatenate([q[index], v[index]], axis=1)
        held = {name: np.ascontiguousarray(x[index]) for name, x in self.inputs.items()}
        codes = np.zeros(len(rows), np.int32)
        for call in self.device.bound(rows, held, codes, replace(self._course, steps=0)):
            call()
        self.rows[index], self.status[index] = rows, codes

    def taken(self, name: str, value: Any) -> Any:
        """An array of the caller as one of NumPy."""
        return arrays.here(name, value)


def together(calls: list[Callable[[], None]]) -> Callable[[], None]:
    """One call for several, which run on a thread each."""
    from linkwise.codegen.cpu.device import thread_pool

    if len(calls) == 1:
        return calls[0]

    def all_of_them() -> None:
        pool = thread_pool(len(calls), os.getpid())
        for done in [pool.submit(call) for call in calls]:
            done.result()

    return all_of_them


def viewed(rows: Any, layout: Iterable[Place], kind: str, name: str) -> Any:
    """Numbers of records (batch, width) by name, (batch, ...)."""
    place = next(x for x in layout if (x.kind, x.name) == (kind, name))
    part = rows[:, place.begin : place.begin + math.prod(place.shape)]
    return part.reshape(len(part), *place.shape)


def first_seen(layout: Iterable[Place]) -> int:
    """Where the state ends."""
    return min(x.begin for x in layout if x.kind != "state")


def seen_range(layout: Iterable[Place]) -> slice:
    """Where all observations are."""
    seen = [x for x in layout if x.kind == "seen"]
    return slice(seen[0].begin, seen[-1].begin + math.prod(seen[-1].shape))
