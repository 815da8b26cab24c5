"""Flexible bodies part by part: where their lumps are, and each lump as a separate body."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from linkwise.model.body import Body, Lump
from linkwise.model.hinges import Locked
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
