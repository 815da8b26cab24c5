"""What a variational step asks of a mechanism, as expressions."""

from __future__ import annotations

from linkwise.algebra import A_V, B_V, H, M, N, a_g, f, mass, phi, rot_W, v
from linkwise.algebra import J as jacobian
from linkwise.algebra.expr import Expr
from linkwise.dynamics.open_chain_quantity import x
from linkwise.dynamics.quantity import Frame

MOMENTUM = mass @ v
"""𝓜 v, without armature."""

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


def solution(*, armature: bool) -> Expr:
    """(𝓜 + N)⁻¹ x."""
    return (mass + N if armature else mass).inv @ x
