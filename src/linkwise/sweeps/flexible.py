"""The blocks of mechanisms with flexible bodies: those of `bodies.py`, in other sizes.

A flexible body is a frame that others hang on, and lumps that move with the same coordinates. Each
of them is a rigid part with its hinge map, and they share the velocities of one hinge:

    V = (V_0, V_1 ... V_m)        H = (H_0, H_1 ... H_m)       M = diag(M_0, M_1 ... M_m)
    E_φ(p, k) = (φ(p, 0), φ(p, 1) ... φ(p, m)), in the rows of the parent's frame

So a statement at a flexible body is the same statement at each part; blocks over parts are stacked,
and what no longer belongs to parts, as f* D H* x, is summed. P⁺ under the shift to the parent takes
as many steps as there are parts (`structured_block.AggregateShift`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.expr import Symbol
from linkwise.algebra.space import INBOARD, INERTIA, NODE, PLACE, Space
from linkwise.model.body import Lump
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.sweeps.aggregate import filtered
from linkwise.sweeps.bodies import Bodies, Part, first, placed_block, special_block
from linkwise.sweeps.interpret import Interpreter
from linkwise.sweeps.program import Quantity, Statement
from linkwise.sweeps.structured_block import AggregateShift, BlockDiagonal, block_diagonal

OF_PARTS: dict[Any, int] = {PLACE: 12, INERTIA: 10}
"""Numbers of one part in spaces with a block for each part; six in those over bodies."""


class FlexibleBodies(Bodies):
    """The bodies of a mechanism of which some are flexible, one block each (see `Bodies`)."""

    def parts(self, k: int) -> int:
        """The number of rigid parts of body k; 1 for the ground."""
        return 1 if k < 0 else 1 + len(self.mech.bodies[k].lumps)

    def sizes(self, space: Space) -> list[int]:
        """The length of each block of a space."""
        size = part_size(space)
        if not size:
            return super().sizes(space)
        return [size * self.parts(k) for k in range(self.mech.n_bodies)]

    def operator(self, run: Interpreter, leaf: Symbol) -> list[Any] | None:
        """The blocks of a memoryless operator; None for others."""
        each = range(self.mech.n_bodies)
        if isinstance(leaf.role, role.Gather):
            return [np.eye(6 * self.parts(int(self.mech.parent[k])), 6) for k in each]
        if isinstance(leaf.role, role.Memoryless) and leaf.role.source == "M":
            return [
                block_diagonal([first(x.inertia().matrix, 2) for x in self.parts_of(run, k)])
                for k in each
            ]
        return super().operator(run, leaf)

    def pick_off(self, node: int, space: Space = NODE) -> Array:
        """B: from a force at a node to the forces on the parts of its body; B_π alike."""
        k, block = max(self.node_body[node], 0), super().pick_off(node, space)
        return np.concatenate([block, *[np.zeros_like(block)] * (self.parts(k) - 1)])

    def parts_of(self, run: Interpreter, k: int) -> list[Part]:
        """The frame of body k, and its lumps."""
        frame = self.part(run, k)
        return [frame, *(self._lump(frame, k, x) for x in self.mech.bodies[k].lumps)]

    def _lump(self, frame: Part, k: int, lump: Lump) -> Part:
        inboard = self.mech.bodies[k].inboard

        def pose() -> Pose:
            here = lump.hinge.pose(frame.q)
            here = here if inboard is Pose.identity() else inboard @ here
            return trusted_pose(first(here.rot, 2), first(here.p, 1))

        inertia, ground = lump.inertia, frame.on_ground
        return Part(lump.hinge, Pose.identity(), pose, lambda: inertia, ground, frame.q, frame.v)

    def special(self, run: Interpreter, statement: Statement, k: int) -> Any:
        """What a special statement gives at body k."""
        above = self.parts(int(self.mech.parent[k]))
        shift = statement.special == "phi(q)"
        if (self.parts(k) == 1 and (above == 1 or not shift)) or statement.special == "diagonal":
            return super().special(run, statement, k)
        parts = self.parts_of(run, k)
        if statement.special == "coordinate_rate":  # of the hinge alone
            return super().special(run, statement, k)
        if statement.special in ("phi(q)", "Delta_phi(q)"):
            steps = tuple(run.arithmetic.shift(part.pose()) for part in parts)
            return AggregateShift(steps, (-1,) * len(parts), 0, above if shift else 1)
        reads = [self._read(run, quantity, k) for quantity, _ in statement.reads]
        blocks = [
            special_block(run, statement, part, [read[i] for read in reads])
            for i, part in enumerate(parts)
        ]
        return stacked(statement.target, blocks)

    def _read(self, run: Interpreter, quantity: Quantity, k: int) -> list[Any]:
        """A quantity at each part."""
        block, count = run.blocks_of(quantity)[k], self.parts(k)
        if quantity.block or not part_size(quantity.rows):
            return [block] * count
        return np.split(block, count)

    def filtered_inertia(self, run: Interpreter, statement: Statement, k: int) -> Any:
        """P⁺ of a flexible body, not multiplied out; None for others."""
        return filtered(run, statement, k) if self.parts(k) > 1 else None

    def place(self, run: Interpreter, statement: Statement, k: int, node: int | None) -> Array:
        """Poses as columns, one for each part."""
        if node is not None or self.parts(k) == 1:
            return super().place(run, statement, k, node)
        above = self.above(run, statement, k)
        blocks = [placed_block(run, statement, x, above) for x in self.parts_of(run, k)]
        return np.concatenate(blocks)


def part_size(space: Space) -> int:
    """Numbers for each part in the block of a body; 0 where blocks do not have parts."""
    if space is INBOARD:
        return 0
    return 6 if space.name == "BODY" else OF_PARTS.get(space, 0)


def stacked(target: Quantity, blocks: list[Any]) -> Any:
    """The block of a body from those of its parts."""
    rows, columns = bool(part_size(target.rows)), bool(part_size(target.columns))
    if rows and columns:
        return (
            BlockDiagonal(tuple(blocks))
            if hasattr(blocks[0], "inverse")
            else block_diagonal(blocks)
        )
    if rows or columns:
        return np.concatenate(blocks, axis=0 if rows else 1)
    return sum(blocks[1:], blocks[0])
