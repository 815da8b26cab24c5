"""A whole motion as data: how it begins, what one step is, what it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from linkwise.codegen.stepping.segment import Segment

STEP = "h"
"""The register with the length of a step [s]."""


@dataclass(frozen=True, slots=True, eq=False)
class Stepping:
    """An integrator on one mechanism, in segments.

    A motion runs `enter` once, then for each step puts what is held (joint forces, ...) into its
    registers and runs `step`; `leave` makes q and v of it where they are recorded. The registers
    "q" and "v" hold the state at the beginning of `enter` and after `leave`; in between the
    segments keep it in registers of their own, of which `state` are those that last.

    Attributes:
        integrator: Its name.
        nq: Number of coordinates.
        nv: Number of velocities.
        held: Inputs that are held over each step, with their lengths.
        state: The registers that go from one step to the next.
        enter: From q and v to the state.
        step: One step. A segment that stands here several times is the same object.
        leave: From the state to q and v.
    """

    integrator: str
    nq: int
    nv: int
    held: tuple[tuple[str, int], ...]
    state: tuple[str, ...]
    enter: tuple[Segment, ...]
    step: tuple[Segment, ...]
    leave: tuple[Segment, ...]

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Each segment once, in the order of first use."""
        return tuple({id(s): s for s in (*self.enter, *self.step, *self.leave)}.values())

    @property
    def registers(self) -> dict[str, int]:
        """All registers with their lengths."""
        registers = {"q": self.nq, "v": self.nv, STEP: 1} | dict(self.held)
        for name, size in self._used():
            if registers.setdefault(name, size) != size:
                raise AssertionError(f"register {name!r} has lengths {registers[name]} and {size}")
        return registers

    def _used(self) -> Iterator[tuple[str, int]]:
        for segment in self.segments:
            yield from segment.reads
            yield from segment.writes

    @property
    def ops(self) -> Counter[str]:
        """Scalar operations of one step, by kind; what is run again counts once."""
        total = Counter[str]()
        for segment in self.step:
            total += segment.traced.graph.count(segment.traced.roots)
        return total
