"""Rows of states in memory, columns of states in registers: loads and stores that turn one round.

A batch has one state a row. A vector register holds one entry of `lanes` states, so a square of
entries is loaded row by row and transposed between registers by log2(lanes) rounds of shuffles:
about 4 instructions an entry instead of the 11 of gathering them one by one.
"""

from __future__ import annotations

from collections.abc import Callable
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


ACROSS, ALONG = 64, 4
"""Bytes that are looked at together, and how often before the sums are used again."""


def finite_rows(emit: Emitter, build: ir.IRBuilder, row: Any, stride: Any, size: int) -> Any:
    """Zero for each state whose row of `size` numbers is finite, else NaN."""
    function = _finite(emit, size)
    if emit.lanes == 1:
        return build.call(function, [row])
    sums = emit.constant(0.0)
    for lane in range(emit.lanes):
        at = build.gep(row, [build.mul(stride, ir.Constant(INT, lane))])
        sums = build.insert_element(sums, build.call(function, [at]), ir.Constant(INT32, lane))
    return sums


def _finite(emit: Emitter, size: int) -> ir.Function:
    """finite(row): the sum of 0 x over `size` numbers; some may be taken twice."""
    module, pointer = emit.module, emit.number.as_pointer()
    name = f"finite_{emit.itemsize}_{size}"
    known = module.globals.get(name)
    if isinstance(known, ir.Function):
        return known
    function = ir.Function(module, ir.FunctionType(emit.number, [pointer]), name, internal=True)
    (row,) = function.args
    width = ACROSS // emit.itemsize
    while width > max(size, 1):
        width //= 2
    kind = emit.number if width == 1 else ir.vector(emit.number, width)
    zero = ir.Constant(kind, 0.0)
    build = ir.IRBuilder(function.append_basic_block("entry"))

    def taken(build: ir.IRBuilder, total: Any, at: Any) -> Any:
        address = build.bitcast(build.gep(row, [at]), kind.as_pointer())
        x: Any = build.load(address, align=emit.itemsize)
        return build.fadd(total, build.fmul(x, zero, flags=FLAGS), flags=FLAGS)

    rounds = size // (ALONG * width)
    sums: list[Any] = [zero] * ALONG
    if rounds:
        build, sums = _rounds(build, rounds, ALONG * width, sums, taken)
    starts = [*range(rounds * ALONG * width, size - width + 1, width)]
    if size % width:
        starts.append(size - width)  # the last ones, with some before them
    for i, start in enumerate(starts):
        sums[i % ALONG] = taken(build, sums[i % ALONG], ir.Constant(INT, start))
    while len(sums) > 1:
        sums = [build.fadd(a, b) for a, b in zip(sums[::2], sums[1::2], strict=True)]
    build.ret(_added_up(build, sums[0], width))
    return function


def _rounds(
    build: ir.IRBuilder, count: int, step: int, sums: list[Any], taken: Callable[..., Any]
) -> tuple[ir.IRBuilder, list[Any]]:
    """A loop that takes `step` numbers at a time."""
    before, function = build.block, build.function
    loop, done = (function.append_basic_block(x) for x in ("each", "done"))
    build.branch(loop)
    build = ir.IRBuilder(loop)
    i, totals = build.phi(INT), [build.phi(x.type) for x in sums]
    i.add_incoming(ir.Constant(INT, 0), before)
    start = build.mul(i, ir.Constant(INT, step))
    after = list[Any]()
    for number, (x, total) in enumerate(zip(sums, totals, strict=True)):
        total.add_incoming(x, before)
        at = build.add(start, ir.Constant(INT, number * step // len(sums)))
        after.append(taken(build, total, at))
        total.add_incoming(after[-1], loop)
    following = build.add(i, ir.Constant(INT, 1))
    i.add_incoming(following, loop)
    more = build.icmp_signed("<", following, ir.Constant(INT, count))
    build.cbranch(more, loop, done)
    return ir.IRBuilder(done), after


def _added_up(build: ir.IRBuilder, x: Any, width: int) -> Any:
    """The sum of the lanes of a vector."""
    while width > 1:
        width //= 2
        if width == 1:
            first, second = (build.extract_element(x, ir.Constant(INT32, i)) for i in (0, 1))
        else:
            first, second = (
                build.shuffle_vector(x, x, _mask([*range(start, start + width)]))
                for start in (0, width)
            )
        x = build.fadd(first, second)
    return x
