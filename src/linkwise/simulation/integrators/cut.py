"""A graph that calls segments, cut into segments between the calls.

The graph reads registers that last through a step, and the results of calls. What a later segment
needs is computed where it can be first, and kept in registers until its last use; what takes a few
operations from what is at hand is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from linkwise.codegen.scalar.graph import Scalar
from linkwise.codegen.stepping.stepping import Segment, Sketch, part, placed

AGAIN = 4
"""Values that take at most this many operations are recomputed rather than stored."""


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """Arguments that are computed where they are needed only.

    What several branches of one body need is computed where that body needs it, and what branches
    of several bodies need, always.

    Attributes:
        when: The number of a register on which they are computed (`Segment.when`).
        body: Such a number for all branches of the same body.
        arguments: The nodes that are put into each register.
    """

    when: str
    body: str
    arguments: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """Segments that are called from a graph.

    Attributes:
        segments: The segments; they leave the registers of their arguments as they are, or those
            are not needed any more.
        arguments: The nodes that are put into each register before the call.
        results: The register in which each result is, by its name in the graph.
        branches: Further arguments.
    """

    segments: tuple[Segment, ...]
    arguments: Mapping[str, Sequence[int]]
    results: Mapping[str, str]
    branches: tuple[Branch, ...] = ()


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
        if k < len(calls):
            segments += [*parts.branches(k, calls[k]), *calls[k].segments]
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
        self.calls = calls
        self.writes = [*(call.arguments for call in calls), ends]
        branched = [[x.arguments for x in call.branches] for call in calls]
        self.ends = [[n for nodes in x.values() for n in nodes] for x in self.writes]
        for end, parts in zip(self.ends, branched, strict=False):
            end += [n for x in parts for nodes in x.values() for n in nodes]
        self.sizes = {name: len(values) for name, values in sketch.reads.items()}
        results = dict[str, tuple[int, str]]()  # the segment behind the call, and the register
        for k, call in enumerate(calls):
            results |= {name: (k + 1, register) for name, register in call.results.items()}
            self.sizes |= {register: self.sizes[x] for x, register in call.results.items()}
        for x in (*self.writes, *(x for parts in branched for x in parts)):
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
            self.stage[n] = max([late, *(self.stage[x] for x in self.operands(n))])
        self.called = [  # where the arguments of each call are, right behind it
            {n: (name, i) for name, nodes in x.items() for i, n in enumerate(nodes)}
            for x in self.writes
        ]
        self.home, self.register = self._homes(), dict[int, tuple[str, int]]()
        self.kept, self.last = self._crossings()
        self.register = self._registers()

    def operands(self, n: int) -> list[int]:
        if self.graph.op[n] in ("const", "input"):
            return []
        return [x for x in (self.graph.a[n], self.graph.b[n]) if x >= 0]

    def _homes(self) -> dict[int, int]:
        home = {n: self.stage[n] or len(self.ends) for n in self.order}
        for k, end in enumerate(self.ends):
            for n in end:
                home[n] = self.stage[n] or min(home[n], k)
        for n in reversed(self.order):
            for x in self.operands(n):
                home[x] = self.stage[x] or min(home[x], home[n])
        return home

    def place(self, n: int, k: int) -> tuple[str, int] | None:
        """The register from which segment k has a node; None if it computes it."""
        if n in self.lasting:
            return self.lasting[n]
        if self.home[n] == k:
            return self.result.get(n)
        if k and n in self.called[k - 1]:
            return self.called[k - 1][n]
        if self.work(n, k) <= AGAIN:
            return None
        return self.register.get(n, ("kept", -1))

    def work(self, n: int, k: int) -> int:
        """Operations to make a node of what lasts and of what was last called with."""
        if n in self.lasting or self.graph.op[n] == "const" or n in self.called[k - 1]:
            return 0
        total = 1 if n not in self.result else AGAIN + 1
        for x in self.operands(n):
            total += self.work(x, k) if total <= AGAIN else 0
        return total

    def needed(
        self, k: int, roots: Iterable[int], known: Mapping[int, object] | None = None
    ) -> list[int]:
        """What segment k reads or computes for some nodes, in the order of the graph."""
        seen, left, known = set[int](), list(roots), known or {}
        while left:
            n = left.pop()
            if n not in seen:
                seen.add(n)
                left += [] if n in known or self.place(n, k) else self.operands(n)
        return sorted(seen)

    def _crossings(self) -> tuple[list[list[int]], dict[int, int]]:
        """What each segment keeps for later ones, and the last segment that needs it."""
        kept = [dict[int, None]() for _ in self.ends]
        last = dict[int, int]()
        for k in reversed(range(len(self.ends))):
            for n in self.needed(k, [*self.ends[k], *kept[k]]):
                if self.place(n, k) == ("kept", -1):
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
        writes = {
            name: nodes
            for name, nodes in self.writes[k].items()
            if not nodes or any(self.lasting.get(n) != (name, i) for i, n in enumerate(nodes))
        }
        groups = dict[str, list[int]]()
        for n in self.kept[k]:
            groups.setdefault(self.register[n][0], []).append(n)
        writes |= groups
        branches = self.calls[k].branches if k < len(self.calls) else ()
        first = set(self.needed(k, [n for nodes in writes.values() for n in nodes]))
        self.plan = _Plan(self, k, branches, first, {**self.writes[k], **groups})
        return self._segment(f"stage{k}", k, writes | self.plan.crossing(None), {})

    def branches(self, k: int, call: Call) -> list[Segment]:
        """The segments of its branches, behind segment k: first those of bodies."""
        plan, segments = self.plan, list[Segment]()
        for body in dict.fromkeys(x.body for x in call.branches):
            passed = plan.crossing(body)
            if passed:
                made = {n for nodes in passed.values() for n in nodes}
                others = {n: place for n, place in plan.place.items() if n not in made}
                segments.append(self._segment("body", k, passed, others).segment(when=body))
        for x in call.branches:
            s = self._segment("branch", k, x.arguments, plan.place)
            segments.append(s.segment(when=x.when))
        return segments

    def _segment(
        self,
        name: str,
        k: int,
        writes: Mapping[str, Sequence[int]],
        known: Mapping[int, tuple[str, int]],
    ) -> Sketch:
        """Code of stage k that writes some nodes; others are in known places."""
        s, values = Sketch(name), dict[int, Scalar]()
        for n in self.needed(k, [n for nodes in writes.values() for n in nodes], known):
            place = self.place(n, k)
            if n in known:
                values[n] = s.read(part(*known[n]), 1)[0]
            elif place is None:
                values[n] = self._computed(s, n, [values[x].node for x in self.operands(n)])
            else:
                values[n] = s.read(place[0], self.sizes[place[0]])[place[1]]
        for register, nodes in writes.items():
            s.write(register, [values[n] for n in nodes])
        return s

    def _computed(self, s: Sketch, n: int, operands: list[int]) -> Scalar:
        """An operation or a constant, in the graph of a segment."""
        op, here = self.graph.op[n], s.graph
        if op == "const":
            return s.scalar(self.graph.value[n])
        if op == "neg":
            return Scalar(here, here.neg(*operands))
        if op == "take":
            return Scalar(here, here.take(operands[0], self.graph.table(n)))
        binary = {"add": here.add, "sub": here.sub, "mul": here.mul, "gate": here.gate}
        return Scalar(here, binary[op](*operands) if op in binary else here.unary(op, *operands))


class _Plan:
    """Where the nodes of branches are computed: in their branch, for their body, or before all.

    Attributes:
        place: Registers and entries of nodes that branches have from elsewhere.
    """

    def __init__(
        self,
        cut: _Cut,
        k: int,
        branches: tuple[Branch, ...],
        first: set[int],
        written: Mapping[str, Sequence[int]],
    ) -> None:
        users = dict[int, list[Branch]]()  # of a node that is not computed before all anyway
        for branch in branches:
            ends = [n for nodes in branch.arguments.values() for n in nodes]
            for n in cut.needed(k, ends):
                if cut.graph.op[n] != "const" and cut.place(n, k) is None:
                    users.setdefault(n, []).append(branch)
        self.place = dict[int, tuple[str, int]]()
        for name, nodes in written.items():
            register, start = placed(name)
            self.place |= {n: (register, start + i) for i, n in enumerate(nodes) if n in users}
        level = dict[int, str | None]()  # the body that computes a node, or None for all
        for n, needing in users.items():
            bodies = {x.body for x in needing}
            if n in first or len(bodies) > 1:
                level[n] = None
            elif len(needing) > 1:
                level[n] = bodies.pop()
        self.shared = dict[str | None, list[int]]()  # what is passed on from each
        for n in users:
            for x in cut.operands(n):
                if x in level and (n not in level or level[n] != level[x]):
                    if x not in self.place:
                        self.place[x] = ("shared", len(self.place))
                        self.shared.setdefault(level[x], []).append(x)
        for branch in branches:  # ends that others compute
            for n in (n for nodes in branch.arguments.values() for n in nodes):
                if n in level and n not in self.place:
                    self.place[n] = ("shared", len(self.place))
                    self.shared.setdefault(level[n], []).append(n)

    def crossing(self, body: str | None) -> dict[str, list[int]]:
        """What is written for branches, before all or for a body."""
        return {part(*self.place[n]): [n] for n in self.shared.get(body, ())}
