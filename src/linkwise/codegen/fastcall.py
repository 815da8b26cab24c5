# pyright: basic
# (llvmlite has no type information)
"""A Python callable in machine code: NumPy arrays in, a new array out, no interpreter in between.

The function reads the leading fields of `PyArrayObject`, whose layout NumPy keeps stable, and makes
the result through NumPy's C function table. It serves the common case only: one state, contiguous
float64 arrays of the right length, all finite, and a result that is. Anything else goes to the
careful Python path.
"""

from __future__ import annotations

import ctypes
import math
import platform
import sys
import sysconfig
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir

BYTE = ir.IntType(8)
POINTER = BYTE.as_pointer()
INT = ir.IntType(64)
INT32 = ir.IntType(32)
DOUBLE = ir.DoubleType()

# Offsets in PyObject and PyArrayObject_fields (64-bit, with the GIL).
OB_TYPE, DATA, NDIM, DIMENSIONS, STRIDES, DESCR = 8, 16, 24, 32, 40, 56
ARRAY_TYPE, ARRAY_NEW = 2, 93  # entries of NumPy's C function table
NPY_DOUBLE = 12
METH_FASTCALL = 0x0080


def available() -> bool:
    """Whether this interpreter has the layout that the function reads."""
    return (
        platform.python_implementation() == "CPython"
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
    )


def _table() -> Any:
    """NumPy's C function table."""
    core: Any = getattr(np, "_core", None) or np.core  # NumPy 2, NumPy 1
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = get(core._multiarray_umath._ARRAY_API, None)
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))


def emit(module: ir.Module, sizes: list[int], shape: tuple[int, ...]) -> None:
    """Add `fast(self, args, count)` to a module that has `single`.

    It returns None where the careful path has to be taken.
    """
    table = _table()
    kind = ir.FunctionType(POINTER, [POINTER, POINTER.as_pointer(), INT])
    function = ir.Function(module, kind, "fast")
    entry = function.append_basic_block("entry")
    careful = function.append_basic_block("careful")
    _return_none(ir.IRBuilder(careful))
    build = ir.IRBuilder(entry)
    arrays = build.alloca(DOUBLE.as_pointer(), size=max(len(sizes), 1))
    dims = build.alloca(INT, size=max(len(shape), 1))
    build = _demand(
        function, build, careful, build.icmp_signed("==", function.args[2], _int(len(sizes)))
    )
    checksum = ir.Constant(DOUBLE, 0.0)
    for i, size in enumerate(sizes):
        item = build.load(build.gep(function.args[1], [_int(i)]))
        build = _check_array(function, build, careful, item, size, table)
        data = build.bitcast(_field(build, item, DATA, POINTER), DOUBLE.as_pointer())
        build.store(data, build.gep(arrays, [_int(i)]))
        for j in range(size):  # 0 x is zero for finite x only
            x = build.load(build.gep(data, [_int(j)]))
            checksum = build.fadd(checksum, build.fmul(x, ir.Constant(DOUBLE, 0.0)))
    finite = build.fcmp_ordered("==", checksum, ir.Constant(DOUBLE, 0.0))
    build = _demand(function, build, careful, finite)
    for i, n in enumerate(shape):
        build.store(_int(n), build.gep(dims, [_int(i)]))
    out = _new_array(build, dims, len(shape), table)
    made = build.icmp_unsigned("!=", build.ptrtoint(out, INT), _int(0))
    failed = function.append_basic_block("failed")  # out of memory: NumPy has set the error
    ir.IRBuilder(failed).ret(ir.Constant(POINTER, None))
    build = _demand(function, build, failed, made)
    result = build.bitcast(_field(build, out, DATA, POINTER), DOUBLE.as_pointer())
    build.call(module.globals["single"], [arrays, result, _int(1)])
    checksum = ir.Constant(DOUBLE, 0.0)
    for j in range(math.prod(shape)):
        x = build.load(build.gep(result, [_int(j)]))
        checksum = build.fadd(checksum, build.fmul(x, ir.Constant(DOUBLE, 0.0)))
    finite = build.fcmp_ordered("==", checksum, ir.Constant(DOUBLE, 0.0))
    dropped = function.append_basic_block("dropped")
    build = _demand(function, build, dropped, finite)
    build.ret(out)
    build = ir.IRBuilder(dropped)
    release = ir.FunctionType(ir.VoidType(), [POINTER]).as_pointer()
    address = ctypes.cast(ctypes.pythonapi.Py_DecRef, ctypes.c_void_p).value
    build.call(build.inttoptr(_int(address or 0), release), [out])
    _return_none(build)


def _return_none(build: ir.IRBuilder) -> None:
    none = build.inttoptr(_int(id(None)), POINTER)
    if sys.version_info < (3, 12):  # from then on None is never counted
        count = build.bitcast(none, INT.as_pointer())
        build.store(build.add(build.load(count), _int(1)), count)
    build.ret(none)


def _int(value: int) -> Any:
    return ir.Constant(INT, value)


def _demand(function: Any, build: ir.IRBuilder, careful: Any, condition: Any) -> ir.IRBuilder:
    """Go on only if the condition holds."""
    onward = function.append_basic_block("onward")
    build.cbranch(condition, onward, careful)
    return ir.IRBuilder(onward)


def _field(build: ir.IRBuilder, item: Any, offset: int, kind: Any) -> Any:
    at = build.gep(item, [_int(offset)])
    return build.load(build.bitcast(at, kind.as_pointer()))


def _check_array(
    function: Any, build: ir.IRBuilder, careful: Any, item: Any, size: int, table: Any
) -> ir.IRBuilder:
    """A plain one-dimensional contiguous array of float64."""
    kind = _field(build, item, OB_TYPE, INT)
    build = _demand(
        function, build, careful, build.icmp_signed("==", kind, _int(table[ARRAY_TYPE]))
    )
    descr = _field(build, item, DESCR, INT)
    float64 = _int(id(np.dtype(np.float64)))
    build = _demand(function, build, careful, build.icmp_signed("==", descr, float64))
    ndim = _field(build, item, NDIM, INT32)
    build = _demand(function, build, careful, build.icmp_signed("==", ndim, ir.Constant(INT32, 1)))
    length = build.load(_field(build, item, DIMENSIONS, INT.as_pointer()))
    stride = build.load(_field(build, item, STRIDES, INT.as_pointer()))
    fits = build.and_(
        build.icmp_signed("==", length, _int(size)), build.icmp_signed("==", stride, _int(8))
    )
    return _demand(function, build, careful, fits)


def _new_array(build: ir.IRBuilder, dims: Any, ndim: int, table: Any) -> Any:
    """PyArray_New(&PyArray_Type, ndim, dims, NPY_DOUBLE, NULL, NULL, 0, 0, NULL)."""
    parts = [POINTER, INT32, INT.as_pointer(), INT32, POINTER, POINTER, INT32, INT32, POINTER]
    kind = ir.FunctionType(POINTER, parts).as_pointer()
    new = build.inttoptr(_int(table[ARRAY_NEW]), kind)
    array_type = build.inttoptr(_int(table[ARRAY_TYPE]), POINTER)
    null, zero = ir.Constant(POINTER, None), ir.Constant(INT32, 0)
    arguments = [array_type, ir.Constant(INT32, ndim), dims, ir.Constant(INT32, NPY_DOUBLE)]
    return build.call(new, [*arguments, null, null, zero, zero, null])


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


@dataclass(frozen=True, slots=True)
class FastCall:
    """The callable, with the record that has to live as long as it does."""

    function: Any
    record: _MethodDef


def callable_at(address: int) -> FastCall:
    """A Python callable for the machine code at an address."""
    record = _MethodDef(b"kernel", address, METH_FASTCALL, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.POINTER(_MethodDef), ctypes.c_void_p, ctypes.c_void_p]
    return FastCall(make(ctypes.byref(record), None, None), record)
