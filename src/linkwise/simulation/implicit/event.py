"""Events of implicit steps: touching, leaving, slipping, sticking, and the ends of joint ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.model.mechanism import Mechanism
from linkwise.simulation.channel import Event
from linkwise.simulation.implicit.joint import Joint, values
from linkwise.simulation.implicit.step_record import Steps
from linkwise.simulation.implicit.work import Limited
from linkwise.spatial.array import Array

AWAY = 1e-5
"""A contact that does not push has left when its gap is larger than this [m], a limit likewise."""

SLIDES, STICKS = 1e-3, 1e-4
"""A contact begins to slip above the first speed [m/s], and sticks below the second."""

Flags = NDArray[np.int8]


class Happenings:
    """What changes from step to step.

    Attributes:
        touches: Which contacts touch now (c,), by name.
    """

    def __init__(
        self, mech: Mechanism, joints: tuple[Joint, ...], contacts: tuple[str, ...]
    ) -> None:
        self._joints, self._names = joints, [_name(mech, x) for x in joints]
        self._lower, self._upper = (np.array([getattr(x, end) for x in joints]) for end in _ENDS)
        self._at = np.zeros(len(joints), dtype=np.int8)
        self._touching: dict[str, int] = dict.fromkeys(contacts, 0)
        self._slipping: dict[str, int] = dict.fromkeys(contacts, 0)

    def of(self, steps: Steps, times: Array, limited: Limited, h: float) -> list[tuple[int, Event]]:
        """What happened in some steps: the number of a step, and the event at its end.

        Args:
            times: When they end (n,) [s].
            limited: In which of them a limit pushed (n,).
        """
        if not len(steps):
            return []
        events = self._of_contacts(steps, times)
        if self._at.any() or limited.any():
            events += self._of_limits(steps, times, h)
        return sorted(events, key=lambda x: x[0])

    def _of_contacts(self, steps: Steps, times: Array) -> list[tuple[int, Event]]:
        touches, events = steps.touches, list[tuple[int, Event]]()
        near, first = touches.names, float(times[0])
        if not (near or self._touching):
            return events
        for name, on in self._touching.items():
            if on and name not in near:  # nothing is near any more
                events.append((0, Event(first, "contact", name, "leaves", 0.0)))
                self._touching[name] = self._slipping[name] = 0
        was_on = np.array([self._touching.get(x, 0) for x in near], dtype=np.int8)
        was_sliding = np.array([self._slipping.get(x, 0) for x in near], dtype=np.int8)
        some = np.flatnonzero(touches.pushing | (was_on > 0)) if near else np.zeros(0, np.intp)
        if not len(some):  # others stay away
            return events
        names = [near[c] for c in some]
        push, gap, approach, slip = touches.among(some)
        on = np.where(push, 1, np.where(gap > AWAY, 0, -1)).astype(np.int8)
        on = _filled(on, was_on[some])
        slides = np.where(slip > SLIDES, 1, np.where(slip < STICKS, 0, -1))
        slides = _filled(np.where(on[1:] > 0, slides, 0).astype(np.int8), was_sliding[some])
        for i, c in np.argwhere(np.diff(on, axis=0)).tolist():
            speed, t = -float(approach[i, c]), float(times[i])
            text = f"touches at {max(speed, 0.0) + 0.0:.3g} m/s" if on[i + 1, c] else "leaves"
            events.append((int(i), Event(t, "contact", names[c], text, speed)))
        change = np.diff(slides, axis=0) * (on[1:] > 0)
        for i, c in np.argwhere(change).tolist():
            speed = float(slip[i, c])
            text = f"slips at {speed:.3g} m/s" if change[i, c] > 0 else "sticks"
            events.append((int(i), Event(float(times[i]), "slip", names[c], text, speed)))
        self._touching |= dict(zip(names, on[-1].tolist(), strict=True))
        self._slipping |= dict(zip(names, slides[-1].tolist(), strict=True))
        return events

    def _of_limits(self, steps: Steps, times: Array, h: float) -> list[tuple[int, Event]]:
        events = list[tuple[int, Event]]()
        impulse = limit_impulses(self._joints, steps.joints[0], h)
        some = np.flatnonzero(impulse.any(axis=0) | (self._at != 0))  # others stay away
        joints, impulse = tuple(self._joints[k] for k in some), impulse[:, some]
        q = values(joints, steps.q)
        away = (q > self._lower[some] + AWAY) & (q < self._upper[some] - AWAY)
        at = np.where(impulse > 0.0, 1, np.where(impulse < 0.0, 2, np.where(away, 0, -1)))
        at = _filled(at.astype(np.int8), self._at[some])
        self._at[some] = at[-1]
        for i, k in np.argwhere(np.diff(at, axis=0)).tolist():
            side, joint, name = int(at[i + 1, k]), joints[k], self._names[int(some[k])]
            if not side:
                continue
            end = joint.lower if side == 1 else joint.upper
            text = f"reaches its {_ENDS[side - 1]} limit {end:.6g}"
            events.append((int(i), Event(float(times[i]), "limit", name, text, end)))
        return events


_ENDS = ("lower", "upper")


def _name(mech: Mechanism, joint: Joint) -> str:
    if not joint.ball:
        return mech.coordinate_names[joint.q]
    return mech.bodies[int(np.searchsorted(mech.v_start, joint.v, side="right")) - 1].hinge_name


def limit_impulses(joints: tuple[Joint, ...], impulse: Array, h: float) -> Array:
    """The part of impulses (n, j) that friction cannot give: that of limits."""
    most = h * np.array([x.friction for x in joints])
    return impulse - np.clip(impulse, -most, most)


def _filled(flags: Flags, first: NDArray[Any]) -> Flags:
    """Flags (n + 1, c) with the first row in front; a −1 is as the one before."""
    flags = np.concatenate([first[None].astype(np.int8), flags])
    at = np.where(flags >= 0, np.arange(len(flags))[:, None], 0)
    return np.take_along_axis(flags, np.maximum.accumulate(at, axis=0), axis=0)
