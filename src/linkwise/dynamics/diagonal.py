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

import numpy as np

from linkwise.dynamics.codes import Codes
from linkwise.dynamics.hinge_root import HingeBlocks, hinge_blocks, hinge_root
from linkwise.dynamics.kernels import Status, check_mechanism, kernel, put
from linkwise.dynamics.loops import Loops, require_open
from linkwise.errors import ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats


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
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        ν (nv,) or (batch, nv) [√(kg) m/s].
    """
    v, q, codes = _vector(mech, q, v, "v"), _array(q), Codes(status, q, v)
    root = hinge_root(mech, q, codes)
    colored = codes.run(kernel(mech, "colored_velocity"), q, v, threads=threads)
    return put(codes.told(root.star_times(colored)), out)


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
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        nu: Diagonal velocities (nv,) or (batch, nv) [√(kg) m/s].
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        v (nv,) or (batch, nv) [m/s or rad/s].
    """
    nu, q, codes = _vector(mech, q, nu, "nu"), _array(q), Codes(status, q, nu)
    colored = hinge_root(mech, q, codes).inverse().star_times(nu)
    found = kernel(mech, "whitened_velocity")
    return codes.told(codes.run(found, q, colored, out=out, threads=threads))


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
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        tau: Joint forces (nv,) or (batch, nv) [N or N m].
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        ε (nv,) or (batch, nv) [√(kg) m/s²].
    """
    tau, q, codes = _vector(mech, q, tau, "tau"), _array(q), Codes(status, q, tau)
    inverse = hinge_root(mech, q, codes).inverse()
    whitened = codes.run(kernel(mech, "whitened_force"), q, tau, threads=threads)
    return put(codes.told(inverse.times(whitened)), out)


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
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        eps: Innovations (nv,) or (batch, nv) [√(kg) m/s²].
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        τ (nv,) or (batch, nv) [N or N m].
    """
    eps, q, codes = _vector(mech, q, eps, "eps"), _array(q), Codes(status, q, eps)
    rooted = hinge_root(mech, q, codes).times(eps)
    found = kernel(mech, "colored_force")
    return codes.told(codes.run(found, q, rooted, out=out, threads=threads))


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
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        nu: Diagonal velocities (nv,) or (batch, nv) [√(kg) m/s].
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        c (nv,) or (batch, nv) [√(kg) m/s²].
    """
    nu, q = _vector(mech, q, nu, "nu"), _array(q)
    codes = Codes(status, q, nu)
    inverse = hinge_root(mech, q, codes).inverse()
    return put(codes.told(_coriolis(mech, q, nu, inverse, codes, threads)), out)


def _coriolis(
    mech: Mechanism,
    q: Array,
    nu: Array,
    inverse: HingeBlocks,
    codes: Codes,
    threads: int | None,
) -> Array:
    """c, with s⁻¹ given."""
    colored = inverse.star_times(nu)
    v = codes.run(kernel(mech, "whitened_velocity"), q, colored, threads=threads)
    told = np.zeros(v.shape[:-1], dtype=np.int32)  # the call before has told what there is to tell
    force = kernel(mech, "diagonal_coriolis_force")(q, v, status=told, threads=threads)
    found = inverse.times(force)
    if any(place.shape[1] > 1 for place in inverse.places):
        rate = hinge_blocks(mech, "hinge_inertia_rate", codes, q, v)
        for place, root, rates in zip(inverse.places, inverse.values, rate.values, strict=True):
            if place.shape[1] > 1:
                both = root @ rates @ np.swapaxes(root, -1, -2)  # T + T*, T upper triangular
                skew = np.triu(both, 1) - np.tril(both, -1)
                found[..., place] += 0.5 * (skew @ nu[..., place][..., None])[..., 0]
    return found


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
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        nu: Diagonal velocities (nv,) or (batch, nv) [√(kg) m/s].
        tau: Joint forces (nv,) or (batch, nv) [N or N m].
        loops: "open" leaves loops and couplings open; "closed" refuses mechanisms with any.
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        ν̇ (nv,) or (batch, nv) [√(kg) m/s²].
    """
    check_mechanism(mech)
    require_open(mech, loops, "lw.diagonal_dynamics", "lw.forward_dynamics holds them.")
    nu, tau, q = _vector(mech, q, nu, "nu"), _vector(mech, q, tau, "tau"), _array(q)
    codes = Codes(status, q, nu, tau)
    inverse = hinge_root(mech, q, codes).inverse()
    c = _coriolis(mech, q, nu, inverse, codes, threads)
    # Gravity asks more of q than c does: which way is down.
    force = tau - codes.run(kernel(mech, "gravity_force"), q, threads=threads)
    whitened = codes.run(kernel(mech, "whitened_force"), q, force, threads=threads)
    return put(codes.told(inverse.times(whitened) - c), out)


def _vector(mech: Mechanism, q: ArrayLike, value: ArrayLike, name: str) -> Array:
    """A vector over the freedoms (nv,) or (batch, nv) that fits q; a single state is finite."""
    check_mechanism(mech)
    array, rows = floats(value, name), _array(q).shape[:-1]
    if array.ndim not in (1, 2) or array.shape[-1] != mech.nv:
        raise ShapeError(
            f"{name} has shape {array.shape}; it must be ({mech.nv},) or (batch, {mech.nv})."
        )
    if array.ndim == 2 and len(rows) == 1 and 1 != len(array) != rows[0] != 1:
        raise ShapeError(f"{name} has {len(array)} rows; q has {rows[0]}.")
    return mech.check_v(array, name) if array.ndim == 1 else array


def _array(q: ArrayLike) -> Array:
    return floats(q, "q")
