"""Tasks while loops and couplings hold: what is left of their rows, and how they yield to forces.

With W = D^(-½) (I - H ψ K), so that 𝓜⁻¹ = W* W, and rows whitened, A = J_t W* and A_c of the rows R
of J_c that count, A_c* = Q T:

    A (I - Q Q*)                    whose product with its own adjoint is Λ_c⁻¹
    W* (I - Q Q*) A*                the accelerations that forces along the tasks cause
    J_t (I - R* R)                  the motions that are left, measured by C (`velocity_space`)
"""

from __future__ import annotations

import numpy as np

from linkwise.dynamics.innovations import innovations, velocity_from_diagonal
from linkwise.dynamics.velocity_space import velocity_spaces
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array


def held_motion(mech: Mechanism, q: Array, J: Array) -> tuple[Array, Array, Array]:
    """Rows of the motions that are left (n, m, nv), whitened ones, and responses (n, nv, m).

    Args:
        mech: The mechanism, with loops or couplings.
        q: Joint positions (n, nq), n above zero.
        J: Rows of the tasks (n, m, nv).
    """
    m, spaces = J.shape[1], velocity_spaces(mech, q)
    both = [np.concatenate([rows, space.blocked]) for rows, space in zip(J, spaces, strict=True)]
    counts = [len(rows) for rows in both]
    white = innovations(mech, np.repeat(q, counts, axis=0), np.concatenate(both))
    left, held = np.zeros(J.shape), np.zeros(J.shape)
    for i, (eps, space) in enumerate(
        zip(np.split(white, np.cumsum(counts)[:-1]), spaces, strict=True)
    ):
        across, held[i] = np.linalg.qr(eps[m:].T)[0], eps[:m]  # Q
        for _ in range(2):  # twice, so that what is left is orthogonal to the last digit
            held[i] -= held[i] @ across @ across.T
        columns = space.scale.columns
        scaled = J[i] * columns
        left[i] = (scaled - scaled @ space.right.T @ space.right) / columns
    response = velocity_from_diagonal(mech, np.repeat(q, m, axis=0), held.reshape(-1, mech.nv))
    return left, held, np.swapaxes(response.reshape(J.shape), 1, 2)
