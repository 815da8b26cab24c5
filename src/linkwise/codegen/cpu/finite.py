"""Whether rows of numbers are finite: 0 x is zero for finite x only, and so is a sum of such."""

from __future__ import annotations

from typing import Any

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import FLAGS, Emitter
from linkwise.codegen.cpu.ir import INT, INT32

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
