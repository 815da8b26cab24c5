"""A Rosenbrock method: linear equations instead of nonlinear ones, for forces that are stiff."""

from __future__ import annotations

import math

import numpy as np

from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rates import Acceleration, moved
from linkwise.spatial.array import Array

GAMMA = 1.0 - 1.0 / math.sqrt(2.0)
"""γ with which fast motions that decay vanish in one step (L-stability)."""

APART = 1e-7
"""Distance of differences [rad, m, rad/s or m/s], for numbers of size one."""


def step(
    mech: Mechanism, f: Acceleration, t: float, q: Array, u: Array, h: float
) -> tuple[Array, Array]:
    """One step of order two.

        y = (θ, u),   F(t, y) = (u, f(t, q ⊕ θ, u)),   J = ∂F/∂y at the beginning
        (I − γ h J) k₁ = F(t, y)
        (I − γ h J) k₂ = F(t + h, y + h k₁) − 2 k₁
        y' = y + 3/2 h k₁ + 1/2 h k₂,   q' = q ⊕ θ'

    J comes from differences of all accelerations, those of the user's forces included: 2 nv + 2
    calls of f. Its errors do not lower the order.

    Source: Verwer, Spee, Blom, Hundsdorfer, A second-order Rosenbrock method applied to
    photochemical dispersion problems (1999).
    Departs: θ̇ = u on quaternions, which is enough for order two.

    Returns:
        q and u at t + h.
    """
    n, w = len(u), GAMMA * h
    at = f(t, q, u)
    by_q, by_u = np.empty((n, n)), np.empty((n, n))
    for i in range(n):
        d = APART * np.eye(n)[i]
        by_q[:, i] = (f(t, moved(mech, q, d, 1.0), u) - at) / APART
        e = d * max(1.0, abs(float(u[i])))
        by_u[:, i] = (f(t, q, u + e) - at) / e[i]
    inverse = np.linalg.inv(np.eye(n) - w * by_u - w * w * by_q)

    def solved(theta: Array, rate: Array) -> tuple[Array, Array]:
        change = inverse @ (rate + w * (by_q @ theta))
        return theta + w * change, change

    first = solved(u, f(t, q, u))  # the last two calls of f share the work
    end = moved(mech, q, h * first[0], 1.0), u + h * first[1]
    second = solved(end[1] - 2.0 * first[0], f(t + h, *end) - 2.0 * first[1])
    theta, change = (h * (1.5 * a + 0.5 * b) for a, b in zip(first, second, strict=True))
    return moved(mech, q, theta, 1.0), u + change
