"""Expressions about a mechanism whose loops and couplings are built in.

On a tree of aggregate bodies v, τ and v̇ are those of the independent velocities u, and all
expressions keep their form but one: the rotors behind dependent hinges accelerate although u̇ = 0,
by 𝔵, which takes a force,

    𝒳* (N (𝒳 u̇ + 𝔵)) = N_r u̇ + n,     N_r = 𝒳* N 𝒳,   n = 𝒳* N 𝔵

so that with armature the bias force is C + n.
"""

from __future__ import annotations

from linkwise.algebra.expr import Expr
from linkwise.algebra.space import BODY, INBOARD, JOINT, PLACE, TREE_JOINT
from linkwise.algebra.symbols import H, M, a, b, bias, memoryless, phi, v, vdot, vector
from linkwise.algebra.words import rebuilt
from linkwise.model.embedded import Embedded

velocity_map = memoryless("𝒳", TREE_JOINT, JOINT, ascii="velocity_map", tex=r"\mathcal{X}")
"""𝒳: all velocities from the independent ones."""

velocity_bias = vector("𝔵", TREE_JOINT, ascii="velocity_bias", tex=r"\mathfrak{x}")
"""𝔵: accelerations of all hinges while the independent ones keep their speed."""

armature_bias = vector("n", JOINT, ascii="armature_bias")
"""n = 𝒳* N 𝔵: the force that the rotors of dependent hinges take while u̇ = 0."""

tree_tau = vector("τ_T", TREE_JOINT, ascii="tree_tau", tex=r"\tau_T")
"""Forces of all hinges."""

_OPEN_BIAS = H @ phi @ (M @ phi.T @ a + b)
"""C by its definition."""

MOTIONS: dict[str, Expr] = {
    "full_velocity": velocity_map @ v,
    "full_acceleration": velocity_map @ vdot + velocity_bias,
    "independent_force": velocity_map.T @ tree_tau,
}
"""Between the independent velocities and all of them."""


def with_rotors(expr: Expr, mech: Embedded) -> Expr:
    """The expression with C + n for C, where there is armature."""
    if not mech.armature.any():
        return expr
    geared = _OPEN_BIAS + armature_bias
    return rebuilt(expr, lambda leaf: geared if leaf is bias else None)


def is_about_bodies(expr: Expr) -> bool:
    """Whether its value belongs to single bodies, which are parts of aggregates."""
    return bool({expr.range, expr.domain} & {BODY, INBOARD, PLACE})
