"""A Python callable in machine code: NumPy arrays in, a new array out, no interpreter in between.

The function reads the leading fields of `PyArrayObject`, whose layout NumPy keeps stable, and makes
the result through NumPy's C function table. It serves the common case only: one state, contiguous
arrays of the right length and kind, and a status that is fine. Anything else goes to the careful
Python path. Addresses of this process are in a table of the module, filled when it is loaded, so
that the same object file serves other processes too.
"""

from __future__ import annotations

import ctypes
import math
import platform
import sys
import sysconfig
from typing import Any

import numpy as np

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.ir import BYTE, INT, INT32

# Offsets in PyObject and PyArrayObject_fields (64-bit, with the GIL).
OB_TYPE, DATA, NDIM, DIMENSIONS, STRIDES, BASE, DESCR = 8, 16, 24, 32, 40, 48, 56
ARRAY_TYPE, ARRAY_NEW = 2, 93  # entries of NumPy's C function table
WRITEABLE = 0x0501  # and aligned, and contiguous
NPY_KIND = {4: 11, 8: 12}
METH_FASTCALL = 0x0080

# Entries of the module's table.
TYPE, NEW, NONE, HOLD, RELEASE, TUPLE, DTYPE_4, DTYPE_8, RECORD, BLOCK = range(10)
ENTRIES = 10

ON_STACK = 1 << 16
"""Bytes of scratch memory that are taken from the stack; more is allocated."""

COPIED = 1 << 12
"""Bytes of several results that are copied into an array each, which is faster than views of one
array: they are freed one by one."""

IN_BLOCK, IN_TUPLE = bytes.__basicsize__ - 1, tuple.__basicsize__
"""Where the content of a bytes object begins, and that of a tuple."""

IN_POOL = 512 - bytes.__basicsize__
"""Bytes of a result whose memory is a bytes object that nobody else has seen: Python keeps room for
any number of small objects, NumPy that of seven arrays of a size."""

MOST_WORK = 1 << 24
"""Bytes of scratch memory above which the careful path, which keeps its own, is better."""


def available() -> bool:
    """Whether this interpreter has the layout that the function reads."""
    return (
        platform.python_implementation() == "CPython"
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
    )


def fill_table(address: int) -> None:
    """Write the addresses of this process into the table of a loaded module."""
    core: Any = getattr(np, "_core", None) or np.core  # NumPy 2, NumPy 1
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = get(core._multiarray_umath._ARRAY_API, None)
    functions = ctypes.cast(capsule, ctypes.POINTER(ctypes.c_void_p))
    table = (ctypes.c_void_p * ENTRIES).from_address(address)
    table[TYPE], table[NEW] = functions[ARRAY_TYPE], functions[ARRAY_NEW]
    table[NONE] = id(None)
    python = ctypes.pythonapi
    entries = {
        HOLD: python.Py_IncRef,
        RELEASE: python.Py_DecRef,
        TUPLE: python.PyType_GenericAlloc,
        BLOCK: python.PyBytes_FromStringAndSize,
    }
    for entry, function in entries.items():
        table[entry] = ctypes.cast(function, ctypes.c_void_p).value
    table[DTYPE_4], table[DTYPE_8] = id(np.dtype(np.float32)), id(np.dtype(np.float64))
    table[RECORD] = id(tuple)


def return_as(record: type[tuple[Any, ...]], address: int) -> None:
    """Let the function of a loaded module return several results as a named tuple.

    Args:
        record: The class, which must live as long as the process, as that of a module does.
        address: That of the module's table.
    """
    (ctypes.c_void_p * ENTRIES).from_address(address)[RECORD] = id(record)


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def callable_at(address: int, owner: object) -> Any:
    """A Python callable for the machine code at an address, which belongs to `owner`.

    The callable holds the owner and the record of itself as its `self`, so that it may outlive the
    kernel it was taken from.
    """
    record = _MethodDef(b"kernel", address, METH_FASTCALL, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.byref(record), (owner, record), None)


POINTER = BYTE.as_pointer()


def emit(
    module: ir.Module,
    sizes: list[int],
    shape: tuple[int, ...],
    itemsize: int,
    work: int,
    parts: tuple[tuple[int, ...], ...] = (),
) -> None:
    """Add `fast(self, args, count)` to a module whose `run` takes one state at a time.

    It returns an array of a shape, or a tuple of those that are its parts; None where the careful
    path has to be taken.
    """
    kind = ir.ArrayType(INT, ENTRIES)
    table = ir.GlobalVariable(module, kind, "table", ir.Constant(kind, [0] * ENTRIES))
    function = ir.Function(
        module, ir.FunctionType(POINTER, [POINTER, POINTER.as_pointer(), INT]), "fast"
    )
    build = ir.IRBuilder(function.append_basic_block("entry"))
    if work * itemsize > MOST_WORK:
        _return_none(build, table)
        return
    number = ir.DOUBLE if itemsize == 8 else ir.FLOAT
    arrays = build.alloca(number.as_pointer(), size=max(len(sizes), 1))
    steps = build.alloca(INT, size=max(len(sizes), 1))
    dims = build.alloca(INT, size=max(len(shape), *map(len, parts), 1))
    status = build.alloca(INT32)
    stacked = work * itemsize <= ON_STACK
    scratch = build.alloca(number, size=max(work, 1) if stacked else 1)
    careful = function.append_basic_block("careful")
    _return_none(ir.IRBuilder(careful), table)
    count = build.icmp_signed("==", function.args[2], _int(len(sizes)))
    build = _demand(function, build, careful, count)
    for i, size in enumerate(sizes):
        item = build.load(build.gep(function.args[1], [_int(i)]))
        build = _check_array(function, build, careful, item, size, table, itemsize)
        data = build.bitcast(_field(build, item, DATA, POINTER), number.as_pointer())
        build.store(data, build.gep(arrays, [_int(i)]))
        build.store(_int(size), build.gep(steps, [_int(i)]))
    failed = function.append_basic_block("failed")  # out of memory: NumPy has set the error
    ir.IRBuilder(failed).ret(ir.Constant(POINTER, None))
    total = math.prod(shape)
    out: Any = None
    if parts and total * itemsize <= COPIED:
        result = build.alloca(number, size=total)
    else:
        out = _new_array(build, dims, shape, table, itemsize)
        build = _demand(function, build, failed, _exists(build, out))
        result = build.bitcast(_field(build, out, DATA, POINTER), number.as_pointer())
    dropped = function.append_basic_block("dropped")
    memory = None
    if not stacked:
        allocate = ir.Function(module, ir.FunctionType(POINTER, [INT]), "malloc")
        memory = build.call(allocate, [_int(work * itemsize)])
        build = _demand(function, build, dropped, _exists(build, memory))
        scratch = build.bitcast(memory, number.as_pointer())
    build.call(
        module.globals["run"],
        [arrays, steps, result, _int(total), status, _int(0), _int(1), scratch],
    )
    if memory is not None:
        free = ir.Function(module, ir.FunctionType(ir.VOID, [POINTER]), "free")
        build.call(free, [memory])
    fine = build.icmp_signed("==", build.load(status), ir.Constant(INT32, 0))
    build = _demand(function, build, dropped, fine)
    if parts:
        numbers = build.bitcast(result, POINTER)
        build, together = _parted(
            module, function, build, failed, out, numbers, dims, parts, table, itemsize
        )
        build.ret(together)
    else:
        build.ret(out)
    build = ir.IRBuilder(dropped)
    if out is not None:
        _called(build, table, RELEASE, ir.VOID, [out])
    _return_none(build, table)


def _parted(
    module: ir.Module,
    function: Any,
    build: ir.IRBuilder,
    failed: Any,
    array: Any,
    data: Any,
    dims: Any,
    parts: tuple[tuple[int, ...], ...],
    table: Any,
    itemsize: int,
) -> tuple[ir.IRBuilder, Any]:
    """A tuple of arrays, one for each part: views of an array, or without one copies of numbers.

    Where memory is out, it leaks a little.
    """
    record = build.inttoptr(_entry(build, table, RECORD), POINTER)
    together = _called(build, table, TUPLE, POINTER, [record, _int(len(parts))])
    build = _demand(function, build, failed, _exists(build, together))
    copy = None
    if array is None:
        kind = ir.FunctionType(ir.VOID, [POINTER, POINTER, INT, ir.BIT])
        copy = ir.declared(module, "llvm.memcpy.p0.p0.i64", kind)
    start = 0
    for i, shape in enumerate(parts):
        if i and array is not None:  # each view owns a reference, the first that of this function
            _called(build, table, HOLD, ir.VOID, [array])
        numbers, size = build.gep(data, [_int(start)]), math.prod(shape) * itemsize
        owner, place = array, numbers
        if copy is not None and 0 < size <= IN_POOL:
            given = [ir.Constant(POINTER, None), _int(size)]
            owner = _called(build, table, BLOCK, POINTER, given)
            build = _demand(function, build, failed, _exists(build, owner))
            place = build.gep(owner, [_int(IN_BLOCK)])
        shared = None if owner is None else place
        part = _new_array(build, dims, shape, table, itemsize, shared)
        build = _demand(function, build, failed, _exists(build, part))
        if owner is None:
            place = _field(build, part, DATA, POINTER)
        else:
            _put(build, part, BASE, owner)  # a new array has none
        if copy is not None:
            build.call(copy, [place, numbers, _int(size), ir.Constant(ir.BIT, 0)])
        _put(build, together, IN_TUPLE + 8 * i, part)
        start += size
    return build, together


def _called(build: ir.IRBuilder, table: Any, index: int, result: Any, given: list[Any]) -> Any:
    """What a function of the table returns."""
    kind = ir.FunctionType(result, [x.type for x in given]).as_pointer()
    return build.call(build.inttoptr(_entry(build, table, index), kind), given)


def _exists(build: ir.IRBuilder, pointer: Any) -> Any:
    return build.icmp_unsigned("!=", build.ptrtoint(pointer, INT), _int(0))


def _entry(build: ir.IRBuilder, table: Any, index: int) -> Any:
    zero = ir.Constant(INT32, 0)
    return build.load(build.gep(table, [zero, ir.Constant(INT32, index)]))


def _return_none(build: ir.IRBuilder, table: Any) -> None:
    none = build.inttoptr(_entry(build, table, NONE), POINTER)
    if sys.version_info < (3, 12):  # from then on None is never counted
        count = build.bitcast(none, INT.as_pointer())
        build.store(build.add(build.load(count), _int(1)), count)
    build.ret(none)


def _int(value: int) -> Any:
    return ir.Constant(INT, value)


def _demand(function: Any, build: ir.IRBuilder, careful: Any, condition: Any) -> ir.IRBuilder:
    onward = function.append_basic_block("onward")
    build.cbranch(condition, onward, careful)
    return ir.IRBuilder(onward)


def _field(build: ir.IRBuilder, item: Any, offset: int, kind: Any) -> Any:
    at = build.gep(item, [_int(offset)])
    return build.load(build.bitcast(at, kind.as_pointer()))


def _put(build: ir.IRBuilder, item: Any, offset: int, value: Any) -> None:
    build.store(value, build.bitcast(build.gep(item, [_int(offset)]), POINTER.as_pointer()))


def _check_array(
    function: Any,
    build: ir.IRBuilder,
    careful: Any,
    item: Any,
    size: int,
    table: Any,
    itemsize: int,
) -> ir.IRBuilder:
    """A plain one-dimensional contiguous array of the right kind of number."""
    kind = _field(build, item, OB_TYPE, INT)
    array_type = _entry(build, table, TYPE)
    build = _demand(function, build, careful, build.icmp_signed("==", kind, array_type))
    descr = _field(build, item, DESCR, INT)
    dtype = _entry(build, table, DTYPE_8 if itemsize == 8 else DTYPE_4)
    build = _demand(function, build, careful, build.icmp_signed("==", descr, dtype))
    ndim = _field(build, item, NDIM, INT32)
    build = _demand(function, build, careful, build.icmp_signed("==", ndim, ir.Constant(INT32, 1)))
    length = build.load(_field(build, item, DIMENSIONS, INT.as_pointer()))
    stride = build.load(_field(build, item, STRIDES, INT.as_pointer()))
    fits = build.and_(
        build.icmp_signed("==", length, _int(size)), build.icmp_signed("==", stride, _int(itemsize))
    )
    return _demand(function, build, careful, fits)


def _new_array(
    build: ir.IRBuilder,
    dims: Any,
    shape: tuple[int, ...],
    table: Any,
    itemsize: int,
    data: Any = None,
) -> Any:
    """PyArray_New(&PyArray_Type, ndim, dims, kind, NULL, data, 0, flags, NULL)."""
    for i, n in enumerate(shape):
        build.store(_int(n), build.gep(dims, [_int(i)]))
    array_type = build.inttoptr(_entry(build, table, TYPE), POINTER)
    null, zero = ir.Constant(POINTER, None), ir.Constant(INT32, 0)
    kind, ndim = ir.Constant(INT32, NPY_KIND[itemsize]), ir.Constant(INT32, len(shape))
    flags = zero if data is None else ir.Constant(INT32, WRITEABLE)
    given = [array_type, ndim, dims, kind, null, data or null, zero, flags, null]
    return _called(build, table, NEW, POINTER, given)
