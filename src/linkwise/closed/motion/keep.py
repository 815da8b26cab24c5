"""Three ways of keeping loops closed while time goes on."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import numpy as np

from linkwise.closed.closure import constraint_error, constraint_jacobian, relative_poses
from linkwise.closed.motion.recording import Drift
from linkwise.errors import ModelError
from linkwise.model import closure
from linkwise.model.closure import coupling_error
from linkwise.model.hinges import Hinge, Pin, Spherical
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose

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
    return -2.0 * a * (constraint_jacobian(mech, q) @ v) - b * b * constraint_error(mech, q)


def drift(mech: Mechanism, q: Array, t: float) -> Drift:
    """How far the loops and couplings are from closed, and which is worst."""
    names = [*(x.name for x in mech.loops), *(x.name for x in mech.couplings)]
    if not names:
        return Drift(t=t)
    pairs = zip(mech.loops, relative_poses(mech, q), strict=True)
    off = [_loop_drift(loop.hinge, X_ab) for loop, X_ab in pairs]
    off += [(0.0, abs(float(coupling_error(mech, x, q)))) for x in mech.couplings]
    distance, angle = np.array(off).T
    where = names[int(np.argmax(np.maximum(distance, angle)))]
    return Drift(float(distance.max()), float(angle.max()), where, t)


def _loop_drift(hinge: Hinge, X_ab: Pose) -> tuple[float, float]:
    """Distance [m] and angle [rad] of a loop from the nearest pose that its hinge allows.

    Of a ball the distance of its two centres, of a pin also the angle between its two axes; for
    other hinges as in `loop_errors`.
    """
    p = X_ab.p
    if isinstance(hinge, Spherical):
        return math.sqrt(p @ p), 0.0
    if isinstance(hinge, Pin):
        axis = np.array(hinge.axis)
        return math.sqrt(p @ p), float(np.linalg.norm(X_ab.rot @ axis - axis))
    e = closure.error(hinge, X_ab, closure.coordinates(hinge, X_ab))
    return math.sqrt(e[3:] @ e[3:]), math.sqrt(e[:3] @ e[:3])


def velocity_error(mech: Mechanism, q: Array, v: Array) -> float:
    """Largest entry of |J_c v|."""
    return float(np.abs(constraint_jacobian(mech, q) @ v).max(initial=0.0))
