"""Numbers that a slider can set: one for each coordinate, three turns for a quaternion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.loops import assemble, constraint_error
from linkwise.model.hinges import Pin
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array

CLOSED = 1e-9
"""Loops that are open by no more are seen closed [rad or m]."""


@dataclass(frozen=True, slots=True)
class Dial:
    """One number of a configuration.

    Attributes:
        label: Name of the coordinate, with its unit: "elbow [rad]".
        hinge: Name of the hinge.
        body: Index of its body.
        low: Least value [rad or m].
        high: Largest value.
        limited: Whether the bounds are limits of the hinge, and not only of the slider.
        coordinate: Index in q; None for a turn.
        turn: 0, 1 or 2 for a component of the rotation vector of a quaternion, else None.
        round: Whether it goes round: an angle without limits, on which nothing else depends.
    """

    label: str
    hinge: str
    body: int
    low: float
    high: float
    limited: bool
    coordinate: int | None = None
    turn: int | None = None
    round: bool = False


def dials(mech: Mechanism, reach: float = 1.0) -> tuple[Dial, ...]:
    """The numbers of a mechanism that can be set by hand; those that follow others cannot."""
    followers = {mech.coordinate(coupling.dependent) for coupling in mech.couplings}
    every = list[Dial]()
    for k, body in enumerate(mech.bodies):
        start, part = int(mech.q_start[k]), body.hinge.quaternion
        plain = isinstance(body.hinge, Pin)  # a turn more is the same pose
        turns = range(0) if part is None else range(part.start, part.stop)
        if part is not None:
            for c, axis in enumerate("xyz"):
                label = f"{body.hinge_name} turn {axis} [rad]"
                every.append(Dial(label, body.hinge_name, k, -np.pi, np.pi, False, None, c))
        for i, coordinate in enumerate(body.hinge.coordinates):
            if i in turns or start + i in followers:
                continue
            at = start + i
            low, high = float(mech.lower[at]), float(mech.upper[at])
            ends = int(np.isfinite(low)) + int(np.isfinite(high))
            angle = coordinate.unit == "rad"
            low, high = _bounds(low, high, np.pi if angle else reach)
            unit = f" [{coordinate.unit}]" if coordinate.unit else ""
            label = f"{mech.coordinate_names[at]}{unit}"
            goes_round = angle and ends == 0 and plain and not mech.couplings
            every.append(
                Dial(label, body.hinge_name, k, low, high, ends == 2, at, round=goes_round)
            )
    return tuple(every)


def _bounds(low: float, high: float, wide: float) -> tuple[float, float]:
    """Ends of a slider: limits, or as far as `wide` where there is none."""
    if np.isfinite(low) and np.isfinite(high):
        return low, high
    if np.isfinite(low):
        return low, max(wide, low + 2.0 * wide)
    if np.isfinite(high):
        return min(-wide, high - 2.0 * wide), high
    return -wide, wide


def reading(mech: Mechanism, dial: Dial, q: Array) -> float:
    """What a dial shows at q (nq,)."""
    if dial.coordinate is not None:
        value = float(q[dial.coordinate])
        return (value + np.pi) % (2.0 * np.pi) - np.pi if dial.round else value
    body = mech.bodies[dial.body]
    part = body.hinge.quaternion
    assert part is not None and dial.turn is not None
    start = int(mech.q_start[dial.body])
    turn = quaternion.log(q[start + part.start : start + part.stop])
    return float(turn[dial.turn])


def dialled(mech: Mechanism, q: Array, body: int, values: dict[Dial, float]) -> Array:
    """q (nq,) with the hinge of one body where its dials say; nothing else moves."""
    new = np.array(q, dtype=np.float64)
    turn = np.zeros(3)
    for dial, value in values.items():
        if dial.coordinate is not None:
            new[dial.coordinate] = value
        elif dial.turn is not None:
            turn[dial.turn] = value
    part = mech.bodies[body].hinge.quaternion
    if part is not None:
        start = int(mech.q_start[body])
        new[start + part.start : start + part.stop] = quaternion.exp(turn)
    return new


def closed_near(
    mech: Mechanism, q: Array, held: str | None = None, *, quick: bool = True
) -> tuple[Array | None, str]:
    """The configuration next to q in which loops are closed and couplings hold.

    Args:
        quick: Take loops that are closed as they are; without it kernels are compiled in any case.

    Returns:
        Joint positions (nq,), and ""; or None, and why there are none.
    """
    if not mech.loops and not mech.couplings:
        return q, ""
    q = mech.couple(q)
    if not mech.loops or (np.abs(constraint_error(mech, q, per="loop")).max() < CLOSED and quick):
        return q, ""
    try:
        assembly = assemble(mech, q, hold=() if held is None else (held,), restarts=0)
    except LinkwiseError as error:
        return None, str(error)
    if not bool(assembly.converged):
        return None, assembly.message
    return assembly.q, ""
