"""Rows of states in memory, columns of states in registers: loads and stores that turn one round.

A batch has one state a row. A vector register holds one entry of `lanes` states, so a square of
entries is loaded row by row and transposed between registers by log2(lanes) rounds of shuffles:
about 4 instructions an entry instead of the 11 of gathering them one by one.
"""

from __future__ import annotations

from typing import Any

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import FLAGS, Emitter
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


SQUARE = 256
"""Bytes that are looked at together."""


def finite_rows(emit: Emitter, build: ir.IRBuilder, row: Any, stride: Any, size: int) -> Any:
    """Zero for each state whose row of `size` numbers is finite, else NaN."""
    function = _finite(emit)
    count = ir.Constant(INT, size)
    if emit.lanes == 1:
        return build.call(function, [row, count])
    sums = emit.constant(0.0)
    for lane in range(emit.lanes):
        at = build.gep(row, [build.mul(stride, ir.Constant(INT, lane))])
        total = build.call(function, [at, count])
        sums = build.insert_element(sums, total, ir.Constant(INT32, lane))
    return sums


def _finite(emit: Emitter) -> ir.Function:
    """finite(row, count): the sum of 0 x."""
    module, pointer = emit.module, emit.number.as_pointer()
    name = f"finite_{emit.itemsize}"
    known = module.globals.get(name)
    if isinstance(known, ir.Function):
        return known
    function = ir.Function(
        module, ir.FunctionType(emit.number, [pointer, INT]), name, internal=True
    )
    row, count = function.args
    wide = ir.vector(emit.number, SQUARE // emit.itemsize)
    build = ir.IRBuilder(function.append_basic_block("entry"))
    squares = build.sdiv(count, ir.Constant(INT, wide.count))
    build, sums = _part(emit, build, row, ir.Constant(INT, 0), squares, wide)
    parts = [build.extract_element(sums, ir.Constant(INT32, i)) for i in range(wide.count)]
    while len(parts) > 1:
        parts = [build.fadd(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    done = build.mul(squares, ir.Constant(INT, wide.count))
    build, rest = _part(emit, build, row, done, build.sub(count, done), emit.number)
    build.ret(build.fadd(parts[0], rest))
    return function


def _part(
    emit: Emitter, build: ir.IRBuilder, row: Any, start: Any, count: Any, kind: Any
) -> tuple[ir.IRBuilder, Any]:
    """The sum of 0 x over `count` values of a kind, from entry `start` on."""
    step = kind.count if isinstance(kind, ir.VectorType) else 1
    zero = ir.Constant(kind, [0.0] * step if isinstance(kind, ir.VectorType) else 0.0)
    none = ir.Constant(INT, 0)
    before, function = build.block, build.function
    loop, done = (function.append_basic_block(x) for x in ("each", "done"))
    build.cbranch(build.icmp_signed("<", none, count), loop, done)
    build = ir.IRBuilder(loop)
    i, total = build.phi(INT), build.phi(kind)
    i.add_incoming(none, before)
    total.add_incoming(zero, before)
    at = build.gep(row, [build.add(start, build.mul(i, ir.Constant(INT, step)))])
    x = build.load(build.bitcast(at, kind.as_pointer()), align=emit.itemsize)
    product: Any = build.fmul(x, zero, flags=FLAGS)
    more = build.fadd(total, product, flags=FLAGS)
    after = build.add(i, ir.Constant(INT, 1))
    i.add_incoming(after, loop)
    total.add_incoming(more, loop)
    build.cbranch(build.icmp_signed("<", after, count), loop, done)
    build = ir.IRBuilder(done)
    result = build.phi(kind)
    result.add_incoming(zero, before)
    result.add_incoming(more, loop)
    return build, result
