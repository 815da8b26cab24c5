"""What a variational step asks of a mechanism, as expressions."""

from __future__ import annotations

from linkwise.algebra import A_V, B_V, H, J as jacobian, M, a_g, f, mass, phi, rot_W, v
from linkwise.algebra.expr import Expr
from linkwise.dynamics.open_chain_quantity import x
from linkwise.dynamics.quantity import Frame

MOMENTUM = H @ phi @ M @ phi.T @ H.T @ v
"""Of the bodies alone: steps add that of the armature."""

_CORIOLIS = H @ phi @ (M @ phi.T @ A_V + B_V @ phi.T @ H.T)

LAGRANGIAN_FORCE = _CORIOLIS.T @ v - H @ phi @ M @ phi.T @ a_g
"""C_v* v − g: how the Lagrangian changes with q while v is held, in plain coordinates. Two passes:
what A_V and B_V leave behind on the way in is gathered on the way out."""


def lagrangian_force(*, nodes: bool, frame: Frame = "node") -> Expr:
    """C_v* v − g, and J* f of forces at nodes if there are any."""
    if not nodes:
        return LAGRANGIAN_FORCE
    seen = jacobian if frame == "node" else rot_W @ jacobian
    return LAGRANGIAN_FORCE + seen.T @ f


SOLUTION = mass.inv @ x
"""𝓜⁻¹ x."""
