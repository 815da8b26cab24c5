"""Rolled kernels: loops over bodies, one piece of code for each class of bodies.

program, mechanism  ->  stages (loops)  ->  for each class the graph of one body  ->  Rolled
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import role
from linkwise.algebra.space import JOINT, ONE
from linkwise.codegen.rolled.between import Between, between_loops
from linkwise.codegen.rolled.body_class import MOST, BodyClass, classes
from linkwise.codegen.rolled.layout import Fold, Key, Layout, layout_of, total_size
from linkwise.codegen.rolled.place_table import Places, places
from linkwise.codegen.rolled.stage import Plan, planned
from linkwise.codegen.rolled.step import Step
from linkwise.codegen.rolled.visit import ClassCode, Entries, cut
from linkwise.codegen.scalar.graph import COUNTED, Scalar
from linkwise.errors import LoweringError, SingularHingeError
from linkwise.model.body import Node
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.sweeps.program import Program, Quantity
from linkwise.sweeps.result_part import bodies, entries


@dataclass(frozen=True, slots=True)
class Rolled:
    """A program of one mechanism as loops over its bodies."""

    plan: Plan  # the stages
    inputs: tuple[tuple[str, int], ...]  # for each input array its name and length, in order
    shape: tuple[int, ...]  # shape of the result for one state
    columns: int  # columns of the result that are computed one by one, or 1
    codes: list[ClassCode]  # the classes
    # slot of each entry handed to children: in the record if it is kept
    parent_entry: dict[Key, int]
    sum_entry: dict[Key, int]  # slot of each entry of sums over children
    # entries at the beginning of every record, and of every record for columns
    shown: tuple[int, int]
    between: list[Between]  # straight code before each stage; the last one after all of them
    slots: tuple[int, int]  # numbers that belong to no body: the same for all columns, and others
    places: Places  # where each body's numbers are
    table: Array  # the columns of all classes, body after body
    ops: Counter[str]  # scalar operations for one state, by kind
    # for each row of the complete result (for blocks, each body) its row in the chosen part, or -1;
    # None for all
    row_of: NDArray[np.int32] | None = None
    chosen_columns: NDArray[np.int32] | None = None  # the columns that are computed; None for all


def roll(
    program: Program,
    mech: Mechanism,
    nodes: Sequence[str] = (),
    parameters: Sequence[str] = (),
    *,
    itemsize: int = 8,
    most_classes: int = MOST,
    variable: Sequence[Quantity] = (),
) -> Rolled:
    """A program on a mechanism with one body or more, as loops over its bodies.

    Classes of bodies are coarsened while there are more than `most_classes`. Entries of quantities
    that are `variable` are not folded, whatever bodies hand over: loops may begin anywhere.
    """
    if not mech.n_bodies:
        raise LoweringError(f"{mech.name} has no bodies: there is nothing to loop over.")
    if not program.loopable:
        belongs = (
            "belongs to constraints" if program.constrained else "is a derivative by parameters"
        )
        raise LoweringError(
            f"{program.expr} {belongs}, for which there are no loops over bodies: leave out "
            "rolled=True."
        )
    plan = planned(program)
    chosen = [mech.node(name) for name in nodes]
    inputs, layout = layout_of(plan, mech, chosen, nodes, parameters)
    indexed = plan.looped is None or plan.looped.block != "node"
    alone = sorted({k for k, _ in layout.payloads.values()})
    geared = any(
        isinstance(s.role, role.Memoryless) and s.role.source == "N" for s in program.inputs
    )
    kinds = classes(
        mech,
        chosen,
        alone=alone,
        selected=[s.role.hinges for s in program.inputs if isinstance(s.role, role.Selection)],
        indexed=indexed,
        armature=geared,
        itemsize=itemsize,
        most=most_classes,
    )
    steps, fold = _traced(plan, mech, kinds, layout, itemsize, variable)
    codes, entries = cut(plan, steps, fold)
    shape, columns, row_of = _shape(plan, mech, nodes, layout)
    looped = plan.looped is not None and layout.columns is not None
    return Rolled(
        plan,
        inputs,
        shape,
        columns,
        codes,
        *entries,
        between_loops(plan, layout, itemsize),
        layout.slots,
        *_tables(mech, chosen, codes, entries),
        _operations(plan, mech, codes, columns),
        row_of,
        layout.columns.astype(np.int32) if looped and layout.columns is not None else None,
    )


def _operations(plan: Plan, mech: Mechanism, codes: list[ClassCode], columns: int) -> Counter[str]:
    """Scalar operations for one state; of a symmetric matrix, those for one half."""
    ops, n = Counter[str](), mech.n_bodies
    begin = mech.v_start[:-1] if plan.looped is JOINT else np.arange(n) * max(columns // n, 1)
    for code in codes:
        count = len(code.kind.bodies)
        each = count * columns
        if plan.halved:  # a body is visited for the columns from its own on
            each -= int(begin[code.kind.bodies].sum())
        for stage, visit in zip(plan.stages, code.visits, strict=True):
            for node in visit.order:
                if code.graph.op[node] in COUNTED:
                    ops[code.graph.op[node]] += each if stage.each else count
    return ops


def _shape(
    plan: Plan, mech: Mechanism, nodes: Sequence[str], layout: Layout
) -> tuple[tuple[int, ...], int, NDArray[np.int32] | None]:
    """Shape of the result, columns that are looped over, and where its rows come."""
    result, names = plan.program.result, plan.program.chosen.rows
    rows = mech.n_bodies if result.block else total_size(result.rows, mech, len(nodes))
    row_of = None
    if names is not None:
        if result.block:
            chosen = bodies(names, mech)
        else:
            chosen = entries(names, result.rows, mech, nodes)
        row_of = np.full(rows, -1, dtype=np.int32)
        row_of[chosen] = np.arange(len(chosen))
        rows = len(chosen)
    if result.block:
        return (rows, *layout.block), 1, row_of
    if result.columns is ONE:
        return (rows,), 1, row_of
    columns = total_size(result.columns, mech, len(nodes))
    columns = columns if layout.columns is None else len(layout.columns)
    return (rows, columns), columns if plan.looped is not None else 1, row_of


# ------------------------------------------------------------------------------------- tracing


def _traced(
    plan: Plan,
    mech: Mechanism,
    kinds: list[BodyClass],
    layout: Layout,
    itemsize: int,
    variable: Sequence[Quantity],
) -> tuple[list[Step], Fold]:
    """The steps of all classes, with constants that bodies hand to each other folded.

    What is handed over starts as whatever the roots hand over, sums start as zero, as they are at
    the tips; entries found to differ become variable, until nothing changes.
    """
    fold = Fold()
    for quantity in variable:
        columns = 6 if quantity.block else 1
        keys = [(quantity.ident, r, c) for r in range(6) for c in range(columns)]
        entries = fold.parent if quantity.ident in plan.from_parent else fold.sums
        entries.update(dict.fromkeys(keys))
    while True:
        steps = list[Step]()
        changed = False
        for kind in sorted(kinds, key=lambda kind: not kind.root):
            step = Step(plan, mech, kind, layout, fold, itemsize)
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


def _joined(fold: dict[Key, float | None], values: dict[Key, Any], *, first: bool) -> bool:
    changed = False
    for key, x in values.items():
        value = _constant(x)
        if key not in fold:
            fold[key] = value if first or value is None else (value if value == 0.0 else None)
            changed = True
        elif fold[key] is not None and value != fold[key]:
            fold[key] = None
            changed = True
    return changed


def _constant(x: Any) -> float | None:
    return x.constant if isinstance(x, Scalar) else float(x)


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
    carried = max((i + 1 for i in parent_entry.values()), default=0)
    summed = max((i + 1 for i in sum_entry.values()), default=0)
    return places(mech, nodes, number, starts[:-1], records, carried, summed), table
