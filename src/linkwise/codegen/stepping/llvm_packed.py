"""The code of a segment for one motion, with limbs of equal build side by side in vector registers.

What limbs have alike is one operation (`scalar/packs.py`). Inputs are loaded where they are needed
first and results stored as soon as they are there, since long code has many more values than the
processor has registers. What is run again and again computes one side of slow choices only
(`scalar/forks.py`). Longer code is cut into parts, which exchange values in the frame.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import Finite
from linkwise.codegen.cpu.llvm import Place, put
from linkwise.codegen.cpu.packed_values import Values, kept, last_uses
from linkwise.codegen.cpu.part import part_function, slots
from linkwise.codegen.scalar.forks import Fork, Step, steps
from linkwise.codegen.scalar.packs import Pack, Packs

PART = 400
"""Operations of one part of longer code."""

LONGEST = 5000
"""Operations of code in one piece."""


class PackedBody:
    """The code of a segment.

    Attributes:
        slots: Numbers of the frame.
    """

    def __init__(self, body: Any, packs: Packs) -> None:
        """Of the body of the segment in single operations, whose registers it takes."""
        self.body, self.emit, self.packs, self.graph = body, body.emit, packs, body.graph
        self.slots, self.slot = 0, dict[Pack, int]()
        op, needed = self.graph.op, self.graph.used(body.traced.roots)
        self.turned = [n for n in needed if op[n] in ("sin", "cos")]
        self.turned = [n for n in self.turned if op[self.graph.a[n]] == "input"]
        node_of = {self.graph.a[n]: n for n in needed if op[n] == "input"}
        reads = enumerate(body.read_at)
        self.entry = {node_of[i]: at for i, at in reads if i in node_of}  # where inputs are
        units = [x for x in packs.units(needed) if op[x[0]] not in ("const", "input")]
        units = [x for x in units if x[0] not in set(self.turned)]
        size = max(len(units), 1) if len(units) <= LONGEST else PART
        self.parts = [units[i : i + size] for i in range(0, len(units), size)] or [[]]
        self.unit = {n: x for part in self.parts for x in part for n in x}
        self.results = defaultdict[int, list[int]](list)  # outputs that are stored at once
        self.late = list[int]()  # and those in the place of inputs, or that are inputs
        self.steps: tuple[Step, ...] | None = None  # of code that is run again and again
        if body.repeated and not packs.packs and len(self.parts) == 1:
            self.steps = steps(self.graph, [x[0] for x in units], set(body.traced.roots))
        read = set(body.read_at)
        for k, n in enumerate(body.traced.outputs):
            early = n in self.unit and body.write_at[k] not in read
            self.results[n] += [k] * early
            self.late += [] if early else [k]

    def state(self, build: ir.IRBuilder, place: Place) -> ir.IRBuilder:
        """All instructions, or the calls of the parts."""
        values = self._values(place)
        angles = sorted(self.turned, key=lambda n: self.packs.place.get(n, (len(self.unit), n)))
        for n in angles:
            values.of(build, self.graph.a[n])
        build = self.emit.angles(build, self.graph, angles, values.value)
        if len(self.parts) == 1:
            return self._part(build, place, values, 0)
        self._share()
        for x in angles:
            put(self.emit, build, place.work, self.slot[x,], values.value[x])
        for i in range(len(self.parts)):
            function, inside = part_function(self.emit, "part_1")
            there = Place([], [], function.args[0], None, None, function.args[1], place.state)
            self._part(inside, there, self._values(there), i).ret_void()
            build.call(function, [place.output, place.work])
        return build

    def _share(self) -> None:
        """Slots of the frame for what is made in one part and used in another."""
        turned: list[Pack] = [(n,) for n in self.turned]
        last = last_uses(self.graph, self.parts, self.unit)
        last |= dict.fromkeys(turned, len(self.parts))
        for k in self.late:
            n = self.body.traced.outputs[k]
            if n in self.unit:
                last[self.unit[n]] = len(self.parts)
        made = [turned, *self.parts]
        lives = {x: (i, last.get(x, -1)) for i, part in enumerate(made, -1) for x in part}
        crossing = {x: (i, end) for x, (i, end) in lives.items() if end > i}
        self.slot, self.slots = slots(crossing, self.slots, len)

    def _values(self, place: Place) -> Values:
        """With what is in registers and in the frame."""

        def where(nodes: Pack) -> tuple[Any, list[int | None]]:
            at = [self.entry.get(n) for n in nodes]
            if None in at:
                return place.work, [kept(self.slot, self.unit.get(n, (n,)), n) for n in nodes]
            return place.output, at

        return Values(self.emit, self.packs, where)

    def _part(self, build: ir.IRBuilder, place: Place, values: Values, i: int) -> ir.IRBuilder:
        """One part of the code; the last one ends it. Returns where to go on."""
        emit, body = self.emit, self.body
        status, result = body.first_status(build, place), Finite(emit)
        for step in self.parts[i] if self.steps is None else self.steps:
            if isinstance(step, Fork):
                build = values.forked(build, step)
                units = [(n,) for n in step.choices]
            else:
                units = [(step,) if isinstance(step, int) else step]
                values.make(build, units[0])
            for nodes in units:
                for n in nodes:
                    if n in body.checks:
                        status = emit.checked(build, body.checks[n], values.of(build, n), status)
                self._store(build, place, values, nodes)
                if nodes in self.slot:
                    wide = values.like(len(nodes))
                    x = values.of(build, nodes[0]) if wide.lanes == 1 else values.vector[nodes]
                    put(wide, build, place.work, self.slot[nodes], x, stride=1)
        if i + 1 == len(self.parts):
            ready = [(k, values.of(build, body.traced.outputs[k])) for k in self.late]
            for n in (n for n in body.checks if n not in self.unit):
                status = emit.checked(build, body.checks[n], values.of(build, n), status)
            for k, x in ready:
                body.stored(build, [x], place, k, result)
        body.conclude(build, place, status, None, result.total(build))
        return build

    def _store(self, build: ir.IRBuilder, place: Place, values: Values, nodes: Pack) -> None:
        """The outputs that a unit is, as a vector where their places are contiguous."""
        ways = [self.results[n] for n in nodes]
        at = [self.body.write_at[x[0]] if len(x) == 1 else -1 for x in ways]
        if len(nodes) > 1 and at[0] >= 0 and at == list(range(at[0], at[0] + len(at))):
            wide = values.like(len(nodes))
            put(wide, build, place.output, at[0], values.vector[nodes], stride=1)
            return
        for n, outputs in zip(nodes, ways, strict=True):
            for k in outputs:
                self.body.stored(build, [values.of(build, n)], place, k, Finite(self.emit))
