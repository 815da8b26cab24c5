"""Limbs of equal build: the same code computes them all, with their own numbers from a table.

A left and a right leg have the same hinges in the same order, on the same body; what differs is a
few numbers: offsets, inertias. Traced with those as symbols both legs are the same graph. A number
that is the same for all of them is folded as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.codegen.cuda.split import limbs
from linkwise.codegen.cuda.worker_code import Number
from linkwise.codegen.scalar.arithmetic import Nodes, Rows, numbers
from linkwise.codegen.scalar.graph import Graph, Scalar
from linkwise.codegen.scalar.pivots import thresholds
from linkwise.codegen.scalar.trace import Traced, traced_run
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.sweeps.bodies import bodies_of
from linkwise.sweeps.interpret import Interpreter
from linkwise.sweeps.program import Program


@dataclass(frozen=True, slots=True)
class Family:
    """Limbs of equal build."""

    starts: tuple[int, ...]  # first body of each limb
    length: int  # bodies of a limb


def families(mech: Mechanism) -> list[Family]:
    """The families of outer limbs of a mechanism, two limbs or more each."""
    limb = limbs(mech.parent.tolist())
    limbs_of = dict[Any, list[int]]()
    for number in sorted(set(limb)):
        bodies = [k for k, x in enumerate(limb) if x == number]
        outer = not mech.children[bodies[-1]]
        chain = bodies == list(range(bodies[0], bodies[-1] + 1))
        if outer and chain and mech.parent[bodies[0]] >= 0:
            build = tuple(
                (mech.bodies[k].hinge, mech.bodies[k].outboard is Pose.identity()) for k in bodies
            )
            if all(plain for _, plain in build):
                limbs_of.setdefault((int(mech.parent[bodies[0]]), build), []).append(bodies[0])
    return [Family(tuple(s), len(key[1])) for key, s in limbs_of.items() if len(s) > 1]


def traced_limbs(
    program: Program,
    mech: Mechanism,
    kin: Sequence[Family],
    nodes: Sequence[str],
    parameters: Sequence[str],
    itemsize: int,
) -> tuple[Traced, dict[int, Number]]:
    """The scalar graph, with the numbers in which limbs of a family differ as symbols."""
    table, bodies = _Table(mech, kin, itemsize), bodies_of(mech, nodes)
    rows = Rows(mech, itemsize, table.row, table.bounds)
    arithmetic = Nodes(program, bodies, parameters, itemsize, rows, table.graph)
    return traced_run(Interpreter(program, bodies, arithmetic), arithmetic), table.symbols


class _Table:
    """The numbers of the bodies of all limbs, symbols where the limbs of a family differ."""

    def __init__(self, mech: Mechanism, kin: Sequence[Family], itemsize: int) -> None:
        self.mech, self.kin, self.itemsize, self.graph = mech, kin, itemsize, Graph()
        self.symbols: dict[int, Number] = {}
        self._limb_of = {
            start + i: (f, m, i)
            for f, family in enumerate(kin)
            for m, start in enumerate(family.starts)
            for i in range(family.length)
        }
        self._rows: dict[int, list[Any]] = {}

    def row(self, k: int) -> list[Any] | None:
        if k not in self._limb_of:
            return None
        if k not in self._rows:
            f, m, i = self._limb_of[k]
            columns = np.array([numbers(self.mech, s + i) for s in self.kin[f].starts])
            row: list[Any] = columns[m].tolist()
            for c in np.flatnonzero((columns != columns[0]).any(axis=0)).tolist():
                node = self.graph.input(f"number {c} of body {k}")
                self.symbols[node] = Number(f, m, tuple(columns[:, c].tolist()))
                row[c] = Scalar(self.graph, node)
            self._rows[k] = row
        return self._rows[k]

    def bounds(self, k: int) -> Array:
        """One bound for all limbs of a family: the smallest."""
        if k not in self._limb_of:
            return thresholds(self.mech, k, self.itemsize)
        f, _, i = self._limb_of[k]
        each = [thresholds(self.mech, s + i, self.itemsize) for s in self.kin[f].starts]
        return np.min(each, axis=0)
