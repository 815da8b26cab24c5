"""Innovations: the factors of the mass matrix, and the equations of motion they make diagonal.

The innovations factorisation 𝓜 = (I + H φ K) D (I + H φ K)* makes l = (I + H φ K) D^½ a triangular
root of the mass matrix, 𝓜 = l l*, with the inverse D^(-½) (I - H ψ K). With

    ν = l* v = D^½ (I + H φ K)* v            residuals, the diagonal velocities
    ε = l⁻¹ τ = D^(-½) (I - H ψ K) τ         innovations, the diagonal forces

the kinetic energy is ½ ν* ν, the power ν* ε, and each entry of ν has an inertia of one. In
ν̇ + c(q, ν) = ε they are coupled by c = l⁻¹ C - (l*)˙ v, quadratic in ν and without work: ν* c = 0.

D^½ is the upper triangular root s of each block, D = s s*; a plain square root for hinges with one
degree of freedom. ν is not the rate of any coordinates: q changes with v = l⁻* ν.

Source: 000 section 6 (Rodriguez 1989a). Departs: gravity is kept apart from c and enters as a
force, `innovations(mech, q, tau - gravity_force(mech, q))`; D^½ is not symmetric for hinges of
several degrees of freedom; armature is part of D.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.dynamics.kernels import (
    Loops,
    Options,
    check_mechanism,
    named,
    require_open,
    written,
)
from linkwise.dynamics.mass_matrix import articulated_inertias, log_det_mass_matrix
from linkwise.dynamics.mass_root import HingeRoot, root_of
from linkwise.dynamics.quantity import expression
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


@dataclass(frozen=True, eq=False)
class InnovationsFactors:
    """The factors of the mass matrix in one state or a batch, each computed when first read.

    𝓜 = (I + H φ K) D (I + H φ K)* and 𝓜⁻¹ = (I − H ψ K)* D⁻¹ (I − H ψ K), with
    D = H P H* + N and the armature N of the mechanism.

    Attributes:
        mech: The mechanism.
        q: The joint positions (nq,) or (batch, nq).
    """

    mech: Mechanism
    q: Array

    @cached_property
    def D(self) -> tuple[Array, ...]:
        """H P H* (+ N) of each body (..., nv_k, nv_k), the inertia that its hinge feels."""
        columns = self._columns("hinge_inertia")
        return tuple(x[..., : x.shape[-1], :] for x in columns)

    @cached_property
    def G(self) -> tuple[Array, ...]:
        """P H* D⁻¹ of each body (..., 6, nv_k), the Kalman gain."""
        return self._columns("kalman_gain")

    @cached_property
    def K(self) -> tuple[Array, ...]:
        """φ(p, k) G(k) of each body (..., 6, nv_k), in the frame of its parent p.

        A body on the ground has one too; it is not part of the operator K.
        """
        return self._columns("shifted_gain")

    @cached_property
    def psi(self) -> Array:
        """ψ(p, k) = φ(p, k) (I − G(k) H(k)) of each body (..., n_bodies, 6, 6).

        It takes a force to the parent p, the hinge giving way.
        """
        return named(self.mech, "articulated_shift")(self.q)

    @cached_property
    def P(self) -> Array:
        """Articulated inertias (..., n_bodies, 6, 6)."""
        return articulated_inertias(self.mech, self.q)

    @cached_property
    def P_plus(self) -> Array:
        """The same on the inboard side of the hinges (..., n_bodies, 6, 6)."""
        return articulated_inertias(self.mech, self.q, inboard=True)

    @cached_property
    def coloring(self) -> Array:
        """I + H φ K (..., nv, nv), which makes forces of innovations.

        It is upper triangular by blocks, since bodies are stored base first.
        """
        return named(self.mech, "coloring")(self.q)

    @cached_property
    def whitening(self) -> Array:
        """I − H ψ K (..., nv, nv), the inverse of `coloring`, which makes innovations of forces."""
        return named(self.mech, "whitening")(self.q)

    @property
    def log_det(self) -> Any:
        """Σ log det D(k), the logarithm of the determinant of the mass matrix."""
        return log_det_mass_matrix(self.mech, self.q)

    def _columns(self, name: str) -> tuple[Array, ...]:
        blocks = named(self.mech, name)(self.q)
        return tuple(blocks[..., k, :, : b.hinge.nv] for k, b in enumerate(self.mech.bodies))


def innovations_factors(mech: Mechanism, q: ArrayLike) -> InnovationsFactors:
    """The factors of the mass matrix and of its inverse: D, G, K, ψ, I + H φ K and I − H ψ K.

    Source: 000 Lemmas 4.1 to 4.3; JPL 88-11 (4.4) to (4.16), with Φ L = φ K and Ψ L = ψ K.

    Returns:
        An object that computes each factor when it is first read.
    """
    check_mechanism(mech)
    return InnovationsFactors(mech, np.array(mech.check_q(q)))


def diagonal_velocity(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, **options: Unpack[Options]
) -> Array:
    """Joint velocities in the coordinates that make the kinetic energy ½ ν* ν.

    Expression:
        ν = D^½* (I + H φ K)* v,   the residuals of 000
    with the armature of the mechanism in D and K. In O(n).

    Returns:
        ν (nv,) or (batch, nv) [√(kg) m/s].
    """
    return written(mech, DIAGONAL_VELOCITY)(q, v, **options)


def velocity_from_diagonal(
    mech: Mechanism, q: ArrayLike, nu: ArrayLike, **options: Unpack[Options]
) -> Array:
    """Joint velocities from diagonal ones: the inverse of `diagonal_velocity`.

    Expression:
        v = (I - H ψ K)* D^(-½)* ν

    Args:
        nu: Diagonal velocities (nv,) or (batch, nv) [√(kg) m/s].

    Returns:
        v (nv,) or (batch, nv) [m/s or rad/s].
    """
    return written(mech, FROM_DIAGONAL)(q, nu, **options)


def innovations(mech: Mechanism, q: ArrayLike, tau: ArrayLike, **options: Unpack[Options]) -> Array:
    """Joint forces in the coordinates of the diagonal velocities: the power is ν* ε.

    Expression:
        ε = D^(-½) (I - H ψ K) τ

    Returns:
        ε (nv,) or (batch, nv) [√(kg) m/s²].
    """
    return written(mech, INNOVATIONS)(q, tau, **options)


def force_from_innovations(
    mech: Mechanism, q: ArrayLike, eps: ArrayLike, **options: Unpack[Options]
) -> Array:
    """Joint forces from innovations: the inverse of `innovations`.

    Expression:
        τ = (I + H φ K) D^½ ε

    Args:
        eps: Innovations (nv,) or (batch, nv) [√(kg) m/s²].

    Returns:
        τ (nv,) or (batch, nv) [N or N m].
    """
    return written(mech, FROM_INNOVATIONS)(q, eps, **options)


def diagonal_coriolis(
    mech: Mechanism, q: ArrayLike, nu: ArrayLike, **options: Unpack[Options]
) -> Array:
    """The coupling of diagonal velocities: c of ν̇ + c(q, ν) = ε, without gravity.

    Expression:
        c = l⁻¹ C - (l*)˙ v,   l = (I + H φ K) s,   D = s s*
          = s⁻¹ [ H ψ (b + M φ* A_V v) - D ((I + H φ K)*)˙ v - ½ Ḋ (I + H φ K)* v ] + ½ (T - T*) ν
    with T = s⁻¹ ṡ, so that the last term is there only for hinges of several degrees of freedom.
    The rates are those of the Riccati recursion, by a Lyapunov recursion: two passes, O(n), exact.

    It is quadratic in ν and does no work: ν* c = 0.

    Args:
        nu: Diagonal velocities (nv,) or (batch, nv) [√(kg) m/s].

    Returns:
        c (nv,) or (batch, nv) [√(kg) m/s²].
    """
    return written(mech, DIAGONAL_CORIOLIS)(q, nu, **options)


def diagonal_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    nu: ArrayLike,
    tau: ArrayLike,
    *,
    loops: Loops = "closed",
    **options: Unpack[Options],
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
    return written(mech, DIAGONAL_DYNAMICS)(q, nu, tau, **options)


# ------------------------------------------------------------------------------------- formulas


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
    c = root.solved(at.value(expression("diagonal_coriolis_force"), v=v))
    if all(len(s) < 2 for _, s in root.blocks):
        return c
    rate = at.value(expression("hinge_inertia_rate"), blocks=True, v=v)
    both = root.both_solved(rate)
    for (place, s), x in zip(root.blocks, both, strict=True):
        if len(s) > 1:
            c[place] = c[place] + 0.5 * ((np.triu(x, 1) - np.tril(x, -1)) @ nu[place])
    return c


DIAGONAL_VELOCITY = Formula(_diagonal_velocity)
FROM_DIAGONAL = Formula(_from_diagonal)
INNOVATIONS = Formula(_innovations)
FROM_INNOVATIONS = Formula(_from_innovations)
DIAGONAL_CORIOLIS = Formula(_diagonal_coriolis)
DIAGONAL_DYNAMICS = Formula(_diagonal_dynamics)
