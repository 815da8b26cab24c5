"""Coriolis and centrifugal forces: the vector, the matrix, and the matrix times a vector."""

from __future__ import annotations

from linkwise.dynamics.kernels import Status, named
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike


def coriolis_force(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Coriolis and centrifugal forces: `bias_force` without gravity.

    Expression:
        H φ (M φ* (a − a_g) + b) = C_v v,   `H @ phi @ (M @ phi.T @ (a - a_g) + b)`
    Two passes, O(n).

    Args:
        mech: The mechanism; loops and couplings are left open.

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    found = named(mech, "coriolis_force")
    if out is status is threads is None:
        return found(q, v)
    return found(q, v, out=out, status=status, threads=threads)


def coriolis_matrix(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """The Coriolis matrix C_v: C_v v is `coriolis_force`, and 𝓜̇ − 2 C_v is skew.

    Expression:
        C_v = H φ (M φ* A_V + B_V φ* H*)
    with A_V w = V × H* w + Ḣ* w and B_V the factor of the gyroscopic force,
        B_V = ½ (V ×* M − M V× + (M V)×~) = [[ω~ (J − ½ tr J) − h~ v~, 0], [−f~, 0]].

    𝓜̇ is the rate of the mass matrix while the mechanism moves with v. That it is C_v + C_v* holds
    for every hinge, also where v is no derivative of coordinates (quaternions, rolling balls): φ*
    A_V is the rate of φ* H* as seen from outside, and B_V + B_V* that of M. Where v is q̇, C_v is
    the matrix of Christoffel symbols, the only one with also C_v w = C_w v; for hinges with
    quasi-velocities C_v w − C_w v is what their frames' turning makes. Armature is constant and
    takes no part.

    Source: the factor is that of echeandia2021coriolis; Pinocchio has the same matrix.
    Departs: Ḣ is part of A_V, so hinges whose H depends on q are included.

    Args:
        mech: The mechanism; loops and couplings are left open.

    Returns:
        (nv, nv) or (batch, nv, nv).
    """
    found = named(mech, "coriolis_matrix")
    if out is status is threads is None:
        return found(q, v)
    return found(q, v, out=out, status=status, threads=threads)


def coriolis_product(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    w: ArrayLike,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """C_v w: the Coriolis matrix times another velocity, without the matrix.

    Expression:
        H φ (M φ* A_V + B_V φ* H*) w: two passes, O(n).

    What passive controllers ask for: with a reference velocity w, the force 𝓜 ẇ + C_v w + g leaves
    the energy of the error v − w to be damped, since 𝓜̇ − 2 C_v is skew (see `coriolis_matrix`).

    Args:
        mech: The mechanism; loops and couplings are left open.
        w: Others (nv,) or (batch, nv) [m/s or rad/s].

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].
    """
    found = named(mech, "coriolis_product")
    if out is status is threads is None:
        return found(q, v, w)
    return found(q, v, w, out=out, status=status, threads=threads)
