# pyright: basic
# (llvmlite has no type information)
"""Machine code for this computer: LLVM text to an object file, an object file to functions."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as binding
import numpy as np

from linkwise.codegen.cpu import fastcall
from linkwise.codegen.cpu.ir import Unit

POINTER, INT = ctypes.c_void_p, ctypes.c_int64
SIGNATURE = ctypes.CFUNCTYPE(None, POINTER, POINTER, POINTER, INT, POINTER, INT, INT, POINTER)


@dataclass(frozen=True, slots=True)
class Machine:
    """Compiled functions, kept alive with the engine that owns them."""

    engine: Any  # LLVM's execution engine
    run: Any  # the function for a stretch of states (`llvm.py` has its arguments)
    fast: Any  # the Python callable for one state, if this interpreter can have one
    lanes: int  # states done together
    itemsize: int  # bytes of a number
    work: int  # numbers of scratch memory that a thread needs
    tables: tuple[tuple[str, Any], ...] = ()  # arrays that the functions read, kept alive with them
    evaluated: Any = None  # instead of functions, a formula that is evaluated in NumPy

    def return_as(self, record: type[tuple[Any, ...]]) -> None:
        """Let `fast` return several results as a named tuple."""
        if self.fast is not None:
            fastcall.return_as(record, self.engine.get_global_value_address("table"))


@cache
def host() -> tuple[str, str, str]:
    """(triple, processor, features) of this computer."""
    features = binding.get_host_cpu_features()
    return binding.get_default_triple(), binding.get_host_cpu_name(), features.flatten()


def versions() -> tuple[str, ...]:
    """Everything outside Linkwise that machine code depends on."""
    return (*host(), llvmlite.__version__, np.__version__, sys.version)


def lanes(itemsize: int) -> int:
    """How many numbers fit into the widest vector register here."""
    features = binding.get_host_cpu_features()
    width = 64 if features.get("avx512f") else 32 if features.get("avx2") else 16
    return width // itemsize


def _target(level: int) -> Any:
    """A target machine of this computer that takes so much trouble over its code, 0 to 3."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    triple, cpu, features = host()
    target = binding.Target.from_triple(triple)
    return target.create_target_machine(
        cpu=cpu, features=features, opt=level, reloc="pic", codemodel="small"
    )


def level(unit: Unit) -> int:
    """How much effort LLVM puts into a module, 0 to 3.

    The code comes from graphs without repetitions, in a good order: LLVM's passes over it would
    take longer than all the rest, and find next to nothing. For straight code the lowest level that
    allocates registers well gives the same as the highest one; loops, which read tables, gain by
    it. The tests of everything but code generation compile at level 0
    (`tests/conftest.py`), which takes an eighth of the time.
    """
    return 1 if not unit.tables else 3


def object_code(unit: Unit) -> bytes:
    """The object file of a module, for this computer."""
    machine = _target(level(unit))
    module = binding.parse_assembly(unit.text)
    module.triple = host()[0]
    module.verify()
    return machine.emit_object(module)


def load(
    code: bytes,
    *,
    lanes: int,
    itemsize: int,
    work: int,
    tables: tuple[tuple[str, Any], ...] = (),
) -> Machine:
    """The functions of an object file, and the tables that they read."""
    engine = linked(code)
    run = SIGNATURE(engine.get_function_address("run"))
    fast = None
    if lanes == 1 and fastcall.available():
        fastcall.fill_table(engine.get_global_value_address("table"))
        fast = fastcall.callable_at(engine.get_function_address("fast"), (engine, tables))
    for name, array in tables:
        pointer = ctypes.c_void_p.from_address(engine.get_global_value_address(name))
        pointer.value = array.ctypes.data
    return Machine(engine, run, fast, lanes, itemsize, work, tables)


def linked(code: bytes) -> Any:
    """An execution engine with the functions of an object file."""
    machine = _target(3)  # the engine takes it over
    empty = binding.parse_assembly("")
    # The small code model reaches constants by short offsets: this memory manager keeps the
    # sections of an object file together.
    engine = binding.create_mcjit_compiler(empty, machine, use_lmm=True)
    engine.add_object_file(binding.object_file.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine
