"""What a worker computes, as a list of items; limbs of a family share one list.

Nodes of the graph become items of the list: equal items of all workers that share it are one. An
item whose arguments are numbers only is a number; where the members of a family differ in it, it
is an entry of their table.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from linkwise.codegen.cuda.split import Key, Split
from linkwise.codegen.cuda.statement import named
from linkwise.codegen.scalar.trace import Traced

Kind = Literal["const", "table", "input", "hand", "op"]


@dataclass(frozen=True, slots=True)
class Number:
    """A number of one limb of a family that the graph has as an input, and all limbs' values."""

    family: int
    member: int
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """One value."""

    kind: Kind  # what it is
    # operation of the graph, for an operation; or a loop, or one of its results, by number
    op: str = ""
    arguments: tuple[int, ...] = ()  # items, for an operation
    numbers: tuple[float, ...] = ()  # value of a constant; or values of a table entry, one a member
    array: int = 0  # number of the input array
    entry: int = 0  # entry of the row, of the first member
    step: int = 0  # how much further the entry of the next member is
    key: Key = (-1, -1)  # what is taken from another worker


@dataclass(frozen=True, slots=True)
class Stored:
    """An entry of the result, of the first member, and how much further the next member's is.

    `only` is the member that alone stores it, -1 for all.
    """

    item: int
    entry: int
    step: int
    only: int = -1


@dataclass(frozen=True, slots=True)
class Checked:
    """A check with this code that low < item < high; the next member's code is `step` more.

    `only` is the member that alone looks, -1 for all.
    """

    item: int
    low: float
    high: float
    code: int
    step: int
    only: int = -1


@dataclass(slots=True)
class WorkerCode:
    """The list of a worker, or of several that share it."""

    workers: tuple[int, ...]  # who runs it
    # all values, arguments before what they are for
    items: list[Item] = field(default_factory=lambda: [])
    phase: list[int] = field(default_factory=lambda: [])  # when each is computed
    # values others need: the item, and for each worker the node that it is there
    given: dict[int, list[Key]] = field(default_factory=lambda: {})
    stored: list[Stored] = field(default_factory=lambda: [])  # entries of the result
    checked: list[Checked] = field(default_factory=lambda: [])  # checks


class UnlikeError(Exception):
    """Workers that were to share a list do not compute the same."""


def worker_code(
    traced: Traced,
    split: Split,
    workers: Sequence[int],
    family: int = -1,
    symbols: Mapping[int, Number] | None = None,
    offsets: Sequence[Sequence[int]] = (),
    widths: Sequence[int] = (),
) -> WorkerCode:
    """The list that these workers share.

    Args:
        traced: The graph.
        split: Who computes what.
        workers: Workers with the same list; one, if they share with nobody.
        family: Which family they are.
        symbols: Inputs of the graph that are numbers of limbs.
        offsets: For each worker and input array the entry at which its own part begins.
        widths: How many entries of each array are a worker's own; not looked at for one worker.

    Raises:
        UnlikeError: They cannot share one.
    """
    made = _Maker(traced, split, tuple(workers), family, symbols or {}, offsets, widths)
    return made.code()


class _Maker:
    def __init__(
        self,
        traced: Traced,
        split: Split,
        workers: tuple[int, ...],
        family: int,
        symbols: Mapping[int, Number],
        offsets: Sequence[Sequence[int]],
        widths: Sequence[int],
    ) -> None:
        self.traced, self.split, self.workers, self.family = traced, split, workers, family
        self.symbols, self.offsets, self.widths = symbols, offsets, widths
        self.graph = traced.graph
        self.places = [(i, j) for i, (_, size) in enumerate(traced.inputs) for j in range(size)]
        self.result = WorkerCode(workers)
        self.indices: dict[Any, int] = {}
        self.of: dict[Key, int] = {}

    def code(self) -> WorkerCode:
        split = self.split
        handed = split.handed_over()
        for key in split.reads:
            if key[1] in self.workers:
                self._node(key)
        for key in sorted(handed):
            if key[1] in self.workers:
                self.result.given.setdefault(self.of[key], []).append(key)
        self._results()
        return self.result

    # ------------------------------------------------------------------------------- items

    def _add(self, item: Item, phase: int) -> int:
        known = self.indices.get(item)
        if known is None:
            known = self.indices[item] = len(self.result.items)
            self.result.items.append(item)
            self.result.phase.append(phase)
        return known

    def _number(self, values: tuple[float, ...]) -> int:
        if all(x == values[0] for x in values):
            return self._add(Item("const", numbers=values[:1]), 0)
        return self._add(Item("table", numbers=values), 0)

    def _node(self, key: Key) -> int:
        """An operation, as one of the workers has it."""
        known = self.of.get(key)
        if known is not None:
            return known
        node, worker = key
        graph, items = self.graph, self.result.items
        source = {x: (x, w) for x, w in self.split.reads[key]}
        arguments = tuple(self._argument(x, worker, source.get(x)) for x in graph.arguments(node))
        op = graph.op[node]
        if op == "part":  # of a loop, which is an item by itself
            loop = self._add(Item("op", f"loop {graph.a[node]}", arguments), 0)
            self.of[key] = item = self._add(Item("op", f"part {graph.b[node]}", (loop,)), 0)
            return item
        if op in ("add", "mul"):
            arguments = tuple(sorted(arguments))
        if all(items[x].kind in ("const", "table") for x in arguments):
            item = self._number(self._folded(op, [items[x].numbers for x in arguments]))
        else:
            phase = max(self.result.phase[x] for x in arguments)
            item = self._add(Item("op", named(graph, node), arguments), phase)
        self.of[key] = item
        return item

    def _folded(self, op: str, values: list[tuple[float, ...]]) -> tuple[float, ...]:
        members = len(self.workers)
        wide = [x * members if len(x) == 1 else x for x in values]
        return tuple(OPERATIONS[op](*each) for each in zip(*wide, strict=True))

    def _argument(self, node: int, worker: int, source: Key | None) -> int:
        graph = self.graph
        if graph.op[node] == "const":
            return self._number((graph.value[node],))
        if graph.op[node] == "input":
            return self._leaf(node, worker)
        assert source is not None
        if source[1] == worker:
            return self._node(source)
        return self._add(Item("hand", key=source), self.split.phase[source] + 1)

    def _leaf(self, node: int, worker: int) -> int:
        symbol, member = self.symbols.get(node), self.workers.index(worker)
        if symbol is not None:
            ours = symbol.family == self.family and symbol.member == member
            if ours and len(self.workers) > 1:
                return self._number(symbol.values)
            return self._number((symbol.values[symbol.member],))
        array, entry = self.places[self.graph.a[node]]
        if len(self.workers) == 1:
            return self._add(Item("input", array=array, entry=entry), 0)
        starts = [of[array] for of in self.offsets]
        if not starts[member] <= entry < starts[member] + self.widths[array]:
            return self._add(Item("input", array=array, entry=entry), 0)
        step = starts[1] - starts[0]
        if any(x != starts[0] + i * step for i, x in enumerate(starts)):
            raise UnlikeError("inputs of the members do not follow evenly")
        first = entry - member * step
        return self._add(Item("input", array=array, entry=first, step=step), 0)

    # ----------------------------------------------------------------------------- results

    def _item(self, node: int, worker: int) -> int:
        return self._argument(node, worker, (node, worker))

    def _results(self) -> None:
        owner, outputs = self.split.owner, self.traced.outputs
        stored = dict[int, list[list[int]]]()
        for j, node in enumerate(outputs):
            if owner[node] in self.workers:
                member = self.workers.index(owner[node])
                item = self._item(node, owner[node])
                stored.setdefault(item, [[] for _ in self.workers])[member].append(j)
        for item, entries in stored.items():
            for at in self._aligned(entries):
                self.result.stored.append(Stored(item, *at))
        checks = dict[tuple[int, float, float], list[list[int]]]()
        for check in self.traced.checks:
            if owner[check.node] in self.workers:
                member = self.workers.index(owner[check.node])
                item = self._item(check.node, owner[check.node])
                place = (item, check.low, check.high)
                checks.setdefault(place, [[] for _ in self.workers])[member].append(check.code)
        for (item, low, high), codes in checks.items():
            for at in self._aligned(codes):
                self.result.checked.append(Checked(item, low, high, *at))

    def _aligned(self, entries: list[list[int]]) -> list[tuple[int, int, int]]:
        """(first member's, step, -1) of numbers that grow evenly from member to member.

        Others one by one: (number, 0, member).
        """
        rows = list(zip(*entries, strict=False))
        steps = [row[1] - row[0] if len(row) > 1 else 0 for row in rows]
        even = len({len(x) for x in entries}) == 1 and all(
            x == row[0] + m * step
            for row, step in zip(rows, steps, strict=True)
            for m, x in enumerate(row)
        )
        if even:
            return [(row[0], step, -1) for row, step in zip(rows, steps, strict=True)]
        return [(x, 0, m) for m, each in enumerate(entries) for x in each]


def _reciprocal(x: float) -> float:
    return 1.0 / x


def _gated(a: float, b: float) -> float:
    return b if a > 0.0 else 0.0


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "gate": _gated,
    "neg": operator.neg,
    "inv": _reciprocal,
    "sqrt": math.sqrt,
    "sin": math.sin,
    "cos": math.cos,
}
