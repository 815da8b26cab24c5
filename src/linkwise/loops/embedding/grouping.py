"""Which bodies loops and couplings tie together.

A loop ties the bodies on both its sides, from its nodes up to the body from which the two sides
branch off, which stays outside. A coupling ties the bodies of its hinges, with all between them up
to the last body that all of them hang on. What shares a body is tied together: then the parents of
a set are in it, or are one and the same body outside.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.errors import ModelError
from linkwise.model.body import Coupling, Loop
from linkwise.model.mechanism import Mechanism
from linkwise.model.state import split_coordinate
from linkwise.sweeps.aggregate_motion import common, fork, path


def tied_by_loop(mech: Mechanism, loop: Loop) -> set[int]:
    """The bodies on both sides of a loop."""
    above, found = fork(mech, loop), set[int]()
    for node in (loop.node_a, loop.node_b):
        found |= set(path(mech, mech.body_index[mech.node(node).body], above))
    if not found:
        raise ModelError(
            f"loop {loop.name!r} of {mech.name!r} joins two nodes of one body: nothing can move "
            "it. Remove the loop before its mechanism is embedded."
        )
    return found


def tied_by_coupling(mech: Mechanism, coupling: Coupling) -> set[int]:
    """The bodies of the hinges of a coupling, and those between them."""
    names = [coupling.dependent, *(name for name, _ in coupling.terms)]
    hinges = [split_coordinate(name, mech.hinge_index)[0] for name in names]
    bodies = [mech.hinge_index[hinge] for hinge in hinges]
    above = common(mech, [int(mech.parent[k]) for k in bodies])
    return {j for k in bodies for j in path(mech, k, above)}


def groups(mech: Mechanism) -> list[list[int]]:
    """All bodies in sets that move together, each base first, ordered by their first bodies."""
    sets = [tied_by_loop(mech, loop) for loop in mech.loops]
    sets += [tied_by_coupling(mech, coupling) for coupling in mech.couplings]
    leader = list(range(mech.n_bodies))
    for bodies in sets:
        _unite(leader, sorted(bodies))
    found: dict[int, list[int]] = {}
    for k in range(mech.n_bodies):
        found.setdefault(_leader(leader, k), []).append(k)
    return list(found.values())


def _unite(leader: list[int], bodies: Sequence[int]) -> None:
    first = min(_leader(leader, k) for k in bodies)
    for k in bodies:
        leader[_leader(leader, k)] = first


def _leader(leader: list[int], k: int) -> int:
    """The first body of the set that body k is in."""
    while leader[k] != k:
        leader[k] = leader[leader[k]]
        k = leader[k]
    return k
