"""A state on the way."""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.simulation.loop_keeper import Drift
from linkwise.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A state on the way.

    Attributes:
        t: The time [s].
        q: Joint positions (nq,).
        v: Joint velocities (nv,).
        work: Work that was done since the beginning, by each of `applied.WORKERS` [J].
        drift: Errors of loops there, and before they were projected.
    """

    t: float
    q: Array
    v: Array
    work: Array
    drift: tuple[Drift, Drift] = (Drift(), Drift())
