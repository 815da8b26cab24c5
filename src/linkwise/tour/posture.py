"""Where to look at a robot that nobody has described: a posture for it, and its hand."""

from __future__ import annotations

import numpy as np

from linkwise.dynamics import jacobian
from linkwise.errors import LinkwiseError
from linkwise.loops.assembly import assemble
from linkwise.model.hinges import Free
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

HANDS = ("hand", "flange", "tool0", "tool", "tcp", "ee", "gripper", "effector", "tip", "wrist")
"""Words in the names of nodes that hold tools, the best first."""

BENT = 0.35
"""How far from neutral towards a random configuration."""


MOST = 1.2
"""No hinge is bent further than this [rad or m]: limits may be many turns away."""


def posture(mech: Mechanism, seed: int = 1, *, bent: float = BENT) -> Array:
    """Joint positions (nq,): a little bent, upright on a free base, with loops closed.

    Args:
        mech: The mechanism.
        seed: Which way it is bent.
        bent: How far, from neutral (0) to a random configuration (1).
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
        found = assemble(mech, guess, restarts=3)
        if bool(found.converged):
            return found.q
    return start


def hand(mech: Mechanism) -> str | None:
    """The node that a tool would be on, or the body furthest out; None if there is no body."""
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
    """Of several postures the one in which a node moves best, and how well [m/rad].

    That is the smallest singular value of J_v: zero where some direction is lost. As a length it
    says about how far the node can go before one is.
    """
    found = [posture(mech, seed, bent=bent) for bent in (0.2, BENT, 0.6) for seed in range(1, 7)]
    sizes = [_smallest(mech, q, node) for q in found]
    best = int(np.argmax(sizes))
    return found[best], sizes[best]


def _smallest(mech: Mechanism, q: Array, node: str) -> float:
    try:
        rows = jacobian(mech, q, node)[3:]
    except LinkwiseError:
        return 0.0
    return float(np.linalg.svd(rows, compute_uv=False)[-1]) if mech.nv >= 3 else 0.0


def floats(mech: Mechanism) -> bool:
    """Whether a body is on nothing but the world."""
    return any(isinstance(body.hinge, Free) for body in mech.bodies)
