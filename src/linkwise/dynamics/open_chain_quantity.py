"""The expressions of forward dynamics by name, of accelerations, hinge forces and inertias.

FD1 to FD4 are the algorithms of JPL 88-11, Part I, and run as they are written here: nothing is
derived. In its notation Φ L = φ K and Ψ L = ψ K; its f(0) pushes outwards, here f acts on the
mechanism. D = H P H* + N in all of them, with the armature N of the mechanism.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise import algebra
from linkwise.algebra import B, H, M, R, a, a_g, b, bias, f, mass, phi, rot_W, tau, vdot
from linkwise.algebra.expr import Expr
from linkwise.algebra.family import Family
from linkwise.algebra.space import JOINT
from linkwise.algebra.symbols import Delta_phi, articulated, vector

x = vector("x", JOINT)
"""Any vector over the freedoms."""


def pushing(J: Expr) -> Expr:
    """B f: what outside forces do to the bodies; B rot_W* f if they are in world axes."""
    return B @ f if algebra.J is J else B @ rot_W.T @ f


def picked(J: Expr) -> Expr:
    """What takes motions of bodies to nodes: B*, or rot_W B* in world axes."""
    return B.T if algebra.J is J else rot_W @ B.T


def fd1(push: Expr | None = None) -> Expr:
    """T′ = τ − H φ (M φ* a + b − B f), v̇ = (I − H ψ K)* D⁻¹ (I − H ψ K) T′   (4.17), (4.18)."""
    F = articulated
    return F.whitening.T @ F.D.inv @ F.whitening @ _bias_free(push)


def fd2(push: Expr | None = None) -> Expr:
    """λ = ψ* H* ν with ν = D⁻¹ (I − H ψ K) T′, v̇ = ν − K* λ   (5.5), (4.22b).

    What is new in FD2 is α = λ + φ* a (5.6): `body_accelerations` and `node_acceleration`.
    """
    F = articulated
    nu = F.D.inv @ F.whitening @ _bias_free(push)
    return nu - F.K.T @ F.psi.T @ H.T @ nu


def fd3(push: Expr | None = None) -> Expr:
    """ζ = φ* a, ε = τ − H ψ (K τ + M ζ + b − B f), v̇ = (I − H ψ K)* D⁻¹ ε   (5.8) to (5.10)."""
    F = articulated
    return F.whitening.T @ F.D.inv @ (tau - H @ _filtered(F, push))


def fd4(push: Expr | None = None) -> Expr:
    """z = ψ (K τ + b − B f) + ψ̃ P a, ν = D⁻¹ (τ − H z), then (5.15) without a sweep for ζ.

    λ = ψ* (H* ν + (I − G H)* a), v̇ = ν − K* λ − G* a   (5.14), (5.15).
    """
    F = articulated
    z = F.psi @ (F.K @ tau + _less(b, push)) + F.psi_tilde @ F.P @ a
    nu = F.D.inv @ (tau - H @ z)
    return nu - F.K.T @ F.psi.T @ (H.T @ nu + F.Pi_bar.T @ a) - F.G.T @ a


def _bias_free(push: Expr | None) -> Expr:
    return tau - H @ phi @ (M @ phi.T @ a + _less(b, push))


def _filtered(F: Family, push: Expr | None) -> Expr:
    return F.psi @ (F.K @ tau + M @ phi.T @ a + _less(b, push))


def _less(force: Expr, push: Expr | None) -> Expr:
    return force if push is None else force - push


def _acceleration(push: Expr | None = None) -> Expr:
    """v̇ = 𝓜⁻¹ (τ − C + H φ B f)."""
    return mass.inv @ (tau - bias if push is None else tau - bias + H @ phi @ push)


def hinge_forces(push: Expr | None = None, motion: Expr | None = None) -> Expr:
    """φ (M α + b − B f): the force on each body through its hinge, α = φ* (H* v̇ + a)."""
    motion = _acceleration(push) if motion is None else motion
    return phi @ (M @ phi.T @ (H.T @ motion + a) + _less(b, push))


def _link_accelerations(push: Expr | None = None) -> Expr:
    return phi.T @ (H.T @ _acceleration(push) + a - a_g)


METHODS: dict[str, Callable[..., Expr]] = {"FD1": fd1, "FD2": fd2, "FD3": fd3, "FD4": fd4}
"""Forward dynamics by name, as functions of what pushes the bodies."""

OPEN_CHAIN: dict[str, Callable[[Expr], Expr]] = {
    **{name: lambda J, method=method: method() for name, method in METHODS.items()},
    **{
        f"{name}_with_forces": lambda J, method=method: method(pushing(J))
        for name, method in METHODS.items()
    },
    "mass_matrix_inverse_product": lambda J: mass.inv @ x,
    "tip_force_correction": lambda J: mass.inv @ J.T @ f,
    "body_accelerations": lambda J: phi.T @ (H.T @ vdot + a - a_g),
    "body_accelerations_of_forces": lambda J: _link_accelerations(),
    "body_accelerations_of_forces_with_forces": lambda J: _link_accelerations(pushing(J)),
    "node_acceleration": lambda J: picked(J) @ phi.T @ (H.T @ vdot + a - a_g),
    "node_acceleration_of_forces": lambda J: picked(J) @ _link_accelerations(),
    "node_acceleration_of_forces_with_forces": lambda J: (
        picked(J) @ _link_accelerations(pushing(J))
    ),
    "hinge_forces": lambda J: hinge_forces(),
    "hinge_forces_with_forces": lambda J: hinge_forces(pushing(J)),
    "hinge_forces_of_motion": lambda J: hinge_forces(motion=vdot),
    "hinge_forces_of_motion_with_forces": lambda J: hinge_forces(pushing(J), vdot),
    "composite_inertias": lambda J: R,
    "articulated_inertias": lambda J: articulated.P,
    "articulated_inertias_inboard": lambda J: articulated.P_plus,
    "hinge_inertia": lambda J: articulated.D,
    "kalman_gain": lambda J: articulated.G,
    "shifted_gain": lambda J: Delta_phi @ articulated.G,
    "articulated_shift": lambda J: Delta_phi @ articulated.Pi_bar,
    "coloring": lambda J: articulated.coloring,
    "whitening": lambda J: articulated.whitening,
}
"""Each as a function of the Jacobian, J or rot_W J."""

AS_WRITTEN = frozenset(f"{name}{forces}" for name in METHODS for forces in ("", "_with_forces"))
"""Algorithms that carry the name of a paper: they run as they stand."""

AS_BLOCKS = frozenset(
    {
        *("composite_inertias", "articulated_inertias", "articulated_inertias_inboard"),
        *("hinge_inertia", "hinge_inertia_rate"),
        *("kalman_gain", "shifted_gain", "articulated_shift"),
    }
)
"""Those of which the blocks are wanted, (n_bodies, rows, columns), not the matrix."""

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
