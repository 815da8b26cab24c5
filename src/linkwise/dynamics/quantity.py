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

FRAMES = ("node", "world")

QUANTITIES: dict[str, Callable[[Expr, Expr], Expr]] = {
    "forward_dynamics": lambda A, J: A.inv @ (tau - bias),
    "forward_dynamics_with_forces": lambda A, J: A.inv @ (tau - bias + J.T @ f),
    "inverse_dynamics": lambda A, J: A @ vdot + bias,
    "inverse_dynamics_with_forces": lambda A, J: A @ vdot + bias - J.T @ f,
    "mass_matrix": lambda A, J: A,
    "mass_matrix_inverse": lambda A, J: A.inv,
    "bias_force": lambda A, J: bias,
    "gravity_force": lambda A, J: H @ phi @ M @ phi.T @ a_g,
    "body_poses": lambda A, J: X,
    "node_poses": lambda A, J: X_B,
    "jacobian": lambda A, J: J,
    "node_velocity": lambda A, J: J @ v,
    "kinetic_energy": lambda A, J: 0.5 * (V.T @ M @ V) + (0.5 * (v.T @ N @ v) if A != mass else 0),
    "potential_energy": lambda A, J: weight.T @ X,
    "operational_inertia": lambda A, J: (J @ A.inv @ J.T).inv,
    "operational_inertia_inverse": lambda A, J: J @ A.inv @ J.T,
    **KINEMATICS,
    **OPEN_CHAIN,
    **DIAGONAL,
    **CONTROL,
    **MOMENTUM,
}
"""Each as a function of the inertia A = 𝓜 or 𝓜 + N, and of the Jacobian J or rot_W J."""


def check_frame(frame: object, what: str = "frame") -> None:
    """Raise unless it is one of the words for axes."""
    if not isinstance(frame, str) or frame not in FRAMES:
        raise ModelError(f"{what} is {frame!r}; it must be 'node' or 'world'.")


def expression(name: str, *, armature: bool = False, frame: Frame = "node") -> Expr:
    """The expression of a quantity.

    Args:
        name: A key of `QUANTITIES`.
        armature: Whether hinges have inertia of their own: 𝓜 + N instead of 𝓜.
        frame: Axes of what belongs to nodes: rot_W J instead of J for "world".
    """
    if name not in QUANTITIES:
        raise unknown_name("quantity", name, QUANTITIES, owner="linkwise.dynamics")
    check_frame(frame)
    inertia = mass + N if armature else mass
    return QUANTITIES[name](inertia, J if frame == "node" else rot_W @ J)
