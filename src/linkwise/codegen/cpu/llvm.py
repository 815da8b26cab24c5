"""From a scalar graph to LLVM functions: a loop over states with the graph as its straight body.

The module exports, with T for double or float,

    run(T** inputs, int64* strides, T* output, int64 out_stride,
        int32* status, int64 begin, int64 end, T* work)

`inputs` has a pointer for each input and `strides` the distance of its rows in numbers, 0 where all
states share one row. The states from `begin` up to `end` are done one by one, or a vector register
of them at a time: these are two modules, and the second is made for the first batch. Large graphs
are cut into parts, each a separate function, which exchange values in `work`: compile time grows
faster than the length of a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from linkwise.codegen.cpu import fastcall, ir
from linkwise.codegen.cpu.emit import Emitter, Finite
from linkwise.codegen.cpu.ir import INT, INT32, Unit
from linkwise.codegen.cpu.part import part_function, slots
from linkwise.codegen.cpu.rows import finite_rows, load_rows, store_rows
from linkwise.codegen.scalar.graph import Loop
from linkwise.codegen.scalar.passes import Passes
from linkwise.codegen.scalar.trace import Traced

if TYPE_CHECKING:
    from linkwise.codegen.cpu.llvm_passes import PassesCode

LONGEST, LONGEST_OF_SEVERAL = 7000, 4500
"""Nodes of a graph that stays in one piece, for one state and for a register of states."""

PART, PART_OF_SEVERAL, PART_AT_ONCE = 500, 200, 250
"""Nodes of one part of a longer one: for one state; for a register of states, in which each value
takes as much memory as eight of one state; and for one state whose entries are stored as they come,
in an order in which few values wait."""


MANY_FED = 500
"""Numbers that passes read, above which inputs that are read by nothing else are copied apart."""

SPAN = 1 << 14
"""Bytes of the result of a state that are stored one after another where several states are done
together: each has its own rows, and memory takes contiguous numbers of few rows much faster."""

LOOPED = 50_000
"""Nodes of a graph above which code for a batch has loops over columns."""

ZEROS = 100
"""Zeros of a result that are stored together before all else."""

MANY = 100
"""Entries of a result of one state that are stored as soon as they are known: held back, most of
them would wait in memory."""

DENSE = 0.4
"""The share of them that is not zero above which all are looked at together, in memory."""

EMPTY = 8
"""The same for a register of states: registers of zeros behind one another."""


def emit_graph(traced: Traced, *, itemsize: int, lanes: int, packed: int = 1) -> Unit:
    """The module of a graph for `lanes` states at a time.

    Where that is one, sines of `packed` of its angles are taken together.
    """
    module = ir.Module()
    emit = Emitter(module, itemsize, lanes, packed)
    body: GraphBody | None = None
    width = max(lanes, packed)
    if width > 1 and traced.solve is not None and (lanes == 1 or len(traced.graph.op) > LOOPED):
        from linkwise.codegen.cpu.llvm_columns import ColumnBody

        places = traced.solve.placed(traced.outputs)
        body = None if places is None else ColumnBody(emit, traced, places, width)
    if body is None:
        from linkwise.codegen.cpu.llvm_limbs import limb_body

        body = limb_body(emit, traced) or GraphBody(emit, traced, at_once=True)
        body.blank = body.zero_runs()
    emit_loop(module, body.emit, len(traced.inputs), body.state)
    return finished(module, traced, body.emit, lanes * body.slots)


def finished(
    module: ir.Module,
    traced: Any,
    emit: Emitter,
    work: int,
    *,
    tables: tuple[tuple[str, Any], ...] = (),
) -> Unit:
    """The module that has `run`, with the entry from Python for one state if there can be one."""
    if emit.lanes == 1 and fastcall.available():
        sizes = [size for _, size in traced.inputs]
        parts: tuple[tuple[int, ...], ...] = getattr(traced, "parts", ())
        fastcall.emit(module, sizes, traced.shape, emit.itemsize, work, parts)
    else:  # the loader of object files wants a section for data, be it empty
        ir.GlobalVariable(module, INT, "unused", ir.Constant(INT, 1))
    return Unit(str(module), emit.lanes, emit.itemsize, work, tables)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the states are: arguments of a function, and the number of the state."""

    inputs: list[Any]
    strides: list[Any]
    output: Any
    out_stride: Any
    status: Any
    work: Any
    state: Any


def emit_loop(
    module: ir.Module,
    emit: Emitter,
    n_inputs: int,
    body: Callable[[ir.IRBuilder, Place], ir.IRBuilder],
) -> ir.Function:
    """The function `run`: a loop over states."""
    pointer = emit.number.as_pointer()
    arrays = [pointer.as_pointer(), INT.as_pointer(), pointer, INT, INT32.as_pointer()]
    kind = ir.FunctionType(ir.VOID, [*arrays, INT, INT, pointer])
    function = ir.Function(module, kind, "run")
    inputs, strides, output, out_stride, status, begin, end, work = function.args
    entry, loop, done = (function.append_basic_block(b) for b in ("entry", "loop", "done"))
    build = ir.IRBuilder(entry)
    at = [ir.Constant(INT, i) for i in range(n_inputs)]
    arrays = [build.load(build.gep(inputs, [i])) for i in at]
    steps = [build.load(build.gep(strides, [i])) for i in at]
    build.cbranch(build.icmp_signed("<", begin, end), loop, done)
    build = ir.IRBuilder(loop)
    state = build.phi(INT)
    state.add_incoming(begin, entry)
    place = Place(arrays, steps, output, out_stride, status, work, state)
    build = body(build, place)
    after = build.add(state, ir.Constant(INT, emit.lanes))
    state.add_incoming(after, build.block)
    build.cbranch(build.icmp_signed("<", after, end), loop, done)
    ir.IRBuilder(done).ret_void()
    return function


def store_status(emit: Emitter, build: ir.IRBuilder, code: Any, place: Place) -> None:
    """Put the status of the states done together."""
    at = build.gep(place.status, [place.state])
    if emit.lanes > 1:
        at = build.bitcast(at, code.type.as_pointer())
    build.store(code, at, align=4)


class GraphBody:
    """The straight code of one state (or of `lanes` of them), in one piece or in parts.

    Attributes:
        span: Entries of a result that parts store one after another; 1 for each when it is made.
        at_once: Whether entries are stored when they are known: results of one state, if they are
            many and this is allowed.
        by_rows: Whether they are looked at in memory, in the end.
        longest: Nodes of code that stays in one piece.
    """

    def __init__(self, emit: Emitter, traced: Traced, *, at_once: bool = False) -> None:
        self.emit, self.traced, self.graph = emit, traced, traced.graph
        self.needed = self.graph.used(traced.roots)
        self.longest = LONGEST if emit.lanes == 1 else min(LONGEST, LONGEST_OF_SEVERAL)
        self.at_once = at_once and emit.lanes == 1 and len(traced.outputs) > MANY
        filled = sum(not self._is_zero(node) for node in traced.outputs) if self.at_once else 0
        self.by_rows = filled > DENSE * len(traced.outputs)
        if emit.lanes > 1:
            self.needed = self.order(traced)
        elif len(self.needed) > LONGEST:
            late = self.at_once and len(self.needed) < LOOPED  # finding it takes its time
            self.needed = traced.needed_late() if late else traced.by_columns()
        elif self.at_once:
            self.needed = traced.from_results()
        self.checks = {check.node: check for check in traced.checks}
        self.slots = 0
        self.span = 1 if emit.lanes == 1 else SPAN // emit.itemsize
        self.loops: dict[int, _Loop | PassesCode] = {}
        # nodes that are put into the memory of passes, and where
        self.feeds = dict[int, list[int]]()
        # zeros among the outputs that are there before others are stored: start and count
        self.blank = list[tuple[int, int]]()

    def zero_runs(self) -> list[tuple[int, int]]:
        """Where zeros are stored before all else: in all of a row, or where many are contiguous."""
        outputs, width = self.traced.outputs, self.emit.lanes
        zero = [all(map(self._is_zero, group)) for _, group in self.groups()]
        if width == 1:
            return [(0, len(outputs))] if sum(zero) > ZEROS else []
        runs, begin = list[tuple[int, int]](), 0
        for is_zero, run in groupby(zero):
            end = begin + len(list(run))
            if is_zero and end - begin >= EMPTY:
                runs.append((begin * width, min(end * width, len(outputs)) - begin * width))
            begin = end
        return runs

    def order(self, traced: Traced) -> list[int]:
        """The nodes that are needed, in the order they are computed in for several states."""
        return traced.ordered()

    def state(self, build: ir.IRBuilder, place: Place) -> ir.IRBuilder:
        """Instructions for the states at a place."""
        parts = _Parts(self) if len(self.needed) > self.longest else None
        for number, loop in enumerate(self.graph.loops):
            self.loops[number] = self._loop(loop)
            self.slots += self.loops[number].size
        self.prepare(build, place)
        return self._in_one_function(build, place) if parts is None else parts.state(build, place)

    def _loop(self, loop: Loop | Passes) -> _Loop | PassesCode:
        if isinstance(loop, Loop):
            return _Loop(self.emit, loop, self.slots)
        from linkwise.codegen.cpu.llvm_passes import PassesCode

        for node, at in zip(loop.inputs, loop.places, strict=True):
            self.feeds.setdefault(node, []).append(self.slots + at)
        return PassesCode(self.emit, loop, self.slots)

    def prepare(self, build: ir.IRBuilder, place: Place) -> None:
        """What comes before all else: zeros for results most of which are zero."""
        for start, count in self.blank:
            blank_rows(self.emit, build, place, count, start)

    def node(
        self, build: ir.IRBuilder, node: int, value: dict[int, Any], work: Any
    ) -> ir.IRBuilder:
        """Instructions for one node, whose arguments are known; returns where to go on."""
        if node in value or self.graph.op[node] == "input":  # those not known only passes read
            return build
        if self.graph.op[node] != "part":
            self.emit.nodes(build, self.graph, (node,), value)
        else:
            loop = self.loops[self.graph.a[node]]
            if isinstance(loop, _Loop):
                build = loop.run(build, value, work)
            else:
                build = loop.run(build, work)
            value[node] = loop.result(build, work, self.graph.b[node])
        if self.graph.op[node] != "const":  # these are fed in the beginning
            self.feed(build, node, value[node], work)
        return build

    def feed(self, build: ir.IRBuilder, node: int, value: Any, work: Any) -> None:
        """Put a value where passes read it."""
        for at in self.feeds.get(node, ()):
            put(self.emit, build, work, at, value)

    def begin(self, build: ir.IRBuilder, place: Place) -> tuple[ir.IRBuilder, dict[int, Any], Any]:
        """Inputs and sines: values by node, and the sum that shows finite input."""
        emit, graph = self.emit, self.graph
        value, given = dict[int, Any](), Finite(emit)
        node_of = {graph.a[n]: n for n in self.needed if graph.op[n] == "input"}
        for number, x in self._entries(build, place, node_of, given):
            given.add(build, x)
            if number in node_of:
                value[node_of[number]] = x
                self.feed(build, node_of[number], x, place.work)
        build = emit.angles(build, graph, self.needed, value)
        for node in self.feeds:
            if graph.op[node] == "const":
                self.feed(build, node, emit.constant(graph.value[node]), place.work)
            elif node in value and graph.op[node] != "input":
                self.feed(build, node, value[node], place.work)
        return build, value, given.total(build)

    def _entries(
        self, build: ir.IRBuilder, place: Place, node_of: dict[int, int], given: Finite
    ) -> Iterator[tuple[int, Any]]:
        """The entries of the inputs; many that only passes read are copied by functions."""
        if self.emit.lanes > 1 or len(self.feeds) < MANY_FED or not place.inputs:
            yield from enumerate(self.loaded(build, place))
            return
        from linkwise.codegen.cpu.llvm_inputs import copied, only_fed

        quiet, number = only_fed(self), 0
        arrays = zip(self.traced.inputs, place.inputs, place.strides, strict=True)
        for (_, size), array, stride in arrays:
            row = build.gep(array, [build.mul(place.state, stride)])
            here = [j for j in range(size) if number + j in quiet]
            entries = [(j, self.feeds.get(node_of.get(number + j, -1), [])) for j in here]
            for total in copied(self, build, row, place.work, entries):
                given.add(build, total)
            for j in range(size):
                if number + j not in quiet:
                    yield number + j, build.load(build.gep(row, [ir.Constant(INT, j)]))
            number += size

    def loaded(self, build: ir.IRBuilder, place: Place) -> Iterable[Any]:
        """All entries of the inputs, in order."""
        for (_, size), array, stride in zip(
            self.traced.inputs, place.inputs, place.strides, strict=True
        ):
            yield from load_rows(self.emit, build, array, stride, place.state, size)

    def first_status(self, build: ir.IRBuilder, place: Place) -> Any:
        """The status before the first check."""
        return self.emit.constant(0.0)

    def conclude(
        self, build: ir.IRBuilder, place: Place, status: Any, given: Any, result: Any
    ) -> None:
        """Store the status; `given` and `result` are zero where all of them is finite."""
        if self.by_rows:
            row = build.gep(place.output, [build.mul(place.state, place.out_stride)])
            size = len(self.traced.outputs)
            result = finite_rows(self.emit, build, row, place.out_stride, size)
        code = self.emit.concluded(build, status, given, result)
        store_status(self.emit, build, code, place)

    def _in_one_function(self, build: ir.IRBuilder, place: Place) -> ir.IRBuilder:
        emit = self.emit
        build, value, given = self.begin(build, place)
        status, result = self.first_status(build, place), Finite(emit)
        groups, known = self.groups(), dict[int, list[int]]()
        if self.at_once:  # each entry is a group
            for start, (node,) in groups:
                known.setdefault(node, []).append(start)
            groups = []
        for node in self.needed:
            build = self.node(build, node, value, place.work)
            if node in self.checks:
                status = emit.checked(build, self.checks[node], value[node], status)
            for start in known.get(node, ()):
                self.stored(build, [value[node]], place, start, result)
        for start, group in groups:
            self.stored(build, [value[n] for n in group], place, start, result)
        self.conclude(build, place, status, given, result.total(build))
        return build

    def groups(self) -> list[tuple[int, list[int]]]:
        """Outputs that are stored together: where they start, and their nodes."""
        outputs, width = self.traced.outputs, self.emit.lanes
        groups = [(j, outputs[j : j + width]) for j in range(0, len(outputs), width)]
        there = {j for start, count in self.blank for j in range(start, start + count)}
        return [(j, x) for j, x in groups if j not in there or not all(map(self._is_zero, x))]

    def _is_zero(self, node: int) -> bool:
        return self.graph.is_constant(node, 0.0)

    def stored(
        self, build: ir.IRBuilder, values: list[Any], place: Place, start: int, result: Finite
    ) -> None:
        """Store a group; `result` shows whether all is finite."""
        for x in () if self.by_rows else values:
            result.add(build, x)
        emit = self.emit
        store_rows(emit, build, values, place.output, place.out_stride, place.state, start)


class _Loop:
    """The rounds of a loop, with its numbers in work memory, each a vector.

    In front stand which states go on in this round, and which want another one; x and what is given
    follow. States that have finished stay as they are, whatever others still do.
    """

    ACTIVE, AGAIN, FIRST = 0, 1, 2

    def __init__(self, emit: Emitter, loop: Loop, at: int) -> None:
        self.emit, self.loop, self.at = emit, loop, at
        self.registers = self.FIRST + len(loop.inputs) - 1
        self.function, build = part_function(emit, f"round_{emit.lanes}")
        registers, frame = self.function.args
        body, zero = _Round(emit, loop.body, loop.size), ir.Constant(INT, 0)
        body.state(build, Place([], [], registers, zero, None, frame, zero)).ret_void()
        self.size = self.registers + body.slots
        self.begun = False

    def run(self, build: ir.IRBuilder, value: dict[int, Any], work: Any) -> ir.IRBuilder:
        """All rounds, where they have not been run yet; returns where to go on."""
        if self.begun:
            return build
        self.begun = True
        emit, at = self.emit, self.at
        size = self.loop.size
        for slot, node in enumerate(self.loop.inputs[:size] + self.loop.inputs[size + 1 :]):
            put(emit, build, work, at + self.FIRST + slot, value[node])
        put(emit, build, work, at + self.AGAIN, value[self.loop.inputs[size]])
        parts = [ir.Constant(INT, x * emit.lanes) for x in (at, at + self.registers)]
        registers, frame = (build.gep(work, [x]) for x in parts)

        def once(build: ir.IRBuilder, i: Any) -> ir.IRBuilder:
            del i
            put(emit, build, work, at + self.ACTIVE, get(emit, build, work, at + self.AGAIN))
            build.call(self.function, [registers, frame])
            return build

        def going(build: ir.IRBuilder) -> Any:
            again = get(emit, build, work, at + self.AGAIN)
            return emit.any_lane(build, build.fcmp_ordered(">", again, emit.constant(0.0)))

        return counted(build, ir.Constant(INT, self.loop.most), once, alive=going)

    def result(self, build: ir.IRBuilder, work: Any, which: int) -> Any:
        """A number of x, or behind them whether there should be another round."""
        slot = self.AGAIN if which == self.loop.size else self.FIRST + which
        return get(self.emit, build, work, self.at + slot)


class _Round(GraphBody):
    """The straight code of one round: inputs and outputs are in `place.output`."""

    def __init__(self, emit: Emitter, traced: Traced, size: int) -> None:
        super().__init__(emit, traced)
        self.size, self.span = size, 1

    def loaded(self, build: ir.IRBuilder, place: Place) -> Iterator[Any]:
        count = sum(size for _, size in self.traced.inputs)
        return (get(self.emit, build, place.output, _Loop.FIRST + i) for i in range(count))

    def conclude(
        self, build: ir.IRBuilder, place: Place, status: Any, given: Any, result: Any
    ) -> None:
        """Nothing: what comes of all rounds is looked at in the end."""

    def stored(
        self, build: ir.IRBuilder, values: list[Any], place: Place, start: int, result: Finite
    ) -> None:
        """Put x and again, for states that go on."""
        emit = self.emit
        active = get(emit, build, place.output, _Loop.ACTIVE)
        going = build.fcmp_ordered(">", active, emit.constant(0.0))
        for i, x in enumerate(values, start):
            slot = _Loop.AGAIN if i == self.size else _Loop.FIRST + i
            before = get(emit, build, place.output, slot)
            put(emit, build, place.output, slot, build.select(going, x, before))


def blank(emit: Emitter, build: ir.IRBuilder, begin: Any, count: int) -> None:
    """Fill memory with zeros."""
    pointer = ir.BYTE.as_pointer()
    kind = ir.FunctionType(ir.VOID, [pointer, ir.BYTE, INT, ir.BIT])
    fill = ir.declared(emit.module, "llvm.memset.p0.i64", kind)
    size = ir.Constant(INT, count * emit.itemsize)
    given = [ir.Constant(ir.BYTE, 0), size, ir.Constant(ir.BIT, 0)]
    build.call(fill, [build.bitcast(begin, pointer), *given])


def blank_rows(
    emit: Emitter, build: ir.IRBuilder, place: Place, count: int, start: int = 0
) -> None:
    """Fill results of the states done together with zeros, from entry `start` on."""
    for lane in range(emit.lanes):
        state = build.add(place.state, ir.Constant(INT, lane))
        row = build.gep(place.output, [build.mul(state, place.out_stride)])
        blank(emit, build, build.gep(row, [ir.Constant(INT, start)]), count)


def get(emit: Emitter, build: ir.IRBuilder, memory: Any, at: int, stride: int | None = None) -> Any:
    """Entry `at` of memory in which each entry is a vector, or `stride` numbers."""
    return build.load(_entry(emit, build, memory, at, stride), align=emit.itemsize)


def put(
    emit: Emitter,
    build: ir.IRBuilder,
    memory: Any,
    at: int,
    value: Any,
    stride: int | None = None,
) -> None:
    """Store entry `at`."""
    build.store(value, _entry(emit, build, memory, at, stride), align=emit.itemsize)


def _entry(emit: Emitter, build: ir.IRBuilder, memory: Any, at: int, stride: int | None) -> Any:
    apart = emit.lanes if stride is None else stride
    address = build.gep(memory, [ir.Constant(INT, at * apart)])
    return build.bitcast(address, emit.type.as_pointer())


def counted(
    build: ir.IRBuilder,
    count: Any,
    body: Callable[[ir.IRBuilder, Any], ir.IRBuilder],
    *,
    alive: Callable[[ir.IRBuilder], Any] | None = None,
) -> ir.IRBuilder:
    """A loop over 0, ..., count − 1, as long as `alive`; returns where to go on."""
    function, before = build.function, build.block
    head, inside, done = (function.append_basic_block(n) for n in ("head", "inside", "done"))
    build.branch(head)
    top = ir.IRBuilder(head)
    i = top.phi(INT)
    i.add_incoming(ir.Constant(INT, 0), before)
    go = top.icmp_signed("<", i, count)
    if alive is not None:
        go = top.and_(go, alive(top))
    top.cbranch(go, inside, done)
    end = body(ir.IRBuilder(inside), i)
    i.add_incoming(end.add(i, ir.Constant(INT, 1)), end.block)
    end.branch(head)
    return ir.IRBuilder(done)


class _Parts:
    """A long body as functions part(place, frame), each with a stretch of the nodes.

    A value made in one part and used in a later one has a slot in the frame, which is free again
    after its last use.
    """

    def __init__(self, body: GraphBody) -> None:
        self.body, self.emit, self.graph = body, body.emit, body.graph
        free = ("const", "input")
        order = [n for n in body.needed if self.graph.op[n] not in free]
        size = PART if body.emit.lanes == 1 else PART_OF_SEVERAL
        size = PART_AT_ONCE if body.at_once else size
        self.parts = [order[i : i + size] for i in range(0, max(1, len(order)), size)]
        part_of = {n: i for i, part in enumerate(self.parts) for n in part}
        part_of |= {n: -1 for n in body.needed if self.graph.op[n] == "input"}
        angles = {
            n
            for n in order
            if self.graph.op[n] in ("sin", "cos") and part_of[self.graph.a[n]] == -1
        }
        part_of |= dict.fromkeys(angles, -1)
        self.part_of = part_of
        self.last = self._last_uses()
        self.slot = self._slots()

    def _made(self, node: int) -> int:
        return self.part_of.get(node, -2)  # constants are everywhere

    def _last_uses(self) -> dict[int, int]:
        """The last part in which a node is read, where that is not the part that makes it."""
        last = dict[int, int]()
        for i, part in enumerate(self.parts):
            for node in part:
                if self._made(node) != i or self._begins(node):
                    continue
                for x in self.graph.arguments(node):
                    if -2 < self._made(x) < i:
                        last[x] = i
        self.groups = list[tuple[int, int, list[int]]]()  # part, start, nodes
        groups, ready = self.body.groups(), dict[int, int]()
        span = self.body.span
        for start, group in groups:
            at = start // span
            ready[at] = max(ready.get(at, 0), *(self._made(n) for n in group))
        for start, group in groups:
            where = ready[start // span]
            self.groups.append((where, start, group))
            for node in group:
                if -2 < self._made(node) < where:
                    last[node] = max(last.get(node, -1), where)
        for node in self.body.checks:
            if self._made(node) == -1:
                last[node] = max(last.get(node, -1), 0)
        return last

    def _begins(self, node: int) -> bool:
        """Whether passes begin there, whose memory has everything they read."""
        graph = self.graph
        passes = graph.op[node] == "part" and isinstance(graph.loops[graph.a[node]], Passes)
        return passes and graph.b[node] == 0

    def _slots(self) -> dict[int, int]:
        crossing = sorted(self.last, key=lambda n: (self.part_of[n], n))
        lives = {n: (self.part_of[n], self.last[n]) for n in crossing}
        slot, top = slots(lives, 3)  # the two sums and the status are kept in front
        self.body.slots = max(self.body.slots, top)
        return slot

    def state(self, build: ir.IRBuilder, place: Place) -> ir.IRBuilder:
        """Inputs and sines here, then one call for each part."""
        build, value, given = self.body.begin(build, place)
        put(self.emit, build, place.work, 0, given)
        put(self.emit, build, place.work, 1, self.emit.constant(0.0))
        put(self.emit, build, place.work, 2, self.body.first_status(build, place))
        for node, x in value.items():
            if node in self.slot:
                put(self.emit, build, place.work, self.slot[node], x)
        for i in range(len(self.parts)):
            function = self._function(i)
            build.call(function, [place.output, place.work, place.out_stride, place.state])
        sums = [get(self.emit, build, place.work, i) for i in range(3)]
        self.body.conclude(build, place, sums[2], sums[0], sums[1])
        return build

    def _function(self, i: int) -> ir.Function:
        emit = self.emit
        function, build = part_function(emit, f"part_{emit.lanes}_{i}", INT, INT)
        output, frame, out_stride, state = function.args
        place = Place([], [], output, out_stride, None, frame, state)
        value = dict[int, Any]()
        status, result = (
            get(self.emit, build, frame, 2),
            Finite(emit, get(self.emit, build, frame, 1)),
        )
        made = [n for n in self.parts[i] if self._made(n) == i]
        for node in made:
            if not self._begins(node):
                self._fetch(build, frame, value, self.graph.arguments(node), i)
            build = self.body.node(build, node, value, frame)
            if node in self.body.checks:
                status = emit.checked(build, self.body.checks[node], value[node], status)
            if node in self.slot:
                put(self.emit, build, frame, self.slot[node], value[node])
        if i == 0:
            for node, check in self.body.checks.items():
                if self._made(node) == -1:
                    self._fetch(build, frame, value, (node,), i)
                    status = emit.checked(build, check, value[node], status)
        for where, start, group in self.groups:
            if where == i:
                self._fetch(build, frame, value, group, i)
                self.body.stored(build, [value[n] for n in group], place, start, result)
        put(self.emit, build, frame, 1, result.total(build))
        put(self.emit, build, frame, 2, status)
        build.ret_void()
        return function

    def _fetch(
        self,
        build: ir.IRBuilder,
        frame: Any,
        value: dict[int, Any],
        nodes: Sequence[int],
        i: int,
    ) -> None:
        """What comes from earlier parts, and constants."""
        for node in nodes:
            if node < 0 or node in value or self._made(node) == i:
                continue
            if self._made(node) == -2:
                self.emit.nodes(build, self.graph, (node,), value)
            else:
                value[node] = get(self.emit, build, frame, self.slot[node])
