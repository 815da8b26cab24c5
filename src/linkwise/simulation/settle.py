"""A state that has drifted a little, put back to where loops and couplings hold.

`project_position` and `project_velocity` do that from anywhere near. After one step of a simulation
the errors are so small that plain steps of Newton, with J_c and 𝓜⁻¹ taken once, do it as well:

    G = 𝓜⁻¹ J_c* (J_c 𝓜⁻¹ J_c*)⁺        at the state that drifted
    q ← q ⊕ (-G e(q))                     until e is zero to rounding
    v ← v - G J_c(q) v                    twice, with J_c at the new q

Both move the least as measured by kinetic energy, and by internal forces alone, so that momentum is
kept. Each time round the error shrinks by a factor of the size of the first drift. Where it does
not, in the neighbourhood of singular configurations, the two functions above take over.
"""

from __future__ import annotations

import numpy as np

from linkwise.dynamics import mass_matrix_inverse
from linkwise.dynamics.closure import constraint_jacobian
from linkwise.dynamics.velocity_space import scale
from linkwise.loops.projection import CLOSED, project_position, project_velocity
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.loop_error import Gap
from linkwise.simulation.rates import moved, rates
from linkwise.spatial.array import Array

TOLERANCE = 1e-10
"""Eigenvalues of J_c 𝓜⁻¹ J_c* below this part of the largest count as zero."""

SMALL = 1e-4
"""Largest drift [rad or m] for which the short way is tried."""


def settled(mech: Mechanism, q: Array, v: Array, gap: Gap) -> tuple[Array, Array, Gap]:
    """q and v next to the given ones that the loops allow, and the errors that are left."""
    if gap.size < SMALL:
        found = _by_newton(mech, q, v, gap)
        if found is not None:
            return found
    q = project_position(mech, q, weight="mass")
    return q, project_velocity(mech, q, v), Gap(mech, q)


def _by_newton(mech: Mechanism, q: Array, v: Array, gap: Gap) -> tuple[Array, Array, Gap] | None:
    """The short way; None where it does not get there."""
    # Rows that turn and rows that move are compared in one unit, as in the dynamics.
    D = scale(mech).rows
    J = D[:, None] * constraint_jacobian(mech, q)
    back = mass_matrix_inverse(mech, q) @ J.T
    G = back @ np.linalg.pinv(J @ back, rcond=TOLERANCE, hermitian=True) * D
    for _ in range(4):
        if gap.size <= CLOSED:
            break
        q = moved(mech, q, rates(mech, q, G @ gap.rows), -1.0)
        gap = Gap(mech, q)
    else:
        return None
    J = constraint_jacobian(mech, q)
    for _ in range(2):
        v = v - G @ (J @ v)
    if float(np.abs(J @ v).max()) > 1e-12 * (1.0 + float((np.abs(J) @ np.abs(v)).max())):
        return None
    return q, v, gap
