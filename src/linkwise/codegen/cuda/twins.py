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
from linkwise.codegen.scalar.block import ShiftBlock
from linkwise.codegen.scalar.graph import Scalar
from linkwise.codegen.scalar.numbered import NumberedTrace, numbers
from linkwise.codegen.scalar.pivots import thresholds
from linkwise.codegen.scalar.trace import Trace, Traced
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.sweeps.program import Program


@dataclass(frozen=True, slots=True)
class Family:
    """Limbs of equal build.

    Attributes:
        starts: First body of each limb.
        length: Bodies of a limb.
    """

    starts: tuple[int, ...]
    length: int


def families(mech: Mechanism) -> list[Family]:
    """The families of outer limbs of a mechanism, two limbs or more each."""
    limb = limbs(mech.parent.tolist())
    found = dict[Any, list[int]]()
    for number in sorted(set(limb)):
        bodies = [k for k, x in enumerate(limb) if x == number]
        outer = not mech.children[bodies[-1]]
        chain = bodies == list(range(bodies[0], bodies[-1] + 1))
        if outer and chain and mech.parent[bodies[0]] >= 0:
            build = tuple(
                (mech.bodies[k].hinge, mech.bodies[k].outboard is Pose.identity()) for k in bodies
            )
            if all(plain for _, plain in build):
                found.setdefault((int(mech.parent[bodies[0]]), build), []).append(bodies[0])
    return [Family(tuple(s), len(key[1])) for key, s in found.items() if len(s) > 1]


def trace_twins(
    program: Program,
    mech: Mechanism,
    kin: Sequence[Family],
    nodes: Sequence[str] = (),
    parameters: Sequence[str] = (),
    *,
    itemsize: int = 8,
) -> tuple[Traced, dict[int, Number]]:
    """The scalar graph, with the numbers in which limbs of a family differ as symbols."""
    run = _TwinTrace(program, mech, kin, nodes, parameters, itemsize)
    result = np.asarray(run.result(), dtype=object)
    outputs = [
        x.node if isinstance(x, Scalar) else run.graph.constant(float(x)) for x in result.ravel()
    ]
    checks = run.quaternion_checks(outputs) + run.needed_checks(outputs)
    traced = Traced(run.graph, tuple(run.arrays), outputs, result.shape, tuple(checks))
    return traced, run.numbers


class _TwinTrace(NumberedTrace):
    def __init__(
        self,
        program: Program,
        mech: Mechanism,
        kin: Sequence[Family],
        nodes: Sequence[str],
        parameters: Sequence[str],
        itemsize: int,
    ) -> None:
        self.numbers: dict[int, Number] = {}
        self._limb_of = {
            start + i: (f, m, i)
            for f, family in enumerate(kin)
            for m, start in enumerate(family.starts)
            for i in range(family.length)
        }
        self._columns = [numbers(mech, k) for k in range(mech.n_bodies)]
        self._kin = kin
        self._rows: dict[int, list[Any]] = {}
        super().__init__(program, mech, nodes, parameters, itemsize)

    def row(self, k: int) -> list[Any]:
        """The numbers of a body: plain, or symbols where the family differs."""
        if k in self._rows:
            return self._rows[k]
        own = self._columns[k].tolist()
        if k in self._limb_of:
            f, m, i = self._limb_of[k]
            of_all = np.array([self._columns[s + i] for s in self._kin[f].starts])
            for c in np.flatnonzero((of_all != of_all[0]).any(axis=0)).tolist():
                node = self.graph.input(f"number {c} of body {k}")
                self.numbers[node] = Number(f, m, tuple(of_all[:, c].tolist()))
                own[c] = Scalar(self.graph, node)
        self._rows[k] = own
        return own

    def _bounds(self, k: int) -> Array:
        """One bound for all of the family: the smallest."""
        if k not in self._limb_of:
            return super()._bounds(k)
        f, _, i = self._limb_of[k]
        all_of = [thresholds(self.mech, s + i, self.itemsize) for s in self._kin[f].starts]
        return np.min(all_of, axis=0)

    def _pose(self, k: int) -> ShiftBlock:
        return super()._pose(k) if k in self._limb_of else Trace._pose(self, k)
