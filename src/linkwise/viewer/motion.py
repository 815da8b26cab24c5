"""A motion for a page: times and joint positions, from a recording or from arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.viewer.scene import frames


@dataclass(frozen=True, slots=True, eq=False)
class Motion:
    """Poses of all bodies at rising times.

    Attributes:
        mech: The mechanism.
        t: Times (k,) from zero [s].
        q: Joint positions (k, nq).
        v: Joint velocities (k, nv), or None where they are not known.
        tau: Joint forces (k, nv), or None.
        turned: Quaternions of bodies in the world (k, n, 4), each near the one before.
        placed: Their positions (k, n, 3) [m].
        source: What it was made of: a recording may know forces of contacts.
    """

    mech: Mechanism
    t: Array
    q: Array
    v: Array | None
    tau: Array | None
    turned: Array
    placed: Array
    source: Any = None

    @property
    def duration(self) -> float:
        """Its length [s]."""
        return float(self.t[-1])

    def index(self, t: float) -> int:
        """The record nearest to a time."""
        i = int(np.searchsorted(self.t, t))
        if i == 0 or (i < len(self.t) and self.t[i] - t <= t - self.t[i - 1]):
            return min(i, len(self.t) - 1)
        return i - 1

    def at(self, t: float) -> tuple[Array, Array]:
        """Quaternions (n, 4) and positions (n, 3) at a time, between records if need be."""
        i = int(np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 1))
        j = min(i + 1, len(self.t) - 1)
        span = self.t[j] - self.t[i]
        part = 0.0 if span <= 0.0 else float(np.clip((t - self.t[i]) / span, 0.0, 1.0))
        quat = (1.0 - part) * self.turned[i] + part * self.turned[j]
        quat = quat / np.linalg.norm(quat, axis=-1, keepdims=True)
        return quat, (1.0 - part) * self.placed[i] + part * self.placed[j]


def motion_of(
    mech: Mechanism,
    t: ArrayLike,
    q: ArrayLike,
    v: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    source: Any = None,
) -> Motion:
    """A motion of arrays.

    Args:
        mech: The mechanism.
        t: Times (k,), rising [s].
        q: Joint positions (k, nq) [m or rad].
        v: Joint velocities (k, nv); those of independent hinges alone are left out.
        tau: Joint forces (k, nv), as well.
        source: What the arrays come from.

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
    quat, p = frames(mech.poses(rows))
    flips = np.cumprod(
        np.where(np.einsum("kni,kni->kn", quat[1:], quat[:-1]) < 0.0, -1.0, 1.0), axis=0
    )
    quat = np.concatenate([quat[:1], quat[1:] * flips[..., None]])
    speeds, forces = (
        None if x is None or np.shape(x)[-1:] != (mech.nv,) else mech.check_v(x, what)
        for x, what in ((v, "v"), (tau, "tau"))
    )
    return Motion(mech, times - times[0], rows, speeds, forces, quat, p, source)


def subject_of(
    subject: Any, q: ArrayLike | None = None, t: ArrayLike | None = None
) -> tuple[Mechanism, Array | None, Motion | None]:
    """What is to be shown: the mechanism, a configuration, and a motion if there is one.

    Args:
        subject: A mechanism, an embedded one, or a recording: anything with `mech`, `t` and `q`.
        q: Joint positions (nq,) of a mechanism, or (k, nq) of a motion.
        t: Times of such a motion (k,) [s]; 60 a second unless given.

    Raises:
        ModelError: It is none of these.
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
