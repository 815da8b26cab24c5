"""Sweeps over impulses whose number is known at run time only: one compiled loop for all.

The laws are those of `simulation/implicit/impulse.py`. The module exports

    sweeps(double* rows, double* b, double* mobility, double* inverse, double* impulse, double* w,
           int64 width, int64 joints, double* bounds, int64 contacts, double* radii, int64 each,
           int64 more, int64 most, double enough, double* worst)

`rows` has a row y of `width` numbers for each impulse, a multiple of LANES. First come the joints,
with `bounds` (h f, low, high) each; then the contacts, `each` rows a contact: normal and two
tangents, and where `more` is 1 spinning and two of rolling. `radii` has (friction, torsional,
rolling) of each contact.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.ir import DOUBLE, INT, Unit
from linkwise.codegen.cpu.llvm import counted
from linkwise.spatial.array import Array

LANES = 4
"""Numbers of a row that are done together."""

_VECTOR = ir.vector(DOUBLE, LANES)
_POINTER = DOUBLE.as_pointer()
_KINDS = [*[_POINTER] * 6, INT, INT, _POINTER, INT, _POINTER, INT, INT, INT, DOUBLE, _POINTER]
_C = {id(_POINTER): ctypes.c_void_p, id(INT): ctypes.c_int64, id(DOUBLE): ctypes.c_double}


def solve_impulses(
    rows: Array,
    b: Array,
    inverse: Array,
    impulse: Array,
    w: Array,
    bounds: Array,
    radii: Array,
    *,
    each: int,
    most: int,
    enough: float,
) -> tuple[float, int]:
    """Sweep until no velocity changes by `enough`, at most `most` times; changes impulse and w.

    Args:
        rows: Y (m, width), contiguous, with a width that is a multiple of LANES.
        b: (m,), with β added in normal rows.
        inverse: (m,), see `Sweep`.
        impulse: λ (m,).
        w: e + Y λ (width,).
        bounds: h f and the velocities at limits of each joint (j, 3).
        radii: Friction, torsional and rolling of each contact (c, 3).
        each: Rows of a contact, 3 or 6.

    Returns:
        The largest change of a velocity in the last sweep, and how many were made.
    """
    mobility = np.einsum("ij,ij->i", rows, rows)
    worst = np.zeros(2)
    _function()(
        rows.ctypes.data, b.ctypes.data, mobility.ctypes.data, inverse.ctypes.data,
        impulse.ctypes.data, w.ctypes.data, rows.shape[1], len(bounds), bounds.ctypes.data,
        len(radii), radii.ctypes.data, each, int(each > 3), most, enough, worst.ctypes.data,
    )  # fmt: skip
    return float(worst[0]), int(worst[1])


@cache
def _function() -> Callable[..., None]:
    from linkwise.codegen.cpu.machine import linked, object_code

    engine = linked(object_code(Unit(_module(), LANES, 8, 0)))
    kind = ctypes.CFUNCTYPE(None, *(_C[id(x)] for x in _KINDS))
    function = kind(engine.get_function_address("sweeps"))
    function.engine = engine  # pyright: ignore[reportAttributeAccessIssue]  # owns the code
    return function


def _module() -> str:
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VOID, _KINDS), "sweeps")
    _Sweeps(function).emit()
    ir.GlobalVariable(module, INT, "unused", ir.Constant(INT, 1))  # the loader wants some data
    return str(module)


class _Sweeps:
    """Writes the function; `build` is where to go on."""

    def __init__(self, function: ir.Function) -> None:
        (self.rows, self.b, self.mobility, self.inverse, self.impulse, self.w, self.width,
         self.joints, self.bounds, self.contacts, self.radii, self.each, self.more, self.most,
         self.enough, self.worst) = function.args  # fmt: skip
        self.build = ir.IRBuilder(function.append_basic_block("entry"))
        self.sum = self.build.alloca(_VECTOR)
        root = ir.FunctionType(DOUBLE, [DOUBLE])
        self.root = ir.declared(self.build.module, "llvm.sqrt.f64", root)
        self.parts = self.build.sdiv(self.width, _int(LANES))

    # ---------------------------------------------------------------------------- pieces

    def _get(self, array: Any, i: Any) -> Any:
        return self.build.load(self.build.gep(array, [i]))

    def _put(self, array: Any, i: Any, x: Any) -> None:
        self.build.store(x, self.build.gep(array, [i]))

    def _loop(self, count: Any, body: Callable[[Any], None], alive: Any = None) -> None:
        def inside(build: ir.IRBuilder, i: Any) -> ir.IRBuilder:
            self.build = build
            body(i)
            return self.build

        self.build = counted(self.build, count, inside, alive=alive)

    def _larger(self, a: Any, b: Any) -> Any:
        return self.build.select(self.build.fcmp_ordered(">", a, b), a, b)

    def _smaller(self, a: Any, b: Any) -> Any:
        return self.build.select(self.build.fcmp_ordered("<", a, b), a, b)

    def _vector(self, array: Any, i: Any) -> Any:
        """The address of some numbers from i on."""
        return self.build.bitcast(self.build.gep(array, [i]), _VECTOR.as_pointer())

    def _velocity(self, i: Any) -> Any:
        """u_i = b_i + y_i* w."""
        start = self.build.mul(i, self.width)
        self.build.store(ir.Constant(_VECTOR, [0.0] * LANES), self.sum)

        def part(k: Any) -> None:
            build = self.build
            at = build.mul(k, _int(LANES))
            y = build.load(self._vector(self.rows, build.add(start, at)), align=8)
            product = build.fmul(y, build.load(self._vector(self.w, at), align=8))
            build.store(build.fadd(build.load(self.sum), product), self.sum)

        self._loop(self.parts, part)
        total, lanes = self._get(self.b, i), self.build.load(self.sum)
        for lane in range(LANES):
            total = self.build.fadd(total, self.build.extract_element(lanes, _int(lane)))
        return total

    def _set(self, i: Any, value: Any) -> None:
        """λ_i, with w and the largest change."""
        change = self.build.fsub(value, self._get(self.impulse, i))
        self._put(self.impulse, i, value)
        start, wide = self.build.mul(i, self.width), ir.undefined(_VECTOR)
        for lane in range(LANES):
            wide = self.build.insert_element(wide, change, _int(lane))

        def part(k: Any) -> None:
            build = self.build
            at = build.mul(k, _int(LANES))
            y = build.load(self._vector(self.rows, build.add(start, at)), align=8)
            place = self._vector(self.w, at)
            build.store(build.fadd(build.load(place, align=8), build.fmul(y, wide)), place, align=8)

        self._loop(self.parts, part)
        size = self._larger(change, self.build.fneg(change))
        moved = self.build.fmul(size, self._get(self.mobility, i))
        self._put(self.worst, _int(0), self._larger(self._get(self.worst, _int(0)), moved))

    # ------------------------------------------------------------------------------ laws

    def _wish(self, i: Any) -> Any:
        """λ_i with which u_i would be zero, as far as it goes."""
        u = self._velocity(i)  # ends in another block
        step = self.build.fmul(u, self._get(self.inverse, i))
        return self.build.fsub(self._get(self.impulse, i), step)

    def _disc(self, rows: list[Any], radius: Any) -> None:
        wishes = [self._wish(i) for i in rows]
        square = ir.Constant(DOUBLE, 1e-60)
        for x in wishes:
            square = self.build.fadd(square, self.build.fmul(x, x))
        share = self.build.fdiv(radius, self.build.call(self.root, [square]))
        share = self._smaller(share, ir.Constant(DOUBLE, 1.0))
        for i, x in zip(rows, wishes, strict=True):
            self._set(i, self.build.fmul(share, x))

    def _joint(self, i: Any) -> None:
        build = self.build
        most, low, high = (
            self._get(self.bounds, build.add(build.mul(i, _int(3)), _int(j))) for j in range(3)
        )
        u = self._velocity(i)
        build, inverse, zero = self.build, self._get(self.inverse, i), ir.Constant(DOUBLE, 0.0)
        moves = build.fcmp_ordered(">", inverse, zero)
        before = build.select(moves, self._get(self.impulse, i), zero)
        free = build.fsub(before, build.fmul(u, inverse))
        value = self._larger(self._smaller(free, most), build.fneg(most))
        value = self._larger(build.fadd(free, build.fmul(low, inverse)), value)
        self._set(i, self._smaller(build.fadd(free, build.fmul(high, inverse)), value))

    def _contact(self, c: Any) -> None:
        build = self.build
        i = build.add(self.joints, build.mul(c, self.each))
        push = self._larger(self._wish(i), ir.Constant(DOUBLE, 0.0))
        self._set(i, push)

        def radius(k: int) -> Any:
            at = self.build.add(self.build.mul(c, _int(3)), _int(k))
            return self.build.fmul(push, self._get(self.radii, at))

        def rows(first: int, count: int) -> list[Any]:
            return [self.build.add(i, _int(first + k)) for k in range(count)]

        self._disc(rows(1, 2), radius(0))

        def turns(_: Any) -> None:
            self._disc(rows(3, 1), radius(1))
            self._disc(rows(4, 2), radius(2))

        self._loop(self.more, turns)

    def emit(self) -> None:
        """All sweeps."""
        big = ir.Constant(DOUBLE, 1e300)
        self._put(self.worst, _int(0), big)

        def sweep(n: Any) -> None:
            self._put(self.worst, _int(0), ir.Constant(DOUBLE, 0.0))
            self._loop(self.joints, self._joint)
            self._loop(self.contacts, self._contact)
            made = self.build.sitofp(self.build.add(n, _int(1)), DOUBLE)
            self._put(self.worst, _int(1), made)

        def going(build: ir.IRBuilder) -> Any:
            worst = build.load(build.gep(self.worst, [_int(0)]))
            return build.fcmp_ordered(">", worst, self.enough)

        self._loop(self.most, sweep, going)
        self.build.ret_void()


def _int(n: int) -> Any:
    return ir.Constant(INT, n)
