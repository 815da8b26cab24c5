"""Passes over a memory in LLVM: each round is a call, of a register of columns at a time."""

from __future__ import annotations

from typing import Any

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import Emitter, Finite
from linkwise.codegen.cpu.ir import INT, INT32
from linkwise.codegen.cpu.llvm import GraphBody, Place, counted, get
from linkwise.codegen.cpu.llvm_visit import splat
from linkwise.codegen.scalar.passes import WIDTH, Pass, Passes


class PassesCode:
    """The code of passes, whose memory is in work memory; for several states, each number a vector.

    Of one state, eight columns are a vector.
    """

    def __init__(self, emit: Emitter, passes: Passes, at: int) -> None:
        self.emit, self.passes, self.at = emit, passes, at
        self.begun, frame = False, 0
        self.functions = list[ir.Function]()
        known = dict[Any, ir.Function]()
        for x in passes.passes:
            key = (id(x.body), x.reads, x.writes, x.width)
            if key not in known:
                known[key], slots = self._function(x)
                frame = max(frame, slots)
            self.functions.append(known[key])
        self.size = passes.size + frame

    def _function(self, x: Pass) -> tuple[ir.Function, int]:
        """The code of a round, and how much work memory it needs."""
        module, emit = self.emit.module, self.emit
        if emit.lanes == 1 and x.width == WIDTH:
            emit = Emitter(module, emit.itemsize, WIDTH)
        pointer = emit.number.as_pointer()
        kind = ir.FunctionType(ir.VOID, [pointer, INT, pointer, INT])
        name = module.unique_name(f"pass_{self.emit.lanes}")
        function = ir.Function(module, kind, name, internal=True, noinline=True)
        memory, row, frame, column = function.args
        build = ir.IRBuilder(function.append_basic_block("entry"))
        body = _Round(emit, x, self.emit.lanes)
        body.state(build, Place([], [], memory, row, None, frame, column)).ret_void()
        return function, body.slots * emit.lanes // self.emit.lanes

    def run(self, build: ir.IRBuilder, work: Any) -> ir.IRBuilder:
        """All passes, where they have not been run yet; returns where to go on."""
        if self.begun:
            return build
        self.begun, lanes = True, self.emit.lanes
        places = [ir.Constant(INT, x * lanes) for x in (self.at, self.at + self.passes.size)]
        memory, frame = (build.gep(work, [x]) for x in places)
        module = self.emit.module
        for x, function in zip(self.passes.passes, self.functions, strict=True):
            flat, wide = [i for row in x.rows for i in row], len(x.rows[0])
            array = ir.ArrayType(INT32, len(flat))
            name = module.unique_name(f"places_{lanes}")
            table = ir.GlobalVariable(module, array, name, ir.Constant(array, flat))
            columns = WIDTH if lanes > 1 and x.width == WIDTH else 1

            def once(
                build: ir.IRBuilder,
                i: Any,
                table: Any = table,
                function: Any = function,
                wide: int = wide,
                columns: int = columns,
            ) -> ir.IRBuilder:
                at = build.mul(i, ir.Constant(INT, wide))
                row = build.ptrtoint(build.gep(table, [ir.Constant(INT, 0), at]), INT)

                def column(build: ir.IRBuilder, j: Any) -> ir.IRBuilder:
                    build.call(function, [memory, row, frame, j])
                    return build

                if columns == 1:
                    return column(build, ir.Constant(INT, 0))
                return counted(build, ir.Constant(INT, columns), column)

            build = counted(build, ir.Constant(INT, len(x.rows)), once)
        return build

    def result(self, build: ir.IRBuilder, work: Any, which: int) -> Any:
        """One of the numbers that are read after all passes."""
        return get(self.emit, build, work, self.at + self.passes.outputs[which])


class _Round(GraphBody):
    """The code of a round: `place.output` is the memory, `out_stride` where the addresses are."""

    def __init__(self, emit: Emitter, x: Pass, lanes: int) -> None:
        super().__init__(emit, x.body)
        self.step, self.pieces, self.lanes = x, (*x.reads, *x.writes), lanes
        self.columns = emit.lanes // lanes  # that are a vector
        graph, self.span = self.graph, 1
        turns = any(graph.op[n] in ("sin", "cos") for n in self.needed)
        # numbers of a tile are read where they are needed
        self.late = not turns and len(self.needed) <= self.longest
        self.read = [(p, k) for p, piece in enumerate(x.reads) for k in range(piece.count)]
        self.written = [
            (p, k) for p, piece in enumerate(x.writes, len(x.reads)) for k in range(piece.count)
        ]
        self.bases = dict[tuple[str, int], Any]()
        self.place: Any = None
        if self.late:
            self.needed = graph.used(x.body.roots)
        self.stored_inputs = {n for n in x.body.outputs if graph.op[n] == "input"}

    def state(self, build: ir.IRBuilder, place: Place) -> ir.IRBuilder:
        self.place = place
        return super().state(build, place)

    def _address(self, build: ir.IRBuilder, place: Place, p: int, k: int) -> Any:
        """Where number k of a piece is."""
        piece, key = self.pieces[p], (build.function.text, p)
        if key not in self.bases:
            row = build.inttoptr(place.out_stride, INT32.as_pointer())
            start = build.sext(build.load(build.gep(row, [ir.Constant(INT, p)])), INT)
            if piece.step and self.columns == 1:
                start = build.add(start, place.state)
            if self.lanes > 1:
                start = build.mul(start, ir.Constant(INT, self.lanes))
            self.bases[key] = build.gep(place.output, [start])
        far = ir.Constant(INT, k * piece.stride * self.lanes)
        return build.gep(self.bases[key], [far])

    def _number(self, build: ir.IRBuilder, place: Place, number: int) -> Any:
        """An input."""
        emit, (p, k) = self.emit, self.read[number]
        address = self._address(build, place, p, k)
        if self.columns > 1 and not self.pieces[p].step:
            return splat(emit, build, build.load(address, align=emit.itemsize))
        return build.load(build.bitcast(address, emit.type.as_pointer()), align=emit.itemsize)

    def begin(self, build: ir.IRBuilder, place: Place) -> tuple[ir.IRBuilder, dict[int, Any], Any]:
        """Inputs and sines; what is not finite shows itself in the end."""
        value, zero = dict[int, Any](), self.emit.constant(0.0)
        if self.late:
            return build, value, zero
        for node in self.needed:
            if self.graph.op[node] == "input":
                value[node] = self._number(build, place, self.graph.a[node])
        return self.emit.angles(build, self.graph, self.needed, value), value, zero

    def node(
        self, build: ir.IRBuilder, node: int, value: dict[int, Any], work: Any
    ) -> ir.IRBuilder:
        graph = self.graph
        if not self.late:
            return super().node(build, node, value, work)
        is_input = graph.op[node] == "input"
        for x in (node,) if is_input and node in self.stored_inputs else graph.arguments(node):
            if graph.op[x] == "input" and x not in value:
                value[x] = self._number(build, self.place, graph.a[x])
        return build if is_input else super().node(build, node, value, work)

    def conclude(
        self, build: ir.IRBuilder, place: Place, status: Any, given: Any, result: Any
    ) -> None:
        """Nothing: what comes of all rounds is looked at in the end."""

    def stored(
        self, build: ir.IRBuilder, values: list[Any], place: Place, start: int, result: Finite
    ) -> None:
        emit = self.emit
        for i, x in enumerate(values, start):
            address = self._address(build, place, *self.written[i])
            build.store(x, build.bitcast(address, emit.type.as_pointer()), align=emit.itemsize)
