"""The expressions behind the named quantities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from linkwise.algebra import (
    X_B,
    H,
    J,
    M,
    N,
    V,
    X,
    a_g,
    bias,
    f,
    mass,
    phi,
    rot_W,
    tau,
    v,
    vdot,
    weight,
)
from linkwise.algebra.expr import Expr
from linkwise.dynamics.control_quantity import CONTROL
from linkwise.dynamics.diagonal_quantity import DIAGONAL
from linkwise.dynamics.kinematic_quantity import KINEMATICS
from linkwise.dynamics.momentum_quantity import MOMENTUM
from linkwise.dynamics.open_chain_quantity import OPEN_CHAIN
from linkwise.errors import ModelError, unknown_name

Frame: TypeAlias = Literal["node", "world"]
"""Axes of velocities and forces of nodes; the point is the node's origin in both."""

OWN_AXES: Frame = "node"
"""The default: as the same string it is recognised without a comparison."""

FRAMES = ("node", "world")

QUANTITIES: dict[str, Callable[[Expr], Expr]] = {
    "forward_dynamics": lambda J: mass.inv @ (tau - bias),
    "forward_dynamics_with_forces": lambda J: mass.inv @ (tau - bias + J.T @ f),
    "inverse_dynamics": lambda J: mass @ vdot + bias,
    "inverse_dynamics_with_forces": lambda J: mass @ vdot + bias - J.T @ f,
    "mass_matrix": lambda J: mass,
    "mass_matrix_inverse": lambda J: mass.inv,
    "bias_force": lambda J: bias,
    "gravity_force": lambda J: H @ phi @ M @ phi.T @ a_g,
    "body_poses": lambda J: X,
    "node_poses": lambda J: X_B,
    "jacobian": lambda J: J,
    "node_velocity": lambda J: J @ v,
    "kinetic_energy": lambda J: 0.5 * (V.T @ M @ V) + 0.5 * (v.T @ N @ v),
    "potential_energy": lambda J: weight.T @ X,
    "operational_inertia": lambda J: (J @ mass.inv @ J.T).inv,
    "operational_inertia_inverse": lambda J: J @ mass.inv @ J.T,
    **KINEMATICS,
    **OPEN_CHAIN,
    **DIAGONAL,
    **CONTROL,
    **MOMENTUM,
}
"""Each as a function of the Jacobian, J or rot_W J."""


def check_frame(frame: object, what: str = "frame") -> None:
    """Raise unless it is one of the words for axes."""
    if not isinstance(frame, str) or frame not in FRAMES:
        raise ModelError(f"{what} is {frame!r}; it must be 'node' or 'world'.")


def expression(name: str, *, frame: Frame = "node") -> Expr:
    """The expression of a quantity.

    Args:
        name: A key of `QUANTITIES`.
        frame: Axes of what belongs to nodes: rot_W J instead of J for "world".
    """
    if name not in QUANTITIES:
        raise unknown_name("quantity", name, QUANTITIES, owner="linkwise.dynamics")
    check_frame(frame)
    return QUANTITIES[name](J if frame == "node" else rot_W @ J)
