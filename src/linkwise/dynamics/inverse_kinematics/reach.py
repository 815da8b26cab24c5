"""Bounds of the distance between two nodes: proofs that a goal is out of reach.

Between two hinges a body is a stick of constant length, and hinges that shift add the range of
their shift. Sticks joined end to end reach no further than the sum of their lengths, and no nearer
than the longest less all the others. Both hold for any hinges and any branching; the bounds are
not sharp where axes cannot turn in every direction.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from linkwise.model.body import Body
from linkwise.model.hinges import (
    Cylindrical,
    Free,
    Gimbal,
    Helical,
    Hinge,
    Locked,
    Pin,
    Planar,
    Prismatic,
    RollingBall,
    SoftFinger,
    Spherical,
    Translation,
    Universal,
)
from linkwise.model.hinges.modified import Reversed
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

TURNING = (Pin, Spherical, SoftFinger, Universal, Gimbal)
"""Hinges that leave their point where it is."""


def with_held(mech: Mechanism, held: list[int], q: Array) -> Mechanism:
    """The mechanism in which some bodies' hinges are held where q (nq,) has them.

    The bodies they join are one body, and so one stick. Couplings and loops are left out: without
    them more can move, and a goal out of reach then is certainly out of reach.
    """
    if not held:
        return mech
    names = [mech.bodies[k].hinge_name for k in held]
    free = dataclasses.replace(mech, couplings=(), loops=())
    return free.lock({name: q[mech.q_slice(name)] for name in names}).merge_locked()


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Bounds of the distance between two points.

    Attributes:
        least: Never nearer than this [m].
        most: Never further than this [m]; may be infinite.
        start: Where the first point is: in the world, or in the frame of the first node.
        first: Name of the hinge it begins at; empty between two nodes.
    """

    least: float
    most: float
    start: Array
    first: str = ""


def from_ground(mech: Mechanism, node: str, *, limits: bool) -> Span | None:
    """The span between a node and the first hinge that moves it; None if none does."""
    way = path(mech, mech.node(node).body)
    moving = [k for k in way if mech.bodies[k].hinge.nv]
    if not moving:
        return None
    rest = way[way.index(moving[0]) :]
    fixed = way[: way.index(moving[0])]
    base = np.zeros(3), np.eye(3)
    for k in fixed:
        pose = mech.bodies[k].pose(np.zeros(0))
        base = base[0] + base[1] @ pose.p, base[1] @ pose.rot
    start = base[0] + base[1] @ mech.bodies[rest[0]].inboard.p
    sticks = _sticks(mech, rest, np.asarray(mech.node(node).pose.p), limits=limits)
    return Span(*_span(sticks), start, mech.bodies[rest[0]].hinge_name)


def between(mech: Mechanism, a: str, b: str, *, limits: bool) -> Span:
    """The span between two nodes, by way of the body at which their paths separate."""
    ways = [path(mech, mech.node(name).body) for name in (a, b)]
    shared = 0
    while shared < min(map(len, ways)) and ways[0][shared] == ways[1][shared]:
        shared += 1
    sticks, ends = list[tuple[float, float]](), list[Array]()
    for name, way in zip((a, b), ways, strict=True):
        rest = way[shared:]
        p = np.asarray(mech.node(name).pose.p)
        if rest:
            ends.append(np.asarray(mech.bodies[rest[0]].inboard.p))
            sticks.extend(_sticks(mech, rest, p, limits=limits))
        else:
            ends.append(p)
    across = float(np.linalg.norm(ends[0] - ends[1]))
    return Span(*_span([*sticks, (across, across)]), np.zeros(3))


def size(mech: Mechanism, nodes: tuple[str, ...]) -> float:
    """The length of the mechanism [m]: all sticks from the ground to the furthest node."""
    lengths = [0.0]
    for node in nodes:
        way = path(mech, mech.node(node).body)
        sticks = _sticks(mech, way, np.asarray(mech.node(node).pose.p), limits=True)
        lengths.append(sum(most for _, most in sticks if most < np.inf))
    return max(lengths) if max(lengths) > 1e-6 else 1.0


def path(mech: Mechanism, body: str) -> list[int]:
    """Bodies from the ground out to one."""
    k, bodies = mech.body_index[body], list[int]()
    while k >= 0:
        bodies.append(k)
        k = int(mech.parent[k])
    return bodies[::-1]


def _sticks(
    mech: Mechanism, way: list[int], end: Array, *, limits: bool
) -> list[tuple[float, float]]:
    """Least and largest length of each stick, from the hinge of way[0] to a point on way[-1]."""
    sticks = list[tuple[float, float]]()
    for i, k in enumerate(way):
        body = mech.bodies[k]
        point = end if i + 1 == len(way) else np.asarray(mech.bodies[way[i + 1]].inboard.p)
        length = float(np.linalg.norm(body.outboard.apply(point)))
        shift = _shift(body, body.hinge, limits=limits)
        sticks.extend([shift, (length, length)])
    return [stick for stick in sticks if stick != (0.0, 0.0)]


def _shift(body: Body, hinge: Hinge, *, limits: bool) -> tuple[float, float]:
    """Least and largest shift of a hinge's point [m]."""
    drive = body.drive
    if isinstance(hinge, Reversed):  # the same distance, seen from the other side
        return _shift(body, hinge.hinge, limits=limits)
    if isinstance(hinge, TURNING):
        return 0.0, 0.0
    if isinstance(hinge, Locked):
        length = float(np.linalg.norm(hinge.pose(np.zeros(0)).p))
        return length, length
    low, high = drive.array("lower", hinge), drive.array("upper", hinge)
    if not limits:
        low, high = np.full(hinge.nq, -np.inf), np.full(hinge.nq, np.inf)
    match hinge:
        case Prismatic():
            ranges = [(low[0], high[0])]
        case Helical():
            per_turn = float(np.linalg.norm(hinge.screws[0, 3:]))
            ranges = [(per_turn * low[0], per_turn * high[0])] if per_turn else []
        case Cylindrical():
            i = [c.unit for c in hinge.coordinates].index("m")
            ranges = [(low[i], high[i])]
        case Translation() | Free() | Planar() | RollingBall():
            at = [i for i, c in enumerate(hinge.coordinates) if c.unit == "m"]
            ranges = [(low[i], high[i]) for i in at]
            if isinstance(hinge, RollingBall):
                ranges.append((hinge.radius, hinge.radius))
        case _:  # a custom hinge may go anywhere
            return 0.0, np.inf
    least = [0.0 if a <= 0.0 <= b else min(abs(a), abs(b)) for a, b in ranges]
    most = [max(abs(a), abs(b)) for a, b in ranges]
    return float(np.linalg.norm(least)), float(np.linalg.norm(most))


def _span(sticks: list[tuple[float, float]]) -> tuple[float, float]:
    most = sum(b for _, b in sticks)
    least = max([0.0, *(a - (most - b) for a, b in sticks if most < np.inf)])
    return least, most
