"""Results that have columns A⁻¹ B: for one state, several columns a vector register.

The graph is straight code up to the factors of A and the entries of B, which go to work memory in
rows. Each function `columns` then solves as many columns as a register holds, and stores them: at
once for one state, in a loop for a register of states. Entries that are zero in all of them are not
computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import FLAGS, Emitter, Finite
from linkwise.codegen.cpu.ir import INT, INT32
from linkwise.codegen.cpu.llvm import (
    GraphBody,
    Place,
    blank,
    blank_rows,
    counted,
    get,
    put,
)
from linkwise.codegen.cpu.rows import store_rows, store_some
from linkwise.codegen.scalar.column_solve import Columns, ColumnSolve
from linkwise.codegen.scalar.trace import Traced, depth_first


@dataclass(frozen=True, slots=True)
class _Group:
    """Columns that are done together."""

    matrix: Columns
    first: int  # the first column
    count: int  # how many there are
    slot: int  # where the first entry of B is, in work memory
    place: int  # where X(0, first) is in the output
    stride: int  # from there to X(1, first)


class ColumnBody(GraphBody):
    """The code of one state, with columns side by side."""

    def __init__(
        self, emit: Emitter, traced: Traced, places: list[tuple[int, int]], width: int
    ) -> None:
        assert traced.solve is not None
        self.solve: ColumnSolve = traced.solve
        self.wide = Emitter(emit.module, emit.itemsize, width)
        self.outputs = traced.outputs
        self.lower = {key: slot for slot, key in enumerate(self.solve.lower)}
        self.start = len(self.lower)  # of Δ⁻¹
        rows, at, columns = len(self.solve.reciprocal), 0, list[_Group]()
        self.right = self.start + rows  # of B
        for matrix, (place, stride) in zip(self.solve.matrices, places, strict=True):
            for first in range(0, matrix.right.shape[1], width):
                count = min(width, matrix.right.shape[1] - first)
                columns.append(_Group(matrix, first, count, at, place + first, stride))
                at += width
        self.columns, self.across, self.lanes = columns, at, emit.lanes
        others = self._others(traced)
        self.others = [x for x in others if not traced.graph.is_constant(x[1], 0.0)]
        self.hollow = len(self.others) < len(others)
        kept = [*self.solve.lower.values(), *self.solve.reciprocal]
        self.kept = list(enumerate(kept))
        for group in columns:
            for i, j in np.argwhere(self._right(group) >= 0).tolist():
                self.kept.append((self._slot(i, group.slot + j), int(self._right(group)[i, j])))
        self.rest = self.right + rows * at
        self.kept += [(self.rest + i, node) for i, (_, node) in enumerate(self.others)]
        self.region, self.functions = 0, dict[object, ir.Function]()
        nodes = [node for _, node in self.kept]
        kept = replace(traced, outputs=nodes, shape=(len(nodes),), parts=(), solve=None)
        super().__init__(emit, kept)
        self.span = 1  # in work memory

    def order(self, traced: Traced) -> list[int]:
        """By sweeps, or depth first from what is solved, where fewer values wait then."""
        near = depth_first(traced.graph, [*self._roots(), *traced.roots])
        return min(traced.graph.used(traced.roots), near, key=traced.waiting)

    def _roots(self) -> list[int]:
        """What is solved, in the order of elimination, and last what depends on all factors."""
        solve, end = self.solve, max(self.solve.reciprocal)
        keyed = [(i, i, node) for i, node in enumerate(solve.reciprocal)]
        keyed += [(j, i, node) for (i, j), node in solve.lower.items()]
        for matrix in solve.matrices:
            n, m = matrix.right.shape
            for i, c in np.argwhere(matrix.right >= 0).tolist():
                here = (m - 1 - c) * n // m  # where the column's own row is eliminated
                keyed.append((min(i, here), max(i, here), int(matrix.right[i, c])))
        return [node for *_, node in sorted(keyed, key=lambda x: (x[2] > end, x))]

    def _slot(self, i: int, column: int) -> int:
        """Where an entry of B is: in rows for one state, in columns for a register of states."""
        rows = len(self.solve.reciprocal)
        inside = i * self.across + column if self.wide.lanes > self.lanes else column * rows + i
        return self.right + inside

    @staticmethod
    def _right(group: _Group) -> Any:
        return group.matrix.right[:, group.first : group.first + group.count]

    def _others(self, traced: Traced) -> list[tuple[int, int]]:
        """Outputs that are not columns: where they are, and their nodes."""
        graph, covered = traced.graph, set[int]()
        for group in self.columns:
            for i in range(len(group.matrix.right)):
                for j in range(group.count):
                    place = group.place + i * group.stride + j
                    is_zero = group.matrix.result[i, group.first + j] < 0
                    if not is_zero or graph.is_constant(traced.outputs[place], 0.0):
                        covered.add(place)
        return [(p, node) for p, node in enumerate(traced.outputs) if p not in covered]

    # ------------------------------------------------------------------------ straight code

    def prepare(self, build: ir.IRBuilder, place: Place) -> None:
        """Zeros for B, of which the straight code stores the other entries."""
        self.region = self.slots
        self.slots += self.rest + len(self.others)
        lanes = self.emit.lanes
        begin = build.gep(place.work, [ir.Constant(INT, (self.region + self.right) * lanes)])
        blank(self.emit, build, begin, (self.rest - self.right) * lanes)
        if self.hollow:
            blank_rows(self.emit, build, place, len(self.outputs))

    def groups(self) -> list[tuple[int, list[int]]]:
        """Numbers for work memory, one by one."""
        return [(slot, [node]) for slot, node in self.kept]

    def stored(
        self, build: ir.IRBuilder, values: list[Any], place: Place, start: int, result: Finite
    ) -> None:
        """Put a number into work memory."""
        (value,) = values
        put(self.emit, build, place.work, self.region + start, value)

    # ----------------------------------------------------------------------------- columns

    def conclude(
        self, build: ir.IRBuilder, place: Place, status: Any, given: Any, result: Any
    ) -> None:
        """Solve all columns, store the other outputs, and the status."""
        emit = self.emit
        region = build.gep(place.work, [ir.Constant(INT, self.region * emit.lanes)])
        sums = list[Any]()
        for group in self.columns:
            right = build.gep(region, [ir.Constant(INT, self._slot(0, group.slot) * emit.lanes)])
            output = build.gep(place.output, [ir.Constant(INT, group.place)])
            arguments = [region, right, output, place.out_stride, place.state]
            sums.append(build.call(self._function(group), arguments))
        while len(sums) > 1:
            pairs = zip(sums[::2], sums[1::2], strict=False)
            rest = [sums[-1]] if len(sums) % 2 else []
            sums = [build.fadd(a, b) for a, b in pairs] + rest
        finite = Finite(emit, result)
        if emit.lanes > 1:
            finite.add(build, sums[0])
        else:
            for lane in range(self.wide.lanes):
                finite.add(build, build.extract_element(sums[0], ir.Constant(INT32, lane)))
        for i, (at, _) in enumerate(self.others):
            value = get(emit, build, region, self.rest + i)
            finite.add(build, value)
            store_rows(emit, build, [value], place.output, place.out_stride, place.state, at)
        super().conclude(build, place, status, given, finite.total(build))

    def _function(self, group: _Group) -> ir.Function:
        """columns(region, right, output, out_stride, state): solves and stores some columns.

        `right` and `output` are where the entries of B and of X begin. Groups with the same zeros
        share a function. It returns a sum that shows whether all is finite.
        """
        filled = (self._right(group) >= 0).any(axis=1)
        key = (filled.tobytes(), group.matrix.sign, group.count, group.stride)
        if key in self.functions:
            return self.functions[key]
        emit, wide = self.emit, self.wide
        pointer = emit.number.as_pointer()
        kind = ir.FunctionType(wide.type, [pointer, pointer, pointer, INT, INT])
        name = emit.module.unique_name(f"columns_{emit.lanes}")
        function = ir.Function(emit.module, kind, name, internal=True, noinline=True)
        self.functions[key] = function
        region, right, output, out_stride, state = function.args
        output.add_attribute("noalias")
        build, finite = ir.IRBuilder(function.append_basic_block("entry")), Finite(wide)
        rows, sign = len(self.solve.reciprocal), group.matrix.sign
        if emit.lanes == 1:
            row = build.gep(output, [build.mul(state, out_stride)])
            for i, x in enumerate(self._solved(build, region, right, filled, sign)):
                finite.add(build, x)
                store_some(wide, build, x, row, i * group.stride, group.count)
        else:

            def one(build: ir.IRBuilder, c: Any) -> ir.IRBuilder:
                column = build.gep(right, [build.mul(c, ir.Constant(INT, rows * emit.lanes))])
                for i, x in enumerate(self._solved(build, region, column, filled, sign)):
                    build.store(x, self._at(build, column, i), align=emit.itemsize)
                return build

            build = counted(build, ir.Constant(INT, group.count), one)
            for i in range(rows):
                values = [get(emit, build, right, c * rows + i) for c in range(group.count)]
                for x in values:
                    finite.add(build, x)
                start = i * group.stride
                store_rows(emit, build, values, output, out_stride, state, start)
        build.ret(finite.total(build))
        return function

    def _at(self, build: ir.IRBuilder, right: Any, i: int) -> Any:
        """The address of row i of B, given that of row 0."""
        slot = (self._slot(i, 0) - self._slot(0, 0)) * self.emit.lanes
        at = build.gep(right, [ir.Constant(INT, slot)])
        return build.bitcast(at, self.wide.type.as_pointer())

    def _solved(
        self, build: ir.IRBuilder, region: Any, right: Any, filled: Any, sign: float
    ) -> list[Any]:
        """The rows of X, for several columns of one state or one column of several."""
        wide, n = self.wide, len(self.solve.reciprocal)
        x: list[Any] = [None] * n

        def less(i: int, j: int, factor: tuple[int, int]) -> None:
            """x(i) - L x(j), where both may be zero."""
            if factor in self.lower and x[j] is not None:
                number = self._number(build, region, self.lower[factor])
                product = build.fmul(number, x[j], flags=FLAGS)
                x[i] = build.binary(f"fsub {FLAGS}", x[i] or wide.constant(0.0), product)

        for i in range(n):
            if filled[i]:
                x[i] = build.load(self._at(build, right, i), align=self.emit.itemsize)
            for j in range(i):
                less(i, j, (i, j))
        for i in range(n):
            if x[i] is not None:
                scale = self._number(build, region, self.start + i)
                scale = build.fneg(scale) if sign < 0.0 else scale
                x[i] = build.fmul(scale, x[i], flags=FLAGS)
        for i in reversed(range(n)):
            for j in reversed(range(i + 1, n)):  # last what was computed last: nothing waits for it
                less(i, j, (j, i))
        return [wide.constant(0.0) if y is None else y for y in x]

    def _number(self, build: ir.IRBuilder, region: Any, slot: int) -> Any:
        """A number of work memory, in all lanes for one state."""
        x = get(self.emit, build, region, slot)
        if self.emit.lanes > 1:
            return x
        one = build.insert_element(ir.undefined(self.wide.type), x, ir.Constant(INT32, 0))
        lanes = ir.vector(INT32, self.wide.lanes)
        return build.shuffle_vector(one, one, ir.Constant(lanes, [0] * self.wide.lanes))
