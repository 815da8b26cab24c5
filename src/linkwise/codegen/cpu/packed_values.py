"""Values of a graph while code for one state is written: numbers, and limbs side by side.

What limbs have alike is one vector operation (`scalar/packs.py`); other nodes are single numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import BINARY, Emitter
from linkwise.codegen.cpu.ir import INT32, Constant
from linkwise.codegen.cpu.llvm import get
from linkwise.codegen.scalar.forks import Fork, arguments, compared, outside, where_of
from linkwise.codegen.scalar.graph import Graph
from linkwise.codegen.scalar.packs import Pack, Packs

Where: TypeAlias = Callable[[Pack], tuple[Any, list[int | None]]]
"""The memory that has some nodes, and where they are there; None for those it does not have."""


class Values:
    """Values of nodes while a function is written, one by one and as columns of several.

    Attributes:
        value: Single values by node.
        vector: Columns by their nodes.
    """

    def __init__(self, emit: Emitter, packs: Packs, where: Where) -> None:
        self.emit, self.packs, self.graph, self.where = emit, packs, packs.graph, where
        self.value, self.vector = dict[int, Any](), dict[Pack, Any]()
        self.wide = dict[int, Emitter]()

    def of(self, build: ir.IRBuilder, n: int) -> Any:
        """The value of one node."""
        if n not in self.value:
            self.value[n] = self._one(build, n)
        return self.value[n]

    def fetch(self, build: ir.IRBuilder, nodes: Pack) -> Any:
        """What is in memory of a node; or of several, if they are contiguous there."""
        memory, at = self.where(nodes)
        first = at[0]
        if first is None or at != list(range(first, first + len(at))):
            assert len(nodes) > 1
            return None
        return get(self.like(len(nodes)), build, memory, first, stride=1)

    def _one(self, build: ir.IRBuilder, n: int) -> Any:
        if self.graph.op[n] == "const":
            return self.emit.constant(self.graph.value[n])
        place = None if self.graph.op[n] == "input" else self.packs.place.get(n)
        if place is not None and self.packs.packs[place[0]] in self.vector:
            vector = self.vector[self.packs.packs[place[0]]]
            return build.extract_element(vector, Constant(INT32, place[1]))
        return self.fetch(build, (n,))

    def column(self, build: ir.IRBuilder, nodes: Pack) -> Any:
        """A vector of the values of some nodes."""
        if nodes not in self.vector:
            self.vector[nodes] = self._several(build, nodes)
        return self.vector[nodes]

    def _several(self, build: ir.IRBuilder, nodes: Pack) -> Any:
        kind = self.like(len(nodes)).type
        if all(self.graph.op[n] == "const" for n in nodes):
            return Constant(kind, [self.graph.value[n] for n in nodes])
        blank: Any = ir.undefined(kind)
        if len(set(nodes)) == 1:
            first = build.insert_element(blank, self.of(build, nodes[0]), Constant(INT32, 0))
            every = Constant(ir.vector(INT32, len(nodes)), 0)
            return build.shuffle_vector(first, blank, every)
        together = None if any(n in self.value for n in nodes) else self.fetch(build, nodes)
        if together is not None:
            return together
        for lane, n in enumerate(nodes):
            blank = build.insert_element(blank, self.of(build, n), Constant(INT32, lane))
        return blank

    def like(self, width: int) -> Emitter:
        """What writes operations for a number of limbs."""
        if width not in self.wide:
            self.wide[width] = Emitter(self.emit.module, self.emit.itemsize, width)
        return self.wide[width]

    def make(self, build: ir.IRBuilder, nodes: Pack) -> None:
        """Compute a pack, or a single node."""
        if len(nodes) > 1:
            self.vector[nodes] = self._packed(build, nodes)
        else:
            self._single(build, *nodes)

    def _single(self, build: ir.IRBuilder, n: int) -> None:
        for x in arguments(self.graph, n):
            self.of(build, x)
        self.emit.nodes(build, self.graph, (n,), self.value)

    def forked(self, build: ir.IRBuilder, fork: Fork) -> ir.IRBuilder:
        """Go the way that a condition says; returns where to go on."""
        for n in sorted(outside(self.graph, fork)):
            self.of(build, n)
        known = self.value
        choices = [where_of(self.graph, n) or (-1, -1, -1) for n in fork.choices]
        condition = self.emit.positive(build, self.graph, fork.condition, known)
        before, function = build.block, build.function
        merged = function.append_basic_block("merged")
        ways, ends, taken = list[Any](), list[Any](), list[list[Any]]()
        for k, side in enumerate(fork.sides, 1):
            self.value, inside = dict(known), build
            if side:
                ways.append(function.append_basic_block("side"))
                inside = ir.IRBuilder(ways[-1])
                for step in side:
                    if isinstance(step, Fork):
                        inside = self.forked(inside, step)
                    else:
                        self._single(inside, step)
            else:
                ways.append(merged)
            taken.append([self._of_side(inside, x[k]) for x in choices])
            ends.append(inside)
        self.value = known
        for inside in ends:
            if inside is not build:
                inside.branch(merged)
        build.cbranch(condition, *ways)
        after = ir.IRBuilder(merged)
        for n, *both in zip(fork.choices, *taken, strict=True):
            phi = after.phi(self.emit.type)
            for end, x in zip(ends, both, strict=True):
                phi.add_incoming(x, before if end is build else end.block)
            known[n] = phi
        return after

    def _of_side(self, build: ir.IRBuilder, n: int) -> Any:
        return self.emit.constant(0.0) if n < 0 else self.of(build, n)

    def _packed(self, build: ir.IRBuilder, nodes: Pack) -> Any:
        """One operation for a pack."""
        wide, op = self.like(len(nodes)), self.graph.op[nodes[0]]
        zero, choices = wide.constant(0.0), [where_of(self.graph, n) for n in nodes]
        if all(choices):
            condition, *results = zip(*(x for x in choices if x is not None), strict=True)
            if all(min(r) >= 0 or max(r) < 0 for r in results):
                both = [zero if r[0] < 0 else self.column(build, r) for r in results]
                pairs = [compared(self.graph, x) for x in choices if x is not None]
                sides = list(zip(*(x for x in pairs if x is not None), strict=True))
                if None not in pairs and set(sides) == set(results):
                    larger = build.fcmp_ordered(">", *(self.column(build, r) for r in sides))
                    return build.select(larger, *both)
                return build.select(self._positive(build, condition), *both)
        columns = self.packs.columns(nodes)
        if op == "gate":
            second = self.column(build, columns[1])
            return build.select(self._positive(build, columns[0]), second, zero)
        x = [self.column(build, c) for c in columns]
        if self.packs.is_sum(nodes):
            return self._sum(build, x, [self.packs.signs(nodes, c) for c in columns])
        if op in BINARY:
            return build.binary(BINARY[op], *x)
        if op == "neg":
            return build.fneg(x[0])
        if op == "inv":
            return build.fdiv(wide.constant(1.0), x[0])
        return build.call(wide.intrinsic("llvm.sqrt"), x)

    def _sum(self, build: ir.IRBuilder, x: list[Any], signs: list[list[float]]) -> Any:
        """A sum of two columns with signs; the first is the one with fewer minus signs."""
        (first, plus), (second, minus) = sorted(
            zip(x, signs, strict=True), key=lambda pair: pair[1].count(-1.0)
        )
        if -1.0 in plus:
            first = build.binary(BINARY["mul"], first, Constant(first.type, plus))
        if 1.0 not in minus:
            return build.binary(BINARY["sub"], first, second)
        if -1.0 in minus:
            second = build.binary(BINARY["mul"], second, Constant(second.type, minus))
        return build.binary(BINARY["add"], first, second)

    def _positive(self, build: ir.IRBuilder, nodes: Pack) -> Any:
        zero = self.like(len(nodes)).constant(0.0)
        return build.fcmp_ordered(">", self.column(build, nodes), zero)


def last_uses(
    graph: Graph, parts: Sequence[Sequence[Pack]], unit: Mapping[int, Pack]
) -> dict[Pack, int]:
    """The last part that needs each pack, of those that some node needs."""
    last = dict[Pack, int]()
    for i, part in enumerate(parts):
        for n in (n for x in part for n in x):
            for y in (*arguments(graph, n), *graph.arguments(n)):
                if y in unit:
                    last[unit[y]] = i
    return last


def kept(slot: Mapping[Pack, int], unit: Pack | None, n: int) -> int | None:
    """The slot of a node of a pack."""
    return slot[unit] + unit.index(n) if unit in slot and unit is not None else None
