"""One step of time on the configuration manifold, of fourth order.

The state (q, v) moves along q̇ = v (on the manifold), v̇ = f(t, q, v). Holding velocities fixed for a
while is what `mech.integrate` does exactly, hinge by hinge, so a step is put together from such
pieces; quaternions stay of unit length and nothing depends on how a hinge counts its coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

Acceleration: TypeAlias = Callable[[float, Array, Array], Array]
"""v̇ (nv,) of the time [s], q (nq,) and v (nv,)."""


def rk4_step(
    mech: Mechanism, f: Acceleration, t: float, q: Array, v: Array, step: float
) -> tuple[Array, Array]:
    """The commutator-free Runge-Kutta method of order four with four stages.

    With exp(w) for a motion with w held for one second, written from left to right as it happens:

        v₁ = v                q₁ = q                              a₁ = f(t, q₁, v₁)
        v₂ = v + ½h a₁        q₂ = q exp(½h v₁)                   a₂ = f(t + ½h, q₂, v₂)
        v₃ = v + ½h a₂        q₃ = q exp(½h v₂)                   a₃ = f(t + ½h, q₃, v₃)
        v₄ = v + h a₃         q₄ = q₂ exp(h v₃ − ½h v₁)           a₄ = f(t + h, q₄, v₄)
        v' = v + h/6 (a₁ + 2 a₂ + 2 a₃ + a₄)
        q' = q exp(h/12 (3 v₁ + 2 v₂ + 2 v₃ − v₄)) exp(h/12 (−v₁ + 2 v₂ + 2 v₃ + 3 v₄))

    For hinges whose velocities are the rates of their coordinates it is the classical method.
    Source: celledoni2003commutatorfree; that it keeps its order here is tested, on quaternions.

    Args:
        mech: The mechanism.
        f: The accelerations.
        t: The time at the beginning of the step [s].
        q: Joint positions (nq,) there.
        v: Joint velocities (nv,) there.
        step: The length h of the step [s].

    Returns:
        q and v at t + h.
    """
    h, half = step, 0.5 * step
    a1 = f(t, q, v)
    v2, q2 = v + half * a1, mech.integrate(q, v, half)
    a2 = f(t + half, q2, v2)
    v3, q3 = v + half * a2, mech.integrate(q, v2, half)
    a3 = f(t + half, q3, v3)
    v4, q4 = v + h * a3, mech.integrate(q2, v3 - 0.5 * v, h)
    a4 = f(t + h, q4, v4)
    middle = v2 + v3
    early = (3.0 * v + 2.0 * middle - v4) / 12.0
    late = (2.0 * middle + 3.0 * v4 - v) / 12.0
    after = mech.integrate(mech.integrate(q, early, h), late, h)
    return after, v + (h / 6.0) * (a1 + 2.0 * (a2 + a3) + a4)
