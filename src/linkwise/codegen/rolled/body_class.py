"""Bodies of one kind share one piece of code: which kinds a mechanism has, and their numbers.

A rolled kernel has a loop over the bodies for each pass. The numbers of a body (the pose of its
hinge, its inertia, its armature ...) are a row of a table; a column with the same number for all
bodies of a class is folded into the code. Classes are as fine as their number allows: bodies that
are equal, else bodies with the same hinge and the same zeros and ones, else the same hinge, else
the same kind of hinge.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.rolled.screw_columns import Structure, numbers_of, structure_of
from linkwise.codegen.scalar.arithmetic import snap
from linkwise.codegen.scalar.pivots import thresholds
from linkwise.model.body import Node
from linkwise.model.hinges import Hinge, Locked
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

MOST = 8
"""Classes a mechanism may have for the sake of finer folding."""

INBOARD, OUTBOARD, INERTIA, OWN = 0, 12, 24, 34
"""Where the columns begin: two poses (rot row by row, p), ten numbers of inertia, then the rest."""


@dataclass(frozen=True, slots=True)
class BodyClass:
    """Bodies that are done by the same code."""

    hinge: Hinge  # their hinge; only its structure matters where `structure` is given
    # which numbers of the hinge are columns; None if they are in the code
    structure: Structure | None
    root: bool  # whether they hang on the ground
    leaf: bool  # whether none of them has children
    bodies: NDArray[np.int64]  # their indices
    # for each node on them, which of the chosen nodes it is, or -1 if bodies differ
    nodes: tuple[int, ...]
    grounded: int  # how many of these, the first ones, are on the ground
    special: int  # the index of a body that is alone in its class, else -1
    columns: Array  # their numbers (bodies, columns)

    @property
    def varying(self) -> NDArray[np.int64]:
        """The columns that are not the same for all bodies."""
        same = (self.columns == self.columns[:1]).all(axis=0)
        return np.flatnonzero(~same)


def classes(
    mech: Mechanism,
    nodes: Sequence[Node],
    *,
    alone: Sequence[int] = (),
    selected: Sequence[tuple[str, ...]] = (),
    indexed: bool = False,
    armature: bool = True,
    itemsize: int = 8,
    most: int = MOST,
) -> list[BodyClass]:
    """The classes of the bodies of a mechanism.

    Args:
        mech: The mechanism.
        nodes: The nodes of the space NODE.
        alone: Bodies that need a separate class.
        selected: Groups of hinges: those of a class are in the same ones.
        indexed: Whether the code depends on which of the nodes a node is.
        armature: Whether the code asks for the armature.
        itemsize: Bytes of a number.
        most: Classes are coarsened while there are more than this.
    """
    hinges = [Locked() if isinstance(b.hinge, Locked) else b.hinge for b in mech.bodies]
    shared, held = _shared(mech), held_nodes(mech, nodes)
    hinge = _numbered(hinges)
    structure = _numbered([structure_of(h) or h for h in _distinct(hinges, hinge)])[hinge]
    numbers, pattern = _same_rows(shared), _same_rows(_pattern(shared))
    extra = np.where(mech.parent < 0, 1, 0)  # roots, bodies with nodes, bodies alone in a class
    placed = np.zeros(mech.n_bodies, dtype=np.int64)
    marks: dict[Hashable, int] = {}
    for k in sorted({*held, *alone}):
        on = held.get(k, [])
        ground = sum(mech.body_index[nodes[i].body] < 0 for i in on)
        which = tuple(on) if indexed else len(on)
        mark = (int(extra[k]), which, ground, k if k in alone else -1)
        extra[k] = marks.setdefault(mark, 2 + len(marks))
        placed[k] = 1 + k
    for names in (set(group) for group in selected):
        extra = 2 * extra + np.array([body.hinge_name in names for body in mech.bodies])
    levels = (
        (hinge, extra, numbers, placed),
        (hinge, extra, pattern),
        (hinge, extra),
        (structure, extra),
    )
    groups = [_groups(level) for level in levels]
    chosen = next((i for i, group in enumerate(groups) if len(group) <= most), len(levels) - 1)
    drives = _numbered([id(b.drive) for b in mech.bodies])
    massless = np.where(shared[:, INERTIA] > 0.0, 0, 1 + np.arange(mech.n_bodies))
    alike = _same_rows(np.stack([hinge, numbers, placed, drives, massless], axis=1))
    kinds = _Own(mech, nodes, held, armature, itemsize)
    result = list[BodyClass]()
    for bodies in groups[chosen]:
        first = int(bodies[0])
        coarse = structure_of(hinges[first]) if chosen == len(levels) - 1 else None
        _, examples, each = np.unique(alike[bodies], return_index=True, return_inverse=True)
        rows = [kinds.row(int(bodies[i]), columns=coarse is not None) for i in examples]
        on = held.get(first, [])
        result.append(
            BodyClass(
                hinge=hinges[first],
                structure=coarse,
                root=bool(mech.parent[first] < 0),
                leaf=not np.isin(bodies, mech.parent).any(),
                bodies=bodies,
                nodes=tuple(on) if indexed else (-1,) * len(on),
                grounded=sum(mech.body_index[nodes[i].body] < 0 for i in on),
                special=first if first in alone else -1,
                columns=np.concatenate([shared[bodies], np.array(rows)[each.ravel()]], axis=1),
            )
        )
    return result


def held_nodes(mech: Mechanism, nodes: Sequence[Node]) -> dict[int, list[int]]:
    """The chosen nodes on each body that has some, those on the ground with the first body."""
    nodes_on = dict[int, list[int]]()
    for i, node in enumerate(nodes):
        nodes_on.setdefault(max(mech.body_index[node.body], 0), []).append(i)
    for on in nodes_on.values():  # nodes on the ground come first
        on.sort(key=lambda i: mech.body_index[nodes[i].body] >= 0)
    return nodes_on


@dataclass(frozen=True, slots=True)
class _Own:
    """Numbers of a body that depend on its kind: armature, thresholds, its hinge, its nodes."""

    mech: Mechanism
    nodes: Sequence[Node]
    held: dict[int, list[int]]
    armature: bool
    itemsize: int

    def row(self, k: int, *, columns: bool) -> list[float]:
        mech, hinge = self.mech, self.mech.bodies[k].hinge
        drives = mech.armature[mech.v_start[k] : mech.v_start[k + 1]] if self.armature else None
        row = [0.0] * hinge.nv if drives is None else drives.tolist()
        row += thresholds(mech, k, self.itemsize).tolist()
        if columns:
            row += numbers_of(hinge)
        for i in self.held.get(k, ()):
            row += [*self.nodes[i].pose.rot.ravel().tolist(), *self.nodes[i].pose.p.tolist()]
        return row


def _numbered(things: Sequence[Hashable]) -> NDArray[np.int64]:
    """A number for each thing, the same for equal ones; first come, first numbered."""
    numbers, by_id = dict[Hashable, int](), dict[int, int]()
    result = np.empty(len(things), dtype=np.int64)
    for i, thing in enumerate(things):
        number = by_id.get(id(thing))
        if number is None:
            number = by_id[id(thing)] = numbers.setdefault(thing, len(numbers))
        result[i] = number
    return result


def _distinct(things: Sequence[Hinge], numbers: NDArray[np.int64]) -> list[Hinge]:
    _, first = np.unique(numbers, return_index=True)
    return [things[i] for i in first]


def _same_rows(table: NDArray[Any]) -> NDArray[np.int64]:
    """A number for each row, the same for rows of the same bits."""
    table = np.ascontiguousarray(table)
    rows = table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).ravel()
    _, inverse = np.unique(rows, return_inverse=True)
    return inverse.ravel().astype(np.int64)


def _groups(level: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Bodies that agree in all numbers of a level, in the order of their first bodies."""
    number = _same_rows(np.stack(level, axis=1))
    order = np.argsort(number, kind="stable")
    starts = np.flatnonzero(np.diff(number[order], prepend=-1))
    parts = np.split(order, starts[1:])
    return sorted(parts, key=lambda part: int(part[0]))


def _pattern(shared: Array) -> Array:
    """Zeros and ones as they are, all other numbers alike."""
    return np.where((shared == 0.0) | (np.abs(shared) == 1.0), shared, 2.0)


def _shared(mech: Mechanism) -> Array:
    """Poses of the hinge and ten numbers of inertia of each body (n, 34), rotations snapped.

    A locked hinge is a pose like that of the hinge itself.
    """
    out = np.empty((mech.n_bodies, OWN))
    held = [
        b.inboard @ b.hinge.pose(np.zeros(0)) if isinstance(b.hinge, Locked) else b.inboard
        for b in mech.bodies
    ]
    for start, poses in ((INBOARD, held), (OUTBOARD, [b.outboard for b in mech.bodies])):
        rot = np.array([pose.rot for pose in poses]).reshape(-1, 9)
        snap(rot)
        out[:, start : start + 9] = rot
        out[:, start + 9 : start + 12] = [pose.p for pose in poses]
    inertias = mech.inertias
    J = np.asarray(inertias.J)
    out[:, INERTIA] = inertias.mass
    out[:, INERTIA + 1 : INERTIA + 4] = inertias.h
    for column, (i, j) in enumerate(((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))):
        out[:, INERTIA + 4 + column] = J[:, i, j]
    return out + 0.0  # the two zeros are one
