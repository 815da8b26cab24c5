"""The expressions of the innovations factors and of the diagonalised equations of motion.

With 𝓜 = (I + H φ K) D (I + H φ K)*, or 𝓜 + N and the family of D = H P H* + N.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algebra import E_phi, H, M, N, mass
from linkwise.algebra.expr import Expr
from linkwise.algebra.family import Family, riccati
from linkwise.algebra.space import JOINT
from linkwise.algebra.symbols import vector

x = vector("x", JOINT)
"""A vector over the freedoms: velocities or forces, plain or diagonal."""


def family(A: Expr) -> Family:
    """The Riccati family that factors A = 𝓜 or 𝓜 + N."""
    return riccati(E_phi, M, H) if A == mass else riccati(E_phi, M, H, N)


DIAGONAL: dict[str, Callable[[Expr, Expr], Expr]] = {
    "hinge_inertia_product": lambda A, J: family(A).D @ x,
    "whitened_force": lambda A, J: family(A).whitening @ x,
    "colored_force": lambda A, J: family(A).coloring @ x,
    "colored_velocity": lambda A, J: family(A).coloring.T @ x,
    "whitened_velocity": lambda A, J: family(A).whitening.T @ x,
    "whitened_jacobian": lambda A, J: family(A).whitening @ J.T,
}
"""Each as a function of the inertia A and of the Jacobian J, like `quantity.QUANTITIES`."""
