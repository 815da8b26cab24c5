"""A Python callable in machine code: NumPy arrays in, a new array out, no interpreter in between.

The function reads the leading fields of `PyArrayObject`, whose layout NumPy keeps stable, and makes
the result through NumPy's C function table. It serves the common case only: one state, contiguous
arrays of the right length and kind, and a status that is fine. Anything else goes to the careful
Python path. Addresses of this process are in a table of the module, filled when it is loaded, so
that the same object file serves other processes too.
"""

from __future__ import annotations

import ctypes
import platform
import sysconfig
from typing import Any

import numpy as np

# Offsets in PyObject and PyArrayObject_fields (64-bit, with the GIL).
OB_TYPE, DATA, NDIM, DIMENSIONS, STRIDES, DESCR = 8, 16, 24, 32, 40, 56
ARRAY_TYPE, ARRAY_NEW = 2, 93  # entries of NumPy's C function table
NPY_KIND = {4: 11, 8: 12}
METH_FASTCALL = 0x0080

# Entries of the module's table.
TYPE, NEW, NONE, RELEASE, DTYPE_4, DTYPE_8 = range(6)
ENTRIES = 6

ON_STACK = 1 << 16
"""Bytes of scratch memory that are taken from the stack; more is allocated."""

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
    table[RELEASE] = ctypes.cast(ctypes.pythonapi.Py_DecRef, ctypes.c_void_p).value
    table[DTYPE_4], table[DTYPE_8] = id(np.dtype(np.float32)), id(np.dtype(np.float64))


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
