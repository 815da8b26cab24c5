"""Bodies of one kind share one piece of code: which kinds a mechanism has, and their numbers.

A rolled kernel has a loop over the bodies for each pass. The numbers of a body (where its hinge
stands, its inertia, its armature ...) are a row of a table; a column with the same number for all
bodies of a class is folded into the code. Classes are as fine as their number allows: bodies that
are equal, else bodies with the same hinge and the same zeros and ones, else the same hinge, else
the same kind of hinge.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.pivots import thresholds
from linkwise.codegen.screw_columns import Structure, numbers_of, structure_of
from linkwise.model.body import Node
from linkwise.model.hinges import Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

SNAP = 4e-16
"""Entries of constant rotations this close to 0 or ±1 are taken to be that."""

MOST = 8
"""Classes a mechanism may have for the sake of finer folding."""

INBOARD, OUTBOARD, INERTIA, OWN = 0, 12, 24, 34
"""Where the columns begin: two poses (rot row by row, p), ten numbers of inertia, then the rest."""


@dataclass(frozen=True, slots=True)
class BodyClass:
    """Bodies that are done by the same code.

    Attributes:
        hinge: Their hinge; only its structure matters where `structure` is given.
        structure: Which numbers of the hinge are columns; None if they are in the code.
        root: Whether they hang on the ground.
        leaf: Whether none of them has children.
        bodies: Their indices.
        nodes: For each node on them, which of the chosen nodes it is, or -1 if bodies differ.
        grounded: How many of these, the first ones, are on the ground.
        special: A body of its own kind: its index, else -1.
        columns: Their numbers (bodies, columns).
    """

    hinge: Hinge
    structure: Structure | None
    root: bool
    leaf: bool
    bodies: NDArray[np.int64]
    nodes: tuple[int, ...]
    grounded: int
    special: int
    columns: Array

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
    indexed: bool = False,
    itemsize: int = 8,
    most: int = MOST,
) -> list[BodyClass]:
    """The classes of the bodies of a mechanism.

    Args:
        mech: The mechanism.
        nodes: The nodes of the space NODE.
        alone: Bodies that need a class of their own.
        indexed: Whether the code depends on which of the nodes a node is.
        itemsize: Bytes of a number.
        most: Classes are coarsened while there are more than this.
    """
    n = mech.n_bodies
    shared = _shared(mech)
    on_body = dict[int, list[int]]()
    for i, node in enumerate(nodes):  # nodes on the ground are done with the first body
        on_body.setdefault(max(mech.body_index[node.body], 0), []).append(i)
    for held in on_body.values():
        held.sort(key=lambda i: mech.body_index[nodes[i].body] >= 0)
    extra = list[tuple[Hashable, ...]]()
    parents, special = mech.parent, set(alone)
    for k in range(n):
        held = on_body.get(k, ())
        grounded = sum(mech.body_index[nodes[i].body] < 0 for i in held)
        marks = (tuple(held) if indexed else len(held), grounded, k if k in special else -1)
        extra.append((bool(parents[k] < 0), *marks))

    def exact(k: int) -> Hashable:
        return (mech.bodies[k].hinge, extra[k], shared[k].tobytes(), _placed(k))

    def patterned(k: int) -> Hashable:
        row = shared[k]
        marks = np.where((row == 0.0) | (np.abs(row) == 1.0), row, 2.0)
        return (mech.bodies[k].hinge, extra[k], marks.tobytes())

    def _placed(k: int) -> Hashable:
        return tuple(
            (nodes[i].pose.rot.tobytes(), nodes[i].pose.p.tobytes()) for i in on_body.get(k, ())
        )

    def hinged(k: int) -> Hashable:
        return (mech.bodies[k].hinge, extra[k])

    def kind(k: int) -> Hashable:
        hinge = mech.bodies[k].hinge
        structure = structure_of(hinge)
        return (structure if structure is not None else hinge, extra[k])

    levels: list[Callable[[int], Hashable]] = [exact, patterned, hinged, kind]
    groups = dict[Hashable, list[int]]()
    for level in levels:
        groups = dict[Hashable, list[int]]()
        for k in range(n):
            groups.setdefault(level(k), []).append(k)
        if len(groups) <= most:
            break
    coarse = level is kind
    held_by = [on_body.get(k, []) for k in range(n)]
    return [
        _class(mech, nodes, np.array(g), held_by, shared, coarse, indexed, special, itemsize)
        for g in groups.values()
    ]


def _class(
    mech: Mechanism,
    nodes: Sequence[Node],
    bodies: NDArray[np.int64],
    held_by: list[list[int]],
    shared: Array,
    coarse: bool,
    indexed: bool,
    special: set[int],
    itemsize: int,
) -> BodyClass:
    first = int(bodies[0])
    hinge, held = mech.bodies[first].hinge, held_by[first]
    structure = structure_of(hinge) if coarse else None
    own = dict[Any, list[float]]()
    rows = list[list[float]]()
    plain = not held and structure is None
    for k in bodies.tolist():
        body = mech.bodies[k]
        key = (shared[k].tobytes(), id(body.drive), id(body.hinge))
        row = own.get(key)
        if row is None or not plain:
            row = [*mech.armature[mech.v_start[k] : mech.v_start[k + 1]]]
            row += list(thresholds(mech, k, itemsize))
            if structure is not None:
                row += numbers_of(body.hinge)
            for i in held_by[k]:
                row += [*nodes[i].pose.rot.ravel(), *nodes[i].pose.p]
            if shared[k, INERTIA] > 0.0:
                own[key] = row
        rows.append(row)
    columns = np.concatenate([shared[bodies], np.array(rows).reshape(len(bodies), -1)], axis=1)
    ground = sum(mech.body_index[nodes[i].body] < 0 for i in held)
    return BodyClass(
        hinge,
        structure,
        bool(mech.parent[first] < 0),
        all(not mech.children[k] for k in bodies.tolist()),
        bodies,
        tuple(held) if indexed else (-1,) * len(held),
        ground,
        first if first in special else -1,
        columns,
    )


def _shared(mech: Mechanism) -> Array:
    """Poses of the hinge and ten numbers of inertia of each body (n, 34), rotations snapped."""
    out = np.empty((mech.n_bodies, OWN))
    for start, poses in (
        (INBOARD, [b.inboard for b in mech.bodies]),
        (OUTBOARD, [b.outboard for b in mech.bodies]),
    ):
        rot = np.array([pose.rot for pose in poses]).reshape(-1, 9)
        for value in (0.0, 1.0, -1.0):
            rot[np.abs(rot - value) < SNAP] = value
        out[:, start : start + 9] = rot
        out[:, start + 9 : start + 12] = [pose.p for pose in poses]
    J = np.asarray(mech.inertias.J)
    out[:, INERTIA] = mech.inertias.mass
    out[:, INERTIA + 1 : INERTIA + 4] = mech.inertias.h
    for column, (i, j) in enumerate(((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))):
        out[:, INERTIA + 4 + column] = J[:, i, j]
    return out + 0.0  # the two zeros are one
