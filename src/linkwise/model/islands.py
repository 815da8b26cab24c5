"""Independent parts of a mechanism: only the ground joins them.

Bodies belong to the same island if a hinge, a loop or a coupling joins them. Every operator of a
mechanism is block diagonal over its islands, so an expression can be
evaluated for each of them alone. Islands of equal structure differ in numbers only: offsets,
inertias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.model.body import WORLD
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array


@dataclass(frozen=True, slots=True)
class Island:
    """Numbers of the bodies, loops and couplings of an island, in order."""

    bodies: tuple[int, ...]
    loops: tuple[int, ...]
    couplings: tuple[int, ...]

    def of_q(self, mech: Mechanism, q: Array) -> Array:
        """Its part of coordinates (..., nq)."""
        starts: list[int] = mech.q_start.tolist()
        entries = [i for k in self.bodies for i in range(starts[k], starts[k + 1])]
        return q[..., entries]


@once_per_mechanism
def islands(mech: Mechanism) -> list[Island]:
    """The islands of a mechanism, in the order of their first bodies."""
    first = list(range(mech.n_bodies))

    def leader(k: int) -> int:
        while first[k] != k:
            first[k] = k = first[first[k]]
        return k

    def join(bodies: Sequence[int]) -> None:
        leaders = sorted({leader(k) for k in bodies if k >= 0})
        for k in leaders[1:]:
            first[k] = leaders[0]

    loops = [_looped(mech, i) for i in range(len(mech.loops))]
    couplings = [_coupled(mech, i) for i in range(len(mech.couplings))]
    for k, parent in enumerate(mech.parent.tolist()):
        join((k, parent))
    for bodies in [*loops, *couplings]:
        join(bodies)
    members = {k: (list[int](), list[int](), list[int]()) for k in range(mech.n_bodies)}
    for k in range(mech.n_bodies):
        members[leader(k)][0].append(k)
    for place, joined in ((1, loops), (2, couplings)):
        for i, bodies in enumerate(joined):
            moving = [k for k in bodies if k >= 0]
            if moving:
                members[leader(moving[0])][place].append(i)
    return [Island(*map(tuple, parts)) for parts in members.values() if parts[0]]


def _looped(mech: Mechanism, i: int) -> tuple[int, ...]:
    """The bodies of the two nodes of a loop."""
    loop = mech.loops[i]
    return tuple(mech.body_index[mech.node(x).body] for x in (loop.node_a, loop.node_b))


def _coupled(mech: Mechanism, i: int) -> tuple[int, ...]:
    """The bodies whose coordinates a coupling is about."""
    coupling = mech.couplings[i]
    names = (coupling.dependent, *(name for name, _ in coupling.terms))
    at = [mech.coordinate(name) for name in names]
    return tuple(int(np.searchsorted(mech.q_start, x, side="right")) - 1 for x in at)


@once_per_mechanism
def alike(mech: Mechanism) -> list[list[Island]]:
    """The islands of a mechanism by structure, in the order of the first of each kind."""
    kinds = dict[Any, list[Island]]()
    for island in islands(mech):
        kinds.setdefault(_build(mech, island), []).append(island)
    return list(kinds.values())


def _build(mech: Mechanism, island: Island) -> Any:
    """Everything in an island except its numbers, but with outboard poses, which have no table."""
    place = {-1: -1, **{k: i for i, k in enumerate(island.bodies)}}
    bodies = tuple(
        (place[int(mech.parent[k])], mech.bodies[k].hinge, _pose_key(mech.bodies[k].outboard))
        for k in island.bodies
    )
    loops = tuple(
        (mech.loops[i].hinge, *(place[k] for k in _looped(mech, i))) for i in island.loops
    )
    start = int(mech.q_start[island.bodies[0]])
    couplings = tuple(
        (
            mech.coordinate(c.dependent) - start,
            tuple((mech.coordinate(name) - start, values) for name, values in c.terms),
            c.offset,
        )
        for c in (mech.couplings[i] for i in island.couplings)
    )
    return bodies, loops, couplings


def _pose_key(pose: Any) -> tuple[float, ...]:
    return (*pose.rot.ravel().tolist(), *pose.p.tolist())


def alone(mech: Mechanism, island: Island) -> Mechanism:
    """An island as a separate mechanism."""
    if len(island.bodies) == mech.n_bodies:
        return mech
    bodies = tuple(mech.bodies[k] for k in island.bodies)
    loops = tuple(mech.loops[i] for i in island.loops)
    on = {body.name for body in bodies}
    ends = {x for loop in loops for x in (loop.node_a, loop.node_b)}
    nodes = tuple(x for x in mech.nodes if x.body in on or (x.body == WORLD and x.name in ends))
    couplings = tuple(mech.couplings[i] for i in island.couplings)
    parts = {"bodies": bodies, "nodes": nodes, "loops": loops, "couplings": couplings}
    return replace(mech, **parts, actuators=(), gravity_compensation=())
