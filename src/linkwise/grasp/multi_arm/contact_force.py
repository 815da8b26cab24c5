"""Contact forces from Ω f(0) = r: in all states at once, whatever the rank of Ω.

Two ways, which agree where both exist. With the blocked directions S of the contacts

    f = S* λ,   (S Ω S*) λ = S r                                                  "rows"

of size m; and with their free directions H, (b.7) of JPL 88-11-II,

    f = Π r,   Π = Ω⁻¹ − Ω⁻¹ H* (H Ω⁻¹ H*)⁻¹ H Ω⁻¹                                "projection"

which takes Ω itself to be invertible. Where S Ω S* is singular, λ is the one of least norm: what
moves nothing is left out. Motions and forces inside a redundant grasp are told from others by the
eigenvalues of S Ω S* with turning measured at a length, so that all rows are alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.grasp.multi_arm.contact import Contacts, FreeDirections
from linkwise.spatial.array import Array

TOLERANCE = 1e-12
"""Eigenvalues of Ω below this part of the largest are called zero: its rounding is about 1e-15."""


@dataclass(frozen=True, slots=True)
class Solver:
    """The inverse of symmetric positive semidefinite matrices (batch, m, m), of any rank.

    Attributes:
        matrices: What is inverted.
        inverse: The inverse, or what gives the solution of least norm.
        rank: Of each matrix (batch,).
    """

    matrices: Array
    inverse: Array
    rank: NDArray[np.int64]

    def __call__(self, right: Array) -> Array:
        """The solution (batch, m) for right sides (batch, m)."""
        return refined(self.inverse, self.matrices, right)


def refined(inverse: Array, matrices: Array, right: Array) -> Array:
    """x = A⁻¹ r, then once x + A⁻¹ (r − A x).

    An inverse that was multiplied out loses as many digits as the condition of A has, in A x = r
    itself; one step of refinement gives them back. Accelerations, which are small differences of
    large ones, have two to three digits more by it.
    """
    x = inverse @ right[..., None]
    return (x + inverse @ (right[..., None] - matrices @ x))[..., 0]


def solver(matrices: Array, scale: Array) -> Solver:
    """The inverses of symmetric matrices, after rows and columns were brought to one size.

    A Cholesky factor L decides quickly: 1/‖L⁻¹‖² is a lower bound of the least eigenvalue. Only
    where that leaves a doubt are eigenvalues computed.

    Args:
        matrices: Positive semidefinite (batch, m, m); those that are not finite get NaN, rank 0.
        scale: What each row is multiplied by (batch, m).
    """
    batch, m = matrices.shape[:2]
    inverse, rank = np.full(matrices.shape, np.nan), np.zeros(batch, dtype=np.int64)
    fine = np.isfinite(matrices).all(axis=(1, 2))
    alike = matrices * scale[:, :, None] * scale[:, None, :]
    try:
        root = np.linalg.inv(np.linalg.cholesky(alike[fine]))
        least = 1.0 / (root**2).sum(axis=(1, 2))
        largest = np.trace(alike[fine], axis1=1, axis2=2)
        sure = np.zeros(batch, dtype=np.bool_)
        sure[fine] = least > 10.0 * TOLERANCE * largest
        kept = root[sure[fine]] * scale[sure][:, None, :]
        inverse[sure], rank[sure] = np.swapaxes(kept, 1, 2) @ kept, m
        left = np.flatnonzero(fine & ~sure)
    except np.linalg.LinAlgError:  # some of them are singular
        left = np.flatnonzero(fine)
    for i in left:
        inverse[i], rank[i] = _of_least_norm(alike[i], scale[i])
    return Solver(matrices, inverse, rank)


def _of_least_norm(alike: Array, scale: Array) -> tuple[Array, int]:
    """The matrix that gives the solution x of least |x|, and the rank."""
    values, vectors = np.linalg.eigh(0.5 * (alike + alike.T))
    kept = values > TOLERANCE * max(float(values[-1]), 0.0)
    own = vectors[:, kept] / np.sqrt(values[kept])
    some = scale[:, None] * (own @ own.T) * scale
    lost = np.linalg.qr(scale[:, None] * vectors[:, ~kept])[0]  # the kernel, before scaling
    left = np.eye(len(scale)) - lost @ lost.T
    return left @ some @ left, int(kept.sum())


@dataclass(frozen=True, slots=True)
class ContactSolver:
    """f(0) = Π r and Ẇ for any right side r (batch, 6 contacts).

    Attributes:
        force: From r to f(0).
        rank: How many independent rows of contact there are (batch,).
        size: How many rows there are.
    """

    force: Callable[[Array], Array]
    rank: NDArray[np.int64]
    size: int


def by_rows(Omega: Array, at: Contacts, length: float) -> ContactSolver:
    """f = S* (S Ω S*)⁻¹ S r."""
    S = at.S
    across = np.swapaxes(S, -1, -2)
    found = solver(S @ Omega @ across, row_scale(S, length))

    def force(r: Array) -> Array:
        return (across @ found((S @ r[..., None])[..., 0])[..., None])[..., 0]

    return ContactSolver(force, found.rank, S.shape[1])


def by_projection(Omega: Array, at: Contacts, free: FreeDirections, length: float) -> ContactSolver:
    """f = Π r (b.9c), (b.9d); `by_rows` in the states where Ω is singular."""
    whole = np.broadcast_to(np.eye(Omega.shape[-1]), Omega.shape)
    found = solver(Omega, row_scale(whole, length))
    usual = found.rank == Omega.shape[-1]
    across = np.swapaxes(free.H, -1, -2)
    inside = free.H @ found.inverse @ across
    other = by_rows(Omega, at, length)
    Pi = np.full(Omega.shape, np.nan)
    if usual.any():
        gain = found.inverse[usual] @ across[usual]
        Pi[usual] = found.inverse[usual] - gain @ np.linalg.solve(
            inside[usual], np.swapaxes(gain, -1, -2)
        )

    def force(r: Array) -> Array:
        return np.where(usual[:, None], refined(Pi, Omega, r), other.force(r))  # as Π H* = 0

    return ContactSolver(force, other.rank, other.size)


def row_scale(S: Array, length: float) -> Array:
    """How far a unit turn or move along each row goes, turns measured at a length: (batch, m)."""
    squares = (S**2).reshape(*S.shape[:2], -1, 2, 3).sum(axis=(2, 4))
    return np.sqrt(length**2 * squares[..., 0] + squares[..., 1])
