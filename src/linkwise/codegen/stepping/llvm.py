"""Whole motions in LLVM: loops over motions, records and steps around the segments of a step.

The module exports, with T for double or float,

    rollout(T** inputs, int64* strides, int64* over_time, T* output, int64 out_stride,
            int64 record_stride, int32* status, int64* failed, int64 count, int64 records,
            int64 every, int64 steps, T h, T* work, int32* stop, int64* chance)

`inputs` has q, v, what else is given at the beginning, and then what is held; `strides` is the
distance of two motions in them and `over_time` that of two steps, in numbers, 0 where all share one
row. After every `every` steps a record (q, v) goes to `output`, the last one after all `steps`. A
vector register of motions is done at a time, the rest one by one. Registers are in `work`, each
entry one vector, with the status and the step that failed in front. Before every step `stop` is
looked at: once it is not zero, nothing more is done. `chance` has the seed of random numbers, the
number of the first motion, and how many steps came before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import Emitter, Finite
from linkwise.codegen.cpu.ir import INT, INT32, Unit
from linkwise.codegen.cpu.llvm import Place, counted, get, put
from linkwise.codegen.cpu.llvm_visit import splat
from linkwise.codegen.cpu.part import part_function
from linkwise.codegen.cpu.rows import load_rows, store_rows
from linkwise.codegen.scalar import status as code_of
from linkwise.codegen.scalar.limb_entries import limb_entries
from linkwise.codegen.stepping.llvm_packed import PackedBody
from linkwise.codegen.stepping.llvm_registers import (
    ACTIVE,
    CODE,
    FAILED,
    FIRST,
    STATUS,
    RegisterBody,
    is_code,
)
from linkwise.codegen.stepping.noise import emit_function
from linkwise.codegen.stepping.sides import Sides
from linkwise.codegen.stepping.stepping import (
    STEP,
    Loop,
    Segment,
    Statement,
    Stepping,
    placed,
    rounds,
)
from linkwise.model.mechanism import Mechanism


def emit_stepping(
    stepping: Stepping,
    *,
    itemsize: int,
    lanes: int,
    packed: int = 0,
    mech: Mechanism | None = None,
) -> Unit:
    """The module of a stepping.

    Args:
        stepping: The segments.
        itemsize: Bytes of a number.
        lanes: Motions done together.
        packed: Angles of one motion whose sines are taken together; default: `lanes`.
        mech: The mechanism, whose limbs of equal build are done side by side in one motion.
    """
    module = ir.Module()
    work = 0
    for name, width in (("one", 1), ("many", lanes))[: 1 + (lanes > 1)]:
        alone = width == 1
        alike = limb_entries(mech) if alone and mech is not None else {}
        emit = Emitter(module, itemsize, width, (packed or lanes) if alone else 1)
        emitted = Motion(emit, stepping, alike)
        emitted.emit(name)
        work = max(work, width * emitted.size)
    _emit_rollout(module, lanes, itemsize)
    # The loader of object files wants a section for data, be it empty.
    ir.GlobalVariable(module, INT, "unused", ir.Constant(INT, 1))
    return Unit(str(module), lanes, itemsize, work)


def _signature(number: ir.Type, *, ranged: bool) -> ir.FunctionType:
    pointer = number.as_pointer()
    ints = INT.as_pointer()
    head = [pointer.as_pointer(), ints, ints, pointer, INT, INT, INT32.as_pointer(), ints]
    count = [INT, INT] if ranged else [INT]
    tail = [INT, INT, INT, number, pointer, INT32.as_pointer(), ints]
    return ir.FunctionType(ir.VOID, [*head, *count, *tail])


def _emit_rollout(module: ir.Module, lanes: int, itemsize: int) -> None:
    number = ir.DOUBLE if itemsize == 8 else ir.FLOAT
    function = ir.Function(module, _signature(number, ranged=False), "rollout")
    build = ir.IRBuilder(function.append_basic_block("entry"))
    head, (count, *rest) = function.args[:8], function.args[8:]
    packed = build.and_(count, ir.Constant(INT, -lanes))  # lanes is a power of 2
    if lanes > 1:
        build.call(module.globals["many"], [*head, ir.Constant(INT, 0), packed, *rest])
    else:
        packed = ir.Constant(INT, 0)
    build.call(module.globals["one"], [*head, packed, count, *rest])
    build.ret_void()


def at(offset: dict[str, int], name: str) -> int:
    """The first place of a register or of a part of one."""
    register, start = placed(name)
    return offset[register] + start


BLOCK = 256
"""Numbers that are loaded or stored by straight code; more are done in a loop over blocks."""


def in_blocks(
    build: ir.IRBuilder, size: int, some: Callable[[ir.IRBuilder, Any, int], ir.IRBuilder]
) -> ir.IRBuilder:
    """Do `some` for numbers from a first one on, block by block; returns where to go on."""
    if size <= BLOCK:
        return some(build, ir.Constant(INT, 0), size)
    wide = ir.Constant(INT, BLOCK // 4)

    def block(build: ir.IRBuilder, i: Any) -> ir.IRBuilder:
        return some(build, build.mul(i, wide), BLOCK // 4)

    blocks, rest = divmod(size, BLOCK // 4)
    build = counted(build, ir.Constant(INT, blocks), block)
    return some(build, ir.Constant(INT, blocks * BLOCK // 4), rest) if rest else build


def _table(
    module: ir.Module, name: str, rows: tuple[tuple[int, ...], ...]
) -> Callable[[ir.IRBuilder], Any]:
    """Integers in the module, row by row; gives their address."""
    numbers = [x for row in rows for x in row]
    kind = ir.ArrayType(INT, len(numbers))
    table = ir.GlobalVariable(module, kind, module.unique_name(name), ir.Constant(kind, numbers))
    return lambda build: build.bitcast(table, INT.as_pointer())


class Motion:
    """The loops, for `lanes` motions at a time."""

    def __init__(
        self, emit: Emitter, stepping: Stepping, alike: dict[int, list[tuple[int, ...]]]
    ) -> None:
        self.emit_, self.stepping = emit, stepping
        self.offset, top = {CODE: STATUS}, FIRST
        self.sides = Sides(stepping, alike)
        for name, size in stepping.registers.items():
            if is_code(name):
                self.offset[name] = STATUS
                continue
            self.offset[name] = top
            top += size
        self.kept = dict[str, int]()  # the state of motions that were ended
        for name in stepping.state if stepping.stops else ():
            self.kept[name] = top
            top += stepping.registers[name]
        self.apart = self.sides.offsets(stepping, top) if self.sides.packs else {}
        top += len(self.apart)
        self.registers = top
        self.random = emit_function(emit) if stepping.noise else None
        self.slots = 0
        self.functions = {id(s): self._segment(s) for s in stepping.segments}

    @property
    def size(self) -> int:
        """Vectors of work memory."""
        return self.registers + self.slots

    def _segment(self, segment: Segment) -> ir.Function:
        """A function of the registers, the memory of its parts, and the turn of the loop."""
        emit = self.emit_
        function, build = part_function(emit, f"{segment.name}_{emit.lanes}", INT)
        registers, frame, turn = function.args
        body = RegisterBody(emit, segment, self.offset, self.apart)
        moves = bool(segment.rows or segment.moves)
        single = emit.lanes == 1 and not moves and not segment.traced.graph.loops
        code = PackedBody(body, self.sides.of(segment)) if single else body
        place = Place([], [], registers, ir.Constant(INT, 0), None, frame, turn)
        if segment.rows:
            columns = list(zip(*segment.rows, strict=True))  # of which many are alike
            each = [x for x in dict.fromkeys(columns) if any(x)]
            shifts = [tuple(emit.lanes * x[i] for x in each) for i in range(len(segment.rows))]
            table = _table(emit.module, f"{segment.name}_rows", tuple(shifts))
            wide = ir.Constant(INT, len(each))

            def row(build: ir.IRBuilder, i: Any) -> ir.IRBuilder:
                first, known = build.mul(i, wide), dict[tuple[int, ...], Any]()
                for k, column in enumerate(each):
                    entry = build.add(first, ir.Constant(INT, k))
                    known[column] = build.load(build.gep(table(build), [entry]))
                body.shift = [known.get(column) for column in columns]
                return body.state(build, place)

            build = counted(build, ir.Constant(INT, len(segment.rows)), row)
        else:
            build = code.state(build, place)
        build.ret_void()
        self.slots = max(self.slots, code.slots)
        return function

    def emit(self, name: str) -> None:
        """Write the function."""
        emit, stepping = self.emit_, self.stepping
        function = ir.Function(
            emit.module, _signature(emit.number, ranged=True), name, internal=True
        )
        (inputs, strides, over_time, output, out_stride, record_stride, status, failed,
         begin, end, records, every, total, h, work, stop, chance) = function.args  # fmt: skip
        build = ir.IRBuilder(function.append_basic_block("entry"))
        started = [("q", stepping.nq), ("v", stepping.nv), *stepping.begins]
        named = [*started, *stepping.held]
        index = [ir.Constant(INT, i) for i in range(len(named))]
        arrays = [build.load(build.gep(inputs, [i])) for i in index]
        steps = [build.load(build.gep(strides, [i])) for i in index]
        times = [build.load(build.gep(over_time, [i])) for i in index]
        frame = build.gep(work, [ir.Constant(INT, self.registers * emit.lanes)])
        width = ir.Constant(INT, emit.lanes)

        def load(build: ir.IRBuilder, i: int, state: Any, n: Any) -> ir.IRBuilder:
            register, size = named[i]
            array = build.gep(arrays[i], [build.mul(n, times[i])])

            def some(build: ir.IRBuilder, first: Any, size: int) -> ir.IRBuilder:
                here = build.gep(array, [first])
                to = build.gep(work, [build.mul(first, width)])
                for j, x in enumerate(load_rows(emit, build, here, steps[i], state, size)):
                    put(emit, build, to, self.offset[register] + j, x)
                return build

            return in_blocks(build, size, some)

        def call(build: ir.IRBuilder, statements: tuple[Statement, ...]) -> ir.IRBuilder:
            return self.run(build, statements, work, frame, ir.Constant(INT, 0))

        def going(build: ir.IRBuilder) -> Any:
            flag = build.load(stop, align=4, atomic="monotonic")  # another thread may change it
            return build.icmp_signed("==", flag, ir.Constant(INT32, 0))

        def motion(build: ir.IRBuilder, group: Any) -> ir.IRBuilder:
            state = build.add(begin, build.mul(group, width))
            zero = ir.Constant(INT, 0)
            # steps that resume may observe what is held without making a step
            for k in range(len(named) if stepping.resumes else len(started)):
                build = load(build, k, state, zero)
            put(emit, build, work, self.offset[STEP], splat(emit, build, h))
            put(emit, build, work, STATUS, emit.constant(0.0))
            put(emit, build, work, FAILED, emit.constant(-1.0))
            build = call(build, stepping.enter)

            def record(build: ir.IRBuilder, r: Any) -> ir.IRBuilder:
                first = build.mul(r, every)
                left = build.sub(total, first)
                short = build.icmp_signed("<", left, every)
                until = build.select(short, left, every)

                def step(build: ir.IRBuilder, i: Any) -> ir.IRBuilder:
                    n = build.add(first, i)
                    for k in range(len(started), len(named)):
                        build = load(build, k, state, n)
                    self._draw(build, work, chance, state, n)
                    build = call(build, stepping.step)
                    self._judge(build, work, n)
                    return build

                build = counted(build, until, step, alive=going)
                build = call(build, stepping.leave)
                row = build.gep(output, [build.mul(r, record_stride)])
                return self._store(build, work, row, out_stride, state)

            build = counted(
                build, records, record, alive=lambda b: b.and_(going(b), self._alive(b, work))
            )
            self._finish(build, work, status, failed, state)
            return build

        count = build.sdiv(build.sub(end, begin), width)
        counted(build, count, motion, alive=going).ret_void()

    def run(
        self,
        build: ir.IRBuilder,
        statements: tuple[Statement, ...],
        work: Any,
        frame: Any,
        turn: Any,
    ) -> ir.IRBuilder:
        """Statements in a turn of a loop; returns where to go on."""
        for group in rounds(statements):
            if isinstance(group, Loop):
                build = self._looped(build, group, work, frame)
            else:
                build = self._called(build, group, work, frame, turn)
        return build

    def _looped(self, build: ir.IRBuilder, loop: Loop, work: Any, frame: Any) -> ir.IRBuilder:
        last = ir.Constant(INT, loop.count - 1)

        def once(build: ir.IRBuilder, i: Any) -> ir.IRBuilder:
            turn = build.sub(last, i) if loop.down else i
            return self.run(build, loop.body, work, frame, turn)

        def going(build: ir.IRBuilder) -> Any:
            least = at(self.offset, loop.least) if loop.least else None
            return self._some(build, work, at(self.offset, loop.again), least)

        alive = going if loop.again else None
        return counted(build, ir.Constant(INT, loop.count), once, alive=alive)

    def _called(
        self, build: ir.IRBuilder, segments: tuple[Segment, ...], work: Any, frame: Any, turn: Any
    ) -> ir.IRBuilder:
        """Segments, once or again as long as they want to; returns where to go on."""
        emit, first = self.emit_, segments[0]
        if not first.again:
            return self._once(build, first, work, frame, turn)
        wish = at(self.offset, first.again)
        put(emit, build, work, wish, emit.constant(1.0))

        def once(build: ir.IRBuilder, i: Any) -> ir.IRBuilder:
            del i
            put(emit, build, work, ACTIVE, get(emit, build, work, wish))
            for segment in segments:
                build = self._once(build, segment, work, frame, turn)
            return build

        def going(build: ir.IRBuilder) -> Any:
            return self._some(build, work, wish)

        return counted(build, ir.Constant(INT, first.most), once, alive=going)

    def _once(
        self, build: ir.IRBuilder, segment: Segment, work: Any, frame: Any, turn: Any
    ) -> ir.IRBuilder:
        """A segment, where some motion needs it."""
        function = self.functions[id(segment)]
        if not segment.when:
            build.call(function, [work, frame, turn])
            return build
        needed, after = (build.function.append_basic_block(x) for x in ("needed", "after"))
        build.cbranch(self._some(build, work, at(self.offset, segment.when)), needed, after)
        inside = ir.IRBuilder(needed)
        inside.call(function, [work, frame, turn])
        inside.branch(after)
        return ir.IRBuilder(after)

    def _some(self, build: ir.IRBuilder, work: Any, place: int, least: int | None = None) -> Any:
        """Whether a register is above zero in some motion, or in as many as another one says."""
        emit = self.emit_
        above = build.fcmp_ordered(">", get(emit, build, work, place), emit.constant(0.0))
        if least is None or emit.lanes == 1:
            return emit.any_lane(build, above)
        first = build.extract_element(get(emit, build, work, least), ir.Constant(INT32, 0))
        return build.icmp_signed(">=", emit.lanes_of(build, above), build.fptosi(first, INT))

    def _judge(self, build: ir.IRBuilder, work: Any, n: Any) -> None:
        """After a step: numbers that are not finite, and the first step with trouble."""
        emit = self.emit_
        total = Finite(emit)
        for name in self.stepping.state:
            for j in range(self.stepping.registers[name]):
                total.add(build, get(emit, build, work, self.offset[name] + j))
        zero = emit.constant(0.0)
        status, failed = get(emit, build, work, STATUS), get(emit, build, work, FAILED)
        lost = build.fcmp_unordered("!=", total.total(build), zero)
        lost = build.and_(lost, build.fcmp_ordered("==", status, zero))
        status = build.select(lost, emit.constant(float(code_of.RESULT)), status)
        new = build.fcmp_unordered("!=", status, zero)
        new = build.and_(new, build.fcmp_ordered("<", failed, zero))
        here = splat(emit, build, build.sitofp(n, emit.number))
        put(emit, build, work, STATUS, status)
        put(emit, build, work, FAILED, build.select(new, here, failed))
        over = build.fcmp_ordered(">=", failed, zero)  # before this step
        for name, place in self.kept.items():
            for j in range(self.stepping.registers[name]):
                now = get(emit, build, work, self.offset[name] + j)
                now = build.select(over, get(emit, build, work, place + j), now)
                put(emit, build, work, self.offset[name] + j, now)
                put(emit, build, work, place + j, now)

    def _draw(self, build: ir.IRBuilder, work: Any, chance: Any, state: Any, n: Any) -> None:
        """Random numbers of step n."""
        if self.random is None:
            return
        seed, first, past = (build.load(build.gep(chance, [ir.Constant(INT, i)])) for i in range(3))
        motion, n, emit = build.add(first, state), build.add(n, past), self.emit_
        for channel in self.stepping.noise:
            period = ir.Constant(INT, channel.period)
            draw = build.sdiv(n, period)
            since = build.sub(n, build.mul(draw, period))
            on = build.icmp_signed("<", since, ir.Constant(INT, channel.active))
            share = splat(emit, build, build.convert("uitofp", on, emit.number))
            name = ir.Constant(INT, channel.channel)
            for j in range(channel.size):
                z = build.call(self.random, [motion, draw, name, ir.Constant(INT, j), seed])
                at = self.offset[channel.register] + j
                put(emit, build, work, at, build.fmul(share, z))

    def _alive(self, build: ir.IRBuilder, work: Any) -> Any:
        status = get(self.emit_, build, work, STATUS)
        fine = build.fcmp_ordered("==", status, self.emit_.constant(0.0))
        return self.emit_.any_lane(build, fine)

    def _store(
        self, build: ir.IRBuilder, work: Any, row: Any, stride: Any, state: Any
    ) -> ir.IRBuilder:
        emit, done = self.emit_, 0
        short = list[int]()  # places of registers that are stored together

        def flush(build: ir.IRBuilder) -> None:
            for start in range(0, len(short), emit.lanes):
                values = [get(emit, build, work, at) for at in short[start : start + emit.lanes]]
                store_rows(emit, build, values, row, stride, state, done - len(short) + start)
            short.clear()

        for name, size in self.stepping.record:
            if size <= BLOCK:
                short += [self.offset[name] + j for j in range(size)]
                done += size
                continue
            flush(build)
            begin, offset = done, self.offset[name]

            def some(
                build: ir.IRBuilder, first: Any, size: int, begin: int = begin, offset: int = offset
            ) -> ir.IRBuilder:
                here = build.gep(row, [first])
                source = build.gep(work, [build.mul(first, ir.Constant(INT, emit.lanes))])
                for start in range(0, size, emit.lanes):
                    end = min(start + emit.lanes, size)
                    values = [get(emit, build, source, offset + j) for j in range(start, end)]
                    store_rows(emit, build, values, here, stride, state, begin + start)
                return build

            build = in_blocks(build, size, some)
            done += size
        flush(build)
        return build

    def _finish(self, build: ir.IRBuilder, work: Any, status: Any, failed: Any, state: Any) -> None:
        emit = self.emit_
        for slot, array, kind in ((STATUS, status, INT32), (FAILED, failed, INT)):
            wide = kind if emit.lanes == 1 else ir.vector(kind, emit.lanes)
            value = build.fptosi(get(emit, build, work, slot), wide)
            at = build.gep(array, [state])
            if emit.lanes > 1:
                at = build.bitcast(at, wide.as_pointer())
            build.store(value, at, align=kind.width // 8)
