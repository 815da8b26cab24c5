"""Loops over islands as LLVM text: the graph of one island, on its own entries of the arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import Emitter, Finite
from linkwise.codegen.cpu.ir import INT, INT32, Unit
from linkwise.codegen.cpu.llvm import GraphBody, Place, emit_loop, finished, get, put, store_status
from linkwise.codegen.cpu.llvm_visit import splat
from linkwise.codegen.rolled.island import IslandCode, IslandLoop
from linkwise.codegen.scalar.graph import Check
from linkwise.codegen.scalar.status import HINGES

GIVEN, RESULT, STATUS, INDEPENDENT, SLOTS = range(5)
"""What is handed from island to island, in scratch memory."""


def emit_islands(loop: IslandLoop, *, itemsize: int, lanes: int, packed: int) -> Unit:
    """The module of a loop over islands for `lanes` states at a time."""
    module = ir.Module()
    emit = Emitter(module, itemsize, lanes, packed)
    dtype = np.float64 if itemsize == 8 else np.float32
    tables = list[tuple[str, Any]]()
    for i, code in enumerate(loop.codes):
        tables.append((f"numbers_{i}", np.ascontiguousarray(code.table, dtype=dtype)))
        tables.append((f"places_{i}", np.ascontiguousarray(code.places)))
        for (name, _), kind in zip(tables[-2:], (emit.number, INT32), strict=True):
            pointer = kind.as_pointer()
            ir.GlobalVariable(module, pointer, name, ir.Constant(pointer, None))
    body = _Islands(emit, loop)
    emit_loop(module, emit, len(loop.inputs), body.state)
    return finished(module, loop, emit, lanes * SLOTS, tables=tuple(tables))


class _Islands:
    """The code of one state, or of `lanes` of them."""

    def __init__(self, emit: Emitter, loop: IslandLoop) -> None:
        self.emit, self.loop = emit, loop

    def state(self, build: ir.IRBuilder, place: Place) -> ir.IRBuilder:
        emit, loop = self.emit, self.loop
        for slot in range(SLOTS):
            put(emit, build, place.work, slot, emit.constant(0.0))
        for i, code in enumerate(loop.codes):
            build = self._islands(build, place, i, code)
        given, result, status, independent = (get(emit, build, place.work, s) for s in range(SLOTS))
        if loop.rank is not None:
            check = Check(loop.singular, -1, loop.rank - 0.5, loop.rank + 0.5)
            status = emit.checked(build, check, independent, status)
        store_status(emit, build, emit.concluded(build, status, given, result), place)
        return build

    def _islands(self, build: ir.IRBuilder, place: Place, i: int, code: IslandCode) -> ir.IRBuilder:
        module, before = self.emit.module, build.block
        tables = [build.load(module.globals[f"{name}_{i}"]) for name in ("numbers", "places")]
        loop, done = (build.function.append_basic_block(x) for x in ("island", "islands_done"))
        build.branch(loop)
        build = ir.IRBuilder(loop)
        number = build.phi(INT)
        number.add_incoming(ir.Constant(INT, 0), before)
        build = _OneIsland(self, code, tables, number).emitted(build, place)
        after = build.add(number, ir.Constant(INT, 1))
        number.add_incoming(after, build.block)
        more = build.icmp_signed("<", after, ir.Constant(INT, len(code.places)))
        build.cbranch(more, loop, done)
        return ir.IRBuilder(done)


class _OneIsland:
    def __init__(self, of: _Islands, code: IslandCode, tables: list[Any], number: Any) -> None:
        self.of, self.emit, self.code = of, of.emit, code
        self.numbers, self.places, self.number = *tables, number

    def _row(self, build: ir.IRBuilder, table: Any, width: int) -> Any:
        return build.gep(table, [build.mul(self.number, ir.Constant(INT, width))])

    def emitted(self, build: ir.IRBuilder, place: Place) -> ir.IRBuilder:
        """The code of one island; its part of the arrays begins elsewhere."""
        emit, code = self.emit, self.code
        row = self._row(build, self.places, 3)
        body, q, v = (
            build.sext(build.load(build.gep(row, [ir.Constant(INT, i)])), INT) for i in range(3)
        )
        starts = [q if name == "q" else v for name, _ in code.traced.inputs]
        inputs = [build.gep(x, [start]) for x, start in zip(place.inputs, starts, strict=True)]
        here = replace(place, inputs=inputs, output=build.gep(place.output, [v]))
        graph, straight = code.traced.graph, GraphBody(emit, code.traced)
        needed = graph.used([*code.traced.roots, code.independent])
        given = Finite(emit, get(emit, build, place.work, GIVEN))
        value = dict[int, Any]()
        node_of = {graph.a[n]: n for n in needed if graph.op[n] == "input"}
        for entry, x in enumerate(straight.loaded(build, here)):
            given.add(build, x)
            if entry in node_of:
                value[node_of[entry]] = x
        numbers = self._row(build, self.numbers, len(code.symbols))
        for node, column in code.symbols.items():
            x = build.load(build.gep(numbers, [ir.Constant(INT, column)]))
            value[node] = splat(emit, build, x)
        put(emit, build, place.work, GIVEN, given.total(build))
        build = emit.angles(build, graph, needed, value)
        status, checks = get(emit, build, place.work, STATUS), straight.checks
        ahead = splat(emit, build, build.sitofp(build.add(body, body), emit.number))
        for node in needed:
            emit.nodes(build, graph, (node,), value)
            if node in checks:
                status = self._checked(build, checks[node], value[node], ahead, status)
        put(emit, build, place.work, STATUS, status)
        so_far = get(emit, build, place.work, INDEPENDENT)
        put(emit, build, place.work, INDEPENDENT, build.fadd(so_far, value[code.independent]))
        result = Finite(emit, get(emit, build, place.work, RESULT))
        for start, group in straight.groups():
            straight.stored(build, [value[n] for n in group], here, start, result)
        put(emit, build, place.work, RESULT, result.total(build))
        return build

    def _checked(self, build: ir.IRBuilder, check: Check, x: Any, ahead: Any, status: Any) -> Any:
        """Codes of bodies are counted from the first body of the island."""
        code = self.emit.constant(float(check.code))
        if check.code >= HINGES:
            code = build.fadd(code, ahead)
        return self.emit.guarded(build, x, check.low, check.high, code, status)
