"""Motions that exist in a state, and their inertia, from rows of a Jacobian.

With orthonormal U that span the range of J, and A the whitened Jacobian, A A* = J 𝓜⁻¹ J*,

    Λ = U (U* J 𝓜⁻¹ J* U)⁻¹ U* = U (R* R)⁻¹ U*,      A* U = Q R:

nothing is squared before it is inverted, so that half of the digits more are left near a
singularity than (A A*)⁻¹ would have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.scalar.orthogonal import orthonormal, singular, solved_below, triangular
from linkwise.spatial.array import Array
from linkwise.spatial.choice import gate, maximum, where

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


class Motions(NamedTuple):
    """`MotionSpace` of one state, in a formula; which motions exist are zeros and ones (m,)."""

    inertia: Any
    rank: Any
    basis: Any
    singular_values: Any
    condition: Any
    exists: Any


@dataclass(frozen=True, slots=True)
class MotionSpace:
    """Of a batch of states.

    Attributes:
        inertia: Λ (batch, m, m), zero for what is not a motion.
        rank: How many independent motions there are (batch,).
        basis: Orthonormal columns (batch, m, m), the motions that exist first.
        singular_values: Of the scaled Jacobian (batch, m), the largest first.
        condition: Largest inertia over smallest of the motions that exist, scaled (batch,).
    """

    inertia: Array
    rank: NDArray[np.int64]
    basis: Array
    singular_values: Array
    condition: Array

    def spread(self, fine: NDArray[np.bool_]) -> MotionSpace:
        """Among all states, of which these are fine; NaN and rank 0 for the others."""
        ranks = np.zeros(len(fine), dtype=np.int64)
        ranks[fine] = self.rank
        parts = (self.inertia, self.basis, self.singular_values, self.condition)
        inertia, basis, values, condition = (_spread(x, fine) for x in parts)
        return MotionSpace(inertia, ranks, basis, values, condition)


def motion_space(
    J: Array, A: Array, scale: Array, tolerance: float, floor: float | Array = 0.0
) -> MotionSpace:
    """The motions that exist.

    Args:
        J: Jacobians (batch, m, n).
        A: The same, whitened (batch, m, n): A A* = J 𝓜⁻¹ J*.
        scale: What makes the rows of J comparable (m,), lengths for rows that turn.
        tolerance: Singular values of the scaled J below this part of the largest are called zero.
        floor: So are those below this, for all or for each (batch, 1).
    """
    size = J.shape[1]
    span, values = left_singular(J * scale[:, None])
    rank = (values > np.maximum(tolerance * values[:, :1], floor)).sum(axis=1)
    inertia, basis = np.zeros((2, len(J), size, size))
    condition = np.ones(len(J))
    for r in np.unique(rank):  # states of one rank together
        rows = np.flatnonzero(rank == r)
        motions = np.linalg.qr(span[rows, :, :r] / scale[:, None])[0]
        basis[rows, :, :r] = motions
        basis[rows, :, r:] = np.linalg.qr(span[rows, :, r:] * scale[:, None])[0]
        if r == 0:
            continue
        R = np.linalg.qr(np.swapaxes(A[rows], 1, 2) @ motions)[1]  # A* U = Q R
        root = np.linalg.solve(np.swapaxes(R, 1, 2), np.swapaxes(motions, 1, 2))  # R⁻* U*
        inertia[rows] = np.swapaxes(root, 1, 2) @ root
        turned = np.swapaxes(motions, 1, 2) @ (span[rows, :, :r] * scale[:, None])
        wide = np.linalg.svd(R @ turned, compute_uv=False)
        condition[rows] = (wide[:, 0] / wide[:, -1]) ** 2
    return MotionSpace(inertia, rank, basis, values, condition)


def motions(at: Writing, J: Any, A: Any, scale: Any, tolerance: Any, floor: Any) -> Motions:
    """The same in array code, for one state: see `motion_space`.

    Directions that are lost are carried along as zeros, so that all ranks are one code: the basis
    is D⁻¹ times left singular vectors that exist, D times those that are lost, D the scale.
    """
    span, values = singular(at, scale[:, None] * J)
    least = maximum(tolerance * values[0], floor)
    exists = np.array([gate(value - least, 1.0) for value in values])
    one, other = span / scale[:, None], span * scale[:, None]
    basis = orthonormal(
        np.array(
            [
                where(e, 1.0, 0.0) * x + where(e, 0.0, 1.0) * y
                for e, x, y in zip(exists, one.T, other.T, strict=True)
            ]
        ).T
    )
    R = triangular(A.T @ basis, exists)  # A* U = Q R
    root = solved_below(R, exists[:, None] * basis.T)  # R⁻* U*
    # D⁻¹ span = U T⁻*: the singular values of R T, scaled inertias, are those of its inverse
    _, wide = singular(at, exists[:, None] * (root @ (one * exists)).T, vectors=False)
    rank = sum(exists[1:], exists[0])
    last = sum(
        (gate(e - after, w) for e, after, w in zip(exists, [*exists[1:], 0.0], wide, strict=True)),
        0.0,
    )
    ratio = wide[0] / where(rank, last, 1.0)
    condition = where(rank, ratio * ratio, 1.0)
    return Motions(root.T @ root, rank, basis, values, condition, exists)


def left_singular(J: Array) -> tuple[Array, Array]:
    """All left singular vectors (..., m, m) and values (..., m) of matrices (..., m, n).

    By the triangle of J* first: n may be large.
    """
    batch, m, n = J.shape
    R = np.linalg.qr(np.swapaxes(J, 1, 2))[1]
    padded = np.zeros((batch, m, m))
    padded[:, : min(m, n)] = R
    span, values, _ = np.linalg.svd(np.swapaxes(padded, 1, 2))
    return span, values


def _spread(values: Array, fine: NDArray[np.bool_]) -> Array:
    """The values of the states that are fine among all, NaN for the others."""
    out = np.full((len(fine), *values.shape[1:]), np.nan)
    out[fine] = values
    return out
