"""The inertia of a task whose directions fade out near a singular configuration.

With J = U σ V*, rows that turn measured at a length, and G = L⁻¹ V, 𝓜 = L L*, the inertia is

    Λ = U σ⁻¹ (G* G)⁻¹ σ⁻¹ U*

which grows with 1/σ². A direction with σ below a threshold, a part of the largest, gets a share

    s = x² (3 - 2 x),   x = σ / (threshold · largest)

of what is asked for: with W² = s the middle becomes W (W G* G W + (1 - s) diag(G* G))⁻¹ W. All
other directions get theirs exactly. √s / σ is at most √3 over the threshold, so that Λ has bounds;
at s = 0 the direction is no part of the task, and the mechanism is redundant there. No torque
jumps.
"""

from __future__ import annotations

import numpy as np

from linkwise.spatial.array import Array
from linkwise.task.control.hierarchy import TOLERANCE, in_part, smooth


def fading_inertia(
    J: Array, mass: Array, scale: Array, threshold: float, floor: float = 0.0
) -> Array:
    """Λ (batch, m, m), symmetric.

    Args:
        J: Jacobian of the task (batch, m, nv).
        mass: 𝓜 (batch, nv, nv).
        scale: What makes all rows speeds (m,).
        threshold: Part of the largest singular value below which directions fade out.
        floor: Singular values below this are rounding [m].
    """
    u, sigma, v_star = np.linalg.svd(J * scale[:, None], full_matrices=False)
    largest = sigma[:, :1]
    lost = (sigma <= TOLERANCE * largest) | (sigma <= floor)
    edge = np.where(largest > 0.0, threshold * largest, 1.0)
    share = np.where(lost, 0.0, smooth(sigma / edge))
    G = np.linalg.solve(np.linalg.cholesky(mass), np.swapaxes(v_star, -1, -2))
    middle = in_part(np.swapaxes(G, -1, -2) @ G, share)
    outer = scale[:, None] * u / np.where(lost, np.inf, sigma)[:, None, :]
    return np.asarray(outer @ middle @ np.swapaxes(outer, -1, -2), dtype=np.float64)
