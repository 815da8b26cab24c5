"""Margins that are watched while a mechanism moves, and the instants they are lost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

import numpy as np

from linkwise.arguments import check_arguments
from linkwise.errors import ModelError
from linkwise.simulation.channel import Event
from linkwise.spatial.array import Array, read_only

Margin: TypeAlias = Callable[[float, Array, Array, Array], float]
"""A margin from the time [s], q (nq,), v (nv,) and the joint forces tau (nv,); lost below 0."""

State: TypeAlias = tuple[float, Array, Array, Array]
"""t [s], q (nq,), v (nv,) and tau (nv,) of one instant."""

RESOLUTION = 1e-9
"""Between which two times [s] an instant is enclosed."""


class MarginGroup(ABC):
    """Several margins of one kind; each is lost when it becomes negative.

    Attributes:
        kind: "watch", "limit" or "contact".
        names: Names of the margins.
        ends: Whether the run ends when one is lost.
        cuts: Whether a step ends when one is lost, since the forces change there.
        of_positions: Whether they depend on q alone, and have `along`.
    """

    kind: str
    names: tuple[str, ...]
    ends: bool = False
    cuts: bool = False
    of_positions: bool = False

    @abstractmethod
    def margins(self, state: State) -> Array:
        """All margins (n,) at one instant."""

    def along(self, q: Array) -> Array:
        """All margins (k, n) at positions q (k, nq)."""
        raise NotImplementedError  # only those with `of_positions` have it

    def margin(self, i: int, state: State) -> float:
        """One of them."""
        return float(self.margins(state)[i])

    @abstractmethod
    def happened(self, i: int, state: State, margin: float) -> Event:
        """The event of a lost margin; updates the forces that depend on it."""


class Watch(MarginGroup):
    """Margins that the user watches.

    Raises:
        ModelError: They are not functions of (t, q, v, tau) by name.
    """

    kind = "watch"

    def __init__(self, watch: Mapping[str, Margin] | None, stop: bool) -> None:
        self._functions = tuple(_checked(watch).items())
        self.names, self.ends = tuple(name for name, _ in self._functions), stop

    def margins(self, state: State) -> Array:
        """What the functions give."""
        return np.array([self.margin(i, state) for i in range(len(self.names))])

    def margin(self, i: int, state: State) -> float:
        """What one function gives; it cannot write into the state.

        Raises:
            ModelError: It is not a number; says which, and when.
        """
        name, function = self._functions[i]
        t, q, v, tau = state
        given: object = function(t, read_only(q), read_only(v), read_only(tau))
        try:
            value = float(given)  # pyright: ignore[reportArgumentType]  # refused below
        except (TypeError, ValueError):
            value = np.nan
        if np.isnan(value):
            raise ModelError(
                f"watch {name!r} gave {given!r} at t = {t:.9g} s; a margin is one number, "
                "negative for trouble. Let it return inf where it does not apply."
            )
        return value

    def happened(self, i: int, state: State, margin: float) -> Event:
        """A margin was lost."""
        return Event(state[0], "watch", self.names[i], "is lost", margin)


def _checked(watch: object) -> dict[str, Margin]:
    if watch is None:
        return {}
    if not isinstance(watch, Mapping):
        raise ModelError(
            f"watch is a {type(watch).__name__}; it is a dictionary of functions of (t, q, v, tau) "
            "by name. For the contacts of a grasp grasp.watch() makes one."
        )
    for name, margin in cast("Mapping[object, object]", watch).items():
        if not callable(margin):
            raise ModelError(
                f"watch {name!r} is {margin!r}; it must be a function of (t, q, v, tau) that gives "
                "a number, negative for trouble."
            )
        check_arguments(margin, f"watch {name!r}", "t, q, v, tau")
    return dict(cast("Mapping[str, Margin]", watch))


Lost = tuple[float, MarginGroup, int, float]
"""How long after the beginning of a step [s], which margin of which group, and its value."""


def lost_within(
    groups: list[MarginGroup],
    before: list[Array],
    after: list[Array],
    state_at: Callable[[float], State],
    length: float,
) -> list[Lost]:
    """The margins that are lost within one step, the earliest first, each enclosed to 1e-9 s."""
    lost = list[Lost]()
    for group, was, now in zip(groups, before, after, strict=True):
        for i in np.flatnonzero((was >= 0.0) & (now < 0.0)).tolist():

            def value(s: float, group: MarginGroup = group, i: int = i) -> float:
                return group.margin(i, state_at(s))

            s = _enclosed(value, float(was[i]), float(now[i]), length)
            lost.append((s, group, i, value(s)))
    return sorted(lost, key=lambda x: x[0])


def _enclosed(g: Callable[[float], float], low: float, high: float, end: float) -> float:
    """The upper end of an interval of `RESOLUTION` within (0, end] over which g becomes negative.

    Regula falsi with the Illinois rule: the secant through both ends, with the value of an end
    halved when it stays for the second time; the middle where that was slow twice.
    """
    a, b, fa, fb = 0.0, end, low, high
    slow = side = 0
    while b - a > RESOLUTION:
        width = b - a
        c = 0.5 * (a + b)
        if slow < 2 and np.isfinite(fa) and np.isfinite(fb):
            # At least half the resolution inwards: so the other end is moved there, too.
            secant = b - fb * (b - a) / (fb - fa)
            c = min(max(secant, a + 0.5 * RESOLUTION), b - 0.5 * RESOLUTION)
        fc = g(c)
        if fc < 0.0:
            b, fb = c, fc
            fa, side = (0.5 * fa if side < 0 else fa), -1
        else:
            a, fa = c, fc
            fb, side = (0.5 * fb if side > 0 else fb), 1
        slow = 0 if b - a < 0.5 * width else slow + 1
    return b
