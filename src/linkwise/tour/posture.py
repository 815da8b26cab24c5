"""A posture for a robot that nobody has described, and the node that is its hand."""

from __future__ import annotations

import numpy as np

from linkwise.dynamics import jacobian
from linkwise.errors import LinkwiseError
from linkwise.loops.assembly import assemble
from linkwise.model.hinges import Free
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

HANDS = ("hand", "flange", "tool0", "tool", "tcp", "ee", "gripper", "effector", "tip", "wrist")
"""Words in the names of nodes that hold tools, the most likely first."""

BENT = 0.35
"""How far to go from neutral towards a random configuration."""

MOST = 1.2
"""Largest bend of a hinge [rad or m]: limits may be many turns away."""


def posture(mech: Mechanism, seed: int = 1, *, bent: float = BENT) -> Array:
    """Joint positions (nq,): slightly bent, upright on a free base, with loops closed.

    `seed` selects the direction, `bent` how far to go from neutral (0) to random (1).
    """
    start = mech.neutral()
    way = mech.difference(start, mech.random(seed))
    for body in mech.bodies:
        if isinstance(body.hinge, Free):
            way[mech.v_slice(body.hinge_name)] = 0.0
    q = mech.couple(mech.integrate(start, np.clip(bent * way, -MOST, MOST)))
    if not mech.loops:
        return q
    for guess in (start, q):
        assembly = assemble(mech, guess, restarts=3)
        if bool(assembly.converged):
            return assembly.q
    return start


def hand(mech: Mechanism) -> str | None:
    """The node for a tool, or the body furthest out; None if there is no body."""
    if not mech.bodies:
        return None
    names = [node.name for node in mech.nodes if node.body in mech.body_index]
    for word in HANDS:
        for name in [*names, *(body.name for body in reversed(mech.bodies))]:
            if word in name.lower().split("_") or name.lower() == word:
                return name
    depth = np.zeros(mech.n_bodies, dtype=np.int64)
    for k, above in enumerate(mech.parent):
        depth[k] = 0 if above < 0 else depth[above] + 1
    last = mech.bodies[int(np.argmax(depth))].name
    on_it = [node.name for node in mech.nodes if node.body == last]
    return on_it[-1] if on_it else last


def dexterous(mech: Mechanism, node: str) -> tuple[Array, float]:
    """The posture of several in which a node moves best, and how well [m/rad].

    The measure is the smallest singular value of J_v, zero where a direction is lost. As a length
    it says about how far the node can go before that happens.
    """
    postures = [posture(mech, seed, bent=bent) for bent in (0.2, BENT, 0.6) for seed in range(1, 7)]
    sizes = [_smallest(mech, q, node) for q in postures]
    best = int(np.argmax(sizes))
    return postures[best], sizes[best]


def _smallest(mech: Mechanism, q: Array, node: str) -> float:
    try:
        rows = jacobian(mech, q, node)[3:]
    except LinkwiseError:
        return 0.0
    return float(np.linalg.svd(rows, compute_uv=False)[-1]) if mech.nv >= 3 else 0.0


def floats(mech: Mechanism) -> bool:
    """Whether the robot has a free base."""
    return any(isinstance(body.hinge, Free) for body in mech.bodies)
