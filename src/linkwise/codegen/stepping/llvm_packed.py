"""The code of a segment for one motion, with limbs of equal build side by side in vector registers.

What limbs have alike is one operation (`scalar/packs.py`). Inputs are loaded where they are needed
first and results stored as soon as they are there, since long code has many more values than the
processor has registers. What is run again and again computes one side of slow choices only
(`scalar/forks.py`). Longer code is cut into parts, which exchange values in the frame.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import BINARY, Emitter, Finite
from linkwise.codegen.cpu.ir import INT32, Constant
from linkwise.codegen.cpu.llvm import Place, get, put
from linkwise.codegen.scalar.forks import Fork, Step, arguments, compared, outside, steps, where_of
from linkwise.codegen.scalar.packs import Pack, Packs

PART = 400
"""Operations of one part of longer code."""

LONGEST = 5000
"""Operations of code in one piece."""


class _Values:
    """Values of nodes while a function is written, one by one and as columns of several.

    Attributes:
        value: Single values by node.
        vector: Columns by their nodes.
    """

    def __init__(
        self, emit: Emitter, packs: Packs, fetch: Callable[[ir.IRBuilder, Pack], Any]
    ) -> None:
        self.emit, self.packs, self.graph, self.fetch = emit, packs, packs.graph, fetch
        self.value, self.vector = dict[int, Any](), dict[Pack, Any]()
        self.wide = dict[int, Emitter]()

    def of(self, build: ir.IRBuilder, n: int) -> Any:
        """The value of one node."""
        if n not in self.value:
            self.value[n] = self._one(build, n)
        return self.value[n]

    def _one(self, build: ir.IRBuilder, n: int) -> Any:
        if self.graph.op[n] == "const":
            return self.emit.constant(self.graph.value[n])
        place = None if self.graph.op[n] == "input" else self.packs.place.get(n)
        if place is not None and self.packs.packs[place[0]] in self.vector:
            vector = self.vector[self.packs.packs[place[0]]]
            return build.extract_element(vector, Constant(INT32, place[1]))
        return self.fetch(build, (n,))

    def column(self, build: ir.IRBuilder, nodes: Pack) -> Any:
        """A vector of the values of some nodes."""
        if nodes not in self.vector:
            self.vector[nodes] = self._several(build, nodes)
        return self.vector[nodes]

    def _several(self, build: ir.IRBuilder, nodes: Pack) -> Any:
        kind = self.like(len(nodes)).type
        if all(self.graph.op[n] == "const" for n in nodes):
            return Constant(kind, [self.graph.value[n] for n in nodes])
        blank: Any = ir.undefined(kind)
        if len(set(nodes)) == 1:
            first = build.insert_element(blank, self.of(build, nodes[0]), Constant(INT32, 0))
            every = Constant(ir.vector(INT32, len(nodes)), 0)
            return build.shuffle_vector(first, blank, every)
        together = None if any(n in self.value for n in nodes) else self.fetch(build, nodes)
        if together is not None:
            return together
        for lane, n in enumerate(nodes):
            blank = build.insert_element(blank, self.of(build, n), Constant(INT32, lane))
        return blank

    def like(self, width: int) -> Emitter:
        """What writes operations for a number of limbs."""
        if width not in self.wide:
            self.wide[width] = Emitter(self.emit.module, self.emit.itemsize, width)
        return self.wide[width]

    def make(self, build: ir.IRBuilder, nodes: Pack) -> None:
        """Compute a pack, or a single node."""
        if len(nodes) > 1:
            self.vector[nodes] = self._packed(build, nodes)
        else:
            self._single(build, *nodes)

    def _single(self, build: ir.IRBuilder, n: int) -> None:
        for x in arguments(self.graph, n):
            self.of(build, x)
        self.emit.nodes(build, self.graph, (n,), self.value)

    def forked(self, build: ir.IRBuilder, fork: Fork) -> ir.IRBuilder:
        """Go the way that a condition says; returns where to go on."""
        for n in sorted(outside(self.graph, fork)):
            self.of(build, n)
        known = self.value
        choices = [where_of(self.graph, n) or (-1, -1, -1) for n in fork.choices]
        condition = self.emit.positive(build, self.graph, fork.condition, known)
        before, function = build.block, build.function
        merged = function.append_basic_block("merged")
        ways, ends, taken = list[Any](), list[Any](), list[list[Any]]()
        for k, side in enumerate(fork.sides, 1):
            self.value, inside = dict(known), build
            if side:
                ways.append(function.append_basic_block("side"))
                inside = ir.IRBuilder(ways[-1])
                for step in side:
                    if isinstance(step, Fork):
                        inside = self.forked(inside, step)
                    else:
                        self._single(inside, step)
            else:
                ways.append(merged)
            taken.append([self._of_side(inside, x[k]) for x in choices])
            ends.append(inside)
        self.value = known
        for inside in ends:
            if inside is not build:
                inside.branch(merged)
        build.cbranch(condition, *ways)
        after = ir.IRBuilder(merged)
        for n, *both in zip(fork.choices, *taken, strict=True):
            phi = after.phi(self.emit.type)
            for end, x in zip(ends, both, strict=True):
                phi.add_incoming(x, before if end is build else end.block)
            known[n] = phi
        return after

    def _of_side(self, build: ir.IRBuilder, n: int) -> Any:
        return self.emit.constant(0.0) if n < 0 else self.of(build, n)

    def _packed(self, build: ir.IRBuilder, nodes: Pack) -> Any:
        """One operation for a pack."""
        wide, op = self.like(len(nodes)), self.graph.op[nodes[0]]
        zero, choices = wide.constant(0.0), [where_of(self.graph, n) for n in nodes]
        if all(choices):
            condition, *results = zip(*(x for x in choices if x is not None), strict=True)
            if all(min(r) >= 0 or max(r) < 0 for r in results):
                both = [zero if r[0] < 0 else self.column(build, r) for r in results]
                pairs = [compared(self.graph, x) for x in choices if x is not None]
                sides = list(zip(*(x for x in pairs if x is not None), strict=True))
                if None not in pairs and set(sides) == set(results):
                    larger = build.fcmp_ordered(">", *(self.column(build, r) for r in sides))
                    return build.select(larger, *both)
                return build.select(self._positive(build, condition), *both)
        columns = self.packs.columns(nodes)
        if op == "gate":
            second = self.column(build, columns[1])
            return build.select(self._positive(build, columns[0]), second, zero)
        x = [self.column(build, c) for c in columns]
        if self.packs.is_sum(nodes):
            return self._sum(build, x, [self.packs.signs(nodes, c) for c in columns])
        if op in BINARY:
            return build.binary(BINARY[op], *x)
        if op == "neg":
            return build.fneg(x[0])
        if op == "inv":
            return build.fdiv(wide.constant(1.0), x[0])
        return build.call(wide.intrinsic("llvm.sqrt"), x)

    def _sum(self, build: ir.IRBuilder, x: list[Any], signs: list[list[float]]) -> Any:
        """A sum of two columns with signs; the first is the one with fewer minus signs."""
        (first, plus), (second, minus) = sorted(
            zip(x, signs, strict=True), key=lambda pair: pair[1].count(-1.0)
        )
        if -1.0 in plus:
            first = build.binary(BINARY["mul"], first, Constant(first.type, plus))
        if 1.0 not in minus:
            return build.binary(BINARY["sub"], first, second)
        if -1.0 in minus:
            second = build.binary(BINARY["mul"], second, Constant(second.type, minus))
        return build.binary(BINARY["add"], first, second)

    def _positive(self, build: ir.IRBuilder, nodes: Pack) -> Any:
        zero = self.like(len(nodes)).constant(0.0)
        return build.fcmp_ordered(">", self.column(build, nodes), zero)


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
            pointer = self.emit.number.as_pointer()
            kind = ir.FunctionType(ir.VOID, [pointer, pointer])
            name = self.emit.module.unique_name("part_1")
            function = ir.Function(self.emit.module, kind, name, internal=True, noinline=True)
            for argument in function.args:
                argument.add_attribute("noalias")
            there = Place([], [], function.args[0], None, None, function.args[1], place.state)
            inside = ir.IRBuilder(function.append_basic_block("entry"))
            self._part(inside, there, self._values(there), i).ret_void()
            build.call(function, [place.output, place.work])
        return build

    def _share(self) -> None:
        """Slots of the frame for what is made in one part and used in another."""
        turned: list[Pack] = [(n,) for n in self.turned]
        last = dict.fromkeys(turned, len(self.parts))
        for i, part in enumerate(self.parts):
            for x in part:
                needed = {y for n in x for y in self.graph.arguments(n)}
                needed |= {y for n in x for y in where_of(self.graph, n) or () if y >= 0}
                for unit in {self.unit[y] for y in needed if y in self.unit}:
                    last[unit] = max(last.get(unit, 0), i)
        for k in self.late:
            n = self.body.traced.outputs[k]
            if n in self.unit:
                last[self.unit[n]] = len(self.parts)
        free, ending = defaultdict[int, list[int]](list), defaultdict[int, list[Pack]](list)
        for i in range(-1, len(self.parts)):
            for x in turned if i < 0 else self.parts[i]:
                if last.get(x, -1) > i:
                    if not free[len(x)]:
                        free[len(x)].append(self.slots)
                        self.slots += len(x)
                    self.slot[x] = free[len(x)].pop()
                    ending[last[x]].append(x)
            for x in ending[i]:
                free[len(x)].append(self.slot[x])

    def _values(self, place: Place) -> _Values:
        """With what is in registers and in the frame."""

        def fetch(build: ir.IRBuilder, nodes: Pack) -> Any:
            """A node; or several, if they are contiguous."""
            memory, at = place.output, [self.entry.get(n) for n in nodes]
            if None in at:
                memory, at = place.work, [self._kept(n) for n in nodes]
            first = at[0]
            if first is None or at != list(range(first, first + len(at))):
                assert len(nodes) > 1
                return None
            return get(values.like(len(nodes)), build, memory, first, stride=1)

        values = _Values(self.emit, self.packs, fetch)
        return values

    def _kept(self, n: int) -> int | None:
        """The slot of a node."""
        unit = self.unit.get(n, (n,))
        return self.slot[unit] + unit.index(n) if unit in self.slot else None

    def _part(self, build: ir.IRBuilder, place: Place, values: _Values, i: int) -> ir.IRBuilder:
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

    def _store(self, build: ir.IRBuilder, place: Place, values: _Values, nodes: Pack) -> None:
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
