"""Flexible bodies part by part: where their lumps are, and each lump as a separate body."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linkwise.model.body import Body, Coupling, Lump
from linkwise.model.hinges import Locked, Modal
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose

if TYPE_CHECKING:
    from linkwise.model.mechanism import Mechanism


def lump_poses(mech: Mechanism, q: Array, poses: Pose) -> Iterator[tuple[Lump, Pose]]:
    """Each lump of a mechanism with its pose in the world.

    Args:
        mech: The mechanism.
        q: Its coordinates (..., nq).
        poses: Those of all bodies in the world (..., n).
    """
    for k in mech.flexible:
        body, p = mech.bodies[k], int(mech.parent[k])
        base = body.inboard
        if p >= 0:
            base = Pose(poses.rot[..., p, :, :], poses.p[..., p, :]) @ base
        q_k = q[..., mech.q_start[k] : mech.q_start[k + 1]]
        for lump in body.lumps:
            yield lump, base @ lump.hinge.pose(q_k)


def modal_bodies(mech: Mechanism) -> list[int]:
    """Bodies with modal coordinates, without those that follow another node of the same body."""
    follow = {x.dependent.partition("[")[0] for x in mech.couplings}
    return [
        k
        for k, body in enumerate(mech.bodies)
        if isinstance(body.hinge, Modal) and body.hinge_name not in follow
    ]


STRAIGHT = 1e-6
"""Displacements across the line to a node that are smaller than this part of its distance."""


def would_soften(positions: Array, displacements: Array, second: Array | None) -> bool:
    """Whether nodes of a flexible body move sideways, with no displacements of second order.

    Args:
        positions: Of the nodes in the reference frame (n, 3) [m].
        displacements: Of the nodes for each mode (n, 3, m) [m/m].
        second: S (n, 3, m, m) [1/m], or None.
    """
    if second is not None and np.asarray(second).any():
        return False
    sideways = np.cross(positions[:, :, None], displacements, axis=1)
    return bool(np.abs(sideways).max() > STRAIGHT * np.linalg.norm(positions, axis=1).max())


@dataclass(frozen=True, slots=True, eq=False)
class Wire:
    """A flexible body as lines between its nodes; node 0 is its reference frame.

    Attributes:
        body: Its index.
        rest: Places of the nodes in hinge frame O+, undeformed (n, 3) [m].
        pairs: The nodes of each line: the shortest tree through all of them.
        hinges: How each node but the first moves.
    """

    body: int
    rest: Array
    pairs: tuple[tuple[int, int], ...]
    hinges: tuple[Modal, ...]

    def nodes(self, q_k: Array) -> Array:
        """Where the nodes are in hinge frame O+, deformed by q_k (n, 3) [m]."""
        return np.stack([self.rest[0], *(hinge.pose(q_k).p for hinge in self.hinges)])


@once_per_mechanism
def wires(mech: Mechanism) -> tuple[Wire, ...]:
    """The flexible bodies of a mechanism as lines; rotors of motors are none."""
    made = list[Wire]()
    for k in modal_bodies(mech):
        body = mech.bodies[k]
        hinges = [x for x in (body.hinge, *(y.hinge for y in body.lumps)) if isinstance(x, Modal)]
        if body.lumps:
            rest = np.stack([np.zeros(3), *(x.rest.p for x in hinges)])
            made.append(Wire(k, rest, _shortest_tree(rest), tuple(hinges)))
    return tuple(made)


def _shortest_tree(points: Array) -> tuple[tuple[int, int], ...]:
    """Pairs of points (n, 3) that are joined in the shortest tree through all of them."""
    distance = np.linalg.norm(points[:, None] - points, axis=-1)
    near, least = np.zeros(len(points), dtype=np.int64), distance[0].copy()
    least[0], pairs = np.inf, list[tuple[int, int]]()
    for _ in range(1, len(points)):
        i = int(np.argmin(least))
        pairs.append((int(near[i]), i))
        closer = (distance[i] < least) & np.isfinite(least)
        near[closer], least[closer] = i, distance[i][closer]
        least[i] = np.inf
    return tuple(pairs)


def wire_base(mech: Mechanism, wire: Wire, poses: Pose) -> Pose:
    """The pose of hinge frame O+ of a flexible body in the world; `poses` are those of bodies."""
    inboard, p = mech.bodies[wire.body].inboard, int(mech.parent[wire.body])
    return inboard if p < 0 else poses[p] @ inboard


def locked(body: Body, q: tuple[float, ...] | None) -> Body:
    """The body with its hinge, and those of its lumps, held at q."""
    lumps = tuple(replace(x, hinge=Locked(x.hinge, q)) for x in body.lumps)
    return replace(body, hinge=Locked(body.hinge, q), lumps=lumps)


def released(body: Body) -> Body:
    """The body with its locked hinge, and those of its lumps, free again."""

    def former(hinge: object) -> object:
        return hinge.of if isinstance(hinge, Locked) else hinge

    lumps = tuple(replace(x, hinge=former(x.hinge)) for x in body.lumps)
    return replace(body, hinge=former(body.hinge), lumps=lumps)


def inertia_at(body: Body, q: Array) -> SpatialInertia:
    """The inertia of a body with its lumps, about its frame, deformed by q (nq,)."""
    total = body.inertia
    if body.lumps:
        back = (body.hinge.pose(q) @ body.outboard).inverse()
        for lump in body.lumps:
            total = total + lump.inertia.moved(back @ lump.hinge.pose(q))
    return total


def separated(mech: Mechanism) -> tuple[Mechanism, list[int]]:
    """The mechanism with each lump as a body with separate coordinates; whose part each body is.

    It moves as the mechanism does where the coordinates of a lump are those of its body.
    """
    bodies, part_of = list[Body](), list[int]()
    for k, body in enumerate(mech.bodies):
        bodies.append(replace(body, lumps=()))
        for i, lump in enumerate(body.lumps):
            name = f"{body.name}.lump_{i}"
            place, inertia = body.inboard, lump.inertia
            bodies.append(Body(name, body.parent, lump.hinge, name, place, inertia=inertia))
        part_of += [k] * (1 + len(body.lumps))
    return replace(mech, bodies=tuple(bodies)), part_of


def rigid_parts(mech: Mechanism) -> Mechanism:
    """The mechanism with each lump as a body; couplings make its coordinates follow its owner's."""
    tree, part_of = separated(mech)
    couplings = list(tree.couplings)
    for body, k in zip(tree.bodies, part_of, strict=True):
        owner, n = mech.bodies[k], body.hinge.nq
        for i in range(n if body.name != owner.name else 0):
            entry = f"[{i}]" if n > 1 else ""
            terms = ((owner.hinge_name + entry, (1.0,)),)
            name = f"{body.name}{entry}"
            couplings.append(Coupling(name, body.hinge_name + entry, terms))
    return replace(tree, couplings=tuple(couplings))


def of_rigid_parts(mech: Mechanism, q: Array) -> Array:
    """Coordinates (..., nq') of `rigid_parts(mech)` where the mechanism is at q (..., nq)."""
    _, part_of = separated(mech)
    entries = [i for k in part_of for i in range(mech.q_start[k], mech.q_start[k + 1])]
    return q[..., entries]
