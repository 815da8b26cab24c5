"""The commutator-free Runge-Kutta method, of order four on quaternions as well."""

from __future__ import annotations

from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rates import Acceleration, moved
from linkwise.spatial.array import Array


def step(
    mech: Mechanism, f: Acceleration, t: float, q: Array, u: Array, h: float
) -> tuple[Array, Array]:
    """One step of order four with four stages.

        u₁ = u                q₁ = q                              a₁ = f(t, q₁, u₁)
        u₂ = u + ½h a₁        q₂ = q ⊕ ½h u₁                      a₂ = f(t + ½h, q₂, u₂)
        u₃ = u + ½h a₂        q₃ = q ⊕ ½h u₂                      a₃ = f(t + ½h, q₃, u₃)
        u₄ = u + h a₃         q₄ = q₂ ⊕ h (u₃ − ½u₁)              a₄ = f(t + h, q₄, u₄)
        u' = u + h/6 (a₁ + 2 a₂ + 2 a₃ + a₄)
        q' = q ⊕ h/12 (3 u₁ + 2 u₂ + 2 u₃ − u₄) ⊕ h/12 (−u₁ + 2 u₂ + 2 u₃ + 3 u₄)

    On plain coordinates it is the classical method. Where turns do not commute, the classical
    tableau would be of order two; two consecutive turns correct that.
    Source: celledoni2003commutatorfree.

    Returns:
        q and u at t + h.
    """
    half = 0.5 * h
    a1 = f(t, q, u)
    u2, q2 = u + half * a1, moved(mech, q, u, half)
    a2 = f(t + half, q2, u2)
    u3, q3 = u + half * a2, moved(mech, q, u2, half)
    a3 = f(t + half, q3, u3)
    u4, q4 = u + h * a3, moved(mech, q2, u3 - 0.5 * u, h)
    a4 = f(t + h, q4, u4)
    middle = 2.0 * (u2 + u3)
    early = moved(mech, q, (3.0 * u - u4 + middle) / 12.0, h)
    late = (3.0 * u4 - u + middle) / 12.0
    return moved(mech, early, late, h), u + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
