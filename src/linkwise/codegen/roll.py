"""Rolled kernels: loops over bodies, one piece of code for each class of bodies.

    program, mechanism  ->  stages (loops)  ->  for each class the graph of one body  ->  Rolled

What a body computes in a stage is known by levels: an input of its graph is known from some stage
on, an operation when its arguments are. Values of an earlier stage that a later one needs are kept
in a record of the body; what costs one operation on such values is done again instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import role
from linkwise.algebra.space import BODY, INBOARD, JOINT, ONE, PLACE, Space
from linkwise.codegen import parameters as parameter
from linkwise.codegen.body_class import MOST, BodyClass, classes
from linkwise.codegen.graph import COUNTED, Graph, Scalar
from linkwise.codegen.place_table import Places, places
from linkwise.codegen.stage import Plan, planned
from linkwise.codegen.step import Fold, Key, Layout, Leaf, Out, Step
from linkwise.codegen.trace import Check
from linkwise.codegen.whole import Whole, wholes
from linkwise.errors import LoweringError, SingularHingeError
from linkwise.model.body import Node
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.sweeps.cost import cost
from linkwise.sweeps.program import PLACED, Program

MOST_BODIES = 64
"""Bodies of a mechanism whose kernels may be straight code."""

MOST_OPERATIONS, MOST_OF_A_MATRIX = 150_000, 250_000
"""Estimated operations (before folding) of straight code, for a vector and for a matrix."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A check of a step: its code is that of body 0; `low` is a number or a column's node."""

    check: Check
    low: float | int
    column: bool


@dataclass(frozen=True, slots=True)
class Visit:
    """What a body of a class does in one stage.

    Attributes:
        order: Nodes to compute, in order.
        leaves: Inputs of the graph that are read.
        fetched: Nodes read from the body's record.
        kept: Nodes to put into the record.
        shown: (entry, node) for the children to read in a later stage.
        handed: (entry, node) for the children, to be read in this stage only.
        added: (entry, node) to add to the sums of the parent.
        results: Entries of the result.
        totals: What is added to numbers that belong to no body.
        exports: Entries of nodes for dense matrices.
        guards: Checks.
    """

    order: list[int]
    leaves: list[int]
    fetched: list[int]
    kept: list[int]
    shown: list[tuple[int, int]]
    handed: list[tuple[int, int]]
    added: list[tuple[int, int]]
    results: list[Out]
    totals: list[Out]
    exports: list[Out]
    guards: list[Guard]


@dataclass(frozen=True, slots=True)
class ClassCode:
    """The code of one class.

    Attributes:
        kind: The class.
        graph: The graph of one body.
        leaf: What its inputs are.
        slot: Where nodes stand in the record, behind what children may read there.
        each: Those among them that have another value for each column, in a record of their own.
        records: Lengths of the record and of the one for columns.
        visits: What is done in each stage.
    """

    kind: BodyClass
    graph: Graph
    leaf: dict[int, Leaf]
    slot: dict[int, int]
    each: frozenset[int]
    records: tuple[int, int]
    visits: list[Visit]


@dataclass(frozen=True, slots=True)
class Rolled:
    """A program of one mechanism as loops over its bodies.

    Attributes:
        plan: The stages.
        inputs: For each input array its name and length, in order.
        shape: Shape of the result for one state.
        columns: Columns of the result that are computed one by one, or 1.
        codes: The classes.
        parent_entry: Slot of each entry handed to children: in the record if it is kept.
        sum_entry: Slot of each entry of sums over children.
        shown: How many entries stand in front of every record, and of every record for columns.
        wholes: What is done between the loops, by stage; the last one after all of them.
        slots: Numbers that belong to no body: the same for all columns, and others.
        places: Where each body's numbers stand.
        table: The columns of all classes, body after body.
        ops: Scalar operations for one state, by kind.
    """

    plan: Plan
    inputs: tuple[tuple[str, int], ...]
    shape: tuple[int, ...]
    columns: int
    codes: list[ClassCode]
    parent_entry: dict[Key, int]
    sum_entry: dict[Key, int]
    shown: tuple[int, int]
    wholes: list[Whole]
    slots: tuple[int, int]
    places: Places
    table: Array
    ops: Counter[str]


def roll(
    program: Program,
    mech: Mechanism,
    nodes: Sequence[str] = (),
    parameters: Sequence[str] = (),
    *,
    itemsize: int = 8,
    most_classes: int = MOST,
) -> Rolled:
    """A program on a mechanism, as loops over its bodies.

    Args:
        program: The sweeps.
        mech: The mechanism, with one body or more.
        nodes: Nodes of the space NODE.
        parameters: Numbers that stay inputs.
        itemsize: Bytes of a number.
        most_classes: Classes of bodies are coarsened while there are more than this.
    """
    if not mech.n_bodies:
        raise LoweringError(f"{mech.name} has no bodies: there is nothing to loop over.")
    plan = planned(program)
    chosen = [mech.node(name) for name in nodes]
    inputs, layout = _layout(plan, mech, chosen, nodes, parameters)
    indexed = plan.looped is None or plan.looped.block != "node"
    alone = sorted({k for k, _ in layout.payloads.values()})
    geared = any(
        isinstance(s.role, role.Memoryless) and s.role.source == "N" for s in program.inputs
    )
    kinds = classes(
        mech,
        chosen,
        alone=alone,
        indexed=indexed,
        armature=geared,
        itemsize=itemsize,
        most=most_classes,
    )
    steps, fold = _traced(plan, mech, kinds, chosen, layout, itemsize)
    codes, entries = _cut(plan, steps, fold)
    shape, columns = _shape(plan, mech, len(nodes))
    ops = Counter[str]()
    for code in codes:
        for stage, visit in zip(plan.stages, code.visits, strict=True):
            times = len(code.kind.bodies) * (columns if stage.each else 1)
            for node in visit.order:
                if code.graph.op[node] in COUNTED:
                    ops[code.graph.op[node]] += times
    return Rolled(
        plan,
        inputs,
        shape,
        columns,
        codes,
        *entries,
        wholes(plan, layout, itemsize),
        layout.slots,
        *_tables(mech, chosen, codes, entries),
        ops,
    )


def worth_rolling(program: Program, mech: Mechanism) -> bool:
    """Whether straight code would be too long: it is a little quicker, but slow to compile."""
    if mech.n_bodies > MOST_BODIES:
        return True
    most = MOST_OPERATIONS if program.result.columns is ONE else MOST_OF_A_MATRIX
    return mech.n_bodies > 0 and cost(program, mech).operations > most


# -------------------------------------------------------------------------------- what is shared


def _layout(
    plan: Plan,
    mech: Mechanism,
    chosen: list[Node],
    nodes: Sequence[str],
    parameters: Sequence[str],
) -> tuple[tuple[tuple[str, int], ...], Layout]:
    program = plan.program
    vectors = [s for s in program.inputs if isinstance(s.role, role.Vector)]
    sources = {s.role.source for s in vectors}  # type: ignore[union-attr]
    inputs: dict[str, int] = {"q": mech.nq}
    if sources & {"v", "a", "b"}:
        inputs["v"] = mech.nv
    for leaf in vectors:
        assert isinstance(leaf.role, role.Vector)
        if leaf.role.source not in ("v", "a", "b", *PLACED):
            inputs[leaf.role.source] = total_size(leaf.range, mech, len(chosen))
    names = parameter.checked(mech, parameters, nodes)
    inputs |= {name: parameter.size(mech, name) for name in names}
    payloads = dict[str, tuple[int, Any]]()
    for name in (n for n in names if n.startswith("payload")):
        node = mech.node(parameter.node_of(mech, name, nodes))
        payloads[name] = (mech.body_index[node.body], node.pose)
    slot, top = dict[Any, int](), [0, 0]

    def columns(space: Space) -> int:
        return 1 if space is ONE or space is plan.looped else total_size(space, mech, len(chosen))

    for stage in plan.stages:
        wanted = [s.target for s in stage.statements if s.target.rows is ONE]
        for solve in stage.solves:
            wanted += [solve.target, *(q for q, _ in solve.reads)]
        for quantity in wanted:
            if quantity.ident not in slot and not quantity.leaf:
                kind = int(quantity.ident in plan.each)
                slot[quantity.ident] = top[kind]
                rows = total_size(quantity.rows, mech, len(chosen))
                top[kind] += rows * columns(quantity.columns)
    layout = Layout(tuple(inputs), names, payloads, len(chosen), slot, (top[0], top[1]))
    return tuple(inputs.items()), layout


def total_size(space: Space, mech: Mechanism, n_nodes: int) -> int:
    """Length of a vector of a space."""
    if space is JOINT:
        return mech.nv
    if space is ONE:
        return 1
    if space.block == "node":
        return (6 if space.name == "NODE" else 12) * n_nodes
    sizes = {BODY: 6, INBOARD: 6, PLACE: 12}
    if space not in sizes:
        raise LoweringError(f"the space {space} has no blocks in a mechanism.")
    return sizes[space] * mech.n_bodies


def _shape(plan: Plan, mech: Mechanism, n_nodes: int) -> tuple[tuple[int, ...], int]:
    result = plan.program.result
    rows = total_size(result.rows, mech, n_nodes)
    if result.columns is ONE:
        return (rows,), 1
    columns = total_size(result.columns, mech, n_nodes)
    return (rows, columns), columns if plan.looped is not None else 1


# ------------------------------------------------------------------------------------- tracing


def _traced(
    plan: Plan,
    mech: Mechanism,
    kinds: list[BodyClass],
    nodes: list[Node],
    layout: Layout,
    itemsize: int,
) -> tuple[list[Step], Fold]:
    """The steps of all classes, with constants that bodies hand to each other folded.

    What is handed over starts as whatever the roots hand over, sums start as zero, as they are at
    the tips; entries found to differ become variable, until nothing changes.
    """
    fold = Fold()
    while True:
        steps = list[Step]()
        changed = False
        for kind in sorted(kinds, key=lambda kind: not kind.root):
            step = Step(plan, mech, kind, nodes, layout, fold, itemsize)
            try:
                step.trace()
            except SingularHingeError:
                if not _loosened(fold, plan):
                    raise
                changed = True
                break
            changed |= _joined(fold.parent, step.handed, first=kind.root)
            changed |= _joined(fold.sums, step.added, first=False)
            steps.append(step)
        if not changed:
            return [next(s for s in steps if s.kind is kind) for kind in kinds], fold


def _joined(fold: dict[Key, float | None], found: dict[Key, Any], *, first: bool) -> bool:
    changed = False
    for key, x in found.items():
        value = _constant(x)
        if key not in fold:
            fold[key] = value if first or value is None else (value if value == 0.0 else None)
            changed = True
        elif fold[key] is not None and value != fold[key]:
            fold[key] = None
            changed = True
    return changed


def _constant(x: Any) -> float | None:
    if isinstance(x, Scalar):
        return x.graph.value[x.node] if x.graph.op[x.node] == "const" else None
    return float(x)


def _loosened(fold: Fold, plan: Plan) -> bool:
    """A body without inertia carries something: its sums are not zero. Whether that was news."""
    before = fold.sums.copy()
    for stage in plan.stages:
        for statement in stage.gathers:
            columns = 6 if statement.target.block else 1
            for r in range(6):
                for c in range(columns):
                    fold.sums[statement.target.ident, r, c] = None
    return before != fold.sums


# ------------------------------------------------------------------------------------- the cut


Entries = tuple[dict[Key, int], dict[Key, int], tuple[int, int]]


def _cut(plan: Plan, steps: list[Step], fold: Fold) -> tuple[list[ClassCode], Entries]:
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


def _order(plan: Plan) -> Any:
    number = {ident: i for i, ident in enumerate(plan.made)}
    return lambda key: (number[key[0]], key[1], key[2])


class _Cut:
    """The nodes of one class, by the stage in which they are computed."""

    def __init__(self, plan: Plan, step: Step, parent: set[Key], sums: set[Key]) -> None:
        self.plan, self.step, self.graph = plan, step, step.graph
        self.handed = {k: step.number(x) for k, x in step.handed.items() if k in parent}
        self.added = {k: step.number(x) for k, x in step.added.items() if k in sums}
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
        wanted = sorted(set[int]().union(*stored))
        self.each = frozenset(n for n in wanted if plan.stages[self.level[n]].each)
        parts = ([n for n in wanted if n not in self.each], sorted(self.each))
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
        found = [Guard(c, c.low, False) for c in step.quaternion_checks(used)]
        for check in step.checks.values():
            low = step.bounds[check.node]
            column = isinstance(low, Scalar)
            found.append(Guard(check, low.node if column else float(low), column))
        return found

    def _sinks(self, i: int) -> list[int]:
        """Nodes whose values leave the body in stage i."""
        plan, level = self.plan, self.level
        found = [n for k, n in self.handed.items() if plan.made[k[0]] == i]
        found += [n for k, n in self.added.items() if plan.gathered[k[0]] == i]
        found += [o.node for o in self.step.results if max(o.stage, level[o.node]) == i]
        found += [o.node for o in (*self.step.totals, *self.step.exports) if o.stage == i]
        for guard in self.guards:
            if level[guard.check.node] == i:
                found += [guard.check.node, *([int(guard.low)] if guard.column else [])]
        return found

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


# ---------------------------------------------------------------------------------- the tables


def _tables(
    mech: Mechanism, nodes: list[Node], codes: list[ClassCode], entries: Entries
) -> tuple[Places, Array]:
    number = np.empty(mech.n_bodies, dtype=np.int64)
    widths: NDArray[np.int64] = np.empty(mech.n_bodies, dtype=np.int64)
    records: NDArray[np.int64] = np.empty((mech.n_bodies, 2), dtype=np.int64)
    for i, code in enumerate(codes):
        number[code.kind.bodies] = i
        widths[code.kind.bodies] = len(code.kind.varying)
        records[code.kind.bodies] = code.records
    starts = np.concatenate([[0], np.cumsum(widths)])
    table = np.empty(int(starts[-1]))
    for code in codes:
        at = starts[code.kind.bodies][:, None] + np.arange(len(code.kind.varying))
        table[at] = code.kind.columns[:, code.kind.varying]
    parent_entry, sum_entry, _ = entries
    carried = max((i + 1 for k, i in parent_entry.items()), default=0)
    summed = max((i + 1 for i in sum_entry.values()), default=0)
    return places(mech, nodes, number, starts[:-1], records, carried, summed), table
