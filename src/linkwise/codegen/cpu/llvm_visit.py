"""What a body of a class does in one stage, as LLVM instructions.

In a stage that runs once a value is what one state has, or a vector of as many states. In a stage
that runs for the columns of a matrix it is a vector of as many columns, of one state; what does not
depend on the column is one number there, and is spread out when it is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import FLAGS, Emitter
from linkwise.codegen.cpu.ir import INT, INT32, declared
from linkwise.codegen.rolled.layout import Leaf, Out
from linkwise.codegen.rolled.roll import Rolled
from linkwise.codegen.rolled.visit import ClassCode

WANTED, ROWS = "wanted", "rows"
"""Globals of the module for a part of the result: its columns, and the position of its rows."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a stage works on."""

    emit: Emitter  # makes instructions on values of this stage
    spread: bool  # whether values are columns of one state: other numbers are spread out
    inputs: list[Any]  # the arrays
    output: Any  # row of the result; of the first state, where there are several
    out_stride: Any  # distance of these rows
    frame: Any  # numbers that belong to no body
    frame_each: Any  # those that have another value for each column
    sums: Any  # what children have added up
    carry: Any  # what bodies hand to their children
    record: Any  # what bodies keep
    record_each: Any  # what they keep for each column
    turns: tuple[Any, Any] | None  # sines and cosines of q, where they are taken beforehand
    column: Any  # the first column of those done together
    last: Any  # the last body that is visited, where that depends on the column

    def get(self, build: ir.IRBuilder, area: Any, at: Any, *, each: bool = True) -> Any:
        """A value of an area, by its number; `each` says whether it depends on the column."""
        if self.spread and not each:
            at = _index(at) if isinstance(at, int) else at
            return splat(self.emit, build, build.load(build.gep(area, [at])))
        place = self._place(build, area, at)
        return build.load(place, align=self.emit.itemsize)

    def put(self, build: ir.IRBuilder, area: Any, at: Any, value: Any) -> None:
        """Put a value of this stage into an area."""
        build.store(value, self._place(build, area, at), align=self.emit.itemsize)

    def _place(self, build: ir.IRBuilder, area: Any, at: Any) -> Any:
        lanes = self.emit.lanes
        number = _index(at * lanes) if isinstance(at, int) else at
        if lanes > 1 and not isinstance(at, int):
            number = build.mul(at, _index(lanes))
        place = build.gep(area, [number])
        return place if lanes == 1 else build.bitcast(place, self.emit.type.as_pointer())

    def store(self, build: ir.IRBuilder, x: Any, entry: Any, last: int | None = None) -> None:
        """An entry of the result; of columns, those before `last`."""
        emit = self.emit
        if self.spread:
            assert last is not None
            place = build.gep(self.output, [entry])
            at: Any = build.bitcast(place, emit.type.as_pointer())
            bits = ir.vector(ir.BIT, emit.lanes)
            ahead = build.sub(_index(last), self.column)
            wide = ir.vector(INT, emit.lanes)
            mask = build.icmp_signed("<", iota(wide), splat_int(build, ahead, wide))
            kind = ir.FunctionType(ir.VOID, [emit.type, at.type, INT32, bits])
            function = declared(emit.module, f"llvm.masked.store.{emit.suffix}.p0", kind)
            build.call(function, [x, at, ir.Constant(INT32, emit.itemsize), mask])
        elif emit.lanes == 1:
            build.store(x, build.gep(self.output, [entry]))
        else:
            for lane in range(emit.lanes):
                one = build.extract_element(x, ir.Constant(INT32, lane))
                at = build.add(build.mul(self.out_stride, _index(lane)), entry)
                build.store(one, build.gep(self.output, [at]))


FILLED_BY = {"sum": "first_child", "sum_read": "next_sibling"}
"""The body that is the last to add to a sum before it is read."""


class VisitCode:
    """The instructions of one class in one stage.

    Attributes:
        status: The status after it.
    """

    def __init__(
        self,
        rolled: Rolled,
        code: ClassCode,
        number: int,
        given: Given,
        table: Any,
        row: Any,
        status: Any,
        k: Any,
    ) -> None:
        self.rolled, self.code, self.visit = rolled, code, code.visits[number]
        self.given, self.emit = given, given.emit
        self.table, self.row, self.status, self.k = table, row, status, k
        self.each = rolled.plan.stages[number].each
        self.places: dict[str, Any] = {}
        self.bases: dict[str, Any] = {}

    def emitted(self, build: ir.IRBuilder) -> ir.IRBuilder:
        """All of it; returns where to go on."""
        emit, visit, graph, given = self.emit, self.visit, self.code.graph, self.given
        value = self._turns(build)
        angles = {
            graph.a[n] for n in visit.order if graph.op[n] in ("sin", "cos") and n not in value
        }
        value |= {n: self._leaf(build, self.code.leaf[n]) for n in visit.leaves if n in angles}
        build = emit.angles(build, graph, visit.order, value)  # nothing else is alive across calls
        for node in visit.leaves:
            if node not in value:
                value[node] = self._leaf(build, self.code.leaf[node])
        for node in visit.fetched:
            each = node in self.code.each
            slot = self.rolled.shown[each] + self.code.slot[node]
            value[node] = self._kept(build, "", slot, each=each)
        emit.nodes(build, graph, visit.order, value)
        for node in visit.kept:
            slot = self.rolled.shown[self.each] + self.code.slot[node]
            self._keep(build, slot, value[node])
        for entry, node in visit.shown:
            self._keep(build, entry, value[node])
        self._guard(build, value)
        for entry, node in visit.handed:
            given.put(build, self._base(build, given.carry, "carry"), entry, value[node])
        self._add(build, value)
        for out in visit.results:
            self._result(build, out, value[out.node])
        frame = given.frame_each if self.each else given.frame
        for out in visit.exports:
            start = self._start(build, out.where, out.on, out.stride)
            given.put(
                build, frame, build.add(start, _index(out.index + out.offset)), value[out.node]
            )
        for out in visit.totals:
            total = _sum(build, given.get(build, frame, out.index), value[out.node])
            given.put(build, frame, out.index, total)
        return build

    def _turns(self, build: ir.IRBuilder) -> dict[int, Any]:
        """Sines and cosines of q that were taken beforehand."""
        graph, given, value = self.code.graph, self.given, dict[int, Any]()
        if given.turns is None:
            return value
        known = turned(self.code)
        for node in (n for n in self.visit.order if n in known):
            leaf = self.code.leaf[graph.a[node]]
            at = build.add(self._place(build, "q"), _index(leaf.offset))
            area = given.turns[0 if graph.op[node] == "sin" else 1]
            value[node] = given.get(build, area, at, each=False)
        return value

    # ---------------------------------------------------------------------------- addresses

    def _place(self, build: ir.IRBuilder, name: str) -> Any:
        """An entry of the table of places; a constant where all bodies of the class agree."""
        place = self.places.get(name)
        if place is None:
            column = self.rolled.places.column(name)
            values = self.rolled.places.rows[self.code.kind.bodies, column]
            if name == "body":
                place = self.k
            elif (values == values[0]).all():
                place = _index(int(values[0]))
            else:
                place = build.zext(build.load(build.gep(self.row, [_index(column)])), INT)
            if self.given.last is not None and name in FILLED_BY:
                # Children that are not visited have added nothing: the value there is old.
                filler = self._place(build, FILLED_BY[name])
                visited = build.icmp_signed("<=", filler, self.given.last)
                place = build.select(visited, place, _index(0))
            self.places[name] = place
        return place

    def _base(self, build: ir.IRBuilder, area: Any, name: str, *, each: bool = True) -> Any:
        """Where a body's part of an area begins."""
        base = self.bases.get(name)
        if base is None:
            at = self._place(build, name)
            if not self.given.spread or each:
                at = build.mul(at, _index(self.emit.lanes))
            base = self.bases[name] = build.gep(area, [at])
        return base

    def _kept(self, build: ir.IRBuilder, of: str, slot: int, *, each: bool) -> Any:
        """Something from the record of the body, or of its parent."""
        area = self.given.record_each if each else self.given.record
        base = self._base(build, area, f"{of}record{'_each' if each else ''}", each=each)
        return self.given.get(build, base, slot, each=each)

    def _keep(self, build: ir.IRBuilder, slot: int, value: Any) -> None:
        area = self.given.record_each if self.each else self.given.record
        base = self._base(build, area, f"record{'_each' if self.each else ''}")
        self.given.put(build, base, slot, value)

    def _start(self, build: ir.IRBuilder, where: str, node: int, stride: int) -> Any:
        """Where the entries of a body, or of one of its nodes, begin in an array."""
        if where == "start":
            return _index(0)
        if where == "node":
            return build.mul(self._place(build, f"node {node}"), _index(stride))
        if where in ("q", "v"):
            return self._place(build, where)
        if where == "block":
            return self._place(build, "body")
        sizes = {"body": 6, "place": 12, "inertia": 10, "parent_body": 6}
        of = "parent" if where == "parent_body" else "body"
        return build.mul(self._place(build, of), _index(sizes[where]))

    def _leaf(self, build: ir.IRBuilder, leaf: Leaf) -> Any:
        given = self.given
        if leaf.kind == "column":
            at = build.add(self._place(build, "table"), _index(leaf.index))
            return splat(self.emit, build, build.load(build.gep(self.table, [at])))
        if leaf.kind == "sum":
            assert leaf.key is not None
            base = self._base(build, given.sums, "sum")
            return given.get(build, base, self.rolled.sum_entry[leaf.key])
        if leaf.kind == "parent":
            assert leaf.key is not None
            entry = self.rolled.parent_entry[leaf.key]
            if leaf.kept:
                return self._kept(build, "parent_", entry, each=leaf.each)
            return given.get(build, self._base(build, given.carry, "parent_carry"), entry)
        start = self._start(build, leaf.where, leaf.node, leaf.stride)
        entry = build.add(start, _index(leaf.offset))
        if leaf.kind == "input":
            return given.get(build, given.inputs[leaf.index], entry, each=False)
        if leaf.kind == "whole":
            frame = given.frame_each if leaf.each else given.frame
            return given.get(build, frame, build.add(entry, _index(leaf.index)), each=leaf.each)
        assert leaf.kind == "unit"
        wide = ir.vector(INT, self.emit.lanes)
        if self.rolled.chosen_columns is None:
            ahead = splat_int(build, build.sub(entry, given.column), wide)
            same = build.icmp_signed("==", ahead, iota(wide))
        else:
            numbers = build.gep(build.load(build.module.globals[WANTED]), [given.column])
            narrow = ir.vector(INT32, self.emit.lanes)
            columns = build.load(build.bitcast(numbers, narrow.as_pointer()), align=4)
            same = build.icmp_signed("==", splat_int(build, entry, wide), build.zext(columns, wide))
        return build.select(same, self.emit.constant(1.0), self.emit.constant(0.0))

    # -------------------------------------------------------------------------------- stores

    def _add(self, build: ir.IRBuilder, value: dict[int, Any]) -> None:
        """Sums of the parent: read (zero if this is the first child), added to, written."""
        if not self.visit.added:
            return
        given, totals = self.given, list[tuple[int, Any]]()
        fresh = self._place(build, "sum_read")
        first = isinstance(fresh, ir.Constant) and fresh.constant == 0
        for entry, node in self.visit.added:
            x = value[node]
            if not first:
                base = self._base(build, given.sums, "sum_read")
                x = _sum(build, given.get(build, base, entry), x)
            totals.append((entry, x))
        for entry, x in totals:
            given.put(build, self._base(build, given.sums, "sum_write"), entry, x)

    def _result(self, build: ir.IRBuilder, out: Out, x: Any) -> None:
        shape = self.rolled.shape
        start = self._start(build, out.where, out.on, out.stride)
        if self.each:  # one row of some columns
            columns, row, offset = shape[1], build.add(start, _index(out.offset)), None
        else:
            columns = out.stride if out.where == "block" else math.prod(shape[1:])
            row = build.add(start, _index(out.offset // columns))
            offset = _index(out.offset % columns)
        if self.rolled.row_of is not None:
            table = build.load(build.module.globals[ROWS])
            row = build.sext(build.load(build.gep(table, [row])), INT)
            with build.if_then(build.icmp_signed(">=", row, _index(0))):
                self._stored(build, x, row, columns, offset)
            return
        self._stored(build, x, row, columns, offset)

    def _stored(self, build: ir.IRBuilder, x: Any, row: Any, columns: int, offset: Any) -> None:
        start = build.mul(row, _index(columns))
        if offset is None:
            self.given.store(build, x, build.add(start, self.given.column), columns)
        else:
            self.given.store(build, x, build.add(start, offset))

    def _guard(self, build: ir.IRBuilder, value: dict[int, Any]) -> None:
        """Checks; the codes of the step are those of body 1 of its window."""
        emit = self.emit
        for guard in self.visit.guards:
            assert not self.each
            code = build.add(build.mul(self.k, _index(2)), _index(guard.check.code - 2))
            number = splat(emit, build, build.sitofp(code, emit.number))
            low = value[int(guard.low)] if guard.column else float(guard.low)
            x = value[guard.check.node]
            self.status = emit.guarded(build, x, low, guard.check.high, number, self.status)


def turned(code: ClassCode) -> set[int]:
    """The nodes that are the sine or cosine of an entry of q."""
    graph, nodes = code.graph, set[int]()
    for node, op in enumerate(graph.op):
        if op in ("sin", "cos"):
            leaf = code.leaf.get(graph.a[node])
            if leaf is not None and leaf.kind == "input" and leaf.where == "q":
                nodes.add(node)
    return nodes


def _sum(build: ir.IRBuilder, a: Any, b: Any) -> Any:
    return build.fadd(a, b, flags=FLAGS)


def _index(value: int) -> Any:
    return ir.Constant(INT, value)


def splat(emit: Emitter, build: ir.IRBuilder, x: Any) -> Any:
    """A number in all lanes."""
    return x if emit.lanes == 1 else splat_int(build, x, emit.type)


def splat_int(build: ir.IRBuilder, x: Any, kind: Any) -> Any:
    """A vector of a kind with the same entry throughout."""
    blank = ir.undefined(kind)
    first = build.insert_element(blank, x, ir.Constant(INT32, 0))
    return build.shuffle_vector(
        first, blank, ir.Constant(ir.vector(INT32, kind.count), [0] * kind.count)
    )


def iota(kind: Any) -> Any:
    """0, 1, 2 ..."""
    return ir.Constant(kind, list(range(kind.count)))
