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

from typing import Any

from linkwise.codegen.scalar.orthogonal import singular
from linkwise.dynamics.mass_root import MassRoot
from linkwise.spatial.choice import gate, maximum, where
from linkwise.tasks.control.hierarchy import SHORT, TOLERANCE, in_part
from linkwise.tasks.control.singular import share
from linkwise.tasks.space import ROUNDING


def fading_inertia(mass: MassRoot, J: Any, scale: Any, reach: Any, threshold: Any = None) -> Any:
    """Λ (m, m), symmetric; array code for one state.

    Args:
        mass: The root of the mass matrix.
        J: Jacobian of the task (m, nv).
        scale: What makes all rows speeds (m,).
        reach: Of the mechanism at the nodes of the task [m].
        threshold: Part of the largest singular value below which directions fade out; None for the
            plain inverse.
    """
    inside = scale[:, None] * J
    span, values = singular(mass.at, inside)
    most = values[0] if threshold is None else maximum(values[0], SHORT * reach)
    exists = gate(values - maximum(TOLERANCE * most, ROUNDING * reach), 1.0)
    given = exists if threshold is None else exists * share(values / most, threshold)
    over = exists / where(exists, values, 1.0)
    G = mass.whitened((over[:, None] * (span.T @ inside)).T)
    half = in_part(G.T @ G, given, exists)
    outer = half @ (over[:, None] * (span.T * scale))
    return outer.T @ outer
