"""Every number of a row of results is looked at, and none beside it."""

from __future__ import annotations

import ctypes

import llvmlite.binding as binding
import numpy as np
import pytest

from linkwise.codegen.cpu import ir, machine
from linkwise.codegen.cpu.emit import Emitter
from linkwise.codegen.cpu.rows import finite_rows


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 17, 31, 33, 64, 147])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_entry_that_is_not_finite_is_noticed(size, dtype):
    itemsize, code = np.dtype(dtype).itemsize, ir.Module()
    emit = Emitter(code, itemsize, 1)
    kind = ir.FunctionType(emit.number, [emit.number.as_pointer()])
    function = ir.Function(code, kind, "check")
    build = ir.IRBuilder(function.append_basic_block("entry"))
    (row,) = function.args
    build.ret(finite_rows(emit, build, row, None, size))
    text = binding.parse_assembly(str(code))
    text.verify()
    engine = binding.create_mcjit_compiler(text, machine._target(1))
    engine.finalize_object()
    number = ctypes.c_double if itemsize == 8 else ctypes.c_float
    check = ctypes.CFUNCTYPE(number, ctypes.c_void_p)(engine.get_function_address("check"))
    memory = np.full(size + 64, np.nan, dtype)
    entries = memory[32 : 32 + size]
    entries[:] = np.random.default_rng(size).standard_normal(size)
    assert check(entries.ctypes.data) == 0.0
    for i in range(size):
        for bad in (np.nan, np.inf, -np.inf):
            good, entries[i] = entries[i], bad
            assert np.isnan(check(entries.ctypes.data))
            entries[i] = good
