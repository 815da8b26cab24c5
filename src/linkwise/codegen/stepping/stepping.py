"""A whole motion as data: how it begins, what one step is, what it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from linkwise.codegen.scalar import trace
from linkwise.codegen.scalar.trace import Traced
from linkwise.codegen.stepping.chance import Chance
from linkwise.errors import LoweringError

STEP = "h"
"""The register with the length of a step [s]."""


def part(name: str, start: int, size: int = 1) -> str:
    """The name under which a segment reads or writes a part of a register."""
    return f"{name}[{start}:{start + size}]"


def placed(name: str) -> tuple[str, int]:
    """The register of a name, and where in it the named part begins."""
    register, _, bounds = name.partition("[")
    return register, int(bounds.partition(":")[0]) if bounds else 0


@dataclass(frozen=True, slots=True)
class Place:
    """Some numbers of a record."""

    kind: str  # "state", "seen", "watch" or "now"
    name: str  # of a register or an observation
    begin: int  # the first of them
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Stepping:
    """An integrator on one mechanism, in segments.

    A motion runs `enter` once, then for each step puts what is held (joint forces, ...) into its
    registers and runs `step`; `leave` makes q and v of it where they are recorded. The registers
    "q" and "v" hold the state at the beginning of `enter` and after `leave`; in between the
    segments keep it in other registers, of which `state` are those that last.
    """

    integrator: str  # its name
    nq: int  # number of coordinates
    nv: int  # number of velocities
    held: tuple[tuple[str, int], ...]  # inputs that are held over each step, with their lengths
    state: tuple[str, ...]  # the registers that go from one step to the next
    enter: tuple[Statement, ...]  # from q and v to the state
    # one step. A segment that occurs several times is the same object.
    step: tuple[Statement, ...]
    leave: tuple[Statement, ...]  # from the state to q and v
    # registers that are recorded behind q and v, with their lengths
    shown: tuple[tuple[str, int], ...] = ()
    # registers of the state that are given at the beginning, like q and v, with their lengths
    begins: tuple[tuple[str, int], ...] = ()
    # registers that are filled with random numbers before each step
    noise: tuple[Chance, ...] = ()
    # codes from this on end a motion that keeps its last state; 0 for none
    stops: int = 0
    # of a motion that goes on from where another call ended, what its records are made of
    layout: tuple[Place, ...] = ()
    # registers with their lengths whose parts do not show how long they are
    memory: tuple[tuple[str, int], ...] = ()
    # whether its segments divide by limbs, so that several threads can share a motion
    divides: bool = True

    @property
    def resumes(self) -> bool:
        """Whether it goes on from where another call ended.

        Its beginning is not recorded; a call without steps runs `leave` and makes one record.
        """
        return bool(self.layout)

    @property
    def record(self) -> tuple[tuple[str, int], ...]:
        """The registers of a record, with their lengths."""
        return (("q", self.nq), ("v", self.nv), *self.shown)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Each segment once, in the order of first use."""
        return flat((*self.enter, *self.step, *self.leave))

    @property
    def registers(self) -> dict[str, int]:
        """All registers with their lengths."""
        registers = {"q": self.nq, "v": self.nv, STEP: 1} | dict(self.begins) | dict(self.held)
        registers |= dict(self.memory)
        registers |= {chance.register: chance.size for chance in self.noise}
        parts = dict[str, int]()  # registers that are named in parts, and how far these go
        for name, size in self._used():
            register, start = placed(name)
            if register != name:
                parts[register] = max(parts.get(register, 0), start + size)
            elif registers.setdefault(name, size) != size:
                raise AssertionError(f"register {name!r} has lengths {registers[name]} and {size}")
        for register, end in parts.items():
            if registers.setdefault(register, end) < end:
                raise AssertionError(f"register {register!r} has no entry {end - 1}")
        return registers

    def _used(self) -> Iterator[tuple[str, int]]:
        for segment in self.segments:
            yield from segment.reads
            yield from segment.writes

    @property
    def ops(self) -> Counter[str]:
        """Scalar operations of one step, by kind, with one round of each loop."""
        return _ops(self.step)


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Straight code from registers to registers."""

    name: str  # what it does, in one word
    traced: Traced  # its graph; inputs are the registers that are read, with their lengths
    # the registers that are written with their lengths, in the order of the outputs
    writes: tuple[tuple[str, int], ...]
    # a register of one number: while that is above zero in some motion, the segment is run again,
    # together with neighbours of the same; motions in which it is not stay as they are. The first
    # round is for all. Nothing for one that is run once.
    again: str = ""
    most: int = 1  # how often it is run at most
    # a number of a register: the segment is left out unless that is above zero in some motion;
    # in motions in which it is not, running it has to change nothing that matters
    when: str = ""
    # the segment is run once for each row: how far its registers are shifted, those that are read
    # and then those that are written. Nothing for once, where they are.
    rows: tuple[tuple[int, ...], ...] = ()
    # by how much a register moves from one turn of the innermost loop to the next
    moves: tuple[tuple[str, int], ...] = ()

    @property
    def reads(self) -> tuple[tuple[str, int], ...]:
        """The registers that are read, with their lengths."""
        return self.traced.inputs

    def renamed(self, names: Mapping[str, str]) -> Segment:
        """The same code on registers of other names."""

        def other(registers: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
            return tuple((names.get(name, name), size) for name, size in registers)

        traced = replace(self.traced, inputs=other(self.traced.inputs))
        return replace(self, traced=traced, writes=other(self.writes), moves=other(self.moves))


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """Statements that are repeated, over registers that move (`Segment.moves`)."""

    body: tuple[Statement, ...]
    count: int  # turns
    down: bool = False  # from the last index to the first
    # a register of one number: there is another turn only while that is above zero in some motion
    again: str = ""
    # a register with how many of the motions in the lanes have to want that; nothing for one
    least: str = ""
    # whether turns need nothing of each other, so that they may be made at the same time
    apart: bool = False
    # of such turns, registers of which each has its own part, and their distances
    copies: tuple[tuple[str, int], ...] = ()


Statement = Segment | Loop


def flat(statements: Iterable[Statement]) -> tuple[Segment, ...]:
    """Each segment once, in the order of first use."""
    segments = dict[int, Segment]()
    for x in statements:
        for segment in (x,) if isinstance(x, Segment) else flat(x.body):
            segments.setdefault(id(segment), segment)
    return tuple(segments.values())


def _ops(statements: Iterable[Statement]) -> Counter[str]:
    """Operations of each occurrence of a segment: stages of Runge-Kutta share theirs."""
    total = Counter[str]()
    for x in statements:
        total += x.traced.graph.count(x.traced.roots) if isinstance(x, Segment) else _ops(x.body)
    return total


def straight(statements: Iterable[Statement]) -> tuple[Segment, ...]:
    """The statements, where none is a loop.

    Raises:
        LoweringError: There is one.
    """
    given = tuple(statements)
    if any(isinstance(x, Loop) for x in given):
        raise LoweringError("a step has loops inside, which run on the processor and in C only.")
    return tuple(x for x in given if isinstance(x, Segment))


def prefixed(statements: Iterable[Statement], prefix: str) -> tuple[Statement, ...]:
    """The same statements on registers whose names begin with the prefix."""
    known = dict[int, Segment]()

    def named(pieces: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
        return tuple((prefix + name, size) for name, size in pieces)

    def other(x: Statement) -> Statement:
        again = prefix + x.again if x.again else ""
        if isinstance(x, Loop):
            least = prefix + x.least if x.least else ""
            return replace(x, body=tuple(other(y) for y in x.body), again=again, least=least)
        if id(x) not in known:
            traced = replace(x.traced, inputs=named(x.traced.inputs))
            when = prefix + x.when if x.when else ""
            changes = {"writes": named(x.writes), "moves": named(x.moves)}
            known[id(x)] = replace(x, traced=traced, again=again, when=when, **changes)
        return known[id(x)]

    return tuple(other(x) for x in statements)


class Sketch(trace.Sketch):
    """A segment that is being written; its inputs and outputs are registers."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def segment(self, *, again: str = "", most: int = 1, when: str = "") -> Segment:
        """What was written, to be run once, again and again, or on a condition."""
        writes = tuple((name, len(values)) for name, values in self.writes.items())
        return Segment(self.name, self.traced(), writes, again, most, when)


def rounds(statements: Sequence[Statement]) -> list[tuple[Segment, ...] | Loop]:
    """Segments that are run again together; others are alone, and so are loops."""
    groups = list[tuple[Segment, ...] | Loop]()
    for again, group in groupby(statements, lambda s: s.again if isinstance(s, Segment) else ""):
        if again:
            groups.append(tuple(s for s in group if isinstance(s, Segment)))
        else:
            groups += [s if isinstance(s, Loop) else (s,) for s in group]
    return groups
