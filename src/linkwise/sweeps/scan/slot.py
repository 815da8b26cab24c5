"""Rigid parts of all bodies at once: the frames of all bodies, then their first lumps, and so on.

A rigid body is one part. A flexible body, or one with a motor, has a frame that others hang on and
lumps (`sweeps/flexible.py`); its blocks are those of its parts in sequence. Slot j holds part j of
each body that has one, with arrays that have a row for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.model.hinges import Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia, trusted_inertia
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.vector import cross_force, cross_velocity
from linkwise.sweeps.scan.element import star
from linkwise.sweeps.scan.path import Indices


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """Part j of each body that has one.

    Attributes:
        mech: The mechanism.
        number: j; 0 for the frames of all bodies.
        bodies: Those bodies.
        alike: Each hinge, and which of these bodies have it.
        inboard: X of hinge frame O+ on the parent of each.
        outboard: X of the part in hinge frame O.
        inertias: About the frames of the parts.
    """

    mech: Mechanism
    number: int
    bodies: Indices
    alike: tuple[tuple[Hinge, Indices], ...]
    inboard: Pose
    outboard: Pose
    inertias: SpatialInertia

    @property
    def rows(self) -> slice:
        """Where the part is in the block of its body."""
        return slice(6 * self.number, 6 * self.number + 6)

    def poses(self, q: Array) -> Pose:
        """X_pk of each part."""
        n = len(self.bodies)
        rot, p = np.empty((n, 3, 3)), np.empty((n, 3))
        for hinge, at in self.alike:
            moved = hinge.pose(self._of(self.mech.q_start, q, at, hinge.nq))
            rot[at], p[at] = moved.rot, moved.p
        return self.inboard @ trusted_pose(rot, p) @ self.outboard

    def add_maps(self, room: Array, q: Array) -> None:
        """H of each part into the blocks (n, nv, columns) of all bodies."""
        shift = self.outboard.shift
        for hinge, at in self.alike:
            H = hinge.hinge_map(self._of(self.mech.q_start, q, at, hinge.nq))
            room[self.bodies[at], : hinge.nv, self.rows] = H @ shift[at]

    def add_bias_accelerations(self, room: Array, V: Array, q: Array, v: Array) -> None:
        """V × H* v + Ḣ* v of each part into vectors (n, rows, 1); V is (n, rows)."""
        mech, shift = self.mech, self.outboard.shift
        for hinge, at in self.alike:
            q_k = self._of(mech.q_start, q, at, hinge.nq)
            v_k = self._of(mech.v_start, v, at, hinge.nv)
            moved = np.einsum("nij,nj->ni", star(hinge.hinge_map(q_k)), v_k)
            both = np.stack([moved, np.broadcast_to(hinge.bias(q_k, v_k), moved.shape)])
            moved, rate = np.einsum("nji,bnj->bni", shift[at], both)
            ks = self.bodies[at]
            room[ks, self.rows, 0] = cross_velocity(V[ks, self.rows], moved) + rate

    def add_gyroscopic_forces(self, room: Array, V: Array) -> None:
        """V ×* M V of each part into vectors (n, rows, 1)."""
        part = V[self.bodies, self.rows]
        room[self.bodies, self.rows, 0] = cross_force(part, self.inertias.apply(part))

    def _of(self, start: Any, values: Any, at: Indices, count: int) -> Array:
        return values[start[self.bodies[at]][:, None] + np.arange(count)]


@once_per_mechanism
def slots_of(mech: Mechanism) -> tuple[Slot, ...]:
    """The parts of all bodies."""
    here = Pose.identity()
    frames = [(k, b.hinge, b.inboard, b.outboard) for k, b in enumerate(mech.bodies)]
    slots = [_slot(mech, 0, frames, mech.inertias)]
    most = max((len(mech.bodies[k].lumps) for k in mech.flexible), default=0)
    for j in range(most):
        ks = [k for k in mech.flexible if len(mech.bodies[k].lumps) > j]
        lumps = [mech.bodies[k].lumps[j] for k in ks]
        owners = zip(ks, lumps, strict=True)
        parts = [(k, x.hinge, mech.bodies[k].inboard, here) for k, x in owners]
        inertias = trusted_inertia(
            np.array([x.inertia.mass for x in lumps]),
            np.array([x.inertia.h for x in lumps]),
            np.array([x.inertia.J for x in lumps]),
        )
        slots.append(_slot(mech, 1 + j, parts, inertias))
    return tuple(slots)


def _slot(
    mech: Mechanism,
    number: int,
    parts: Sequence[tuple[int, Hinge, Pose, Pose]],
    inertias: SpatialInertia,
) -> Slot:
    alike = dict[Hinge, list[int]]()
    for i, (_, hinge, _, _) in enumerate(parts):
        alike.setdefault(hinge, []).append(i)
    inboard, outboard = _stacked([x[2] for x in parts]), _stacked([x[3] for x in parts])
    hinges = tuple((hinge, np.array(at, dtype=np.int64)) for hinge, at in alike.items())
    bodies = np.array([k for k, *_ in parts], dtype=np.int64)
    return Slot(mech, number, bodies, hinges, inboard, outboard, inertias)


def _stacked(poses: Sequence[Pose]) -> Pose:
    return trusted_pose(np.array([x.rot for x in poses]), np.array([x.p for x in poses]))
