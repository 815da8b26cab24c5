"""The expressions behind the kinematics of a tree, in document 002's words where it has any.

V is the velocity of every body at its own frame, V⁺ = E_φ* V what it would be with its hinge held,
ΔV = H* v what the hinge adds; to_W takes each to the origin and the axes of the world, where it is
called inertially referenced.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algebra import A_V, E_phi, H, V, f, phi, phi_tilde, to_W, v
from linkwise.algebra.expr import Expr
from linkwise.algebra.space import BODY
from linkwise.algebra.symbols import articulated, vector
from linkwise.dynamics.open_chain_quantity import picked

x = vector("x", BODY)
"""Any stacked vector over the bodies, to be scattered or gathered."""

KINEMATICS: dict[str, Callable[[Expr], Expr]] = {
    "scatter": lambda J: phi.T @ x,
    "gather": lambda J: phi @ x,
    "strict_scatter": lambda J: phi_tilde.T @ x,
    "strict_gather": lambda J: phi_tilde @ x,
    "articulated_scatter": lambda J: articulated.psi.T @ x,
    "articulated_gather": lambda J: articulated.psi @ x,
    "strict_articulated_scatter": lambda J: articulated.psi_tilde.T @ x,
    "strict_articulated_gather": lambda J: articulated.psi_tilde @ x,
    "body_velocities": lambda J: V,
    "inboard_velocities": lambda J: E_phi.T @ V,
    "hinge_velocities": lambda J: H.T @ v,
    "body_velocities_about_world": lambda J: to_W @ V,
    "inboard_velocities_about_world": lambda J: to_W @ E_phi.T @ V,
    "hinge_velocities_about_world": lambda J: to_W @ H.T @ v,
    "jacobian_gram_of_rows": lambda J: J @ J.T,
    "jacobian_gram_of_columns": lambda J: J.T @ J,
    "jacobian_dot_v": lambda J: picked(J) @ phi.T @ A_V @ v,
    "jacobian_dot_part": lambda J: picked(J) @ phi.T @ A_V,
    "equivalent_force": lambda J: J.T @ f,
    "compensating_force": lambda J: -(J.T @ f),
}
"""Each as a function of the Jacobian, J or rot_W J."""
