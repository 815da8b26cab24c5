"""What the processor could do: floating-point instructions it can start, and those a kernel has."""

import ctypes
import re
import time

import llvmlite.binding as binding
from llvmlite import ir

from linkwise.codegen import stages
from linkwise.codegen.cpu import machine
from linkwise.codegen.cpu.build import unit
from linkwise.codegen.cpu.llvm import Unit
from linkwise.codegen.kernel import Kernel

CHAINS, ROUNDS = 14, 200_000
ARITHMETIC = re.compile(r"^\s+v?(f?n?m?(add|sub)|mul|div|sqrt|fn?m(add|sub)\w*)(\d+)?p[sd]\b", re.M)


def instructions_per_ns(itemsize: int = 8) -> float:
    """Additions and fused multiply-adds, half and half, on vector registers, started in a ns."""
    lanes = machine.lanes(itemsize)
    module = ir.Module(name="limit")
    number = ir.DoubleType() if itemsize == 8 else ir.FloatType()
    vector, count = ir.VectorType(number, lanes), ir.IntType(64)
    kind = ir.FunctionType(ir.VoidType(), [vector.as_pointer(), count])
    function = ir.Function(module, kind, "spin")
    entry, loop, done = (function.append_basic_block(n) for n in ("entry", "loop", "done"))
    build = ir.IRBuilder(entry)
    factor = build.load(function.args[0])
    build.branch(loop)
    build = ir.IRBuilder(loop)
    i = build.phi(count)
    i.add_incoming(ir.Constant(count, 0), entry)
    chains = [build.phi(vector) for _ in range(CHAINS)]
    for c, chain in enumerate(chains):
        chain.add_incoming(ir.Constant(vector, [float(c + 1)] * lanes), entry)
        after = build.fadd(chain, factor)
        if c % 2:  # half of a kernel's instructions are fused, the rest add or multiply
            product = build.fmul(chain, factor, flags=("contract",))
            after = build.fadd(product, factor, flags=("contract",))
        chain.add_incoming(after, loop)
    up = build.add(i, ir.Constant(count, 1))
    i.add_incoming(up, loop)
    build.cbranch(build.icmp_signed("<", up, function.args[1]), loop, done)
    build = ir.IRBuilder(done)
    total = chains[0]
    for chain in chains[1:]:
        total = build.fadd(total, chain)
    build.store(total, function.args[0])
    build.ret_void()
    code = machine.object_code(Unit(str(module), lanes, itemsize, 0))
    engine = binding.create_mcjit_compiler(
        binding.parse_assembly(""), binding.Target.from_default_triple().create_target_machine()
    )
    engine.add_object_file(binding.object_file.ObjectFileRef.from_data(code))
    engine.finalize_object()
    spin = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(
        engine.get_function_address("spin")
    )
    memory = (ctypes.c_double * 32)()
    start = (ctypes.addressof(memory) + 63) // 64 * 64
    times = list[float]()
    for _ in range(20):
        began = time.perf_counter()
        spin(start, ROUNDS)
        times.append(time.perf_counter() - began)
    return CHAINS * ROUNDS / (1e9 * min(times))


def vector_instructions(kernel: Kernel) -> int:
    """Floating-point instructions of the code for one vector register of states."""
    request = kernel.request
    text = unit(stages.graph(request), request.itemsize, kernel.signature.lanes)
    target = machine._target(machine.level(text))
    module = binding.parse_assembly(text.text)
    module.triple = machine.host()[0]
    lines = target.emit_assembly(module)
    inside = [part for part in re.split(r"^(?=[\w.$]+:)", lines, flags=re.M) if "zmm" in part]
    wide = "zmm" if inside else "ymm"
    return sum(1 for line in lines.splitlines() if wide in line and ARITHMETIC.match(line.rstrip()))
