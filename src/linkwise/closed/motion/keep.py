"""Three ways of keeping loops closed while time goes on."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from linkwise.closed.motion.gap import Gap
from linkwise.closed.motion.recording import Drift
from linkwise.dynamics.closure import constraint_jacobian
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, floats

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
    off, slides = np.abs(gap.couplings), _slides(mech)
    distance = np.concatenate([np.linalg.norm(gap.loops[:, 3:], axis=-1), off * slides])
    angle = np.concatenate([np.linalg.norm(gap.loops[:, :3], axis=-1), off * ~slides])
    where = names[int(np.argmax(np.maximum(distance, angle)))]
    return Drift(float(distance.max()), float(angle.max()), where, t)


def _slides(mech: Mechanism) -> NDArray[np.bool_]:
    """Which couplings are of a coordinate in metres; kept with the mechanism."""
    found: NDArray[np.bool_] | None = mech.kept.get("couplings of slides")
    if found is None:
        units = [x.unit for body in mech.bodies for x in body.hinge.coordinates]
        which = [units[mech.coordinate(x.dependent)] == "m" for x in mech.couplings]
        found = mech.kept["couplings of slides"] = np.array(which, dtype=np.bool_)
    return found


def check_rates(rates: object) -> tuple[float, float]:
    """The two rates of Baumgarte [1/s]; raises for what is not that."""
    found = floats(rates, "baumgarte")
    if found.shape != (2,) or not (np.isfinite(found).all() and (found >= 0.0).all()):
        raise ModelError(
            f"baumgarte is {rates!r}; it is two rates (a, b) [1/s], not negative and finite: with "
            "negative ones errors would grow."
        )
    return float(found[0]), float(found[1])


def velocity_error(mech: Mechanism, q: Array, v: Array) -> float:
    """Largest entry of |J_c v|."""
    return float(np.abs(constraint_jacobian(mech, q) @ v).max(initial=0.0))
