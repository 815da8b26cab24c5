"""What is looked at while a mechanism moves: margins in groups, and the instants they are lost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

import numpy as np

from linkwise.closed.motion.watch import Crossing, Margin, State, crossings_within, margins
from linkwise.simulation.event import Event
from linkwise.spatial.array import Array, read_only


class Gauge(ABC):
    """Several margins of one kind; each is lost when it becomes negative.

    Attributes:
        kind: "watch", "limit" or "contact".
        names: Of the margins.
        ends: Whether the run ends where one is lost.
        cuts: Whether a step ends where one is lost, since what acts changes there.
    """

    kind: str
    names: tuple[str, ...]
    ends: bool = False
    cuts: bool = False

    @abstractmethod
    def margins(self, state: State) -> Array:
        """All margins (n,) at one instant."""

    def margin(self, i: int, state: State) -> float:
        """One of them."""
        return float(self.margins(state)[i])

    @abstractmethod
    def happened(self, i: int, state: State, margin: float) -> Event:
        """What is told of one that is lost; changes what acts where that is so."""


class Watch(Gauge):
    """Margins that the user watches."""

    kind = "watch"

    def __init__(self, watch: Mapping[str, Margin], stop: bool) -> None:
        self.watch, self.names, self.ends = watch, tuple(watch), stop
        self._functions = tuple(watch.values())

    def margins(self, state: State) -> Array:
        """What the functions give."""
        return np.array(list(margins(self.watch, _shown(state)).values()))

    def margin(self, i: int, state: State) -> float:
        """What one function gives."""
        name = self.names[i]
        return margins({name: self._functions[i]}, _shown(state))[name]

    def happened(self, i: int, state: State, margin: float) -> Event:
        """A margin was lost."""
        return Event(state[0], "watch", self.names[i], "is lost", margin)


def _shown(state: State) -> State:
    """The state for functions of the user, who cannot write into it."""
    t, q, v, tau = state
    return t, read_only(q), read_only(v), read_only(tau)


Lost = tuple[float, Gauge, int, float]
"""How long after the beginning of a step [s], which margin of which group, and its value."""


def lost_within(
    gauges: list[Gauge],
    before: list[Array],
    after: list[Array],
    state_at: Callable[[float], State],
    length: float,
) -> list[Lost]:
    """The margins that are lost within one step, the earliest first, each enclosed to 1e-9 s.

    Args:
        gauges: What is looked at.
        before: Margins of each at the beginning of the step.
        after: Margins of each at its end.
        state_at: The state at a time [s] after the beginning.
        length: The length of the step [s].
    """
    found = list[Lost]()
    for gauge, was, now in zip(gauges, before, after, strict=True):
        for i in np.flatnonzero((was >= 0.0) & (now < 0.0)).tolist():
            for s, crossing in _crossing(gauge, i, float(was[i]), float(now[i]), state_at, length):
                found.append((s, gauge, i, crossing.margin))
    return sorted(found, key=lambda lost: lost[0])


def _crossing(
    gauge: Gauge,
    i: int,
    was: float,
    now: float,
    state_at: Callable[[float], State],
    length: float,
) -> list[tuple[float, Crossing]]:
    name = gauge.names[i]

    def margin(t: float, q: Array, v: Array, tau: Array) -> float:
        return gauge.margin(i, (t, q, v, tau))

    return crossings_within({name: margin}, {name: was}, {name: now}, state_at, length)
