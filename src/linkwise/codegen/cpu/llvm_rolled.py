"""Rolled kernels as LLVM functions: a function for each stage, a loop over bodies in each.

The numbers of a run are in scratch memory, each as wide as a value:

    frame   the status, and numbers that belong to no body
    sums    what children have added up; the first place stays zero
    carry   what bodies hand to their children in one stage
    record  what a body keeps from stage to stage
    arrays  the inputs with states side by side (for vectors of states only)
    sines   and cosines of all of q, computed beforehand: several at a time, independently

A vector register holds as many states for vectors, and as many columns of one state for matrices,
whose rows are then written directly. Frame and record have a second part for values that depend on
the column. Tables are given to the module after it is loaded, so that code does not grow with the
mechanism: `columns` has the numbers of the bodies, `places` their positions in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra.space import JOINT
from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import Emitter
from linkwise.codegen.cpu.ir import INT, INT32
from linkwise.codegen.cpu.llvm import Place, Unit, emit_loop, finished, store_status
from linkwise.codegen.cpu.llvm_visit import ROWS, WANTED, Given, VisitCode, turned
from linkwise.codegen.cpu.rows import finite_rows, load_rows, load_some, store_some
from linkwise.codegen.rolled.between import Between
from linkwise.codegen.rolled.roll import Rolled
from linkwise.codegen.rolled.visit import Visit
from linkwise.codegen.scalar.graph import Graph

COLUMNS, PLACES, LAST = "columns", "places", "last"
"""Globals of the module: pointers to the tables."""


def emit_rolled(rolled: Rolled, *, itemsize: int, lanes: int, packed: int) -> Unit:
    """The module of a rolled kernel for `lanes` states at a time, by registers of `packed` numbers.

    Registers hold columns where the kernel has a loop over them, and then it takes one state.
    """
    module = ir.Module()
    wide = Emitter(module, itemsize, packed)
    emit = wide if lanes == packed else Emitter(module, itemsize, lanes)
    part = _part_tables(rolled, packed)
    tables = ((COLUMNS, emit.number), *((name, INT32) for name in (PLACES, LAST, *dict(part))))
    for name, kind in tables:
        ir.GlobalVariable(module, kind.as_pointer(), name, ir.Constant(kind.as_pointer(), None))
    body = _Body(emit, rolled, wide, each=None if rolled.plan.looped is None else wide)
    emit_loop(module, emit, len(rolled.inputs), body.state)
    dtype = np.float64 if itemsize == 8 else np.float32
    tables = (
        (COLUMNS, np.ascontiguousarray(rolled.table, dtype=dtype)),
        (PLACES, np.ascontiguousarray(rolled.places.rows)),
        (LAST, last_bodies(rolled, packed)),
        *part,
    )
    return finished(module, rolled, emit, body.memory.total, tables=tables)


def _part_tables(rolled: Rolled, lanes: int) -> list[tuple[str, NDArray[np.int32]]]:
    """Which columns are wanted, to the end of the last vector, and where rows come."""
    tables = list[tuple[str, NDArray[np.int32]]]()
    if rolled.chosen_columns is not None:
        count = -(-len(rolled.chosen_columns) // lanes) * lanes
        columns = np.full(count, -1, dtype=np.int32)
        columns[: len(rolled.chosen_columns)] = rolled.chosen_columns
        tables.append((WANTED, columns))
    if rolled.row_of is not None:
        tables.append((ROWS, rolled.row_of))
    return tables


def last_bodies(rolled: Rolled, lanes: int) -> NDArray[np.int32]:
    """The body that the last column of each group belongs to, where only half is computed."""
    if not rolled.plan.halved:
        return np.zeros(1, dtype=np.int32)
    starts = np.arange(0, rolled.columns, lanes)
    ends = np.minimum(starts + lanes, rolled.columns) - 1
    if rolled.plan.looped is JOINT:
        begin = rolled.places.rows[:, rolled.places.column("v")]
        bodies = np.searchsorted(begin, ends, side="right") - 1
    else:
        bodies = ends // (rolled.columns // len(rolled.places.rows))
    return bodies.astype(np.int32)


@dataclass(frozen=True, slots=True)
class Memory:
    """Where the parts of the scratch memory begin, in numbers."""

    frame: int
    frame_each: int
    sums: int
    carry: int
    record: int
    record_each: int
    sines: int
    cosines: int
    arrays: tuple[int, ...]
    total: int


def memory(rolled: Rolled, lanes: int, columns: int) -> Memory:
    """The parts of the scratch memory, for as many states or columns at a time."""
    places, wide = rolled.places, max(lanes, columns)
    sizes = [
        lanes * (rolled.slots[0] + 1),  # the status comes last
        columns * rolled.slots[1],
        wide * places.summed,
        wide * places.carried,
        lanes * places.records[0],
        columns * places.records[1],
        lanes * rolled.inputs[0][1],
        lanes * rolled.inputs[0][1],
    ]
    if lanes > 1:
        sizes += [lanes * (-(-size // lanes) * lanes) for _, size in rolled.inputs]
    starts: list[int] = [0, *np.cumsum(sizes).tolist()]
    frame, frame_each, sums, carry, record, record_each, sines, cosines, *arrays, total = starts
    parts = (frame, frame_each, sums, carry, record, record_each, sines, cosines)
    return Memory(*parts, tuple(arrays), total)


class _Body:
    """The code of one state, or of `lanes` of them."""

    def __init__(
        self,
        emit: Emitter,
        rolled: Rolled,
        wide: Emitter,
        *,
        each: Emitter | None = None,
    ) -> None:
        self.emit, self.each, self.wide, self.rolled = emit, each, wide, rolled
        angles = sum(len(turned(code)) // 2 * len(code.kind.bodies) for code in rolled.codes)
        self.turns = 2 * angles >= rolled.inputs[0][1] > 0  # not where most of q is no angle
        self.memory = memory(rolled, emit.lanes, each.lanes if each else 1)
        self.stages = [self._stage(i) for i in range(len(rolled.plan.stages))]

    # ------------------------------------------------------------------------------ one state

    def state(self, build: ir.IRBuilder, place: Place) -> ir.IRBuilder:
        emit, rolled, m = self.emit, self.rolled, self.memory
        build, rows, given = self._inputs(build, place)
        output = build.gep(place.output, [build.mul(place.state, place.out_stride)])
        starts = (m.frame, m.frame_each, m.sums, m.carry, m.record, m.record_each)
        starts += (m.sines, m.cosines)
        areas = [build.gep(place.work, [_int(start)]) for start in starts]
        args = [*rows, output, place.out_stride, *areas]
        zero = emit.constant(0.0)
        self._given([*args, _int(0)], emit).put(build, areas[0], rolled.slots[0], zero)
        build = self._cleared(build, areas[2], emit)
        if self.turns and emit.lanes == 1:
            build = self._sines(build, rows[0], areas[-2], areas[-1])
        first = rolled.plan.first_each
        for i in range(first):
            build.call(self.stages[i], [*args, _int(0)])
        if self.each is None:
            self._between(build, rolled.between[-1], self._given([*args, _int(0)], emit), None)
        else:
            build = self._cleared(build, areas[2], self.each)
            groups = -(-rolled.columns // self.each.lanes)
            build, given = self._loop(build, groups, self._column_stages, given, args)
        if rolled.plan.halved or rolled.plan.program.mirrored:
            build, given = self._loop(build, rolled.columns, self._mirrored, given, output)
        width = int(np.prod(rolled.shape, dtype=np.int64))
        result = finite_rows(emit, build, output, place.out_stride, width)
        status = self._given([*args, _int(0)], emit).get(build, areas[0], rolled.slots[0])
        store_status(emit, build, emit.concluded(build, status, given, result), place)
        return build

    def _cleared(self, build: ir.IRBuilder, sums: Any, emit: Emitter) -> ir.IRBuilder:
        """The first place of the sums is zero."""

        def clear(build: ir.IRBuilder, i: Any, zero: Any) -> tuple[ir.IRBuilder, Any]:
            build.store(zero, build.gep(sums, [i]))
            return build, zero

        zero = ir.Constant(emit.number, 0.0)
        count = emit.lanes * self.rolled.places.summed_first
        return self._loop(build, count, clear, zero)[0]

    def _column_stages(
        self, build: ir.IRBuilder, group: Any, given: Any, args: list[Any]
    ) -> tuple[ir.IRBuilder, Any]:
        assert self.each is not None
        column = build.mul(group, _int(self.each.lanes))
        for stage in self.stages[self.rolled.plan.first_each :]:
            build.call(stage, [*args, column])
        self._between(build, self.rolled.between[-1], self._given([*args, column], self.each), None)
        return build, given

    def _mirrored(
        self, build: ir.IRBuilder, row: Any, given: Any, output: Any
    ) -> tuple[ir.IRBuilder, Any]:
        """The lower half of a row, from the column above the diagonal."""
        n = _int(self.rolled.columns)
        start = build.mul(row, n)

        def copy(build: ir.IRBuilder, column: Any, given: Any) -> tuple[ir.IRBuilder, Any]:
            above = build.add(build.mul(column, n), row)
            x = build.load(build.gep(output, [above]))
            build.store(x, build.gep(output, [build.add(start, column)]))
            return build, given

        return self._loop(build, row, copy, given)

    def _loop(
        self, build: ir.IRBuilder, count: Any, body: Any, carried: Any, *more: Any
    ) -> tuple[ir.IRBuilder, Any]:
        """build, carried = body(build, i, carried, ...) for i = 0 ... count - 1."""
        count = _int(count) if isinstance(count, int) else count
        function = build.function
        loop, done = (function.append_basic_block(name) for name in ("each", "after"))
        before = build.block
        build.cbranch(build.icmp_signed("<", _int(0), count), loop, done)
        build = ir.IRBuilder(loop)
        i, value = build.phi(INT), build.phi(carried.type)
        i.add_incoming(_int(0), before)
        value.add_incoming(carried, before)
        build, carried_on = body(build, i, value, *more)
        after = build.add(i, _int(1))
        i.add_incoming(after, build.block)
        value.add_incoming(carried_on, build.block)
        last = build.block
        build.cbranch(build.icmp_signed("<", after, count), loop, done)
        build = ir.IRBuilder(done)
        result = build.phi(carried.type)
        result.add_incoming(carried, before)
        result.add_incoming(carried_on, last)
        return build, result

    # --------------------------------------------------------------------------------- inputs

    def _inputs(self, build: ir.IRBuilder, place: Place) -> tuple[ir.IRBuilder, list[Any], Any]:
        """Pointers to the inputs of these states, and the sum that shows finite input."""
        emit = self.emit
        rows, given = list[Any](), emit.constant(0.0)
        for i, (_, size) in enumerate(self.rolled.inputs):
            array, stride = place.inputs[i], place.strides[i]
            if emit.lanes == 1:
                rows.append(build.gep(array, [build.mul(place.state, stride)]))
                given = build.fadd(given, finite_rows(emit, build, rows[-1], stride, size))
                continue
            rows.append(build.gep(place.work, [_int(self.memory.arrays[i])]))
            turns = self.turns and i == 0
            where = (array, stride, place.state, rows[-1], place.work if turns else None)
            build, given = self._loop(build, size // emit.lanes, self._turned, given, *where)
            if size % emit.lanes:
                last = _int(size // emit.lanes)
                build, given = self._turned(build, last, given, *where, count=size % emit.lanes)
        return build, rows, given

    def _sines(self, build: ir.IRBuilder, row: Any, sines: Any, cosines: Any) -> ir.IRBuilder:
        """Sines and cosines of all entries of q of one state."""
        wide, size, lanes = self.wide, self.rolled.inputs[0][1], self.wide.lanes

        def group(
            build: ir.IRBuilder, i: Any, zero: Any, count: int = lanes
        ) -> tuple[ir.IRBuilder, Any]:
            start = build.mul(i, _int(lanes))
            x = load_some(wide, build, build.gep(row, [start]), 0, count)
            build, pairs = _sincos(wide, build, [x])
            for part, area in zip(pairs[0], (sines, cosines), strict=True):
                store_some(wide, build, part, build.gep(area, [start]), 0, count)
            return build, zero

        build, zero = self._loop(build, size // lanes, group, _int(0))
        if size % lanes:
            build, _ = group(build, _int(size // lanes), zero, size % lanes)
        return build

    def _turned(
        self,
        build: ir.IRBuilder,
        i: Any,
        given: Any,
        array: Any,
        stride: Any,
        state: Any,
        area: Any,
        work: Any,
        count: int = 0,
    ) -> tuple[ir.IRBuilder, Any]:
        """A square of entries from rows of states to states side by side; sines, if `work`."""
        emit = self.emit
        start = build.mul(i, _int(emit.lanes))
        entries = build.gep(array, [start])
        values = load_rows(emit, build, entries, stride, state, count or emit.lanes)
        areas, stored = [area], [[x] for x in values]
        if work is not None:
            build, pairs = _sincos(emit, build, values)
            areas += [build.gep(work, [_int(m)]) for m in (self.memory.sines, self.memory.cosines)]
            stored = [[x, *pair] for x, pair in zip(values, pairs, strict=True)]
        for j, entries in enumerate(stored):
            at = build.mul(build.add(start, _int(j)), _int(emit.lanes))
            for x, into in zip(entries, areas, strict=True):
                pointer = build.bitcast(build.gep(into, [at]), emit.type.as_pointer())
                build.store(x, pointer, align=emit.itemsize)
            given = emit.vanishing(build, given, entries[0])
        return build, given

    # ------------------------------------------------------------------------------- a stage

    def _given(self, args: list[Any], emit: Emitter, last: Any = None) -> Given:
        n = len(self.rolled.inputs)
        output, out_stride, frame, frame_each, sums, carry, record, record_each = args[n : n + 8]
        sines, cosines, column = args[n + 8 :]
        return Given(
            emit=emit,
            spread=emit is self.each,
            inputs=args[:n],
            output=output,
            out_stride=out_stride,
            frame=frame,
            frame_each=frame_each,
            sums=sums,
            carry=carry,
            record=record,
            record_each=record_each,
            turns=(sines, cosines) if self.turns else None,
            column=column,
            last=last,
        )

    def _stage(self, number: int) -> ir.Function:
        """The loop over bodies of one stage, with the straight code before it."""
        rolled, stage = self.rolled, self.rolled.plan.stages[number]
        emit = self.each if stage.each and self.each is not None else self.emit
        pointer = emit.number.as_pointer()
        inputs = [pointer] * len(rolled.inputs)
        kind = ir.FunctionType(ir.VOID, [*inputs, pointer, INT, *[pointer] * 8, INT])
        name = f"stage_{self.emit.lanes}_{number}"
        function = ir.Function(emit.module, kind, name, internal=True, noinline=True)
        for argument in function.args[len(inputs) :]:  # one array may be given as two inputs
            if isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")
        build = ir.IRBuilder(function.append_basic_block("entry"))
        last = None
        if stage.each and rolled.plan.halved:
            group = build.sdiv(function.args[-1], _int(emit.lanes))
            table = build.load(emit.module.globals[LAST])
            last = build.zext(build.load(build.gep(table, [group])), INT)
        given = self._given(list(function.args), emit, last)
        slot = rolled.slots[0]
        status = emit.constant(0.0) if stage.each else given.get(build, given.frame, slot)
        status = self._between(build, rolled.between[number], given, status)
        if any(_busy(code.visits[number]) for code in rolled.codes):
            build, status = self._bodies(build, number, given, status)
        if not stage.each:
            given.put(build, given.frame, slot, status)
        build.ret_void()
        return function

    def _bodies(
        self, build: ir.IRBuilder, number: int, given: Given, status: Any
    ) -> tuple[ir.IRBuilder, Any]:
        rolled, function = self.rolled, build.function
        table, rows = (build.load(build.module.globals[name]) for name in (COLUMNS, PLACES))
        count, width = rolled.places.rows.shape
        outward = rolled.plan.stages[number].direction == "base_to_tip"
        loop, latch, done = (function.append_basic_block(x) for x in ("body", "next", "done"))
        before = build.block
        build.branch(loop)
        build = ir.IRBuilder(loop)
        k, known = build.phi(INT), build.phi(given.emit.type)
        last = _int(count - 1) if given.last is None else given.last
        k.add_incoming(_int(0) if outward else last, before)
        known.add_incoming(status, before)
        row = build.gep(rows, [build.mul(k, _int(width))])
        cases = [function.append_basic_block(f"class_{i}") for i in range(len(rolled.codes))]
        if len(cases) == 1:
            build.branch(cases[0])
        else:
            which = build.load(build.gep(row, [_int(rolled.places.column("class"))]))
            switch = build.switch(which, cases[-1])
            for i, case in enumerate(cases[:-1]):
                switch.add_case(ir.Constant(INT32, i), case)
        build = ir.IRBuilder(latch)
        status = build.phi(given.emit.type)
        for code, case in zip(rolled.codes, cases, strict=True):
            at, after_visit = ir.IRBuilder(case), known
            if _busy(code.visits[number]):
                visit = VisitCode(rolled, code, number, given, table, row, known, k)
                at, after_visit = visit.emitted(at), visit.status
            status.add_incoming(after_visit, at.block)
            at.branch(latch)
        known.add_incoming(status, latch)
        after = build.add(k, _int(1 if outward else -1))
        k.add_incoming(after, latch)
        ended = build.icmp_signed("==", k, last if outward else _int(0))
        build.cbranch(ended, done, loop)
        return ir.IRBuilder(done), status

    def _between(self, build: ir.IRBuilder, straight: Between, given: Given, status: Any) -> Any:
        """Straight code on numbers that belong to no body; returns the status after it."""
        emit, graph, value = given.emit, straight.graph, dict[int, Any]()
        for node, (slot, each) in straight.slots.items():
            frame = given.frame_each if each else given.frame
            value[node] = given.get(build, frame, slot, each=each)
        for node, (array, entry) in straight.arrays.items():
            value[node] = given.get(build, given.inputs[array], entry, each=False)
        roots = [node for _, node in (*straight.stores, *straight.results)]
        order = graph.used([*roots, *(check.node for check in straight.checks)])
        emit.nodes(build, graph, order, value)
        for slot, node in straight.stores:
            given.put(build, given.frame_each if given.spread else given.frame, slot, value[node])
        for entry, node in straight.results:
            at = given.column if given.spread else _int(entry)
            given.store(build, value[node], at, self.rolled.columns)
        for check in straight.checks:
            x = value[check.node]
            if not given.spread:
                status = emit.checked(build, check, x, status)
                continue
            place = build.gep(given.frame, [_int(self.rolled.slots[0])])  # the same in all columns
            x = build.extract_element(x, ir.Constant(INT32, 0))
            build.store(self.emit.checked(build, check, x, build.load(place)), place)
        return status


def _sincos(
    emit: Emitter, build: ir.IRBuilder, values: list[Any]
) -> tuple[ir.IRBuilder, list[tuple[Any, Any]]]:
    graph = Graph()
    nodes = [graph.input("angle") for _ in values]
    pairs = [(graph.unary("sin", x), graph.unary("cos", x)) for x in nodes]
    value = dict(zip(nodes, values, strict=True))
    build = emit.angles(build, graph, [n for pair in pairs for n in pair], value)
    return build, [(value[s], value[c]) for s, c in pairs]


def _busy(visit: Visit) -> bool:
    stores = (visit.kept, visit.shown, visit.handed, visit.added)
    outs = (visit.results, visit.totals, visit.exports)
    return any((*stores, *outs, visit.guards))


def _int(value: int) -> Any:
    return ir.Constant(INT, value)
