"""The named quantities of a tree: one table of expressions.

Each entry is a function of the Jacobian, J or rot_W J: it holds in the axes of the nodes and in
those of the world. What runs is what `lw.derive` makes of it.

*Kinematics*, in the words of document 002 where it has any: V is the velocity of every body at its
frame, V⁺ = E_φ* V what it would be with the hinge held, ΔV = H* v what the hinge adds. to_W takes
each to the origin and the axes of the world, where it is called inertially referenced.

*Momenta* are computed at the bodies on the ground, which gather all others: (φ x)(root) is the sum
over the tree, and to_W⁻* refers it to the origin of the world. In those rows φ M φ* is φ R, since
R φ~* takes from parents and there are none.

*FD1 to FD4* are the algorithms of JPL 88-11, Part I. They run as written: nothing is derived. In
its notation Φ L = φ K and Ψ L = ψ K. Its f(0) pushes outwards; here f acts on the mechanism.
D = H P H* + N in all of them, with the armature N of the mechanism.

*Innovations*: with 𝓜 = l l*, l = (I + H φ K) s, D = s s*, the diagonal velocity is ν = l* v. Its
rate needs that of the factors. As seen from outside only M and H depend on time, Ṁ = B_V + B_V* and
Ḣ* = A_V; φ is constant. The Riccati equation P = E_ψ P E_ψ* + K N K* + M then has the rate

    Ṗ = E_ψ Ṗ E_ψ* + Ṁ - E_ψ P A_V K* - K A_V* P E_ψ*,             a Lyapunov recursion,
    Ḋ = H Ṗ H* + A_V* P H* + H P A_V,
    D K̇* = (H Ṗ + A_V* P) E_ψ* - H P A_V K*,

without the change of the gain G in the first line: P is stationary in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from linkwise import algebra
from linkwise.algebra import (
    A_V,
    B_V,
    X_B,
    B,
    E_phi,
    H,
    J,
    M,
    N,
    R,
    V,
    X,
    a,
    a_g,
    b,
    bias,
    f,
    mass,
    phi,
    phi_tilde,
    role,
    rot_W,
    tau,
    to_W,
    v,
    vdot,
    weight,
)
from linkwise.algebra.expr import Expr, symbol
from linkwise.algebra.space import BODY, JOINT
from linkwise.algebra.symbols import Delta_phi, articulated as F, vector
from linkwise.errors import ModelError, unknown_name

Frame: TypeAlias = Literal["node", "world"]
"""Axes of velocities and forces of nodes; the point is the node's origin in both."""

NODE_AXES: Frame = "node"
"""The default: as the same string it is recognised without a comparison."""

FRAMES = ("node", "world")

x = vector("x", JOINT)
"""Any vector over the degrees of freedom."""

w = vector("w", JOINT)
"""A second velocity of the joints, beside v."""

x_body = vector("x", BODY)
"""Any stacked vector over the bodies, to be scattered or gathered."""


def pushing(J: Expr) -> Expr:
    """B f: the effect of external forces on the bodies; B rot_W* f if they are in world axes."""
    return B @ f if algebra.J is J else B @ rot_W.T @ f


def _to_nodes(J: Expr) -> Expr:
    """From motions of bodies to those of nodes: B*, or rot_W B* in world axes."""
    return B.T if algebra.J is J else rot_W @ B.T


def _less(force: Expr, push: Expr | None) -> Expr:
    return force if push is None else force - push


def _bias_free(push: Expr | None) -> Expr:
    return tau - H @ phi @ (M @ phi.T @ a + _less(b, push))


def fd1(push: Expr | None = None) -> Expr:
    """T′ = τ − H φ (M φ* a + b − B f), v̇ = (I − H ψ K)* D⁻¹ (I − H ψ K) T′   (4.17), (4.18)."""
    return F.whitening.T @ F.D.inv @ F.whitening @ _bias_free(push)


def fd2(push: Expr | None = None) -> Expr:
    """λ = ψ* H* ν with ν = D⁻¹ (I − H ψ K) T′, v̇ = ν − K* λ   (5.5), (4.22b).

    FD2 adds α = λ + φ* a (5.6): `body_accelerations` and `node_acceleration`.
    """
    nu = F.D.inv @ F.whitening @ _bias_free(push)
    return nu - F.K.T @ F.psi.T @ H.T @ nu


def fd3(push: Expr | None = None) -> Expr:
    """ζ = φ* a, ε = τ − H ψ (K τ + M ζ + b − B f), v̇ = (I − H ψ K)* D⁻¹ ε   (5.8) to (5.10)."""
    z = F.psi @ (F.K @ tau + M @ phi.T @ a + _less(b, push))
    return F.whitening.T @ F.D.inv @ (tau - H @ z)


def fd4(push: Expr | None = None) -> Expr:
    """z = ψ (K τ + b − B f) + ψ̃ P a, ν = D⁻¹ (τ − H z), then (5.15) without a sweep for ζ.

    λ = ψ* (H* ν + (I − G H)* a), v̇ = ν − K* λ − G* a   (5.14), (5.15).
    """
    z = F.psi @ (F.K @ tau + _less(b, push)) + F.psi_tilde @ F.P @ a
    nu = F.D.inv @ (tau - H @ z)
    return nu - F.K.T @ F.psi.T @ (H.T @ nu + F.Pi_bar.T @ a) - F.G.T @ a


def _acceleration(push: Expr | None = None) -> Expr:
    """v̇ = 𝓜⁻¹ (τ − C + H φ B f)."""
    return mass.inv @ (tau - bias if push is None else tau - bias + H @ phi @ push)


def _hinge_forces(push: Expr | None = None, motion: Expr | None = None) -> Expr:
    """φ (M α + b − B f): the force on each body through its hinge, α = φ* (H* v̇ + a)."""
    motion = _acceleration(push) if motion is None else motion
    return phi @ (M @ phi.T @ (H.T @ motion + a) + _less(b, push))


def _body_accelerations(motion: Expr) -> Expr:
    return phi.T @ (H.T @ motion + a - a_g)


def articulated_inertia_rate() -> Expr:
    """Ṗ as seen from outside, in the axes of the bodies."""
    lost = F.E_psi @ F.P @ A_V @ F.K.T
    key = role.Lyapunov(F.E_psi, F.E_psi, B_V + B_V.T - lost - lost.T)
    return symbol("Ṗ", F.P.range, F.P.range, key, "P_dot", r"\dot{P}")


def hinge_inertia_rate() -> Expr:
    """Ḋ."""
    return H @ articulated_inertia_rate() @ H.T + A_V.T @ F.P @ H.T + H @ F.P @ A_V


def diagonal_coriolis_force() -> Expr:
    """g = (I - H ψ K) C - D ((I + H φ K)*)˙ v - ½ Ḋ (I + H φ K)* v, without gravity.

    The first term is H ψ (b + M φ* A_V v), the second has K̇* V + K* φ* A_V v, with D K* = H P E_φ*.
    """
    P_dot = articulated_inertia_rate()
    whitened = H @ F.psi @ (b + M @ phi.T @ A_V @ v)
    gain_rate = (H @ P_dot + A_V.T @ F.P) @ F.E_psi.T @ V - H @ F.P @ A_V @ F.K.T @ V
    carried = H @ F.P @ E_phi.T @ phi.T @ A_V @ v
    colored = v + F.K.T @ V
    return whitened - gain_rate - carried - 0.5 * (hinge_inertia_rate() @ colored)


METHODS: dict[str, Callable[..., Expr]] = {"FD1": fd1, "FD2": fd2, "FD3": fd3, "FD4": fd4}
"""Forward dynamics by name, as functions of what pushes the bodies."""

_coriolis = H @ phi @ (M @ phi.T @ A_V + B_V @ phi.T @ H.T)
_coriolis_force = H @ phi @ (M @ phi.T @ (a - a_g) + b)

QUANTITIES: dict[str, Callable[[Expr], Expr]] = {
    # Dynamics.
    "forward_dynamics": lambda J: mass.inv @ (tau - bias),
    "forward_dynamics_with_forces": lambda J: mass.inv @ (tau - bias + J.T @ f),
    "inverse_dynamics": lambda J: mass @ vdot + bias,
    "inverse_dynamics_with_forces": lambda J: mass @ vdot + bias - J.T @ f,
    **{name: lambda J, method=method: method() for name, method in METHODS.items()},
    **{
        f"{name}_with_forces": lambda J, method=method: method(pushing(J))
        for name, method in METHODS.items()
    },
    "tip_force_correction": lambda J: mass.inv @ J.T @ f,
    "bias_force": lambda J: bias,
    "gravity_force": lambda J: H @ phi @ M @ phi.T @ a_g,
    "coriolis_force": lambda J: _coriolis_force,
    "coriolis_matrix": lambda J: _coriolis,
    "coriolis_product": lambda J: _coriolis @ w,
    "two_velocity_dynamics": lambda J: (
        mass @ vdot + H @ phi @ (M @ phi.T @ (A_V @ w + a_g) + B_V @ phi.T @ H.T @ w)
    ),
    "equivalent_force": lambda J: J.T @ f,
    "compensating_force": lambda J: -(J.T @ f),
    "kinetic_energy": lambda J: 0.5 * (V.T @ M @ V) + 0.5 * (v.T @ N @ v),
    "potential_energy": lambda J: weight.T @ X,
    "hinge_forces": lambda J: _hinge_forces(),
    "hinge_forces_with_forces": lambda J: _hinge_forces(pushing(J)),
    "hinge_forces_of_motion": lambda J: _hinge_forces(motion=vdot),
    "hinge_forces_of_motion_with_forces": lambda J: _hinge_forces(pushing(J), vdot),
    # Kinematics.
    "body_poses": lambda J: X,
    "node_poses": lambda J: X_B,
    "jacobian": lambda J: J,
    "jacobian_bias": lambda J: _to_nodes(J) @ phi.T @ A_V @ v,
    "jacobian_dot_part": lambda J: _to_nodes(J) @ phi.T @ A_V,
    "jacobian_gram_of_rows": lambda J: J @ J.T,
    "jacobian_gram_of_columns": lambda J: J.T @ J,
    "node_velocity": lambda J: J @ v,
    "node_acceleration": lambda J: _to_nodes(J) @ _body_accelerations(vdot),
    "node_acceleration_of_forces": lambda J: _to_nodes(J) @ _body_accelerations(_acceleration()),
    "node_acceleration_of_forces_with_forces": lambda J: (
        _to_nodes(J) @ _body_accelerations(_acceleration(pushing(J)))
    ),
    "body_accelerations": lambda J: _body_accelerations(vdot),
    "body_accelerations_of_forces": lambda J: _body_accelerations(_acceleration()),
    "body_accelerations_of_forces_with_forces": lambda J: _body_accelerations(
        _acceleration(pushing(J))
    ),
    "body_velocities": lambda J: V,
    "inboard_velocities": lambda J: E_phi.T @ V,
    "hinge_velocities": lambda J: H.T @ v,
    "body_velocities_about_world": lambda J: to_W @ V,
    "inboard_velocities_about_world": lambda J: to_W @ E_phi.T @ V,
    "hinge_velocities_about_world": lambda J: to_W @ H.T @ v,
    "scatter": lambda J: phi.T @ x_body,
    "gather": lambda J: phi @ x_body,
    "strict_scatter": lambda J: phi_tilde.T @ x_body,
    "strict_gather": lambda J: phi_tilde @ x_body,
    "articulated_scatter": lambda J: F.psi.T @ x_body,
    "articulated_gather": lambda J: F.psi @ x_body,
    "strict_articulated_scatter": lambda J: F.psi_tilde.T @ x_body,
    "strict_articulated_gather": lambda J: F.psi_tilde @ x_body,
    # Inertia and momentum.
    "mass_matrix": lambda J: mass,
    "mass_matrix_inverse": lambda J: mass.inv,
    "mass_matrix_inverse_product": lambda J: mass.inv @ x,
    "operational_inertia": lambda J: (J @ mass.inv @ J.T).inv,
    "operational_inertia_inverse": lambda J: J @ mass.inv @ J.T,
    "composite_inertias": lambda J: R,
    "articulated_inertias": lambda J: F.P,
    "articulated_inertias_inboard": lambda J: F.P_plus,
    "inertia_in_world": lambda J: to_W.inv.T @ R @ to_W.inv,
    "momentum": lambda J: to_W.inv.T @ phi @ M @ V,
    "momentum_matrix": lambda J: to_W.inv.T @ phi @ R @ H.T,
    "momentum_bias": lambda J: to_W.inv.T @ phi @ (M @ phi.T @ (a - a_g) + b),
    # Innovations and the diagonalised equations of motion.
    "hinge_inertia": lambda J: F.D,
    "hinge_inertia_rate": lambda J: hinge_inertia_rate(),
    "kalman_gain": lambda J: F.G,
    "shifted_gain": lambda J: Delta_phi @ F.G,
    "articulated_shift": lambda J: Delta_phi @ F.Pi_bar,
    "coloring": lambda J: F.coloring,
    "whitening": lambda J: F.whitening,
    "whitened_force": lambda J: F.whitening @ x,
    "colored_force": lambda J: F.coloring @ x,
    "colored_velocity": lambda J: F.coloring.T @ x,
    "whitened_velocity": lambda J: F.whitening.T @ x,
    "whitened_jacobian": lambda J: F.whitening @ J.T,
    "diagonal_coriolis_force": lambda J: diagonal_coriolis_force(),
}
"""Each as a function of the Jacobian, J or rot_W J."""

AS_WRITTEN = frozenset(f"{name}{forces}" for name in METHODS for forces in ("", "_with_forces"))
"""Algorithms that carry the name of a paper: they run as written."""

AS_BLOCKS = frozenset(
    {
        *("composite_inertias", "articulated_inertias", "articulated_inertias_inboard"),
        *("hinge_inertia", "hinge_inertia_rate", "inertia_in_world"),
        *("kalman_gain", "shifted_gain", "articulated_shift"),
    }
)
"""Those that give blocks, (n_bodies, rows, columns), not a matrix."""

AT_ROOTS = frozenset({"momentum", "momentum_matrix", "momentum_bias", "inertia_in_world"})
"""Those of which only the rows of bodies on the ground are computed."""

OF_TREES = frozenset(
    f"{name}{forces}"
    for name in (
        *("forward_dynamics", *METHODS, "tip_force_correction"),
        *("body_accelerations_of_forces", "node_acceleration_of_forces", "hinge_forces"),
        *("operational_inertia", "operational_inertia_inverse"),
    )
    for forces in ("", "_with_forces")
)
"""Those that loops and couplings change: no kernel of them is made while these are in place."""


def check_frame(frame: object, what: str = "frame") -> None:
    """Raise unless it is "node" or "world"."""
    if not isinstance(frame, str) or frame not in FRAMES:
        raise ModelError(f"{what} is {frame!r}; it must be 'node' or 'world'.")


def expression(name: str, *, frame: Frame = "node") -> Expr:
    """The expression of a quantity.

    Args:
        name: A key of `QUANTITIES`.
        frame: Axes of velocities and forces of nodes: rot_W J instead of J for "world".
    """
    if name not in QUANTITIES:
        raise unknown_name("quantity", name, QUANTITIES, owner="linkwise.dynamics")
    check_frame(frame)
    return QUANTITIES[name](J if frame == "node" else rot_W @ J)
