"""One state over several threads: which worker computes which node of the graph, and when.

The tree is cut where it branches. Limbs that carry other limbs are the trunk and belong to worker
0; the outer limbs are dealt out evenly. A node belongs to the body whose statement made it, or,
where all it is made of comes from one body further out, to that body: a limb shifts its own inertia
to the trunk before handing it over. Nodes that unrelated limbs share, because equal things are one
node, are computed by each of them, so that values travel along the tree only.

A worker keeps the order of the graph. Its phase grows when it needs what another worker made, and
between phases all workers meet: forward dynamics of a robot with arms and legs has four phases
(trunk outward, limbs out and in, trunk in and out, limbs outward).

The split only decides speed: any split of any graph gives the same numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linkwise.codegen.scalar.graph import Graph
from linkwise.codegen.scalar.trace import Traced

Key = tuple[int, int]
"""A node as one worker has it: (node, worker)."""

DEEPEST_COPY = 12
"""A node of an unrelated limb is computed again if what it is made of goes no deeper than this."""


@dataclass(frozen=True, slots=True)
class Split:
    """A graph dealt out to workers."""

    workers: int  # how many
    phases: int  # how many, with a meeting of all workers after each
    # for each node and worker that computes it, in order, the arguments that are no leaves, with
    # the worker they come from
    reads: dict[Key, tuple[Key, ...]]
    phase: dict[Key, int]  # when it is computed
    owner: dict[int, int]  # worker that has each result or checked value

    def handed_over(self) -> set[Key]:
        """What other workers read."""
        return {x for key, reads in self.reads.items() for x in reads if x[1] != key[1]}

    def work(self) -> Counter[int]:
        """Operations of each worker."""
        return Counter(worker for _, worker in self.reads)


def undivided(traced: Traced) -> Split:
    """All nodes for one worker, in an order that takes few registers."""
    graph, leaf = traced.graph, _leaves(traced.graph)
    needed = [n for n in traced.in_registers()[0] if not leaf(n)]
    reads = {(n, 0): tuple((x, 0) for x in _arguments(graph, n) if not leaf(x)) for n in needed}
    return Split(1, 1, reads, dict.fromkeys(reads, 0), dict.fromkeys(traced.roots, 0))


def by_limbs(
    traced: Traced,
    parent: Sequence[int],
    workers: int = 0,
    alone: Sequence[Sequence[int]] = (),
) -> Split:
    """The graph dealt out by limbs of the tree.

    Args:
        traced: The graph; its nodes know their bodies.
        parent: Parent of each body.
        workers: How many; 0 takes as many as the largest limb allows to be busy.
        alone: First bodies of limbs that get a worker each, family by family; workers from 1 on,
            in this order. All other limbs go to worker 0, which waits while limbs are computed.
    """
    graph, leaf = traced.graph, _leaves(traced.graph)
    needed = [n for n in graph.used(traced.roots) if not leaf(n)]
    related = _Relation(parent)
    home: dict[int, int] = {}
    for n in needed:
        here = max(graph.body[n], 0)
        places = {home[x] for x in _arguments(graph, n) if not leaf(x)}
        there = places.pop() if len(places) == 1 else here
        home[n] = there if there > here and related(here, there) else here
    role = _alone(parent, alone) if alone else _dealt(parent, Counter(home.values()), workers)
    reads = _Copies(graph, home, role, related).reads(needed)
    owner = {n: 0 if leaf(n) else role[home[n]] for n in traced.roots}
    reads = _kept(reads, [(n, w) for n, w in owner.items() if not leaf(n)])
    phase: dict[Key, int] = {}
    now = Counter[int]()
    for node, worker in reads:
        times = (phase[x] + (x[1] != worker) for x in reads[node, worker])
        phase[node, worker] = now[worker] = max(now[worker], *times, 0)
    phases = max(phase.values(), default=0) + 1
    return Split(max(role, default=0) + 1, phases, reads, phase, owner)


def limbs(parent: Sequence[int]) -> list[int]:
    """The limb of each body: chains between branchings, numbered base first."""
    children = Counter(int(p) for p in parent)
    limb, count = list[int](), 0
    for p in map(int, parent):
        alone = p >= 0 and children[p] == 1
        limb.append(limb[p] if alone else count)
        count += not alone
    return limb


def _dealt(parent: Sequence[int], work: Counter[int], workers: int) -> list[int]:
    """The worker of each body: the trunk first, then the heaviest limb to the least busy."""
    limb = limbs(parent)
    carrying = {limb[p] for k, p in enumerate(map(int, parent)) if p >= 0 and limb[p] != limb[k]}
    load = Counter[int]()
    for k, count in work.items():
        load[limb[k]] += count
    outer = [x for x in sorted(load, key=lambda x: (-load[x], x)) if x not in carrying]
    if not carrying or not outer:
        return [0] * len(limb)
    if not workers:
        workers = -(-sum(load.values()) // load[outer[0]])
    busy = [sum(load[x] for x in carrying), *[0] * (workers - 1)]
    chosen = dict.fromkeys(carrying, 0)
    for x in outer:
        worker = busy.index(min(busy))
        chosen[x] = worker
        busy[worker] += load[x]
    used = {0} | {chosen[x] for x in outer}
    name = {worker: i for i, worker in enumerate(sorted(used))}
    return [name[chosen.get(x, 0)] for x in limb]


def _alone(parent: Sequence[int], alone: Sequence[Sequence[int]]) -> list[int]:
    """The worker of each body, if some limbs have their own workers."""
    limb = limbs(parent)
    first = [start for starts in alone for start in starts]
    worker = {limb[start]: i + 1 for i, start in enumerate(first)}
    return [worker.get(x, 0) for x in limb]


class _Copies:
    """Who computes what, given where each node is at home."""

    def __init__(
        self, graph: Graph, home: dict[int, int], role: list[int], related: _Relation
    ) -> None:
        self.graph, self.home, self.role, self.related = graph, home, role, related
        self.made: dict[Key, tuple[Key, ...]] = {}

    def reads(self, needed: list[int]) -> dict[Key, tuple[Key, ...]]:
        """Every node at home, and the copies that save a way across the tree; in order."""
        for node in needed:
            self._make(node, self.home[node], 0)
        return dict(sorted(self.made.items()))

    def _make(self, node: int, body: int, depth: int) -> Key:
        key = (node, self.role[body])
        if key not in self.made:
            arguments = [x for x in _arguments(self.graph, node) if x in self.home]
            self.made[key] = tuple(self._take(x, body, depth + 1) for x in arguments)
        return key

    def _take(self, node: int, body: int, depth: int) -> Key:
        """Where a statement at a body has a node from."""
        home, mine = self.home[node], (node, self.role[body])
        if self.role[home] == mine[1] or mine in self.made:
            return mine
        if self.related(home, body) or depth > DEEPEST_COPY:
            return node, self.role[home]
        return self._make(node, body, depth)


def _kept(reads: dict[Key, tuple[Key, ...]], roots: list[Key]) -> dict[Key, tuple[Key, ...]]:
    kept, stack = set[Key](), list(roots)
    while stack:
        key = stack.pop()
        if key not in kept:
            kept.add(key)
            stack.extend(reads[key])
    return {key: x for key, x in reads.items() if key in kept}


class _Relation:
    """Whether one of two bodies carries the other."""

    def __init__(self, parent: Sequence[int]) -> None:
        self.inward = list[set[int]]()
        for k, p in enumerate(map(int, parent)):
            self.inward.append({k} | (self.inward[p] if p >= 0 else set()))

    def __call__(self, a: int, b: int) -> bool:
        return a in self.inward[b] or b in self.inward[a]


def _leaves(graph: Graph) -> Callable[[int], bool]:
    return lambda node: graph.op[node] in ("const", "input")


def _arguments(graph: Graph, node: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys(graph.arguments(node)))
