"""A motion for a page: times and joint positions, from a recording or from arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.interpolation import between
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.viewer.look import State


@dataclass(frozen=True, slots=True, eq=False)
class Motion:
    """Joint positions at rising times, and between them.

    Attributes:
        mech: The mechanism.
        t: Times (k,) [s], as they were recorded: they need not begin at zero.
        q: Joint positions (k, nq).
        v: Joint velocities (k, nv), or None where they are not known.
        tau: Joint forces (k, nv), or None.
        source: What it was made of: a recording may know forces of contacts.
    """

    mech: Mechanism
    t: Array
    q: Array
    v: Array | None
    tau: Array | None
    source: Any = None

    @property
    def start(self) -> float:
        """When it begins [s]."""
        return float(self.t[0])

    @property
    def end(self) -> float:
        """When it ends [s]."""
        return float(self.t[-1])

    @property
    def duration(self) -> float:
        """Its length [s]."""
        return self.end - self.start

    def index(self, t: float) -> int:
        """The record nearest to a time."""
        i = int(np.searchsorted(self.t, t))
        if i == 0 or (i < len(self.t) and self.t[i] - t <= t - self.t[i - 1]):
            return min(i, len(self.t) - 1)
        return i - 1

    def at(self, t: float) -> tuple[Array, Array | None]:
        """Joint positions (nq,) and velocities (nv,), if known, at a time [s].

        They are those of the recording where there is one, which knows how it goes on between
        records. Otherwise cubics through positions and velocities, or, where only positions are
        known, the velocity that leads from one record to the next is held. In each case it is q
        that is interpolated, not poses: hinges stay together.
        """
        time = min(max(float(t), self.start), self.end)
        i = int(np.searchsorted(self.t, time, side="right")) - 1
        speeds = None if self.v is None else self.v[i]
        if i + 1 >= len(self.t) or time <= self.t[i]:
            return self.q[i], speeds
        if self.v is not None and callable(getattr(self.source, "at", None)):
            q, v = self.source.at(time)
            return np.asarray(q, dtype=np.float64), np.asarray(v, dtype=np.float64)
        ends = slice(i, i + 2)
        if self.v is not None:
            times = np.array([time])
            q, v = between(self.mech, self.t[ends], self.q[ends], self.v[ends], times)
            return q[0], v[0]
        part = (time - self.t[i]) / (self.t[i + 1] - self.t[i])
        turn = self.mech.difference(self.q[i], self.q[i + 1])
        return self.mech.integrate(self.q[i], turn, float(part)), None

    def state(self, t: float) -> State:
        """What is drawn at a time [s]; joint forces are those of the nearest record."""
        q, v = self.at(t)
        return State(q, v, None if self.tau is None else self.tau[self.index(t)], t)


def motion_of(
    mech: Mechanism,
    t: ArrayLike,
    q: ArrayLike,
    v: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    source: Any = None,
) -> Motion:
    """A motion of arrays.

    Raises:
        ShapeError: Shapes that do not go together.
        ModelError: Times that do not rise.
    """
    times, rows = floats(t, "t"), mech.check_q(q)
    if rows.ndim == 3:
        raise ShapeError(
            f"q has shape {rows.shape}, a batch of motions; show one of them, q[i] of shape "
            f"(k, {mech.nq})."
        )
    if rows.ndim != 2 or times.shape != rows.shape[:1] or not len(times):
        raise ShapeError(
            f"t has shape {times.shape} and q {rows.shape}; a motion has times (k,) and joint "
            f"positions (k, {mech.nq})."
        )
    if not np.isfinite(times).all() or (np.diff(times) < 0.0).any():
        raise ModelError("times of a motion must be finite and rise.")
    speeds, forces = (
        None if x is None or np.shape(x)[-1:] != (mech.nv,) else mech.check_v(x, what)
        for x, what in ((v, "v"), (tau, "tau"))
    )
    return Motion(mech, times, rows, speeds, forces, source)


def subject_of(
    subject: Any, q: ArrayLike | None = None, t: ArrayLike | None = None
) -> tuple[Mechanism, Array | None, Motion | None]:
    """The subject of a page: the mechanism, a configuration, and a motion if there is one.

    Args:
        subject: A mechanism, an embedded one, or a recording: anything with `mech`, `t` and `q`.
        t: Times of such a motion (k,) [s]; 60 a second unless given.

    Raises:
        ModelError: It is neither a mechanism nor a recording.
        ShapeError: Arrays that do not fit the mechanism.
    """
    if isinstance(subject, Motion):
        return subject.mech, subject.q[0], subject
    inside: Any = getattr(subject, "mech", None)
    if inside is not None and not isinstance(inside, Mechanism):
        inside = getattr(inside, "mech", inside)  # of a mechanism with its loops built in
    moves = hasattr(subject, "t") and hasattr(subject, "q")
    if isinstance(inside, Mechanism) and moves:
        if q is not None or t is not None:
            raise ModelError("a recording has its own q and t; give either it or arrays.")
        extra = (getattr(subject, name, None) for name in ("v", "tau"))
        motion = motion_of(inside, subject.t, subject.q, *extra, source=subject)
        return inside, motion.q[0], motion
    if inside is None and moves:
        raise ModelError(
            "the recording knows no mechanism; load it with lw.load_recording(path, mech), or show "
            "its arrays by lw.view(mech, rec.q, t=rec.t)."
        )
    mech = subject if isinstance(subject, Mechanism) else inside
    if not isinstance(mech, Mechanism):
        raise ModelError(
            f"a {type(subject).__name__} cannot be shown; give a mechanism, as lw.load or "
            "lw.models make them, or a recording, as lw.simulate makes it. A motion of arrays is "
            "shown by lw.view(mech, q, t=t)."
        )
    if q is None:
        return mech, None, None
    given = mech.check_q(q)
    if given.ndim == 1 and t is None:
        return mech, given, None
    times = np.arange(len(np.atleast_2d(given))) / 60.0 if t is None else t
    motion = motion_of(mech, times, given)
    return mech, motion.q[0], motion
