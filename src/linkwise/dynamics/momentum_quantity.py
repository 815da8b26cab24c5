"""Expressions of momenta and of the Coriolis term.

Momenta are asked for at the bodies on the ground, which gather all others: (φ x)(root) is the sum
over the tree, and to_W⁻* refers it to the origin of the world. In those rows φ M φ* is φ R, since
R φ~* takes from parents and there are none.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algebra import A_V, B_V, JOINT, H, M, R, V, a, a_g, b, phi, to_W, vector
from linkwise.algebra.expr import Expr

w = vector("w", JOINT)
"""A second velocity of the joints, beside v."""

_coriolis = H @ phi @ (M @ phi.T @ A_V + B_V @ phi.T @ H.T)

MOMENTUM: dict[str, Callable[[Expr], Expr]] = {
    "momentum": lambda J: to_W.inv.T @ phi @ M @ V,
    "momentum_matrix": lambda J: to_W.inv.T @ phi @ R @ H.T,
    "momentum_bias": lambda J: to_W.inv.T @ phi @ (M @ phi.T @ (a - a_g) + b),
    "inertia_in_world": lambda J: to_W.inv.T @ R @ to_W.inv,
    "coriolis_force": lambda J: H @ phi @ (M @ phi.T @ (a - a_g) + b),
    "coriolis_matrix": lambda J: _coriolis,
    "coriolis_product": lambda J: _coriolis @ w,
}

AT_ROOTS = frozenset({"momentum", "momentum_matrix", "momentum_bias", "inertia_in_world"})
"""Those of which only the rows of bodies on the ground are computed."""

ROOT_BLOCKS = frozenset({"inertia_in_world"})
"""Those that are blocks, (roots, 6, 6)."""
