"""Code for one state, with limbs of equal build side by side in vector registers.

What limbs have alike is one operation (`scalar/packs.py`), for results as for all else. Longer code
is cut into parts, each a separate function, which exchange values in work memory: those of a pack
are contiguous there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import Emitter, Finite
from linkwise.codegen.cpu.ir import INT
from linkwise.codegen.cpu.llvm import DENSE, MANY, GraphBody, Place, get, put
from linkwise.codegen.cpu.packed_values import Values, kept, last_uses
from linkwise.codegen.cpu.part import part_function, slots
from linkwise.codegen.scalar.packs import Pack, Packs
from linkwise.codegen.scalar.trace import Traced

LONGEST = 5000
"""Operations of code in one piece."""

PART = 250
"""Operations of one part of longer code."""

FEWER = 0.75
"""The share of operations that are left, above which limbs are not worth it: numbers have to be
put side by side, and apart again."""

STATUS = 0
"""Where the status is in work memory."""


class LimbBody(GraphBody):
    """The code of one state, with limbs side by side."""

    def __init__(self, emit: Emitter, traced: Traced, packs: Packs, units: Sequence[Pack]) -> None:
        super().__init__(emit, traced)
        self.packs, op = packs, self.graph.op
        leaves = {n for n in self.needed if op[n] in ("const", "input") or self._is_turned(n)}
        made = [x for x in units if x[0] not in leaves]
        size = max(len(made), 1) if len(made) <= LONGEST else PART
        self.parts = [made[i : i + size] for i in range(0, len(made), size)] or [[]]
        self.unit = {n: x for x in made for n in x}
        given = [n for n in leaves if op[n] != "const"]
        alike = [x for x in packs.packs if leaves.issuperset(x)]
        self.leaves = [*alike, *((n,) for n in sorted({*given}.difference(*alike)))]
        self.unit |= {n: x for x in self.leaves for n in x}
        filled = sum(not self._is_zero(n) for n in traced.outputs)
        self.by_rows = len(self.parts) > 1 or filled > max(MANY, DENSE * len(traced.outputs))
        self.made_in = {x: i for i, part in enumerate(self.parts) for x in part}
        self.results = defaultdict[int, list[int]](list)
        self.slot = dict[Pack, int]()

    def _is_turned(self, n: int) -> bool:
        """Whether it is the sine or cosine of an input, which are computed before all else."""
        op = self.graph.op
        return op[n] in ("sin", "cos") and op[self.graph.a[n]] == "input"

    def state(self, build: ir.IRBuilder, place: Place) -> ir.IRBuilder:
        """All instructions, or the calls of the parts."""
        for start, nodes in self.groups():
            for i, n in enumerate(nodes, start):
                self.results[n].append(i)
        self.prepare(build, place)
        build, known, given = self.begin(build, place)
        status, result = self.first_status(build, place), Finite(self.emit)
        if len(self.parts) == 1:
            values = self._values(place)
            values.value |= known
            status = self._part(build, place, values, 0, status, result)
        else:
            status = self._in_parts(build, place, known, status)
        self.conclude(build, place, status, given, result.total(build))
        return build

    def _in_parts(
        self, build: ir.IRBuilder, place: Place, known: dict[int, Any], status: Any
    ) -> Any:
        """The calls of all parts; returns the status."""
        self._share()
        put(self.emit, build, place.work, STATUS, status)
        for x in self.leaves:
            for i, n in enumerate(x if x in self.slot else ()):
                put(self.emit, build, place.work, self.slot[x] + i, known[n])
        row = build.gep(place.output, [build.mul(place.state, place.out_stride)])
        zero = ir.Constant(INT, 0)
        for i in range(len(self.parts)):
            function, inside = part_function(self.emit, f"part_{i}")
            output, work = function.args
            there = Place([], [], output, zero, None, work, zero)
            before = get(self.emit, inside, work, STATUS)
            after = self._part(inside, there, self._values(there), i, before, Finite(self.emit))
            if after is not before:
                put(self.emit, inside, work, STATUS, after)
            inside.ret_void()
            build.call(function, [row, place.work])
        return get(self.emit, build, place.work, STATUS)

    def _part(
        self,
        build: ir.IRBuilder,
        place: Place,
        values: Values,
        i: int,
        status: Any,
        result: Finite,
    ) -> Any:
        """One part of the code; returns the status."""
        for nodes in (*(() if i else self.leaves), *self.parts[i]):
            if nodes in self.made_in:
                values.make(build, nodes)
            for n in nodes:
                if n in self.checks:
                    x = values.of(build, n)
                    status = self.emit.checked(build, self.checks[n], x, status)
                for start in self.results[n]:
                    self.stored(build, [values.of(build, n)], place, start, result)
            if nodes in self.slot and nodes in self.made_in:
                wide = values.like(len(nodes))
                x = values.of(build, *nodes) if wide.lanes == 1 else values.vector[nodes]
                put(wide, build, place.work, self.slot[nodes], x, stride=1)
        for n in self.results if not i else ():
            for start in self.results[n] if self.graph.op[n] == "const" else ():
                self.stored(build, [values.of(build, n)], place, start, result)
        return status

    def _share(self) -> None:
        """Slots of work memory for what is made in one part, or before all, and used in others."""
        last = last_uses(self.graph, self.parts, self.unit)
        for x in self.leaves:
            if any(self.results[n] or n in self.checks for n in x):
                last.setdefault(x, 0)
        made = [self.leaves, *self.parts]
        lives = {x: (i, last.get(x, -1)) for i, part in enumerate(made, -1) for x in part}
        crossing = {x: (i, end) for x, (i, end) in lives.items() if end > i}
        self.slot, top = slots(crossing, 1 + STATUS, len)
        self.slots = max(self.slots, top)

    def _values(self, place: Place) -> Values:
        """With what is in registers and in work memory."""

        def where(nodes: Pack) -> tuple[Any, list[int | None]]:
            return place.work, [kept(self.slot, self.unit.get(n), n) for n in nodes]

        return Values(self.emit, self.packs, where)


def limb_body(emit: Emitter, traced: Traced) -> LimbBody | None:
    """The code with limbs side by side, where that is worth it."""
    if emit.lanes > 1 or not traced.alike or traced.graph.loops:
        return None
    graph, order = traced.graph, traced.graph.used(traced.roots)
    node_of = {graph.a[n]: n for n in order if graph.op[n] == "input"}
    alike = [tuple(node_of[i] for i in x) for x in traced.alike if node_of.keys() >= {*x}]
    packs = Packs(graph, order, alike)
    units = packs.depth_first(traced.results_first())
    if len(units) > FEWER * len(order):
        return None
    return LimbBody(emit, traced, packs, units)
