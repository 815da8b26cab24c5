"""A segment: straight code that reads registers and writes registers.

Registers are short arrays with names, one set of them for each motion. A step of an integrator is a
list of segments; a segment that stands in it more than once (the accelerations, at each stage) is
one function, called each time. What a segment writes is stored after everything was read.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.codegen.scalar import sketch
from linkwise.codegen.scalar.trace import Traced


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Straight code from registers to registers.

    Attributes:
        name: What it does, in one word.
        traced: Its graph; inputs are the registers that are read, with their lengths.
        writes: The registers that are written with their lengths, in the order of the outputs.
        again: A register of one number, which it writes: while that is above zero in some motion,
            the segment is run again. Nothing for one that is run once.
        most: How often it is run at most.
    """

    name: str
    traced: Traced
    writes: tuple[tuple[str, int], ...]
    again: str = ""
    most: int = 1

    @property
    def reads(self) -> tuple[tuple[str, int], ...]:
        """The registers that are read, with their lengths."""
        return self.traced.inputs


class Sketch(sketch.Sketch):
    """A segment that is being written; its inputs and outputs are registers."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def segment(self, *, again: str = "", most: int = 1) -> Segment:
        """What was written, to be run once or again and again."""
        writes = tuple((name, len(values)) for name, values in self.writes.items())
        return Segment(self.name, self.traced(), writes, again, most)
