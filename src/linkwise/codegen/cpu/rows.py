"""Rows of states in memory, columns of states in registers: loads and stores that turn one round.

A batch has one state a row. A vector register holds one entry of `lanes` states, so a square of
entries is loaded row by row and transposed between registers by log2(lanes) rounds of shuffles:
about 4 instructions an entry instead of the 11 of gathering them one by one.
"""

from __future__ import annotations

from typing import Any

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import Emitter
from linkwise.codegen.cpu.ir import INT, INT32, declared


def load_rows(
    emit: Emitter, build: ir.IRBuilder, array: Any, stride: Any, state: Any, size: int
) -> list[Any]:
    """The `size` entries of the states from `state` on, each as a value."""
    if emit.lanes == 1:
        row = build.gep(array, [build.mul(state, stride)])
        return [build.load(build.gep(row, [ir.Constant(INT, j)])) for j in range(size)]
    rows = _rows(emit, build, array, stride, state)
    entries = list[Any]()
    for start in range(0, size, emit.lanes):
        valid = min(emit.lanes, size - start)
        square = [load_some(emit, build, row, start, valid) for row in rows]
        entries += transposed(build, square)[:valid]
    return entries


def store_rows(
    emit: Emitter,
    build: ir.IRBuilder,
    values: list[Any],
    array: Any,
    stride: Any,
    state: Any,
    start: int,
) -> None:
    """Put entries start, start + 1, ... of the states from `state` on; at most `lanes` entries."""
    if emit.lanes == 1:
        row = build.gep(array, [build.mul(state, stride)])
        for j, value in enumerate(values, start):
            build.store(value, build.gep(row, [ir.Constant(INT, j)]))
        return
    assert len(values) <= emit.lanes
    blank = ir.undefined(emit.type)
    square = transposed(build, [*values, *[blank] * (emit.lanes - len(values))])
    rows = _rows(emit, build, array, stride, state)
    for row, vector in zip(rows, square, strict=True):
        store_some(emit, build, vector, row, start, len(values))


def transposed(build: ir.IRBuilder, square: list[Any]) -> list[Any]:
    """Vectors whose entry i of the j-th was entry j of the i-th.

    In round s, bit s of the two indices is exchanged.
    """
    n, out = len(square), list(square)
    step = 1
    while step < n:
        low = [e if not e & step else n + (e ^ step) for e in range(n)]
        high = [e ^ step if not e & step else n + e for e in range(n)]
        for i in range(n):
            if not i & step:
                a, b = out[i], out[i | step]
                out[i] = build.shuffle_vector(a, b, _mask(low))
                out[i | step] = build.shuffle_vector(a, b, _mask(high))
        step *= 2
    return out


def _mask(indices: list[int]) -> Any:
    return ir.Constant(ir.vector(INT32, len(indices)), indices)


def _rows(emit: Emitter, build: ir.IRBuilder, array: Any, stride: Any, state: Any) -> list[Any]:
    return [
        build.gep(array, [build.mul(build.add(state, ir.Constant(INT, lane)), stride)])
        for lane in range(emit.lanes)
    ]


def _valid(emit: Emitter, count: int) -> Any:
    kind = ir.vector(ir.BIT, emit.lanes)
    return ir.Constant(kind, [int(i < count) for i in range(emit.lanes)])


def load_some(emit: Emitter, build: ir.IRBuilder, row: Any, start: int, valid: int) -> Any:
    """Entries from `start` on; those beyond the row are not touched."""
    pointer = emit.type.as_pointer()
    at = build.bitcast(build.gep(row, [ir.Constant(INT, start)]), pointer)
    if valid == emit.lanes:
        return build.load(at, align=emit.itemsize)
    bits = ir.vector(ir.BIT, emit.lanes)
    kind = ir.FunctionType(emit.type, [pointer, INT32, bits, emit.type])
    load = declared(emit.module, f"llvm.masked.load.{emit.suffix}.p0", kind)
    align, blank = ir.Constant(INT32, emit.itemsize), emit.constant(0.0)
    return build.call(load, [at, align, _valid(emit, valid), blank])


def store_some(
    emit: Emitter, build: ir.IRBuilder, vector: Any, row: Any, start: int, valid: int
) -> None:
    """Put entries from `start` on; those beyond the row are not touched."""
    pointer = emit.type.as_pointer()
    at = build.bitcast(build.gep(row, [ir.Constant(INT, start)]), pointer)
    if valid == emit.lanes:
        build.store(vector, at, align=emit.itemsize)
        return
    bits = ir.vector(ir.BIT, emit.lanes)
    kind = ir.FunctionType(ir.VOID, [emit.type, pointer, INT32, bits])
    store = declared(emit.module, f"llvm.masked.store.{emit.suffix}.p0", kind)
    align = ir.Constant(INT32, emit.itemsize)
    build.call(store, [vector, at, align, _valid(emit, valid)])
