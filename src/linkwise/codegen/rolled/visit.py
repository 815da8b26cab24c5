"""What a body of a class computes in which stage.

An input of the graph of one body is known from some stage on, an operation when its arguments are.
Values of an earlier stage that a later one needs are kept in a record of the body; what costs one
operation on such values is done again instead.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from linkwise.codegen.rolled.body_class import BodyClass
from linkwise.codegen.rolled.layout import Fold, Key, Leaf, Out
from linkwise.codegen.rolled.stage import Plan
from linkwise.codegen.rolled.step import Step
from linkwise.codegen.scalar.graph import Check, Graph, Scalar

Entries: TypeAlias = tuple[dict[Key, int], dict[Key, int], tuple[int, int]]
"""Slots of what is handed to children and of sums over them; how much of it records begin with."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A check of a step: its code is that of body 0; `low` is a number or a column's node."""

    check: Check
    low: float | int
    column: bool


@dataclass(frozen=True, slots=True)
class Visit:
    """What a body of a class does in one stage."""

    order: list[int]  # nodes to compute, in order
    leaves: list[int]  # inputs of the graph that are read
    fetched: list[int]  # nodes read from the body's record
    kept: list[int]  # nodes to put into the record
    shown: list[tuple[int, int]]  # (entry, node) for the children to read in a later stage
    handed: list[tuple[int, int]]  # (entry, node) for the children, to be read in this stage only
    added: list[tuple[int, int]]  # (entry, node) to add to the sums of the parent
    results: list[Out]  # entries of the result
    totals: list[Out]  # what is added to numbers that belong to no body
    exports: list[Out]  # entries of nodes for dense matrices
    guards: list[Guard]  # checks


@dataclass(frozen=True, slots=True)
class ClassCode:
    """The code of one class."""

    kind: BodyClass  # the class
    graph: Graph  # the graph of one body
    leaf: dict[int, Leaf]  # what its inputs are
    slot: dict[int, int]  # where nodes are in the record, after what children may read there
    # those of them that have another value for each column, in a separate record
    each: frozenset[int]
    records: tuple[int, int]  # lengths of the record and of the one for columns
    visits: list[Visit]  # what is done in each stage


def cut(plan: Plan, steps: list[Step], fold: Fold) -> tuple[list[ClassCode], Entries]:
    """What is computed in which stage; entries that nobody reads are not handed over."""
    parent = {k for k, value in fold.parent.items() if value is None}
    sums = {k for k, value in fold.sums.items() if value is None}
    while True:
        cuts = [_Cut(plan, step, parent, sums) for step in steps]
        read = {"parent": set[Key](), "sum": set[Key]()}
        for cut in cuts:
            for visit in cut.visits:
                for node in visit.leaves:
                    leaf = cut.step.leaf[node]
                    if leaf.kind in read and leaf.key is not None:
                        read[leaf.kind].add(leaf.key)
        if read["parent"] == parent and read["sum"] == sums:
            break
        parent, sums = read["parent"], read["sum"]
    parent_entry, sum_entry, shown = dict[Key, int](), dict[Key, int](), [0, 0]
    free = {"parent": Counter[int](), "sum": Counter[int]()}
    for key in sorted(parent, key=_order(plan)):
        if key[0] in plan.kept:
            each = int(key[0] in plan.each)
            parent_entry[key] = shown[each]
            shown[each] += 1
        else:
            parent_entry[key] = free["parent"][plan.made[key[0]]]
            free["parent"][plan.made[key[0]]] += 1
    for key in sorted(sums, key=_order(plan)):
        sum_entry[key] = free["sum"][plan.gathered[key[0]]]
        free["sum"][plan.gathered[key[0]]] += 1
    entries = (parent_entry, sum_entry, (shown[0], shown[1]))
    return [cut.finished(entries) for cut in cuts], entries


def _order(plan: Plan) -> Callable[[Key], tuple[int, int, int]]:
    number = {ident: i for i, ident in enumerate(plan.made)}

    def order(key: Key) -> tuple[int, int, int]:
        return number[key[0]], key[1], key[2]

    return order


class _Cut:
    """The nodes of one class, by the stage in which they are computed."""

    def __init__(self, plan: Plan, step: Step, parent: set[Key], sums: set[Key]) -> None:
        self.plan, self.step, self.graph = plan, step, step.graph
        self.handed = {k: step.window.node(x) for k, x in step.handed.items() if k in parent}
        self.added = {k: step.window.node(x) for k, x in step.added.items() if k in sums}
        self.guards = self._guards()
        self.level = self._levels()
        self.visits = list[Visit]()
        count = len(plan.stages)
        sinks = [self._sinks(i) for i in range(count)]
        stored = [set[int]() for _ in range(count)]
        needs = [set[int]()] * count
        for i in reversed(range(count)):  # what later stages fetch is computed here too
            needs[i], fetched = self._needed(i, [*sinks[i], *stored[i]])
            for node in fetched:
                stored[self.level[node]].add(node)
        kept = sorted(set[int]().union(*stored))
        self.each = frozenset(n for n in kept if plan.stages[self.level[n]].each)
        parts = ([n for n in kept if n not in self.each], sorted(self.each))
        self.slot = {n: i for part in parts for i, n in enumerate(part)}
        self.lengths = (len(parts[0]), len(parts[1]))
        for i in range(count):
            self.visits.append(self._visit(i, needs[i], stored[i]))

    def _levels(self) -> list[int]:
        graph, level = self.graph, list[int]()
        for node, op in enumerate(graph.op):
            if op == "input":
                level.append(self.step.leaf[node].level)
            elif op == "const":
                level.append(0)
            else:
                b = graph.b[node]
                level.append(max(level[graph.a[node]], level[b] if b >= 0 else 0))
        return level

    def _guards(self) -> list[Guard]:
        step = self.step
        outs = (*step.results, *step.totals, *step.exports)
        used = [*self.handed.values(), *self.added.values(), *(out.node for out in outs)]
        guards = [Guard(c, c.low, False) for c in step.window.quaternion_checks(used)]
        for node, (code, low) in step.window.checks.items():
            check = Check(code, node, 0.0, math.inf)
            column = isinstance(low, Scalar)
            guards.append(Guard(check, low.node if column else float(low), column))
        return guards

    def _sinks(self, i: int) -> list[int]:
        """Nodes whose values leave the body in stage i."""
        plan, level = self.plan, self.level
        sinks = [n for k, n in self.handed.items() if plan.made[k[0]] == i]
        sinks += [n for k, n in self.added.items() if plan.gathered[k[0]] == i]
        sinks += [o.node for o in self.step.results if max(o.stage, level[o.node]) == i]
        sinks += [o.node for o in (*self.step.totals, *self.step.exports) if o.stage == i]
        for guard in self.guards:
            if level[guard.check.node] == i:
                sinks += [guard.check.node, *([int(guard.low)] if guard.column else [])]
        return sinks

    def _needed(self, i: int, roots: list[int]) -> tuple[set[int], set[int]]:
        """Nodes visited in stage i, and those among them that come from the record."""
        graph = self.graph
        needed, early, stack = set[int](), set[int](), list(roots)
        while stack:
            node = stack.pop()
            if node in needed:
                continue
            needed.add(node)
            if graph.op[node] in ("const", "input"):
                if graph.op[node] == "input" and self._gone(node, i):
                    early.add(node)
                continue
            if self.level[node] < i and graph.op[node] != "neg":
                early.add(node)
                continue
            stack += [x for x in (graph.a[node], graph.b[node]) if x >= 0]
        # One operation on what is here anyway is done again instead of being kept.
        for node in sorted(early, reverse=True):
            if graph.op[node] in ("add", "sub", "mul"):
                pair = (graph.a[node], graph.b[node])
                if all(x in needed or self._free(x, i) for x in pair):
                    early.discard(node)
                    needed.update(pair)
        return needed, early

    def _gone(self, node: int, i: int) -> bool:
        leaf = self.step.leaf[node]
        return leaf.level < i and not leaf.kept

    def _free(self, node: int, i: int) -> bool:
        return self.graph.op[node] == "const"

    def _visit(self, i: int, needed: set[int], stored: set[int]) -> Visit:
        graph, step = self.graph, self.step
        fetched = {n for n in needed if n in self.slot and self.level[n] < i}
        leaves = [n for n in needed if graph.op[n] == "input" and n not in fetched]
        order = sorted(n for n in needed if graph.op[n] != "input" and n not in fetched)
        return Visit(
            order,
            sorted(leaves),
            sorted(fetched),
            sorted(stored),
            [],
            [],
            [],
            [o for o in step.results if max(o.stage, self.level[o.node]) == i],
            [o for o in step.totals if o.stage == i],
            [o for o in step.exports if o.stage == i],
            [g for g in self.guards if self.level[g.check.node] == i],
        )

    def finished(self, entries: Entries) -> ClassCode:
        """The code, with what is handed on at its place."""
        parent_entry, sum_entry, shown = entries
        plan = self.plan
        for k, node in self.handed.items():
            visit = self.visits[plan.made[k[0]]]
            into = visit.shown if k[0] in plan.kept else visit.handed
            into.append((parent_entry[k], node))
        for k, node in self.added.items():
            self.visits[plan.gathered[k[0]]].added.append((sum_entry[k], node))
        records = (shown[0] + self.lengths[0], shown[1] + self.lengths[1])
        step = self.step
        return ClassCode(
            step.kind, self.graph, step.leaf, self.slot, self.each, records, self.visits
        )
