"""Nodes of a graph that limbs of equal build have alike: one vector operation computes them all.

Two legs have the same hinges in the same order. What is made of the state of one leg is made of
that of the other by the same operations, with other constants. Such nodes are a pack, one node for
each leg in the order of the legs: beginning with packs of inputs, nodes with operands in packs are
packs where each leg has as many of the same kind, in the order in which they were made. Where axes
of legs point in other directions, sums match differences. Any nodes with the same operation may be
a pack, so a wrong guess costs time and changes no number.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

from linkwise.codegen.scalar.graph import Graph

PACKED = ("mul", "add", "sub", "neg", "gate", "inv", "sqrt")
"""Operations that are done for all nodes of a pack at once."""

TURNED = ("sin", "cos")
"""Operations on packs whose results are packs, although they are not computed as such."""

Pack = tuple[int, ...]
"""A node for each limb."""


class Packs:
    """Packs of a graph.

    Attributes:
        graph: The graph.
        packs: Nodes of each pack.
        place: The pack of a node, and its place in it.
    """

    def __init__(self, graph: Graph, order: Sequence[int], alike: Iterable[Pack]) -> None:
        """Find them.

        Args:
            graph: The graph.
            order: The nodes that are needed, each behind its operands.
            alike: Packs of inputs.
        """
        self.graph, self.packs = graph, list[Pack]()
        self.place = dict[int, tuple[int, int]]()
        self._depth = dict[int, int]()
        levels = defaultdict[int, list[int]](list)
        for n in order:
            operands = self.graph.arguments(n)
            self._depth[n] = 1 + max(map(self._depth.__getitem__, operands)) if operands else 0
            levels[self._depth[n]].append(n)
        for nodes in alike:
            self._add(nodes)
        for depth in sorted(levels)[1:]:
            for exact, mixed in ((True, False), (False, False), (False, True)):
                self._grow(levels[depth], exact=exact, mixed=mixed)

    def computed(self, pack: int) -> bool:
        """Whether one operation computes a pack."""
        return self.graph.op[self.packs[pack][0]] in PACKED

    def columns(self, nodes: Pack) -> list[Pack]:
        """The operands of a pack: the first ones of all nodes, and the second ones.

        Those of sums and products are in the order in which they match.
        """
        each = [self.graph.arguments(n) for n in nodes]
        if self.graph.op[nodes[0]] == "mul" or self.is_sum(nodes):
            kinds = [self._kind(x) for x in each[0]]
            each = [
                x[::-1] if [self._kind(y) for y in x] != kinds == [self._kind(y) for y in x[::-1]]
                else x for x in each
            ]  # fmt: skip
        return list(zip(*each, strict=True))

    def is_sum(self, nodes: Pack) -> bool:
        """Whether its operands may be in any order: with `signs`, if some are differences."""
        return any(self.graph.op[n] == "add" for n in nodes)

    def signs(self, nodes: Pack, column: Pack) -> list[float]:
        """The signs of the operands of a sum."""
        op, a = self.graph.op, self.graph.a
        pairs = zip(nodes, column, strict=True)
        return [1.0 if op[n] == "add" or a[n] == x else -1.0 for n, x in pairs]

    def pack_of(self, column: Pack) -> int | None:
        """The pack that a column is."""
        first = self.place.get(column[0])
        same = first is not None and self.packs[first[0]] == column
        return first[0] if first is not None and same else None

    def depth_first(self, roots: Sequence[int]) -> list[Pack]:
        """What the roots need, depth first: packs, and single nodes as packs of one."""
        unit, done, out = self._unit_of(self._depth), set[Pack](), list[Pack]()
        stack = [unit[n] for n in reversed(roots)]
        while stack:
            nodes, before = stack[-1], list[Pack]()
            if nodes not in done:
                operands = (unit[x] for n in nodes for x in self.graph.arguments(n))
                before = [x for x in dict.fromkeys(operands) if x not in done]
            stack += reversed(before)
            if not before:
                stack.pop()
                if nodes not in done:
                    done.add(nodes)
                    out.append(nodes)
        return out

    def _unit_of(self, order: Iterable[int]) -> dict[int, Pack]:
        """The pack that computes each node, or the node by itself."""
        unit = {n: (n,) for n in order}
        for i, nodes in enumerate(self.packs):
            if self.computed(i):
                unit |= dict.fromkeys(nodes, nodes)
        return unit

    def units(self, order: Sequence[int]) -> list[Pack]:
        """Packs, and single nodes as packs of one, each behind its operands."""
        unit = self._unit_of(order)
        rank = dict[Pack, int]()
        for at, n in enumerate(order):
            rank.setdefault(unit[n], at)
        users, left = defaultdict[Pack, list[Pack]](list), Counter[Pack]()
        for nodes in rank:
            for x in {unit[x] for n in nodes for x in self.graph.arguments(n)}:
                users[x].append(nodes)
                left[nodes] += 1
        ready, out = [(at, nodes) for nodes, at in rank.items() if not left[nodes]], list[Pack]()
        heapify(ready)
        while ready:
            _, nodes = heappop(ready)
            out.append(nodes)
            for other in users[nodes]:
                left[other] -= 1
                if not left[other]:
                    heappush(ready, (rank[other], other))
        assert len(out) == len(rank)
        return out

    # ------------------------------------------------------------------------------- finding

    def _add(self, nodes: Pack) -> None:
        self.place |= {n: (len(self.packs), i) for i, n in enumerate(nodes)}
        self.packs.append(nodes)

    def _kind(self, x: int) -> object:
        """What operands in one column have in common."""
        place = self.place.get(x)
        if place is not None:
            return place[0]
        return "const" if self.graph.op[x] == "const" else "other"

    def _grow(self, nodes: Sequence[int], *, exact: bool, mixed: bool) -> None:
        """Packs of nodes of one depth.

        Args:
            nodes: The nodes.
            exact: Only those with the same operand besides a pack.
            mixed: Whether sums and differences may be one pack.
        """
        op, alike = self.graph.op, dict[object, list[list[int]]]()
        for n in nodes:
            if n in self.place or op[n] not in (*PACKED, *TURNED):
                continue
            xs = self.graph.arguments(n)
            places = [self.place[x] for x in xs if x in self.place]
            limbs = {(len(self.packs[pack]), i) for pack, i in places}
            if len(limbs) != 1:
                continue
            width, limb = limbs.pop()
            kinds = [self._kind(x) if x in self.place or not exact else -x - 1 for x in xs]
            sums = ("add", "sub") if mixed else ("add",)
            kinds = sorted(kinds, key=str) if op[n] in (*sums, "mul") else kinds
            name = "add" if op[n] in sums else op[n]
            each = alike.setdefault((name, *kinds, "of", width), [[] for _ in range(width)])
            each[limb].append(n)
        for each in alike.values():
            if len({len(x) for x in each}) == 1:
                for pack in zip(*each, strict=True):
                    for column in self.columns(pack):
                        self._join(column)
                    self._add(pack)

    def _join(self, nodes: Pack) -> None:
        """A pack of nodes that are made of constants and of what all limbs share."""
        op = self.graph.op
        fresh = len(set(nodes)) == len(nodes) and not any(n in self.place for n in nodes)
        if not fresh or len({(op[n], self._depth[n]) for n in nodes}) > 1:
            return
        if op[nodes[0]] in PACKED:
            for column in self.columns(nodes):
                self._join(column)
        if op[nodes[0]] in (*PACKED, "input"):
            self._add(nodes)
