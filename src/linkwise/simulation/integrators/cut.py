"""A graph that calls segments, cut into segments between the calls.

The graph reads registers that last through a step, and the results of calls. What a later segment
needs is computed where it can be first, and kept in registers until its last use; what takes a few
operations from what is at hand is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from linkwise.codegen.scalar.graph import Scalar
from linkwise.codegen.stepping.stepping import Segment, Sketch

AGAIN = 4
"""Values that take at most this many operations are recomputed rather than stored."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A segment that is called from a graph.

    Attributes:
        segment: The segment; it leaves the registers of its arguments as they are.
        arguments: The nodes that are put into each register before the call.
        results: The register in which each result is, by its name in the graph.
    """

    segment: Segment
    arguments: Mapping[str, Sequence[int]]
    results: Mapping[str, str]


def cut(
    sketch: Sketch,
    calls: Sequence[Call],
    ends: Mapping[str, Sequence[int]],
    *,
    group: int,
    check: Callable[[Sketch], None] | None = None,
) -> list[Segment]:
    """The calls of a graph, with segments in front of them and behind them.

    Args:
        sketch: The graph. Whatever it reads is a result of a call, or a register that lasts.
        calls: The calls, in order.
        ends: The nodes that are put into each register at the end.
        group: How many values are kept in one register.
        check: Adds checks to the last segment.
    """
    parts = _Cut(sketch, calls, ends, group)
    segments = list[Segment]()
    for k in range(len(calls) + 1):
        s = parts.sketch(k)
        if k == len(calls) and check is not None:
            check(s)
        segments += [s.segment()] if s.writes else []
        segments += [calls[k].segment] if k < len(calls) else []
    return segments


class _Cut:
    """Segment k comes before call k and computes what that is called with, or the end.

    A node belongs to the segment `home`, the first in which it can be computed and is needed.
    """

    def __init__(
        self,
        sketch: Sketch,
        calls: Sequence[Call],
        ends: Mapping[str, Sequence[int]],
        group: int,
    ) -> None:
        self.graph, self.group = sketch.graph, max(group, 1)
        self.writes = [*(call.arguments for call in calls), ends]
        self.ends = [[n for nodes in x.values() for n in nodes] for x in self.writes]
        self.sizes = {name: len(values) for name, values in sketch.reads.items()}
        results = dict[str, tuple[int, str]]()  # the segment behind the call, and the register
        for k, call in enumerate(calls):
            results |= {name: (k + 1, register) for name, register in call.results.items()}
            self.sizes |= {register: self.sizes[x] for x, register in call.results.items()}
        for x in self.writes:
            self.sizes |= {name: len(nodes) for name, nodes in x.items()}
        self.lasting = dict[int, tuple[str, int]]()  # the place of inputs that last
        self.result = dict[int, tuple[str, int]]()  # and of results, right behind the call
        self.stage = dict[int, int]()
        for name, values in sketch.reads.items():
            stage, register = results.get(name, (0, name))
            places = self.result if stage else self.lasting
            places |= {x.node: (register, i) for i, x in enumerate(values)}
            self.stage |= {x.node: stage for x in values}
        self.order = self.graph.used([n for end in self.ends for n in end])
        for n in self.order:
            late = self.stage.get(n, 0)
            self.stage[n] = max([late, *(self.stage[x] for x in self._operands(n))])
        self.called = [  # where the arguments of each call are, right behind it
            {n: (name, i) for name, nodes in x.items() for i, n in enumerate(nodes)}
            for x in self.writes
        ]
        self.home, self.register = self._homes(), dict[int, tuple[str, int]]()
        self.kept, self.last = self._crossings()
        self.register = self._registers()

    def _operands(self, n: int) -> list[int]:
        if self.graph.op[n] in ("const", "input"):
            return []
        return [x for x in (self.graph.a[n], self.graph.b[n]) if x >= 0]

    def _homes(self) -> dict[int, int]:
        home = {n: self.stage[n] or len(self.ends) for n in self.order}
        for k, end in enumerate(self.ends):
            for n in end:
                home[n] = self.stage[n] or min(home[n], k)
        for n in reversed(self.order):
            for x in self._operands(n):
                home[x] = self.stage[x] or min(home[x], home[n])
        return home

    def _place(self, n: int, k: int) -> tuple[str, int] | None:
        """The register from which segment k has a node; None if it computes it."""
        if n in self.lasting:
            return self.lasting[n]
        if self.home[n] == k:
            return self.result.get(n)
        if k and n in self.called[k - 1]:
            return self.called[k - 1][n]
        if self._work(n, k) <= AGAIN:
            return None
        return self.register.get(n, ("kept", -1))

    def _work(self, n: int, k: int) -> int:
        """Operations to make a node of what lasts and of what was last called with."""
        if n in self.lasting or self.graph.op[n] == "const" or n in self.called[k - 1]:
            return 0
        total = 1 if n not in self.result else AGAIN + 1
        for x in self._operands(n):
            total += self._work(x, k) if total <= AGAIN else 0
        return total

    def _needed(self, k: int, roots: Iterable[int]) -> list[int]:
        """What segment k reads or computes for some nodes, in the order of the graph."""
        seen, left = set[int](), list(roots)
        while left:
            n = left.pop()
            if n not in seen:
                seen.add(n)
                left += [] if self._place(n, k) else self._operands(n)
        return sorted(seen)

    def _crossings(self) -> tuple[list[list[int]], dict[int, int]]:
        """What each segment keeps for later ones, and the last segment that needs it."""
        kept = [dict[int, None]() for _ in self.ends]
        last = dict[int, int]()
        for k in reversed(range(len(self.ends))):
            for n in self._needed(k, [*self.ends[k], *kept[k]]):
                if self._place(n, k) == ("kept", -1):
                    kept[self.home[n]][n] = None
                    last[n] = max(last.get(n, 0), k)
        return [sorted(x) for x in kept], last

    def _registers(self) -> dict[int, tuple[str, int]]:
        """A place for each node that is kept; registers are used again when they are not needed."""
        registers, busy = dict[int, tuple[str, int]](), list[tuple[int, int]]()  # (size, until)
        for k, nodes in enumerate(self.kept):
            for until in sorted({self.last[n] for n in nodes}):
                group = [n for n in nodes if self.last[n] == until]
                for start in range(0, len(group), self.group):
                    part = group[start : start + self.group]
                    free = (i for i, x in enumerate(busy) if x[0] == len(part) and x[1] <= k)
                    i = next(free, len(busy))
                    busy[i : i + 1] = [(len(part), until)]
                    registers |= {n: (f"kept{i}", j) for j, n in enumerate(part)}
        self.sizes |= {f"kept{i}": width for i, (width, _) in enumerate(busy)}
        return registers

    def sketch(self, k: int) -> Sketch:
        """Segment k; it writes nothing that is in its place already."""
        s = Sketch(f"stage{k}")
        values = dict[int, Scalar]()
        writes = {
            name: nodes
            for name, nodes in self.writes[k].items()
            if not nodes or any(self.lasting.get(n) != (name, i) for i, n in enumerate(nodes))
        }
        ends = [n for nodes in writes.values() for n in nodes]
        for n in self._needed(k, [*ends, *self.kept[k]]):
            place = self._place(n, k)
            if place is None:
                values[n] = self._computed(s, n, [values[x].node for x in self._operands(n)])
            else:
                values[n] = s.read(place[0], self.sizes[place[0]])[place[1]]
        for name, nodes in writes.items():
            s.write(name, [values[n] for n in nodes])
        groups = dict[str, list[Scalar]]()
        for n in self.kept[k]:
            groups.setdefault(self.register[n][0], []).append(values[n])
        for name, group in groups.items():
            s.write(name, group)
        return s

    def _computed(self, s: Sketch, n: int, operands: list[int]) -> Scalar:
        """An operation or a constant, in the graph of a segment."""
        op, here = self.graph.op[n], s.graph
        if op == "const":
            return s.scalar(self.graph.value[n])
        if op == "neg":
            return Scalar(here, here.neg(*operands))
        binary = {"add": here.add, "sub": here.sub, "mul": here.mul, "gate": here.gate}
        return Scalar(here, binary[op](*operands) if op in binary else here.unary(op, *operands))
