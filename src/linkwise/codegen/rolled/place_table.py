"""The positions of the numbers of each body in memory, as a table of integers with a row a body.

What a body hands to its children lives until the last child was visited, a sum over children from
the first child's visit to the body's own. Both get a place that is free again afterwards: on a
serial chain there is one, and it stays in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.rolled.body_class import held_nodes
from linkwise.model.body import Node
from linkwise.model.mechanism import Mechanism

NAMES = (
    *("class", "body", "q", "v", "table", "record", "parent", "parent_record"),
    *("record_each", "parent_record_each", "carry", "parent_carry", "sum", "sum_read", "sum_write"),
    *("first_child", "next_sibling"),
)
"""Columns of the table; behind them, for each node of a body, which of the chosen nodes it is."""


@dataclass(frozen=True, slots=True)
class Places:
    """The table."""

    rows: NDArray[np.int32]  # (bodies, columns), int32
    carried: int  # numbers handed from bodies to children, in all places
    summed: int  # numbers of the sums over children, in all places; the first place is always zero
    summed_first: int  # numbers of the first of these places
    records: tuple[int, int]  # numbers of all records, and of all records for columns

    def column(self, name: str) -> int:
        """The column of that name; "node 0", "node 1" ... for nodes."""
        if name.startswith("node "):
            return len(NAMES) + int(name[5:])
        return NAMES.index(name)


def places(
    mech: Mechanism,
    nodes: list[Node],
    number: NDArray[np.int64],
    table: NDArray[np.int64],
    records: NDArray[np.int64],
    carried: int,
    summed: int,
) -> Places:
    """The table of a mechanism.

    Args:
        mech: The mechanism.
        nodes: The chosen nodes.
        number: Class of each body.
        table: Where each body's columns begin.
        records: Lengths of each body's record and of its record for columns (n, 2).
        carried: Numbers a body hands to its children in one pass, at most.
        summed: Numbers in a sum over children, at most.
    """
    n = mech.n_bodies
    on_body = held_nodes(mech, nodes)
    most = max((len(x) for x in on_body.values()), default=0)
    rows = np.zeros((n, len(NAMES) + most), dtype=np.int64)
    starts = np.concatenate([np.zeros((1, 2), dtype=np.int64), np.cumsum(records, axis=0)])
    begin = starts[:-1]
    above = np.maximum(mech.parent, 0)
    carry, carries = _carried(mech)
    sums, read, write, summing = _summed(mech)
    first_child, next_sibling = _kin(mech)
    by_name = {
        "class": number,
        "body": np.arange(n),
        "q": mech.q_start[:-1],
        "v": mech.v_start[:-1],
        "table": table,
        "record": begin[:, 0],
        "parent": above,
        "parent_record": begin[above, 0],
        "record_each": begin[:, 1],
        "parent_record_each": begin[above, 1],
        "carry": carry * carried,
        "parent_carry": carry[above] * carried,
        "sum": sums * summed,
        "sum_read": read * summed,
        "sum_write": write * summed,
        "first_child": first_child,
        "next_sibling": next_sibling,
    }
    for i, name in enumerate(NAMES):
        rows[:, i] = by_name[name]
    for k, held in on_body.items():
        rows[k, len(NAMES) : len(NAMES) + len(held)] = held
    assert rows.max(initial=0) < 2**31
    lengths = (int(starts[-1, 0]), int(starts[-1, 1]))
    return Places(rows.astype(np.int32), carries * carried, summing * summed, summed, lengths)


def _carried(mech: Mechanism) -> tuple[NDArray[np.int64], int]:
    """The place of what each body hands over, and how many there are; the first is for nothing."""
    n = mech.n_bodies
    parent: list[int] = mech.parent.tolist()
    last = {p: k for k, p in enumerate(parent)}  # the last child of each body
    place, free, top = [0] * n, list[int](), 1
    for k in range(n):
        p = parent[k]
        if p >= 0 and last[p] == k:
            free.append(place[p])
        if k not in last:
            continue
        if free:
            place[k] = free.pop()
        else:
            place[k], top = top, top + 1
    return np.array(place), top


def _summed(
    mech: Mechanism,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int]:
    """The places of each body's own sums and of its parent's: to read (zero at first), to write."""
    n = mech.n_bodies
    parent: list[int] = mech.parent.tolist()
    sums, read, write = [0] * n, [0] * n, [0] * n
    free, top = list[int](), 1
    for k in reversed(range(n)):
        if sums[k]:
            free.append(sums[k])
        p = parent[k]
        if p < 0:
            continue
        if sums[p]:
            read[k] = write[k] = sums[p]
            continue
        if free:
            write[k] = free.pop()
        else:
            write[k], top = top, top + 1
        sums[p] = write[k]
    return np.array(sums), np.array(read), np.array(write), top


def _kin(mech: Mechanism) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first child of each body, and the child of its parent that comes next; n for none."""
    n = mech.n_bodies
    child, sibling = [n] * n, [n] * n
    parent: list[int] = mech.parent.tolist()
    for k in reversed(range(n)):
        p = parent[k]
        if p >= 0:
            sibling[k], child[p] = child[p], k
    return np.array(child), np.array(sibling)
