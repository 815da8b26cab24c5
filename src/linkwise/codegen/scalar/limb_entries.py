"""Entries of the state that limbs of equal build have alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from linkwise.codegen.cuda.split import limbs
from linkwise.codegen.scalar.packs import Pack
from linkwise.model.mechanism import Mechanism


def limb_entries(mech: Mechanism) -> dict[int, list[Pack]]:
    """Entries of q and v that limbs of equal build have alike, by the length of q and v.

    Such limbs begin at the same body and have hinges of the same kinds, in any directions.
    """
    limb, alike = limbs(mech.parent.tolist()), defaultdict[object, list[list[int]]](list)
    for number in sorted(set(limb)):
        bodies = [k for k, x in enumerate(limb) if x == number]
        hinges = [mech.bodies[k].hinge for k in bodies]
        if not mech.children[bodies[-1]]:
            build = tuple((type(x), x.nq, x.nv) for x in hinges)
            alike[int(mech.parent[bodies[0]]), build].append(bodies)
    entries: dict[int, list[Pack]] = {mech.nv: [], mech.nq: []}
    for family in (x for x in alike.values() if len(x) > 1):
        for j, first in enumerate(family[0]):
            places, hinge = [bodies[j] for bodies in family], mech.bodies[first].hinge
            for i in range(hinge.nv):
                entries[mech.nv].append(tuple(int(mech.v_start[k]) + i for k in places))
            for i in range(hinge.nq if mech.nq != mech.nv else 0):
                entries[mech.nq].append(tuple(int(mech.q_start[k]) + i for k in places))
    return entries


def alike_inputs(mech: Mechanism, inputs: Sequence[tuple[str, int]]) -> tuple[Pack, ...]:
    """Entries of input arrays, counted through all of them, that limbs have alike.

    Args:
        mech: The mechanism.
        inputs: The name and length of each array: "q", or as long as v.
    """
    entries, start, packs = limb_entries(mech), 0, list[Pack]()
    for name, size in inputs:
        alike = entries[mech.nq if name == "q" else mech.nv]
        if size == (mech.nq if name == "q" else mech.nv):
            packs += [tuple(start + i for i in places) for places in alike]
        start += size
    return tuple(packs)
