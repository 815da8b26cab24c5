"""Watching a motion: the instant at which a margin is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np

from linkwise.closed.motion.acting import check_arguments
from linkwise.errors import ModelError
from linkwise.spatial.array import Array

Margin: TypeAlias = Callable[[float, Array, Array, Array], float]
"""A margin from the time [s], q (nq,), v (nv,) and the joint forces tau (nv,): trouble below 0."""

State: TypeAlias = tuple[float, Array, Array, Array]
"""t [s], q (nq,), v (nv,) and tau (nv,) of one instant."""

RESOLUTION = 1e-9
"""Between which two times [s] an instant is enclosed."""


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """A margin that was lost.

    Attributes:
        name: The name under which it was watched.
        t: The instant [s]: the margin is negative there, and was not 1e-9 s before.
        q: Joint positions (nq,) at that instant.
        v: Joint velocities (nv,) at that instant.
        margin: The margin there.
    """

    name: str
    t: float
    q: Array
    v: Array
    margin: float

    def __str__(self) -> str:
        return f"{self.name!r} at {self.t:.9f} s"


def check_watch(watch: object) -> dict[str, Margin]:
    """The margins, if they are functions by name.

    Raises:
        ModelError: They are not.
    """
    if watch is None:
        return {}
    if not isinstance(watch, Mapping):
        raise ModelError(
            f"watch is a {type(watch).__name__}; it is a dictionary of functions of (t, q, v, tau) "
            "by name. For the contacts of a grasp lw.grasp_watch(grasp) makes one."
        )
    for name, margin in cast("Mapping[object, object]", watch).items():
        if not callable(margin):
            raise ModelError(
                f"watch {name!r} is {margin!r}; it must be a function of (t, q, v, tau) that gives "
                "a number, negative for trouble."
            )
        check_arguments(margin, f"watch {name!r}", "t, q, v, tau")
    return dict(cast("Mapping[str, Margin]", watch))


def margins(watch: Mapping[str, Margin], state: State) -> dict[str, float]:
    """All margins at one instant.

    Raises:
        ModelError: A margin is no number; says which, and when.
    """
    return {name: _margin(name, margin, state) for name, margin in watch.items()}


def _margin(name: str, margin: Margin, state: State) -> float:
    given: object = margin(*state)
    try:
        value = float(given)  # pyright: ignore[reportArgumentType]  # told below
    except (TypeError, ValueError):
        value = np.nan
    if np.isnan(value):
        raise ModelError(
            f"watch {name!r} gave {given!r} at t = {state[0]:.9g} s; a margin is one number, "
            "negative for trouble. Let it return inf where it does not apply."
        )
    return value


def crossings_within(
    watch: Mapping[str, Margin],
    before: Mapping[str, float],
    after: Mapping[str, float],
    state_at: Callable[[float], State],
    step: float,
) -> list[tuple[float, Crossing]]:
    """The margins that are lost within one step, the earliest first.

    Args:
        watch: The margins.
        before: Their values at the beginning of the step.
        after: Their values at its end.
        state_at: The state at a time [s] after the beginning of the step.
        step: The length of the step [s].

    Returns:
        How long after the beginning of the step [s], and what was lost there.
    """
    found = list[tuple[float, Crossing]]()
    for name, margin in watch.items():
        if not before[name] >= 0.0 > after[name]:
            continue

        def value(s: float, name: str = name, margin: Margin = margin) -> float:
            return _margin(name, margin, state_at(s))

        s = _enclosed(value, before[name], after[name], step)
        t, q, v, _ = state = state_at(s)
        found.append((s, Crossing(name, t, q, v, _margin(name, margin, state))))
    return sorted(found, key=lambda pair: pair[0])


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
