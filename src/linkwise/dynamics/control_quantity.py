"""The expression behind control laws that put two velocities into the Coriolis term."""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algebra import A_V, B_V, H, M, a_g, mass, phi, vdot
from linkwise.algebra.expr import Expr
from linkwise.dynamics.momentum_quantity import w

CONTROL: dict[str, Callable[[Expr], Expr]] = {
    "two_velocity_dynamics": lambda J: (
        mass @ vdot + H @ phi @ (M @ phi.T @ (A_V @ w + a_g) + B_V @ phi.T @ H.T @ w)
    ),
}
"""Each as a function of the Jacobian J, like `quantity.QUANTITIES`."""
