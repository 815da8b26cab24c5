"""Tracing over aggregate bodies: their blocks from `sweeps/aggregate.py`, on graph nodes.

P⁺ of an aggregate is wanted under the shift to its parent only, E P⁺ E*, six by six. It is left as
P, which is block diagonal, and a product of few columns, so that the cost grows with the bodies of
the aggregate and not with their square.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.block import ShiftBlock
from linkwise.codegen.scalar.graph import Scalar
from linkwise.codegen.scalar.pivots import aggregate_thresholds
from linkwise.codegen.scalar.trace import QUATERNION_SLACK, Check, Trace, first, snapped
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.sweeps.aggregate import AggregateRun
from linkwise.sweeps.aggregate_shift import FilteredInertia
from linkwise.sweeps.interpret import family_of_part
from linkwise.sweeps.program import Block, Statement, Term


class AggregateTrace(AggregateRun, Trace):
    """The interpreter of aggregate bodies, with graph nodes for numbers."""

    itemsize: int  # of Trace, set in its constructor

    def _body_pose(self, k: int) -> Pose:
        mech, body = self.full, self.full.bodies[k]
        q_k = self.q[None, mech.q_start[k] : mech.q_start[k + 1]]
        pose = snapped(body.inboard) @ body.hinge.pose(q_k) @ snapped(body.outboard)
        return trusted_pose(first(pose.rot, 2), first(pose.p, 1))

    def _rigid_shift(self, pose: Pose) -> Any:
        return ShiftBlock(pose.rot, pose.p)

    def _check_loops(self, g: int, margins: Sequence[Any]) -> None:
        code = status.loops(self.tree, g)
        self._check(code, margins, np.zeros(len(margins)))

    def _bounds(self, k: int) -> Array:
        return aggregate_thresholds(self.tree, k, self.itemsize)

    def quaternion_checks(self, outputs: list[int]) -> list[Check]:
        """|quaternion|² = 1, for the hinges whose quaternion is used."""
        used, found = set(self.graph.used(outputs)), list[Check]()
        slack = QUATERNION_SLACK[self.itemsize]
        for k, body in enumerate(self.full.bodies):
            part = body.hinge.quaternion
            if part is None:
                continue
            start = int(self.full.q_start[k])
            four = self.q[start + part.start : start + part.stop]
            if any(x.node in used for x in four):
                square: Any = sum((x * x for x in four[1:]), four[0] * four[0])
                found.append(Check(status.quaternion(k), square.node, 1.0 - slack, 1.0 + slack))
        return found

    def _execute(self, statement: Statement, k: int) -> None:
        inertia = self._inertia_left(statement, k)
        if inertia is None:
            super()._execute(statement, k)
        else:
            self.value[statement.target.ident][k] = inertia

    def _inertia_left(self, statement: Statement, k: int) -> Any:
        """P⁺ = P - G H P of an aggregate, not multiplied out; None for other statements."""
        family = family_of_part(statement.target.key)
        if family is None or statement.target.key is not family.P_plus:
            return None
        less = (Block(family.G), Block(family.H), Block(family.P))
        if statement.terms != (Term(1.0, (Block(family.P),)), Term(-1.0, less)):
            return None
        if self.sizes_of_bodies[k] <= 6 or self.gains.get(family.G) != 1.0:
            return None
        self.graph.here = k
        P, H = (self._block(Block(x), k, k, k, None) for x in (family.P, family.H))
        if not len(H) or not _block_diagonal(P):
            return None
        D_inverse: Any = self._block(Block(family.D, inverse=True), k, k, k, None)
        return FilteredInertia(P, H @ P, D_inverse)

    def _dense(self, block: Any) -> Any:
        return block.dense if isinstance(block, FilteredInertia) else super()._dense(block)


def _block_diagonal(P: Any) -> bool:
    """Whether there is nothing outside the blocks of six."""
    n = len(P)
    return all(_is_zero(P[i, j]) for i in range(n) for j in range(i) if i // 6 != j // 6)


def _is_zero(x: Any) -> bool:
    if isinstance(x, Scalar):
        return x.graph.op[x.node] == "const" and x.graph.value[x.node] == 0.0
    return float(x) == 0.0
