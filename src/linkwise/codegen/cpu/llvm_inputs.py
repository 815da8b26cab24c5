"""Inputs that only passes read, such as a large covariance: copied into their memory in parts.

Compile time grows faster than the length of a function, and such inputs have thousands of numbers.
"""

from __future__ import annotations

from typing import Any

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import Emitter, Finite
from linkwise.codegen.cpu.ir import INT
from linkwise.codegen.cpu.llvm import GraphBody, put
from linkwise.codegen.scalar.passes import Passes

STRETCH = 500
"""Numbers of one function."""


def only_fed(body: GraphBody) -> set[int]:
    """Entries of the inputs that nothing reads but passes, or nothing at all."""
    graph, read = body.graph, set(body.traced.roots)
    for node in body.needed:
        is_passes = graph.op[node] == "part" and isinstance(graph.loops[graph.a[node]], Passes)
        if not is_passes:
            read.update(graph.arguments(node))
    busy = {graph.a[node] for node in read if graph.op[node] == "input"}
    return set(range(sum(size for _, size in body.traced.inputs))) - busy


def copied(
    body: GraphBody, build: ir.IRBuilder, row: Any, work: Any, entries: list[tuple[int, list[int]]]
) -> list[Any]:
    """Entries of a row, each into its places of work memory; returns zeros where all is finite."""
    emit, totals = body.emit, list[Any]()
    for start in range(0, len(entries), STRETCH):
        function = _stretch(emit, entries[start : start + STRETCH])
        totals.append(build.call(function, [row, work]))
    return totals


def _stretch(emit: Emitter, entries: list[tuple[int, list[int]]]) -> ir.Function:
    pointer = emit.number.as_pointer()
    kind = ir.FunctionType(emit.number, [pointer, pointer])
    name = emit.module.unique_name("inputs")
    function = ir.Function(emit.module, kind, name, internal=True, noinline=True)
    row, work = function.args
    for argument in function.args:
        argument.add_attribute("noalias")
    build, given = ir.IRBuilder(function.append_basic_block("entry")), Finite(emit)
    for j, places in entries:
        x = build.load(build.gep(row, [ir.Constant(INT, j)]))
        given.add(build, x)
        for place in places:
            put(emit, build, work, place, x)
    build.ret(given.total(build))
    return function
