"""Semi-implicit Euler: new rates from the old state, the new configuration from the new rates."""

from __future__ import annotations

from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rates import Acceleration, moved
from linkwise.spatial.array import Array


def step(
    mech: Mechanism, f: Acceleration, t: float, q: Array, u: Array, h: float
) -> tuple[Array, Array]:
    """One step of order one.

        u' = u + h f(t, q, u)
        q' = q ⊕ h u'

    Also called symplectic Euler, which it is where the mass matrix does not depend on q. It is what
    MuJoCo calls Euler, without its implicit treatment of damping.

    Returns:
        q and u at t + h.
    """
    u = u + h * f(t, q, u)
    return moved(mech, q, u, h), u
