"""Tracing: the interpreter run on graph nodes instead of numbers gives the scalar graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from linkwise.codegen.scalar.arithmetic import Constants, Nodes
from linkwise.codegen.scalar.column_solve import ColumnSolve
from linkwise.codegen.scalar.graph import Check, Graph, Scalar
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.aggregate import Aggregates
from linkwise.sweeps.bodies import Bodies, bodies_of
from linkwise.sweeps.felt_inertia import felt_inertias, may_regroup
from linkwise.sweeps.interpret import Interpreter
from linkwise.sweeps.program import Program, distributed
from linkwise.sweeps.shared_axes import may_share, shared_limbs


@dataclass(frozen=True, slots=True)
class Traced:
    """A program of one mechanism as a graph."""

    graph: Graph  # all nodes
    inputs: tuple[tuple[str, int], ...]  # for each input array its name and length, in order
    outputs: list[int]  # node of each entry of the result, row by row
    shape: tuple[int, ...]  # shape of the result for one state
    checks: tuple[Check, ...] = ()  # what has to hold for the result to mean something
    # of several results that stand one after another, the shape of each
    parts: tuple[tuple[int, ...], ...] = ()
    solve: ColumnSolve | None = None  # columns that may be done side by side
    alike: tuple[tuple[int, ...], ...] = ()  # numbers of inputs that limbs have alike

    @property
    def roots(self) -> list[int]:
        """The nodes that are stored or checked."""
        return [*self.outputs, *(check.node for check in self.checks)]

    def operations(self) -> int:
        """How many operations it takes."""
        return self.graph.count(self.roots).total()

    def ordered(self) -> list[int]:
        """All nodes that are needed, in an order in which few values are waiting for their use.

        That is the order they were made in, the sweeps; or by columns; or depth first from the
        results, where far fewer wait then.
        """
        orders = [self.graph.used(self.roots), self.by_columns()]
        waits = [self.waiting(order) for order in orders]
        by_limbs = self._by_limbs()
        if self.waiting(by_limbs) < FEWER * min(waits):
            return by_limbs
        return orders[waits.index(min(waits))]

    def in_registers(self) -> tuple[list[int], int]:
        """All nodes that are needed, in an order that takes few registers, and how many it takes.

        That is the number of values that wait for their last use, where most do.
        """
        orders = [
            self.graph.used(self.roots),
            self._by_limbs(),
            self.from_results(),
            self.needed_late(),
        ]
        most = [max(accumulate(self._changes(order)), default=0) for order in orders]
        return orders[most.index(min(most))], min(most)

    def from_results(self) -> list[int]:
        """All nodes that are needed, depth first from the results, column by column."""
        return depth_first(self.graph, self.results_first())

    def results_first(self) -> list[int]:
        """The nodes that are stored or checked, column by column."""
        return [*self._results(), *self.roots]

    def needed_late(self) -> list[int]:
        """All nodes that are needed, in an order that takes few registers from there on."""
        return needed_late(self.graph, [*(check.node for check in self.checks), *self._results()])

    def _results(self) -> list[int]:
        """The results column by column, those of the last bodies first.

        Of several matrices the last one, which is symmetric where it is an inverse, comes last.
        """
        shapes = self.parts or (self.shape,)
        places = list[tuple[bool, float, int, int]]()
        for part, shape in enumerate(shapes):
            last = 0 < part == len(shapes) - 1
            for place in np.ndindex(*shape):
                column = -place[-1] / shape[-1] if place else 0.0
                places.append((last, column, part, -len(places)))
        return [self.outputs[-i] for *_, i in sorted(places)]

    def _changes(self, order: Sequence[int]) -> list[int]:
        """For each node of an order, how many values more than before wait after it."""
        changes = [0] * (len(order) + 1)
        for begin, end in self._lives(order, 1):
            changes[begin] += 1
            changes[end] -= 1
        return changes

    def waiting(self, order: Sequence[int]) -> int:
        """How many values wait for their last use, summed over all nodes of an order.

        Results wait for those that they are stored together with.
        """
        return sum(end - begin for begin, end in self._lives(order, STORED))

    def _lives(self, order: Sequence[int], together: int) -> list[tuple[int, int]]:
        """For each value that is used, where in an order it is made and last used.

        Results are used where the last of `together` of them is made.
        """
        at, last = dict(zip(order, range(len(order)), strict=True)), dict[int, int]()
        op, a, b = self.graph.op, self.graph.a, self.graph.b
        for i, node in enumerate(order):
            if op[node] == "part":
                last |= dict.fromkeys(self.graph.arguments(node), i)
            elif op[node] not in FREE:
                last[a[node]] = i
                if b[node] >= 0:
                    last[b[node]] = i
        for start in range(0, len(self.outputs), together):
            group = self.outputs[start : start + together]
            end = max(at[x] for x in group)
            last |= {x: max(last.get(x, 0), end) for x in group}
        return [(at[node], end) for node, end in last.items() if op[node] not in FREE]

    def by_columns(self) -> list[int]:
        """All nodes that are needed, in the order of the sweeps; of a matrix, column by column.

        What serves one column only comes after what all share, a few columns at a time.
        """
        needed = self.graph.used(self.roots)
        if len(self.shape) != 2:
            return needed
        shared, width = -1, self.shape[1]
        column = dict.fromkeys((check.node for check in self.checks), shared)
        for i, node in enumerate(self.outputs):
            column.setdefault(node, i % width)  # of a symmetric matrix, the upper half
        for node in reversed(needed):
            here = column[node]
            for x in self.graph.arguments(node):
                column[x] = here if column.get(x, here) == here else shared
        return sorted(needed, key=lambda node: (column[node] // ABREAST, node))

    def _by_limbs(self) -> list[int]:
        """All nodes that are needed, depth first from the results.

        These come from the last rows and columns to the first, those of all matrices together. So
        limbs follow one another, each from its tip to the base: what serves one limb only is not
        kept while others are computed.
        """
        places = list[tuple[float, float, int]]()
        for shape in self.parts or (self.shape,):
            for place in np.ndindex(*shape):
                along = sorted(-x / n for x, n in zip(place, shape, strict=True)) or [0.0]
                places.append((along[0], along[-1], len(places)))
        results = [self.outputs[i] for *_, i in sorted(places)]
        return depth_first(self.graph, [*results, *self.roots])


def depth_first(graph: Graph, roots: Sequence[int]) -> list[int]:
    """The nodes that the roots need, each just before its first use."""
    done, out = bytearray(max(roots, default=-1) + 1), list[int]()
    stack = list(reversed(roots))
    while stack:
        node = stack[-1]
        before = [] if done[node] else [x for x in graph.arguments(node) if not done[x]]
        stack += reversed(before)
        if not before:
            stack.pop()
            if not done[node]:
                done[node] = 1
                out.append(node)
    return out


def needed_late(graph: Graph, roots: Sequence[int]) -> list[int]:
    """The nodes that the roots need, chosen from the last to the first.

    Before what is chosen comes the node that adds fewest values to those in use, among nodes whose
    uses have all been chosen; of equal ones the last root, or what was made last.
    """
    order, place = depth_first(graph, roots), {node: -i for i, node in enumerate(roots)}
    reads = {node: tuple(dict.fromkeys(graph.arguments(node))) for node in order}
    users: dict[int, list[int]] = {node: [] for node in order}
    for node in order:
        for x in reads[node]:
            users[x].append(node)
    left, live = {node: len(users[node]) for node in order}, set[int]()

    def entry(node: int) -> tuple[int, int, int]:
        new = sum(x not in live and graph.op[x] not in FREE for x in reads[node])
        return new - (node in live), place.get(node, 0), -node

    ready = [entry(node) for node in order if not left[node]]
    heapify(ready)
    done, out = set[int](), list[int]()
    while ready:
        node = -heappop(ready)[-1]
        if node in done:
            continue
        done.add(node)
        live.discard(node)
        out.append(node)
        added = [x for x in reads[node] if x not in live]
        live.update(added)
        for x in reads[node]:
            left[x] -= 1
            if not left[x]:
                heappush(ready, entry(x))
        for other in (user for x in added for user in users[x]):
            if not left[other] and other not in done:
                heappush(ready, entry(other))
    return out[::-1]


FREE = ("const", "input")
"""Nodes that need no register until they are used."""

ABREAST = 2
"""Columns of a matrix that are done together: one would leave the processor waiting."""

STORED = 8
"""Results that are stored together."""

FEWER = 0.75
"""The share of values that wait depth first, below which that order runs faster: it has longer
chains of operations that wait for each other."""


def trace(
    program: Program,
    mech: Mechanism | Embedded,
    nodes: Sequence[str] = (),
    parameters: Sequence[str] = (),
    *,
    itemsize: int = 8,
    rank: int | None = None,
    plain: bool = False,
) -> Traced:
    """The scalar graph of a program on a mechanism, in the axes that take fewest operations.

    Args:
        program: The sweeps.
        mech: The mechanism.
        nodes: Nodes of the space NODE.
        parameters: Numbers of the mechanism that stay inputs (`parameters.py`).
        itemsize: Bytes of a number, on which the bounds of the checks depend.
        rank: How many rows of loops and couplings have to be independent; None for any number.
        plain: Keep each body in its axes and sums as they are, as parts of a larger graph need it;
            parameters need not make a difference then.
    """
    kinds = variants(program, mech, nodes, parameters, itemsize=itemsize, rank=rank, plain=plain)
    return min(kinds.values(), key=Traced.operations)


Axes = Literal["own", "shared"]
"""Those that bodies are written in: their own, or along a limb those of its first body."""


def variants(
    program: Program,
    mech: Mechanism | Embedded,
    nodes: Sequence[str] = (),
    parameters: Sequence[str] = (),
    *,
    itemsize: int = 8,
    rank: int | None = None,
    plain: bool = False,
) -> dict[Axes, Traced]:
    """The scalar graph of a program in each of the axes that may be cheapest; see `trace`."""
    bodies, numbers = bodies_of(mech, nodes), None
    kinds: dict[Axes, Bodies | Aggregates] = {"own": bodies}
    if type(bodies) is Bodies and may_regroup(program):
        numbers = Constants(bodies.mech, itemsize, felt_inertias(bodies.mech))
    if type(bodies) is Bodies and not plain and may_share(program):
        program = distributed(program)
        if (limbs := shared_limbs(program, bodies)) is not None:
            kinds["shared"] = limbs

    def traced(bodies: Bodies | Aggregates) -> Traced:
        arithmetic = Nodes(program, bodies, parameters, itemsize, numbers)
        arithmetic.counted = rank is not None
        return traced_run(Interpreter(program, bodies, arithmetic), arithmetic, rank, plain=plain)

    return {axes: traced(kind) for axes, kind in kinds.items()}


def traced_run(
    run: Interpreter, arithmetic: Nodes, rank: int | None = None, *, plain: bool = False
) -> Traced:
    """The graph of a run on nodes; as a part of another, some parameters may be unused."""
    result = np.asarray(run.result(), dtype=object)
    outputs = [arithmetic.node(x) for x in result.ravel()]
    if not plain:
        arithmetic.check_parameters(outputs)
    checks = arithmetic.needed_checks(outputs) + arithmetic.rank_checks(rank)
    parts = tuple(arithmetic.parts) if run.program.more else ()
    inputs = tuple(arithmetic.arrays)
    return Traced(arithmetic.graph, inputs, outputs, result.shape, tuple(checks), parts)


class Sketch:
    """Arrays of `Scalar` that are read, and those that are written when all is read."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.checks = list[Check]()
        self.reads = dict[str, Any]()
        self.writes = dict[str, list[Scalar]]()

    def read(self, name: str, size: int) -> Any:
        """The numbers of an input (size,), the same ones each time."""
        if name not in self.reads:
            out = np.empty(size, dtype=object)
            for i in range(size):
                out[i] = Scalar(self.graph, self.graph.input(f"{name}[{i}]"))
            self.reads[name] = out
        return self.reads[name]

    def write(self, name: str, values: Sequence[Any]) -> None:
        """Put numbers into an output."""
        self.writes[name] = [self.scalar(x) for x in values]

    def scalar(self, x: Any) -> Scalar:
        """A number as a node."""
        return x if isinstance(x, Scalar) else Scalar(self.graph, self.graph.constant(float(x)))

    def scalars(self, nodes: Sequence[int]) -> Any:
        """Nodes as an array of numbers (n,)."""
        out = np.empty(len(nodes), dtype=object)
        out[:] = [Scalar(self.graph, node) for node in nodes]
        return out

    def check(self, code: int, value: Any, low: float, high: float) -> None:
        """Trouble with a code (`scalar/status.py`) unless low < value < high."""
        self.checks.append(Check(code, self.scalar(value).node, low, high))

    def replay(self, traced: Traced, given: Mapping[str, Any]) -> list[Scalar]:
        """The outputs of another graph, with these values for its inputs; its checks come along.

        Args:
            traced: The graph.
            given: For each of its input arrays the values (size,).
        """
        graph, here = traced.graph, self.graph
        flat = [self.scalar(x).node for name, _ in traced.inputs for x in given[name]]
        node_of, loops = dict[int, int](), dict[int, list[int]]()
        binary = {"add": here.add, "sub": here.sub, "mul": here.mul, "gate": here.gate}
        for node in graph.used(traced.roots):
            op, a, b = graph.op[node], graph.a[node], graph.b[node]
            here.here = graph.body[node]
            if op == "const":
                node_of[node] = here.constant(graph.value[node])
            elif op == "input":
                node_of[node] = flat[a]
            elif op in binary:
                node_of[node] = binary[op](node_of[a], node_of[b])
            elif op == "part":
                if a not in loops:
                    loop = graph.loops[a]
                    inputs = tuple(node_of[x] for x in loop.inputs)
                    loops[a] = here.loop(replace(loop, inputs=inputs))
                node_of[node] = loops[a][b]
            elif op == "neg":
                node_of[node] = here.neg(node_of[a])
            elif op == "take":
                node_of[node] = here.take(node_of[a], graph.table(node))
            else:
                node_of[node] = here.unary(op, node_of[a])
        here.here = -1
        for c in traced.checks:
            check = Check(c.code, node_of[c.node], c.low, c.high)
            if check not in self.checks:
                self.checks.append(check)
        return [Scalar(here, node_of[n]) for n in traced.outputs]

    def traced(self) -> Traced:
        """The graph of what was written, one output behind the other."""
        outputs = [x.node for values in self.writes.values() for x in values]
        inputs = tuple((name, len(values)) for name, values in self.reads.items())
        return Traced(self.graph, inputs, outputs, (len(outputs),), tuple(self.checks))
