"""The method of Runge, Kutta and Munthe-Kaas: what MuJoCo calls RK4."""

from __future__ import annotations

from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rates import Acceleration, moved, turning
from linkwise.spatial.array import Array


def step(
    mech: Mechanism, f: Acceleration, t: float, q: Array, u: Array, h: float
) -> tuple[Array, Array]:
    """One step of order four: the classical tableau in coordinates θ about the beginning, q ⊕ θ.

        u₁ = u                θ₁ = 0             a₁ = f(t, q, u₁)                 k₁ = u₁
        u₂ = u + ½h a₁        θ₂ = ½h k₁         a₂ = f(t + ½h, q ⊕ θ₂, u₂)       k₂ = θ̇(θ₂, u₂)
        u₃ = u + ½h a₂        θ₃ = ½h k₂         a₃ = f(t + ½h, q ⊕ θ₃, u₃)       k₃ = θ̇(θ₃, u₃)
        u₄ = u + h a₃         θ₄ = h k₃          a₄ = f(t + h, q ⊕ θ₄, u₄)        k₄ = θ̇(θ₄, u₄)
        u' = u + h/6 (a₁ + 2 a₂ + 2 a₃ + a₄)
        q' = q ⊕ h/6 (k₁ + 2 k₂ + 2 k₃ + k₄)

    θ̇ is the rate at which θ changes while the mechanism moves with u (`rates.turning`). On plain
    coordinates that is u, and the method is the classical one, the same as `rk4`. With quaternions
    it is another one than `rk4`, of the same order, and gives the numbers of MuJoCo 4. (Earlier
    releases took k = u, which is of order two where bodies turn.)

    Source: munthekaas1999highorder.

    Returns:
        q and u at t + h.
    """
    half = 0.5 * h
    a1 = f(t, q, u)
    u2, theta = u + half * a1, half * u
    a2, k2 = f(t + half, moved(mech, q, theta, 1.0), u2), turning(mech, theta, u2)
    u3, theta = u + half * a2, half * k2
    a3, k3 = f(t + half, moved(mech, q, theta, 1.0), u3), turning(mech, theta, u3)
    u4, theta = u + h * a3, h * k3
    a4, k4 = f(t + h, moved(mech, q, theta, 1.0), u4), turning(mech, theta, u4)
    mean = (u + 2.0 * k2 + 2.0 * k3 + k4) / 6.0
    return moved(mech, q, mean, h), u + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
