"""Diagonalised equations of motion: ν̇ + c(q, ν) = ε, with an inertia of ones.

The innovations factorisation 𝓜 = (I + H φ K) D (I + H φ K)* makes l = (I + H φ K) D^½ a triangular
root of the mass matrix, 𝓜 = l l*, and its inverse D^(-½) (I - H ψ K) is at hand. So, with

    ν = l* v = D^½ (I + H φ K)* v            residuals, the diagonal velocities
    ε = l⁻¹ τ = D^(-½) (I - H ψ K) τ         innovations, the diagonal forces

the kinetic energy is ½ ν* ν, the power ν* ε, and each entry of ν has an inertia of one. What
couples them is c(q, ν) = l⁻¹ C - (l*)˙ v, quadratic in ν, which does no work: ν* c = 0.

D^½ is the upper triangular root s of each block, D = s s*; plain square roots for hinges of one
freedom. ν has no coordinates it is the rate of: q goes on with v = l⁻* ν.

Source: 000 section 6 (Rodriguez 1989a). Departs: gravity is kept apart from c and enters as a
force, `innovations(mech, q, tau - gravity_force(mech, q))`; D^½ is not symmetric for hinges of
several freedoms; armature is part of D.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.dynamics.hinge_root import HingeRoot, root_of
from linkwise.dynamics.kernels import Status, check_mechanism, written
from linkwise.dynamics.loops import Loops, require_open
from linkwise.dynamics.quantity import expression
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


def diagonal_velocity(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Joint velocities in the coordinates that make the kinetic energy ½ ν* ν.

    Expression:
        ν = D^½* (I + H φ K)* v,   the residuals of 000
    with the armature of the mechanism in D and K. In O(n).

    Args:
        mech: The mechanism; loops and couplings are left open.

    Returns:
        ν (nv,) or (batch, nv) [√(kg) m/s].
    """
    found = written(mech, DIAGONAL_VELOCITY)
    if out is status is threads is None:
        return found(q, v)
    return found(q, v, out=out, status=status, threads=threads)


def velocity_from_diagonal(
    mech: Mechanism,
    q: ArrayLike,
    nu: ArrayLike,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Joint velocities from diagonal ones: the inverse of `diagonal_velocity`.

    Expression:
        v = (I - H ψ K)* D^(-½)* ν

    Args:
        mech: The mechanism; loops and couplings are left open.
        nu: Diagonal velocities (nv,) or (batch, nv) [√(kg) m/s].

    Returns:
        v (nv,) or (batch, nv) [m/s or rad/s].
    """
    found = written(mech, FROM_DIAGONAL)
    if out is status is threads is None:
        return found(q, nu)
    return found(q, nu, out=out, status=status, threads=threads)


def innovations(
    mech: Mechanism,
    q: ArrayLike,
    tau: ArrayLike,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Joint forces in the coordinates of the diagonal velocities: the power is ν* ε.

    Expression:
        ε = D^(-½) (I - H ψ K) τ

    Args:
        mech: The mechanism; loops and couplings are left open.

    Returns:
        ε (nv,) or (batch, nv) [√(kg) m/s²].
    """
    found = written(mech, INNOVATIONS)
    if out is status is threads is None:
        return found(q, tau)
    return found(q, tau, out=out, status=status, threads=threads)


def force_from_innovations(
    mech: Mechanism,
    q: ArrayLike,
    eps: ArrayLike,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Joint forces from innovations: the inverse of `innovations`.

    Expression:
        τ = (I + H φ K) D^½ ε

    Args:
        mech: The mechanism; loops and couplings are left open.
        eps: Innovations (nv,) or (batch, nv) [√(kg) m/s²].

    Returns:
        τ (nv,) or (batch, nv) [N or N m].
    """
    found = written(mech, FROM_INNOVATIONS)
    if out is status is threads is None:
        return found(q, eps)
    return found(q, eps, out=out, status=status, threads=threads)


def diagonal_coriolis(
    mech: Mechanism,
    q: ArrayLike,
    nu: ArrayLike,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """What couples diagonal velocities: c of ν̇ + c(q, ν) = ε, without gravity.

    Expression:
        c = l⁻¹ C - (l*)˙ v,   l = (I + H φ K) s,   D = s s*
          = s⁻¹ [ H ψ (b + M φ* A_V v) - D ((I + H φ K)*)˙ v - ½ Ḋ (I + H φ K)* v ] + ½ (T - T*) ν
    with T = s⁻¹ ṡ, so that the last term is there for hinges of several freedoms only. The rates
    are those of the Riccati recursion, by a Lyapunov recursion: two passes, O(n), exact.

    It is quadratic in ν and does no work: ν* c = 0.

    Args:
        mech: The mechanism; loops and couplings are left open.
        nu: Diagonal velocities (nv,) or (batch, nv) [√(kg) m/s].

    Returns:
        c (nv,) or (batch, nv) [√(kg) m/s²].
    """
    found = written(mech, DIAGONAL_CORIOLIS)
    if out is status is threads is None:
        return found(q, nu)
    return found(q, nu, out=out, status=status, threads=threads)


def diagonal_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    nu: ArrayLike,
    tau: ArrayLike,
    *,
    loops: Loops = "closed",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """The rate of the diagonal velocities, gravity included.

    Expression:
        ν̇ = D^(-½) (I - H ψ K) (τ - τ_g) - c(q, ν),   τ_g = H φ M φ* a_g

    Args:
        mech: The mechanism. Diagonal velocities belong to a tree: with loops or couplings this
            raises, unless they are left open.
        nu: Diagonal velocities (nv,) or (batch, nv) [√(kg) m/s].
        loops: "open" leaves loops and couplings open; "closed" refuses mechanisms with any.

    Returns:
        ν̇ (nv,) or (batch, nv) [√(kg) m/s²].
    """
    check_mechanism(mech)
    require_open(mech, loops, "lw.papers.diagonal_dynamics", "lw.forward_dynamics holds them.")
    found = written(mech, DIAGONAL_DYNAMICS)
    if out is status is threads is None:
        return found(q, nu, tau)
    return found(q, nu, tau, out=out, status=status, threads=threads)


def _diagonal_velocity(at: Writing) -> Any:
    root, v = root_of(at), at.v
    return root.star_times(at.value(expression("colored_velocity"), x=v))


def _from_diagonal(at: Writing) -> Any:
    root, nu = root_of(at), at.read("nu", at.mech.nv)
    return at.value(expression("whitened_velocity"), x=root.star_solved(nu))


def _innovations(at: Writing) -> Any:
    root, tau = root_of(at), at.read("tau", at.mech.nv)
    return root.solved(at.value(expression("whitened_force"), x=tau))


def _from_innovations(at: Writing) -> Any:
    root, eps = root_of(at), at.read("eps", at.mech.nv)
    return at.value(expression("colored_force"), x=root.times(eps))


def _diagonal_coriolis(at: Writing) -> Any:
    return _coupling(at, root_of(at), at.read("nu", at.mech.nv))


def _diagonal_dynamics(at: Writing) -> Any:
    root, nu, tau = root_of(at), at.read("nu", at.mech.nv), at.read("tau", at.mech.nv)
    force = tau - at.value(expression("gravity_force"))
    whitened = at.value(expression("whitened_force"), x=force)
    return root.solved(whitened) - _coupling(at, root, nu)


def _coupling(at: Writing, root: HingeRoot, nu: Any) -> Any:
    """c of ν: g in the axes of the root, and ½ (T − T*) ν where T + T* = s⁻¹ Ḋ s⁻*."""
    v = at.value(expression("whitened_velocity"), x=root.star_solved(nu))
    found = root.solved(at.value(expression("diagonal_coriolis_force"), v=v))
    if all(len(s) < 2 for _, s in root.blocks):
        return found
    rate = at.value(expression("hinge_inertia_rate"), blocks=True, v=v)
    both = root.both_solved(rate)
    for (place, s), x in zip(root.blocks, both, strict=True):
        if len(s) > 1:
            found[place] = found[place] + 0.5 * ((np.triu(x, 1) - np.tril(x, -1)) @ nu[place])
    return found


DIAGONAL_VELOCITY = Formula(_diagonal_velocity)
FROM_DIAGONAL = Formula(_from_diagonal)
INNOVATIONS = Formula(_innovations)
FROM_INNOVATIONS = Formula(_from_innovations)
DIAGONAL_CORIOLIS = Formula(_diagonal_coriolis)
DIAGONAL_DYNAMICS = Formula(_diagonal_dynamics)
