"""How far a node can get from where its chain begins: a bound from the lengths of links."""

from __future__ import annotations

import numpy as np

from linkwise.model.body import WORLD
from linkwise.model.hinges import Cylindrical, Gimbal, Pin, Prismatic, Spherical, Universal
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

TURNING = (Pin, Universal, Gimbal, Spherical)
"""Hinges that keep their centre where it is."""


def reach(mech: Mechanism, node: str) -> tuple[Array, float]:
    """The place of the first hinge (3,) [m], and the largest distance of a node from it [m].

    The sum of all lengths between hinges and travels of sliders: no posture reaches further. The
    distance is infinite where a hinge moves without limits.
    """
    here = mech.node(node)
    name, tip, total = here.body, np.asarray(here.pose.p), 0.0
    while name != WORLD:
        k = mech.body_index[name]
        body = mech.bodies[k]
        total += float(np.linalg.norm(body.outboard.p + body.outboard.rot @ tip))
        total += _travel(mech, k)
        tip, name = np.asarray(body.inboard.p), body.parent
    return tip, total


def _travel(mech: Mechanism, k: int) -> float:
    """How far a hinge moves its own centre at most."""
    hinge = mech.bodies[k].hinge
    if isinstance(hinge, TURNING):
        return 0.0
    if not hinge.nq:
        return float(np.linalg.norm(hinge.pose(np.zeros(0)).p))
    if isinstance(hinge, Prismatic | Cylindrical):
        at = slice(int(mech.q_start[k + 1]) - 1, int(mech.q_start[k + 1]))
        return float(np.maximum(np.abs(mech.lower[at]), np.abs(mech.upper[at])).max())
    return float("inf")
