# pyright: basic
# (llvmlite has no type information)
"""Rolled kernels as LLVM functions: a function for each stage, a loop over bodies in each.

The numbers of a run stand in scratch memory, each as wide as a value (one number, or a vector of
them for as many states):

    frame   the status, and numbers that belong to no body
    sums    what children have added up; the first place stays zero
    carry   what bodies hand to their children in one stage
    record  what a body keeps from stage to stage
    arrays  the inputs with states side by side (for vectors only)

Tables are given to the module after it is loaded, so that code does not grow with the mechanism:
`columns` has the numbers of the bodies, `places` where everything stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir

from linkwise.codegen.emit import FLAGS, INT, INT32, Emitter
from linkwise.codegen.llvm import Place, Unit, emit_loop, finished, store_status
from linkwise.codegen.roll import ClassCode, Rolled, Visit
from linkwise.codegen.rows import load_rows
from linkwise.codegen.step import Leaf, Out
from linkwise.codegen.whole import Whole

COLUMNS, PLACES = "columns", "places"
"""Globals of the module: pointers to the tables."""

SQUARE = 256
"""Bytes that are looked at together when rows are checked for finite numbers."""


def emit_rolled(rolled: Rolled, *, itemsize: int, lanes: int) -> Unit:
    """The module of a rolled kernel."""
    module = ir.Module(name="linkwise")
    number = ir.DoubleType() if itemsize == 8 else ir.FloatType()
    for name, kind in ((COLUMNS, number), (PLACES, INT32)):
        pointer = ir.GlobalVariable(module, kind.as_pointer(), name)
        pointer.initializer = ir.Constant(kind.as_pointer(), None)
    work = dict[int, int]()
    for name, width in (("one", 1), ("many", lanes)):
        body = _Body(Emitter(module, itemsize, width), rolled)
        function = emit_loop(module, body.emit, name, len(rolled.inputs), body.state)
        function.attributes.add("noinline")
        work[width] = width * body.memory.total
    dtype = np.float64 if itemsize == 8 else np.float32
    tables = (
        (COLUMNS, np.ascontiguousarray(rolled.table, dtype=dtype)),
        (PLACES, np.ascontiguousarray(rolled.places.rows)),
    )
    return finished(
        module,
        rolled,
        lanes,
        itemsize,
        max(work.values()),
        work_one=work[1],
        loops=True,
        tables=tables,
    )


@dataclass(frozen=True, slots=True)
class Memory:
    """Where the parts of the scratch memory begin, in values."""

    frame: int
    sums: int
    carry: int
    record: int
    arrays: tuple[int, ...]
    total: int


def memory(rolled: Rolled, lanes: int) -> Memory:
    """The parts of the scratch memory."""
    sums = 1 + rolled.slots
    carry = sums + rolled.places.summed
    record = carry + rolled.places.carried
    top = record + rolled.places.records
    arrays = list[int]()
    if lanes > 1:
        for _, size in rolled.inputs:
            arrays.append(top)
            top += -(-size // lanes) * lanes
    return Memory(0, sums, carry, record, tuple(arrays), top)


class _Body:
    """The code of one state, or of `lanes` of them."""

    def __init__(self, emit: Emitter, rolled: Rolled) -> None:
        self.emit, self.rolled = emit, rolled
        self.memory = memory(rolled, emit.lanes)
        self.stages = [self._stage(i) for i in range(len(rolled.plan.stages))]

    # ------------------------------------------------------------------------------ one state

    def state(self, build: ir.IRBuilder, place: Place) -> ir.IRBuilder:
        """All stages for the states at a place."""
        emit, rolled = self.emit, self.rolled
        zero = emit.constant(0.0)
        work = build.bitcast(place.work, emit.type.as_pointer())
        build, rows, given = self._inputs(build, place, work)
        self._put(build, work, 0, zero)
        build, _ = self._loop(build, rolled.places.summed_first, self._clear, zero, work)
        output = build.gep(place.output, [build.mul(place.state, place.out_stride)])
        args = [*rows, output, place.out_stride, *self._areas(build, work)]
        first = rolled.plan.first_each
        for i in range(first):
            build.call(self.stages[i], [*args, _int(0)])
        if rolled.plan.looped is None:
            self._between(build, rolled.wholes[-1], args, None)
        else:
            build, given = self._loop(build, rolled.columns, self._column_stages, given, args)
        result, build = self._finite_rows(build, output, place.out_stride, self._width())
        status = self._get(build, work, 0)
        store_status(emit, build, emit.concluded(build, status, given, result), place)
        return build

    def _clear(self, build: ir.IRBuilder, i: Any, zero: Any, work: Any) -> tuple[ir.IRBuilder, Any]:
        self._put(build, work, build.add(i, _int(self.memory.sums)), zero)
        return build, zero

    def _column_stages(
        self, build: ir.IRBuilder, column: Any, given: Any, args: Any
    ) -> tuple[ir.IRBuilder, Any]:
        for stage in self.stages[self.rolled.plan.first_each :]:
            build.call(stage, [*args, column])
        self._between(build, self.rolled.wholes[-1], args, None, column)
        return build, given

    def _width(self) -> int:
        return int(np.prod(self.rolled.shape, dtype=np.int64))

    def _areas(self, build: ir.IRBuilder, work: Any) -> list[Any]:
        m = self.memory
        return [build.gep(work, [_int(at)]) for at in (m.frame, m.sums, m.carry, m.record)]

    def _loop(
        self, build: ir.IRBuilder, count: int, body: Any, carried: Any, *more: Any
    ) -> tuple[ir.IRBuilder, Any]:
        """build, carried = body(build, i, carried, ...) for i = 0 ... count - 1."""
        if count == 0:
            return build, carried
        function = build.function
        loop, done = (function.append_basic_block(name) for name in ("each", "after"))
        before = build.block
        build.branch(loop)
        build = ir.IRBuilder(loop)
        i = build.phi(INT)
        i.add_incoming(_int(0), before)
        value = build.phi(carried.type)
        value.add_incoming(carried, before)
        build, carried = body(build, i, value, *more)
        after = build.add(i, _int(1))
        i.add_incoming(after, build.block)
        value.add_incoming(carried, build.block)
        build.cbranch(build.icmp_signed("<", after, _int(count)), loop, done)
        return ir.IRBuilder(done), carried

    # --------------------------------------------------------------------------------- inputs

    def _inputs(
        self, build: ir.IRBuilder, place: Place, work: Any
    ) -> tuple[ir.IRBuilder, list[Any], Any]:
        """Pointers to the inputs of these states, and the sum that tells finite input."""
        emit = self.emit
        rows, given = list[Any](), emit.constant(0.0)
        for i, (_, size) in enumerate(self.rolled.inputs):
            array, stride = place.inputs[i], place.strides[i]
            if emit.lanes == 1:
                row = build.gep(array, [build.mul(place.state, stride)])
                total, build = self._finite_rows(build, row, stride, size)
                given = build.fadd(given, total)
                rows.append(row)
                continue
            area = build.gep(work, [_int(self.memory.arrays[i])])
            where = (array, stride, place.state, area)
            build, given = self._loop(build, size // emit.lanes, self._turned, given, *where)
            if size % emit.lanes:
                last = _int(size // emit.lanes)
                build, given = self._turned(build, last, given, *where, count=size % emit.lanes)
            rows.append(area)
        return build, rows, given

    def _turned(
        self,
        build: ir.IRBuilder,
        i: Any,
        given: Any,
        array: Any,
        stride: Any,
        state: Any,
        area: Any,
        count: int = 0,
    ) -> tuple[ir.IRBuilder, Any]:
        """A square of entries from rows of states to states side by side."""
        emit = self.emit
        start = build.mul(i, _int(emit.lanes))
        entries = build.gep(array, [start])
        for j, x in enumerate(load_rows(emit, build, entries, stride, state, count or emit.lanes)):
            self._put(build, area, build.add(start, _int(j)), x)
            given = emit.vanishing(build, given, x)
        return build, given

    def _finite_rows(
        self, build: ir.IRBuilder, row: Any, stride: Any, size: int
    ) -> tuple[Any, ir.IRBuilder]:
        """Zero for each state whose row is finite."""
        emit = self.emit
        function = _finite(emit)
        if emit.lanes == 1:
            return build.call(function, [row, _int(size)]), build
        found = emit.constant(0.0)
        for lane in range(emit.lanes):
            at = build.gep(row, [build.mul(stride, _int(lane))])
            total = build.call(function, [at, _int(size)])
            found = build.insert_element(found, total, ir.Constant(INT32, lane))
        return found, build

    # ------------------------------------------------------------------------------- a stage

    def _stage(self, number: int) -> ir.Function:
        """The loop over bodies of one stage, what stands in front of it included."""
        emit, rolled = self.emit, self.rolled
        value, plain = emit.type.as_pointer(), emit.number.as_pointer()
        inputs = [value] * len(rolled.inputs)
        kind = ir.FunctionType(
            ir.VoidType(), [*inputs, plain, INT, value, value, value, value, INT]
        )
        function = ir.Function(emit.module, kind, f"stage_{emit.lanes}_{number}")
        function.linkage = "internal"
        function.attributes.add("noinline")
        for argument in function.args:
            if isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")
        build = ir.IRBuilder(function.append_basic_block("entry"))
        frame = function.args[len(inputs) + 2]
        status = self._get(build, frame, 0)
        status = self._between(build, rolled.wholes[number], list(function.args), status)
        if any(_busy(code.visits[number]) for code in rolled.codes):
            build, status = self._bodies(build, number, list(function.args), status)
        self._put(build, frame, 0, status)
        build.ret_void()
        return function

    def _bodies(
        self, build: ir.IRBuilder, number: int, args: list[Any], status: Any
    ) -> tuple[ir.IRBuilder, Any]:
        rolled, function = self.rolled, build.function
        tables = [build.load(build.module.globals[name]) for name in (COLUMNS, PLACES)]
        count, width = rolled.places.rows.shape
        outward = rolled.plan.stages[number].direction == "base_to_tip"
        loop, latch, done = (function.append_basic_block(x) for x in ("body", "next", "done"))
        before = build.block
        build.branch(loop)
        build = ir.IRBuilder(loop)
        k = build.phi(INT)
        k.add_incoming(_int(0 if outward else count - 1), before)
        known = build.phi(self.emit.type)
        known.add_incoming(status, before)
        row = build.gep(tables[1], [build.mul(k, _int(width))])
        cases = [function.append_basic_block(f"class_{i}") for i in range(len(rolled.codes))]
        if len(cases) == 1:
            build.branch(cases[0])
        else:
            which = build.load(build.gep(row, [_int(rolled.places.column("class"))]))
            switch = build.switch(which, cases[-1])
            for i, case in enumerate(cases[:-1]):
                switch.add_case(ir.Constant(INT32, i), case)
        build = ir.IRBuilder(latch)
        status = build.phi(self.emit.type)
        for code, case in zip(rolled.codes, cases, strict=True):
            at, found = ir.IRBuilder(case), known
            if _busy(code.visits[number]):
                given = [*args, tables[0], row, known, k]
                step = _BodyStep(self, code, number, given)
                at, found = step.emitted(at), step.status
            status.add_incoming(found, at.block)
            at.branch(latch)
        known.add_incoming(status, latch)
        after = build.add(k, _int(1 if outward else -1))
        k.add_incoming(after, latch)
        ended = build.icmp_signed("==", after, _int(count if outward else -1))
        build.cbranch(ended, done, loop)
        return ir.IRBuilder(done), status

    def _between(
        self,
        build: ir.IRBuilder,
        whole: Whole,
        args: list[Any],
        status: Any,
        column: Any = None,
    ) -> Any:
        """Straight code on numbers that belong to no body; returns the status after it."""
        emit, graph, n = self.emit, whole.graph, len(self.rolled.inputs)
        output, out_stride, frame = args[n : n + 3]
        value = dict[int, Any]()
        for node, slot in whole.slots.items():
            value[node] = self._get(build, frame, 1 + slot)
        for node, (array, entry) in whole.arrays.items():
            value[node] = self._get(build, args[array], entry)
        wanted = [node for _, node in (*whole.stores, *whole.results)]
        order = graph.used([*wanted, *(check.node for check in whole.checks)])
        emit.nodes(build, graph, order, value)
        for slot, node in whole.stores:
            self._put(build, frame, 1 + slot, value[node])
        for entry, node in whole.results:
            at = _int(entry) if column is None else column
            self._store_result(build, value[node], output, out_stride, at)
        for check in whole.checks:
            status = emit.checked(build, check, value[check.node], status)
        return status

    def _store_result(
        self, build: ir.IRBuilder, x: Any, output: Any, out_stride: Any, entry: Any
    ) -> None:
        if self.emit.lanes == 1:
            build.store(x, build.gep(output, [entry]))
            return
        for lane in range(self.emit.lanes):
            one = build.extract_element(x, ir.Constant(INT32, lane))
            at = build.add(build.mul(out_stride, _int(lane)), entry)
            build.store(one, build.gep(output, [at]))

    # -------------------------------------------------------------------------------- values

    def _get(self, build: ir.IRBuilder, area: Any, at: Any) -> Any:
        at = _int(at) if isinstance(at, int) else at
        return build.load(build.gep(area, [at]), align=self.emit.itemsize)

    def _put(self, build: ir.IRBuilder, area: Any, at: Any, value: Any) -> None:
        at = _int(at) if isinstance(at, int) else at
        build.store(value, build.gep(area, [at]), align=self.emit.itemsize)


class _BodyStep:
    """The instructions of one class in one stage."""

    def __init__(self, body: _Body, code: ClassCode, number: int, given: list[Any]) -> None:
        self.body, self.emit, self.code = body, body.emit, code
        self.visit = code.visits[number]
        self.rolled = body.rolled
        n = len(self.rolled.inputs)
        self.inputs, rest = given[:n], given[n:]
        self.output, self.out_stride, self.frame, self.sums, self.carry, self.record = rest[:6]
        self.column, self.table, self.row, self.status, self.k = rest[6:]
        self.loaded: dict[str, Any] = {}

    def emitted(self, build: ir.IRBuilder) -> ir.IRBuilder:
        """All of it; returns where to go on."""
        emit, visit, graph = self.emit, self.visit, self.code.graph
        value = dict[int, Any]()
        for node in visit.leaves:
            value[node] = self._leaf(build, self.code.leaf[node])
        for node in visit.fetched:
            slot = self.rolled.kept_entries + self.code.slot[node]
            value[node] = self._at(build, self.record, "record", slot)
        build = emit.angles(build, graph, visit.order, value)
        puts = dict[int, list[int]]()
        for slot, node in visit.kept:
            puts.setdefault(node, []).append(slot)
        emit.nodes(build, graph, visit.order, value)
        for node, slots in puts.items():
            for slot in slots:
                at = self.rolled.kept_entries + slot
                self._set(build, self.record, "record", at, value[node])
        self._guard(build, value)
        for entry, node in visit.handed:
            self._set(build, self.carry, "carry", entry, value[node])
        self._add(build, value)
        for out in visit.results:
            self._result(build, out, value[out.node])
        for out in visit.exports:
            self.body._put(build, self.frame, self._whole(build, out), value[out.node])
        for out in visit.totals:
            at = _int(1 + out.index)
            total = build.fadd(self.body._get(build, self.frame, at), value[out.node], flags=FLAGS)
            self.body._put(build, self.frame, at, total)
        return build

    # ---------------------------------------------------------------------------- addresses

    def _place(self, build: ir.IRBuilder, name: str) -> Any:
        """An entry of the table of places; a constant where all bodies of the class agree."""
        found = self.loaded.get(name)
        if found is None:
            column = self.rolled.places.column(name)
            values = self.rolled.places.rows[self.code.kind.bodies, column]
            if name == "body":
                found = self.k
            elif (values == values[0]).all():
                found = _int(int(values[0]))
            else:
                at = build.gep(self.row, [_int(column)])
                found = build.zext(build.load(at), INT)
            self.loaded[name] = found
        return found

    def _at(self, build: ir.IRBuilder, area: Any, name: str, entry: int) -> Any:
        return self.body._get(build, area, build.add(self._place(build, name), _int(entry)))

    def _set(self, build: ir.IRBuilder, area: Any, name: str, entry: int, value: Any) -> None:
        self.body._put(build, area, build.add(self._place(build, name), _int(entry)), value)

    def _start(self, build: ir.IRBuilder, where: str, node: int, stride: int) -> Any:
        """Where the entries of a body, or of one of its nodes, begin in an array."""
        if where == "start":
            return _int(0)
        if where == "node":
            return build.mul(self._place(build, f"node {node}"), _int(stride))
        if where in ("q", "v"):
            return self._place(build, where)
        sizes = {"body": 6, "place": 12, "inertia": 10, "parent_body": 6}
        of = "parent" if where == "parent_body" else "body"
        return build.mul(self._place(build, of), _int(sizes[where]))

    def _leaf(self, build: ir.IRBuilder, leaf: Leaf) -> Any:
        body, emit = self.body, self.emit
        if leaf.kind == "column":
            at = build.add(self._place(build, "table"), _int(leaf.index))
            return self._splat(build, build.load(build.gep(self.table, [at])))
        if leaf.kind == "sum":
            assert leaf.key is not None
            return self._at(build, self.sums, "sum", self.rolled.sum_entry[leaf.key])
        if leaf.kind == "parent":
            assert leaf.key is not None
            entry = self.rolled.parent_entry[leaf.key]
            if leaf.kept:
                return self._at(build, self.record, "parent_record", entry)
            return self._at(build, self.carry, "parent_carry", entry)
        start = self._start(build, leaf.where, leaf.node, leaf.stride)
        entry = build.add(start, _int(leaf.offset))
        if leaf.kind == "input":
            return body._get(build, self.inputs[leaf.index], entry)
        if leaf.kind == "whole":
            return body._get(build, self.frame, build.add(entry, _int(1 + leaf.index)))
        assert leaf.kind == "unit"
        one, zero = ir.Constant(emit.number, 1.0), ir.Constant(emit.number, 0.0)
        same = build.icmp_signed("==", entry, self.column)
        return self._splat(build, build.select(same, one, zero))

    def _splat(self, build: ir.IRBuilder, x: Any) -> Any:
        if self.emit.lanes == 1:
            return x
        blank = ir.Constant(self.emit.type, ir.Undefined)
        first = build.insert_element(blank, x, ir.Constant(INT32, 0))
        mask = ir.Constant(ir.VectorType(INT32, self.emit.lanes), [0] * self.emit.lanes)
        return build.shuffle_vector(first, blank, mask)

    def _whole(self, build: ir.IRBuilder, out: Out) -> Any:
        start = self._start(build, out.where, out.on, out.stride)
        return build.add(start, _int(1 + out.index + out.offset))

    # -------------------------------------------------------------------------------- stores

    def _add(self, build: ir.IRBuilder, value: dict[int, Any]) -> None:
        """Sums of the parent: read (zero if this is the first child), added to, written."""
        fresh = self._place(build, "sum_read")
        first = isinstance(fresh, ir.Constant) and fresh.constant == 0
        totals = list[tuple[int, Any]]()
        for entry, node in self.visit.added:
            x = value[node]
            if not first:
                x = build.fadd(self._at(build, self.sums, "sum_read", entry), x, flags=FLAGS)
            totals.append((entry, x))
        for entry, x in totals:
            self._set(build, self.sums, "sum_write", entry, x)

    def _result(self, build: ir.IRBuilder, out: Out, x: Any) -> None:
        looped = self.rolled.plan.looped is not None
        shape = self.rolled.shape
        columns = shape[1] if len(shape) > 1 else 1
        start = self._start(build, out.where, out.on, out.stride)
        if looped:
            row = build.mul(build.add(start, _int(out.offset)), _int(columns))
            entry = build.add(row, self.column)
        else:
            entry = build.add(build.mul(start, _int(columns)), _int(out.offset))
        self.body._store_result(build, x, self.output, self.out_stride, entry)

    def _guard(self, build: ir.IRBuilder, value: dict[int, Any]) -> None:
        emit = self.emit
        for guard in self.visit.guards:
            code = build.add(build.mul(self.k, _int(2)), _int(guard.check.code - 2))
            number = self._splat(build, build.sitofp(code, emit.number))
            low = value[int(guard.low)] if guard.column else float(guard.low)
            x = value[guard.check.node]
            self.status = emit.guarded(build, x, low, guard.check.high, number, self.status)


def _busy(visit: Visit) -> bool:
    return bool(
        visit.kept
        or visit.handed
        or visit.added
        or visit.results
        or visit.totals
        or visit.exports
        or visit.guards
    )


def _int(value: int) -> Any:
    return ir.Constant(INT, value)


def _finite(emit: Emitter) -> ir.Function:
    """finite(row, count): the sum of 0 x, which is zero if all x are finite."""
    module, pointer = emit.module, emit.number.as_pointer()
    name = f"finite_{emit.itemsize}"
    found = module.globals.get(name)
    if found is not None:
        return found
    function = ir.Function(module, ir.FunctionType(emit.number, [pointer, INT]), name)
    function.linkage = "internal"
    row, count = function.args
    wide = ir.VectorType(emit.number, SQUARE // emit.itemsize)
    whole = ir.IRBuilder(function.append_basic_block("entry"))
    squares = whole.sdiv(count, _int(wide.count))
    build, sums = _finite_part(whole, row, _int(0), squares, wide)
    parts = [build.extract_element(sums, ir.Constant(INT32, i)) for i in range(wide.count)]
    while len(parts) > 1:
        parts = [build.fadd(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    done = build.mul(squares, _int(wide.count))
    build, rest = _finite_part(build, row, done, build.sub(count, done), emit.number)
    build.ret(build.fadd(parts[0], rest))
    return function


def _finite_part(
    build: ir.IRBuilder, row: Any, start: Any, count: Any, kind: Any
) -> tuple[ir.IRBuilder, Any]:
    """The sum of 0 x over `count` values of a kind, from entry `start` on."""
    step = kind.count if isinstance(kind, ir.VectorType) else 1
    zero = ir.Constant(kind, [0.0] * step if isinstance(kind, ir.VectorType) else 0.0)
    before, function = build.block, build.function
    loop, done = (function.append_basic_block(x) for x in ("each", "done"))
    build.cbranch(build.icmp_signed("<", _int(0), count), loop, done)
    build = ir.IRBuilder(loop)
    i, total = build.phi(INT), build.phi(kind)
    i.add_incoming(_int(0), before)
    total.add_incoming(zero, before)
    at = build.gep(row, [build.add(start, build.mul(i, _int(step)))])
    size = 8 if isinstance(row.type.pointee, ir.DoubleType) else 4
    x = build.load(build.bitcast(at, kind.as_pointer()), align=size)
    more = build.fadd(total, build.fmul(x, zero, flags=FLAGS), flags=FLAGS)
    after = build.add(i, _int(1))
    i.add_incoming(after, loop)
    total.add_incoming(more, loop)
    build.cbranch(build.icmp_signed("<", after, count), loop, done)
    build = ir.IRBuilder(done)
    result = build.phi(kind)
    result.add_incoming(zero, before)
    result.add_incoming(more, loop)
    return build, result
