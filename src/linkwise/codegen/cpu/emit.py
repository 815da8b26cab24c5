"""Nodes of a scalar graph as LLVM instructions, on single numbers or on vectors of states."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.ir import INT, INT32, Constant, IRBuilder, Module, declared
from linkwise.codegen.cpu.sincos import DOUBLES, FLOATS, emit_sincos
from linkwise.codegen.scalar.forks import compared, where_of
from linkwise.codegen.scalar.graph import Check, Graph, table_name
from linkwise.codegen.scalar.status import RESULT

FLAGS = "contract"
"""Multiplications and additions may fuse; nothing else is reordered."""

BINARY = {"add": f"fadd {FLAGS}", "sub": f"fsub {FLAGS}", "mul": f"fmul {FLAGS}"}


class Emitter:
    """Makes instructions for `lanes` states at a time.

    Attributes:
        module: Where intrinsics are declared.
        number: Type of one number, double or float.
        lanes: States done together.
        packed: Angles of one state whose sines are taken together, where `lanes` is 1.
        type: Type of a value: a number, or a vector of them.
    """

    def __init__(self, module: Module, itemsize: int, lanes: int, packed: int = 1) -> None:
        self.module, self.lanes, self.itemsize, self.packed = module, lanes, itemsize, packed
        self.number = ir.DOUBLE if itemsize == 8 else ir.FLOAT
        integer = INT if itemsize == 8 else INT32
        self.type = self.number if lanes == 1 else ir.vector(self.number, lanes)
        self.int_type = integer if lanes == 1 else ir.vector(integer, lanes)
        self.suffix = f"f{8 * itemsize}" if lanes == 1 else f"v{lanes}f{8 * itemsize}"
        self.format = DOUBLES if itemsize == 8 else FLOATS
        self.constants = dict[float, Constant]()

    def constant(self, value: float) -> Any:
        """A number, the same in all lanes."""
        known = self.constants.get(value)
        if known is None:
            known = self.constants[value] = Constant(self.type, value)
        return known

    def integer(self, value: int) -> Any:
        """An integer as wide as a number."""
        return Constant(self.int_type, value)

    def intrinsic(self, name: str) -> Any:
        """The declaration of an intrinsic on a value."""
        kind = ir.FunctionType(self.type, [self.type])
        return declared(self.module, f"{name}.{self.suffix}", kind)

    # ------------------------------------------------------------------------------- nodes

    def nodes(
        self, build: IRBuilder, graph: Graph, order: Iterable[int], value: dict[int, Any]
    ) -> None:
        """Instructions for nodes in order; `value` has what is known and gets what is made."""
        for node in order:
            if node not in value:
                value[node] = self._node(build, graph, node, value)

    def _node(self, build: IRBuilder, graph: Graph, node: int, value: dict[int, Any]) -> Any:
        op, a, b = graph.op[node], graph.a[node], graph.b[node]
        if op == "const":
            return self.constant(graph.value[node])
        choice = where_of(graph, node)
        if choice is not None and all(n in value for n in choice if n >= 0):
            condition, chosen, other = choice
            results = [value[n] if n >= 0 else self.constant(0.0) for n in (chosen, other)]
            pair = compared(graph, choice)
            if pair is not None:
                larger = build.fcmp_ordered(">", *(value[n] for n in pair))
                return build.select(larger, *results)
            return build.select(self.positive(build, graph, condition, value), *results)
        x = value[a]
        if op in BINARY:
            return build.binary(BINARY[op], x, value[b])
        if op == "gate":
            positive = self.positive(build, graph, a, value)
            return build.select(positive, value[b], self.constant(0.0))
        if op == "neg":
            return build.fneg(x)
        if op == "inv":
            return build.fdiv(self.constant(1.0), x)
        if op == "sqrt":
            return build.call(self.intrinsic("llvm.sqrt"), [x])
        if op == "take":
            return self._taken(build, graph.table(node), x)
        assert op in ("sin", "cos")
        return build.call(self.intrinsic(f"llvm.{op}"), [x])

    def _taken(self, build: IRBuilder, table: bytes, x: Any) -> Any:
        """Numbers of a table, one lane after the other."""
        array, count = self._table(table), len(table) // 8
        for sign, end in ((">", 0.0), ("<", count - 1.0)):
            inside = build.fcmp_ordered(sign, x, self.constant(end))
            x = build.select(inside, x, self.constant(end))
        places = build.fptosi(x, self.int_type)
        first = Constant(INT, 0)
        if self.lanes == 1:
            return build.load(build.gep(array, [first, places]))
        out: Any = self.constant(0.0)
        for lane in (Constant(INT32, i) for i in range(self.lanes)):
            one = build.load(build.gep(array, [first, build.extract_element(places, lane)]))
            out = build.insert_element(out, one, lane)
        return out

    def _table(self, table: bytes) -> Any:
        """The table as an array of the module."""
        name = f"{table_name(table)}_{self.number.text}"
        if name not in self.module.globals:
            numbers = np.frombuffer(table).tolist()
            kind = ir.ArrayType(self.number, len(numbers))
            ir.GlobalVariable(self.module, kind, name, Constant(kind, numbers))
        return self.module.globals[name]

    def positive(self, build: IRBuilder, graph: Graph, node: int, value: dict[int, Any]) -> Any:
        """Whether a value is above zero; a difference need not be waited for."""
        a, b = graph.a[node], graph.b[node]
        if graph.op[node] == "sub" and a in value and b in value:
            return build.fcmp_ordered(">", value[a], value[b])
        return build.fcmp_ordered(">", value[node], self.constant(0.0))

    def angles(
        self, build: IRBuilder, graph: Graph, order: Sequence[int], value: dict[int, Any]
    ) -> IRBuilder:
        """Sines and cosines of known angles, together; returns where to go on.

        Where an angle is huge, it is given to the C library instead, in its own lane only.
        """
        needed = {
            graph.a[n]: None
            for n in order
            if graph.op[n] in ("sin", "cos") and graph.a[n] in value and n not in value
        }
        if not needed:
            return build
        quick, large = dict[int, tuple[Any, Any]](), dict[int, Any]()
        worst = None
        for start in range(0, len(needed), self.packed):
            angles = list(needed)[start : start + self.packed]
            sines, beyond = self._packed_sines(build, [value[angle] for angle in angles])
            quick |= zip(angles, sines, strict=True)
            large |= zip(angles, beyond, strict=True)
            for mask in beyond:
                worst = mask if worst is None else build.or_(worst, mask)
        before, function = build.block, build.function
        slow = function.append_basic_block("large_angles")
        merged = function.append_basic_block("merged")
        build.cbranch(self.any_lane(build, worst), slow, merged)
        exact = IRBuilder(slow)
        library = dict[int, list[Any]]()
        for angle in needed:
            library[angle] = list[Any]()
            for name, usual in zip(("llvm.sin", "llvm.cos"), quick[angle], strict=True):
                careful = exact.call(self.intrinsic(name), [value[angle]])
                library[angle].append(exact.select(large[angle], careful, usual))
        exact.branch(merged)
        build = IRBuilder(merged)
        taken = dict[tuple[str, int], Any]()
        for angle in needed:
            pairs = zip(("sin", "cos"), quick[angle], library[angle], strict=True)
            for op, usual, careful in pairs:
                phi = build.phi(self.type)
                phi.add_incoming(usual, before)
                phi.add_incoming(careful, slow)
                taken[op, angle] = phi
        for node in order:
            known = taken.get((graph.op[node], graph.a[node]))
            if known is not None:
                value[node] = known
        return build

    def _packed_sines(
        self, build: IRBuilder, angles: list[Any]
    ) -> tuple[list[tuple[Any, Any]], list[Any]]:
        """(sine, cosine) of each angle, and whether it is huge.

        The angles of one state go through a vector register together.
        """
        wide = self
        if self.packed > 1:
            wide = Emitter(self.module, self.itemsize, self.packed)
            x = wide.constant(0.0)
            for lane, angle in enumerate(angles):
                x = build.insert_element(x, angle, Constant(INT32, lane))
        else:
            (x,) = angles
        pair = emit_sincos(build, x, wide.constant, wide.integer, wide.int_type, wide.format)
        size = build.call(wide.intrinsic("llvm.fabs"), [x])
        large = build.fcmp_ordered(">", size, wide.constant(self.format.largest))
        if self.packed == 1:
            return [pair], [large]
        at = [Constant(INT32, lane) for lane in range(len(angles))]
        sines = [(build.extract_element(pair[0], i), build.extract_element(pair[1], i)) for i in at]
        return sines, [build.extract_element(large, i) for i in at]

    def any_lane(self, build: IRBuilder, mask: Any) -> Any:
        """Whether a condition holds in some lane."""
        if self.lanes == 1:
            return mask
        bits = ir.IntType(self.lanes)
        return build.icmp_unsigned("!=", build.bitcast(mask, bits), Constant(bits, 0))

    def lanes_of(self, build: IRBuilder, mask: Any) -> Any:
        """In how many lanes a condition holds, as an integer."""
        total: Any = Constant(INT, 0)
        for lane in (Constant(INT32, i) for i in range(self.lanes)):
            holds = build.extract_element(mask, lane)
            total = build.add(total, build.select(holds, Constant(INT, 1), Constant(INT, 0)))
        return total

    # ------------------------------------------------------------------------------ status

    def checked(self, build: IRBuilder, check: Check, x: Any, status: Any) -> Any:
        """The status with a check taken in: its code where the check is the first to fail."""
        return self.guarded(build, x, check.low, check.high, self.constant(check.code), status)

    def guarded(
        self, build: IRBuilder, x: Any, low: Any, high: float, code: Any, status: Any
    ) -> Any:
        """The status, or the code unless low < x < high.

        A code that is set stays: a singular hinge spoils the pivots of its ancestors. NaN without
        such a code comes from numbers that are too large.
        """
        low = self.constant(low) if isinstance(low, float) else low
        bad = build.fcmp_unordered("<=", x, low)
        if math.isfinite(high):
            bad = build.or_(bad, build.fcmp_unordered(">=", x, self.constant(high)))
        bad = build.and_(bad, build.fcmp_ordered("==", status, self.constant(0.0)))
        too_large = build.fcmp_unordered("!=", x, x)
        return build.select(
            bad, build.select(too_large, self.constant(float(RESULT)), code), status
        )

    def vanishing(self, build: IRBuilder, total: Any, x: Any) -> Any:
        """total + 0 x: stays zero as long as all x are finite."""
        zero = self.constant(0.0)
        product: Any = build.fmul(x, zero, flags=FLAGS)
        return build.fadd(total, product, flags=FLAGS)

    def concluded(self, build: IRBuilder, status: Any, given: Any, result: Any) -> Any:
        """The status as int32: 2 for a result that is not finite, 1 above all for such input."""
        zero = self.constant(0.0)
        no_result = build.and_(
            build.fcmp_unordered("!=", result, zero), build.fcmp_ordered("==", status, zero)
        )
        status = build.select(no_result, self.constant(2.0), status)
        status = build.select(build.fcmp_unordered("!=", given, zero), self.constant(1.0), status)
        kind = INT32 if self.lanes == 1 else ir.vector(INT32, self.lanes)
        return build.fptosi(status, kind)


class Finite:
    """Σ 0 x over values: zero as long as all of them are finite.

    The sum is kept in several parts, since each addition waits for the one before it.
    """

    def __init__(self, emit: Emitter, start: Any = None) -> None:
        self.emit = emit
        first = emit.constant(0.0) if start is None else start
        self.parts = [first, *(emit.constant(0.0) for _ in range(7))]
        self.seen = dict[int, Any]()  # by id, and kept: an id is given again to what comes later

    def add(self, build: IRBuilder, x: Any) -> None:
        """Take a value in, once."""
        if isinstance(x, Constant) or id(x) in self.seen:
            return
        at = len(self.seen) % len(self.parts)
        self.seen[id(x)] = x
        self.parts[at] = self.emit.vanishing(build, self.parts[at], x)

    def total(self, build: IRBuilder) -> Any:
        """The sum."""
        parts = self.parts[: max(1, min(len(self.seen), len(self.parts)))]
        while len(parts) > 1:
            rest = [parts[-1]] if len(parts) % 2 else []
            pairs = zip(parts[0::2], parts[1::2], strict=False)
            parts = [build.fadd(a, b) for a, b in pairs] + rest
        return parts[0]
