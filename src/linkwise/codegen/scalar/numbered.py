"""Tracing with numbers of bodies as symbols: parts of equal build then have the same graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.expr import Symbol
from linkwise.codegen.scalar import parameters as parameter
from linkwise.codegen.scalar.block import ShiftBlock
from linkwise.codegen.scalar.trace import SNAP, Trace, first, leading
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose

INERTIA, ARMATURE = 12, 22
"""Columns of a body: pose of its hinge (rot row by row, p), ten numbers of inertia, the drives."""


class NumberedTrace(Trace):
    """A trace that takes the numbers of each body from a row."""

    def row(self, k: int) -> list[Any]:
        """The numbers of body k, plain or as symbols."""
        return numbers(self.mech, k).tolist()

    def _own_inertia(self, k: int) -> SpatialInertia:
        return leading(parameter.inertia(objects(self.row(k)[INERTIA:ARMATURE])))

    def _load(self, leaf: Symbol) -> None:
        source = leaf.role.source if isinstance(leaf.role, role.Memoryless) else ""
        bodies = range(self.mech.n_bodies)
        if source == "M":
            self.value[leaf, True] = [first(self._inertia(k).matrix, 2) for k in bodies]
        elif source == "N" and "armature" not in self.parameters:
            blocks = list[Any]()
            for k in bodies:
                drives = self.row(k)[ARMATURE:]
                block = np.full((len(drives), len(drives)), 0.0, dtype=object)
                np.fill_diagonal(block, objects(drives))
                blocks.append(block)
            self.value[leaf, True] = blocks
        else:
            super()._load(leaf)

    def _pose(self, k: int) -> ShiftBlock:
        mech, row = self.mech, self.row(k)
        if mech.bodies[k].outboard is not Pose.identity():
            return super()._pose(k)
        moved = mech.bodies[k].hinge.pose(self.q[None, mech.q_start[k] : mech.q_start[k + 1]])
        rot, p = objects(row[:9]).reshape(3, 3), objects(row[9:12])
        return ShiftBlock(rot @ first(moved.rot, 2), rot @ first(moved.p, 1) + p)


def numbers(mech: Mechanism, k: int) -> Array:
    """The numbers of a body that may differ between parts of equal build."""
    drives = mech.armature[mech.v_start[k] : mech.v_start[k + 1]]
    ten = parameter.numbers(mech.inertias[k])
    return np.concatenate([placed(mech.bodies[k].inboard), ten, drives]) + 0.0


def placed(pose: Pose) -> Array:
    """The twelve numbers of a pose, its rotation snapped; the two zeros are one."""
    rot = pose.rot.ravel().copy()
    for value in (0.0, 1.0, -1.0):
        rot[np.abs(rot - value) < SNAP] = value
    return np.concatenate([rot, pose.p]) + 0.0


def objects(values: Sequence[Any]) -> Any:
    """An array (n,) of numbers and graph nodes."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
