"""The mass matrix and its inverse."""

from __future__ import annotations

from linkwise.dynamics.kernels import Status, named
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike


def mass_matrix(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """The mass matrix: kinetic energy is ½ v* 𝓜 v.

    Expression:
        𝓜 = H φ M φ* H* + N,   `mass`, with the armature N of the mechanism.

    Args:
        mech: The mechanism; loops and couplings are left open.

    Returns:
        The whole symmetric matrix (nv, nv), or (batch, nv, nv).
    """
    found = named(mech, "mass_matrix")
    if out is status is threads is None:
        return found(q)
    return found(q, out=out, status=status, threads=threads)


def mass_matrix_inverse(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """The inverse of the mass matrix, without the mass matrix.

    Expression:
        𝓜⁻¹ = (I − H ψ K)* D⁻¹ (I − H ψ K),   `mass.inv`, with the armature in D.
    Source: 000 Lemma 4.3.

    To apply it to a vector, `mass_matrix_inverse_product` is cheaper: O(n) instead of O(n²).

    Args:
        mech: The mechanism; loops and couplings are left open.

    Returns:
        The whole symmetric matrix (nv, nv), or (batch, nv, nv).

    Raises:
        SingularHingeError: Nothing resists the hinge of some body, which is named.
    """
    found = named(mech, "mass_matrix_inverse")
    if out is status is threads is None:
        return found(q)
    return found(q, out=out, status=status, threads=threads)


def mass_matrix_inverse_product(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    x: ArrayLike,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """The inverse of the mass matrix times a vector, without either matrix.

    Expression:
        𝓜⁻¹ x,   `mass.inv @ x`, with the armature of the mechanism in 𝓜.
    Derived form, 2 passes, O(n):
        (I - H ψ K)* D⁻¹ (I - H ψ K) x
    Source: 000 Lemma 4.3.

    Args:
        mech: The mechanism; loops and couplings are left open.
        x: Joint forces, or what is to be treated as such, (nv,) or (batch, nv) [N or N m].

    Returns:
        (nv,) or (batch, nv): the accelerations that x causes at rest and without gravity.

    Raises:
        SingularHingeError: Nothing resists the hinge of some body, which is named.
    """
    name = "mass_matrix_inverse_product"
    found = named(mech, name)
    if out is status is threads is None:
        return found(q, x)
    return found(q, x, out=out, status=status, threads=threads)
