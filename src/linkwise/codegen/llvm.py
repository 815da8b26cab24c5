# pyright: basic
# (llvmlite has no type information)
"""From a scalar graph to machine code, through llvmlite.

One module has two functions: `single`, for one state in scalar registers, and `batch`, for many, a
vector register of states at a time. Both take (inputs, output, count): `inputs` is an array of
pointers, one for each input, rows of states behind each other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as binding
from llvmlite import ir

from linkwise.codegen import fastcall
from linkwise.codegen.sincos import LARGEST, emit_sincos
from linkwise.codegen.trace import Traced

SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
DOUBLE = ir.DoubleType()
INT = ir.IntType(64)
FLAGS = ("contract",)
"""Multiplications and additions may fuse; nothing else is reordered."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Compiled functions, kept alive with the engine that owns them.

    Attributes:
        engine: LLVM's execution engine.
        single: The function for one state.
        batch: The function for many.
        fast: The Python callable for one state, if this interpreter can have one.
        lanes: States in a vector register.
        source: The LLVM text before optimisation.
    """

    engine: Any
    single: Any
    batch: Any
    fast: fastcall.FastCall | None
    lanes: int
    source: str


def compile_graph(traced: Traced, *, lanes: int | None = None) -> Machine:
    """Machine code of a graph for this computer."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    features = binding.get_host_cpu_features()
    wide = lanes or (8 if features.get("avx512f") else 4 if features.get("avx2") else 2)
    module = ir.Module(name="linkwise")
    module.triple = binding.get_default_triple()
    _Emitter(module, traced, 1).function("single")
    _Emitter(module, traced, wide).function("batch")
    quick = fastcall.available()
    if quick:
        fastcall.emit(module, [size for _, size in traced.inputs], traced.shape)
    text = str(module)
    machine = target.create_target_machine(
        cpu=binding.get_host_cpu_name(), features=features.flatten(), opt=3
    )
    parsed = binding.parse_assembly(text)
    parsed.verify()
    options = binding.create_pipeline_tuning_options(speed_level=2)
    passes = binding.create_pass_builder(machine, options)
    passes.getModulePassManager().run(parsed, passes)
    engine = binding.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    single, batch = (engine.get_function_address(name) for name in ("single", "batch"))
    fast = fastcall.callable_at(engine.get_function_address("fast")) if quick else None
    return Machine(engine, SIGNATURE(single), SIGNATURE(batch), fast, wide, text)


class _Emitter:
    """One function: a loop over states, `lanes` at a time, with the graph as its straight body."""

    def __init__(self, module: ir.Module, traced: Traced, lanes: int) -> None:
        self.module, self.traced, self.lanes = module, traced, lanes
        self.type = DOUBLE if lanes == 1 else ir.VectorType(DOUBLE, lanes)
        self.int_type = INT if lanes == 1 else ir.VectorType(INT, lanes)

    def constant(self, value: float) -> Any:
        return ir.Constant(self.type, value if self.lanes == 1 else [value] * self.lanes)

    def integer(self, value: int) -> Any:
        return ir.Constant(self.int_type, value if self.lanes == 1 else [value] * self.lanes)

    def function(self, name: str) -> None:
        """The function: count is a multiple of the lanes."""
        pointer = DOUBLE.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer.as_pointer(), pointer, INT])
        function = ir.Function(self.module, kind, name)
        inputs, output, count = function.args
        entry = function.append_basic_block("entry")
        loop = function.append_basic_block("loop")
        done = function.append_basic_block("done")
        build = ir.IRBuilder(entry)
        arrays = [
            build.load(build.gep(inputs, [ir.Constant(INT, i)]))
            for i in range(len(self.traced.inputs))
        ]
        build.cbranch(build.icmp_signed(">", count, ir.Constant(INT, 0)), loop, done)
        build = ir.IRBuilder(loop)
        state = build.phi(INT)
        state.add_incoming(ir.Constant(INT, 0), entry)
        build = self._body(function, build, arrays, output, state)
        after = build.add(state, ir.Constant(INT, self.lanes))
        state.add_incoming(after, build.block)
        build.cbranch(build.icmp_signed("<", after, count), loop, done)
        ir.IRBuilder(done).ret_void()

    def _body(
        self, function: ir.Function, build: ir.IRBuilder, arrays: list[Any], output: Any, state: Any
    ) -> ir.IRBuilder:
        graph = self.traced.graph
        places = [(i, j) for i, (_, size) in enumerate(self.traced.inputs) for j in range(size)]
        needed = graph.used(self.traced.outputs)
        value: dict[int, Any] = {}
        angles = list[Any]()
        for node in needed:
            if graph.op[node] == "input":
                i, j = places[graph.a[node]]
                size = self.traced.inputs[i][1]
                value[node] = self._load(build, arrays[i], state, size, j)
        turned = dict[int, tuple[Any, Any]]()
        for node in needed:
            if graph.op[node] in ("sin", "cos") and graph.a[node] not in turned:
                angle = graph.a[node]
                if angle not in value:
                    continue
                turned[angle] = emit_sincos(
                    build, value[angle], self.constant, self.integer, self.int_type
                )
                angles.append(value[angle])
        build = self._exact_angles(function, build, turned, value)
        for node in needed:
            if node not in value:
                value[node] = self._node(build, node, value, turned)
        width = len(self.traced.outputs)
        for j, node in enumerate(self.traced.outputs):
            self._store(build, value[node], output, state, width, j)
        return build

    def _exact_angles(
        self,
        function: ir.Function,
        build: ir.IRBuilder,
        turned: dict[int, tuple[Any, Any]],
        value: dict[int, Any],
    ) -> ir.IRBuilder:
        """Where some angle is huge, all of them are taken from the C library instead."""
        if not turned:
            return build
        worst = None
        for angle in turned:
            size = build.call(self._intrinsic("llvm.fabs"), [value[angle]])
            large = build.fcmp_unordered(">", size, self.constant(LARGEST))
            worst = large if worst is None else build.or_(worst, large)
        if self.lanes > 1:
            bits = build.bitcast(worst, ir.IntType(self.lanes))
            worst = build.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(self.lanes), 0))
        before = build.block
        slow = function.append_basic_block("large_angles")
        merged = function.append_basic_block("merged")
        build.cbranch(worst, slow, merged)
        exact = ir.IRBuilder(slow)
        library = {
            angle: tuple(
                exact.call(self._intrinsic(name), [value[angle]])
                for name in ("llvm.sin", "llvm.cos")
            )
            for angle in turned
        }
        exact.branch(merged)
        build = ir.IRBuilder(merged)
        for angle, (sine, cosine) in list(turned.items()):
            pair = list[Any]()
            for quick, careful in zip((sine, cosine), library[angle], strict=True):
                phi = build.phi(self.type)
                phi.add_incoming(quick, before)
                phi.add_incoming(careful, slow)
                pair.append(phi)
            turned[angle] = (pair[0], pair[1])
        return build

    def _intrinsic(self, name: str) -> Any:
        full = f"{name}.f64" if self.lanes == 1 else f"{name}.v{self.lanes}f64"
        found = self.module.globals.get(full)
        kind = ir.FunctionType(self.type, [self.type])
        return ir.Function(self.module, kind, full) if found is None else found

    def _load(self, build: ir.IRBuilder, array: Any, state: Any, size: int, j: int) -> Any:
        if self.lanes == 1:
            at = build.add(build.mul(state, ir.Constant(INT, size)), ir.Constant(INT, j))
            return build.load(build.gep(array, [at]))
        vector = ir.Constant(self.type, ir.Undefined)
        for lane in range(self.lanes):
            row = build.add(state, ir.Constant(INT, lane))
            at = build.add(build.mul(row, ir.Constant(INT, size)), ir.Constant(INT, j))
            scalar = build.load(build.gep(array, [at]))
            vector = build.insert_element(vector, scalar, ir.Constant(ir.IntType(32), lane))
        return vector

    def _store(
        self, build: ir.IRBuilder, value: Any, output: Any, state: Any, width: int, j: int
    ) -> None:
        for lane in range(self.lanes):
            row = build.add(state, ir.Constant(INT, lane))
            at = build.add(build.mul(row, ir.Constant(INT, width)), ir.Constant(INT, j))
            scalar = value
            if self.lanes > 1:
                scalar = build.extract_element(value, ir.Constant(ir.IntType(32), lane))
            build.store(scalar, build.gep(output, [at]))

    def _node(
        self, build: ir.IRBuilder, node: int, value: dict[int, Any], turned: dict[int, Any]
    ) -> Any:
        graph = self.traced.graph
        op, a, b = graph.op[node], graph.a[node], graph.b[node]
        if op == "const":
            return self.constant(graph.value[node])
        if op in ("sin", "cos"):
            if a not in turned:
                turned[a] = emit_sincos(build, value[a], self.constant, self.integer, self.int_type)
            return turned[a][0 if op == "sin" else 1]
        x = value[a]
        binary: dict[str, Callable[..., Any]] = {
            "add": build.fadd,
            "sub": build.fsub,
            "mul": build.fmul,
        }
        if op in binary:
            return binary[op](x, value[b], flags=FLAGS)
        if op == "neg":
            return build.fneg(x)
        if op == "inv":
            return build.fdiv(self.constant(1.0), x)
        assert op == "sqrt"
        return build.call(self._intrinsic("llvm.sqrt"), [x])
