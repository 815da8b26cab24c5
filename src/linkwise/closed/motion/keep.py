"""Three ways of keeping loops closed while time goes on."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from linkwise.closed.closure import constraint_jacobian
from linkwise.closed.motion.gap import Gap
from linkwise.closed.motion.recording import Drift
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

Keep: TypeAlias = Literal["projection", "baumgarte", "nothing"]
"""projection: after each step q and v go to the nearest that the loops allow;
baumgarte: the accelerations pull errors back; nothing: the accelerations alone, for comparison."""


def check_keep(keep: str) -> None:
    """Refuse a way that there is not."""
    if keep not in get_args(Keep):
        known = ", ".join(repr(name) for name in get_args(Keep))
        raise ModelError(f"keep={keep!r} is no way to keep loops closed; there are {known}.")


def baumgarte_closing(mech: Mechanism, q: Array, v: Array, rates: tuple[float, float]) -> Array:
    """What J_c v̇ + γ has to be so that errors fade: −2 a (J_c v) − b² e.

    With rates a = b [1/s] the error e fades like exp(−a t), without swinging. It does so only while
    a times the step is small against one, and new errors come in with each step: they stay in
    balance at some size.

    Args:
        mech: The mechanism.
        q: Joint positions (nq,).
        v: Joint velocities (nv,).
        rates: a and b [1/s].
    """
    a, b = rates
    return -2.0 * a * (constraint_jacobian(mech, q) @ v) - b * b * Gap(mech, q).rows


def drift(mech: Mechanism, gap: Gap, t: float) -> Drift:
    """How far the loops and couplings are from closed, and which is worst."""
    names = [*(x.name for x in mech.loops), *(x.name for x in mech.couplings)]
    if not names:
        return Drift(t=t)
    still = np.zeros(len(gap.couplings))
    distance = np.concatenate([np.linalg.norm(gap.loops[:, 3:], axis=-1), still])
    angle = np.concatenate([np.linalg.norm(gap.loops[:, :3], axis=-1), np.abs(gap.couplings)])
    where = names[int(np.argmax(np.maximum(distance, angle)))]
    return Drift(float(distance.max()), float(angle.max()), where, t)


def velocity_error(mech: Mechanism, q: Array, v: Array) -> float:
    """Largest entry of |J_c v|."""
    return float(np.abs(constraint_jacobian(mech, q) @ v).max(initial=0.0))
