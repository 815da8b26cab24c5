"""Requests for kernels of motions, what these need from a device, and what they give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.stepping.stepping import Place, Stepping
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array


class StepRequest(Protocol):
    """A request for a kernel of motions: everything its code depends on."""

    @property
    def mech(self) -> Mechanism:
        """The mechanism."""
        ...

    @property
    def integrator(self) -> str:
        """Name of the integrator."""
        ...

    @property
    def itemsize(self) -> int:
        """Bytes of a number."""
        ...

    @property
    def alone(self) -> bool:
        """Whether it runs single motions, without code that has motions in the lanes."""
        ...

    @property
    def content(self) -> Any:
        """Everything that the steps depend on besides the mechanism: equal content, equal code."""
        ...

    def stepping(self, target: str) -> Stepping:
        """The segments, for "cpu" or "cuda"."""
        ...


@dataclass(frozen=True, slots=True)
class Course:
    """How far motions go.

    Attributes:
        step: Length of a step [s].
        steps: How many.
        every: Steps from one record to the next; the last state is recorded too.
        threads: Processor cores; None for a number that suits the batch.
        seed: Of random numbers.
        first: Number of the first motion in their counters.
    """

    step: float
    steps: int
    every: int
    threads: int | None = None
    seed: int = 0
    first: int = 0

    @property
    def records(self) -> int:
        """How many, without the beginning."""
        return -(-self.steps // self.every)


@dataclass(frozen=True, slots=True)
class Motions:
    """What a call gives, the beginning first; on a GPU the axis of motions is the innermost one."""

    q: Any  # joint positions (batch, records, nq), on the GPU if those given were
    v: Any  # joint velocities (batch, records, nv), likewise
    more: Any  # what else is shown (batch, records, n), of NumPy or CuPy
    status: NDArray[np.int32]  # a code for each motion, 0 for success (batch,)
    failed: NDArray[np.int64]  # the step in which that code came, -1 for none (batch,)


@dataclass(frozen=True, slots=True)
class Records:
    """What a run on the processor gives, without the beginning."""

    records: Array  # (batch, records, width): q, v, and what else is shown, side by side
    status: NDArray[np.int32]  # as of `Motions`
    failed: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a call has to know of the segments; kept on disk with machine code."""

    nq: int  # numbers of q
    nv: int  # numbers of v
    held: tuple[tuple[str, int], ...]  # what is held over each step, with lengths
    begins: tuple[tuple[str, int], ...]  # what is given at the beginning besides q and v
    shown: dict[str, int]  # what records have behind q and v
    layout: tuple[Place, ...]  # what records of steps that resume are made of
    ops: Counter[str]  # scalar operations of one step, by kind
    stops: int  # codes from this on end a motion that keeps its last state; 0 for none
    noise: bool  # whether registers are filled with random numbers

    @classmethod
    def of(cls, stepping: Stepping) -> Facts:
        """Those of a motion."""
        s = stepping
        parts = s.nq, s.nv, s.held, s.begins, dict(s.shown), s.layout, s.ops, s.stops
        return cls(*parts, bool(s.noise))

    @classmethod
    def read(cls, kept: dict[str, Any]) -> Facts:
        """From `kept`, after a way through JSON."""
        pairs = {k: tuple((str(x), int(n)) for x, n in kept[k]) for k in ("held", "begins")}
        layout = tuple(Place(k, x, int(n), tuple(shape)) for k, x, n, shape in kept["layout"])
        changed: dict[str, Any] = {**pairs, "layout": layout, "ops": Counter[str](kept["ops"])}
        return cls(**kept | changed)

    def kept(self) -> dict[str, Any]:
        """As numbers and text."""
        parts: dict[str, Any] = {x.name: getattr(self, x.name) for x in fields(self)}
        return parts | {"layout": [(x.kind, x.name, x.begin, x.shape) for x in self.layout]}

    @property
    def width(self) -> int:
        """Numbers of a record."""
        return self.nq + self.nv + sum(self.shown.values())


class MotionDevice(Protocol):
    """Where motions run."""

    @property
    def facts(self) -> Facts:
        """What a call has to know."""
        ...

    @property
    def source(self) -> str:
        """The text of the code."""
        ...

    def entered(self, q: Any) -> AbstractContextManager[Any]:
        """A context for the call: the device of the arrays, the stream of their library."""
        ...

    def taken(self, name: str, value: Any) -> Any:
        """An input as it can be read here, with contiguous rows."""
        ...

    def moved(self, given: Mapping[str, Any], count: int, course: Course, like: Any) -> Motions:
        """All motions, the beginning first.

        Args:
            given: q, v, what is given at the beginning and what is held, by name: (motions, steps,
                n), where one row is for all motions or all steps.
            count: How many motions.
            course: How far they go.
            like: q as the caller gave it.
        """
        ...

    def resident(self, inputs: Mapping[str, Any], course: Course) -> Any:
        """A batch of motions that stay in memory: `resident.py`; `every` does not count."""
        ...
