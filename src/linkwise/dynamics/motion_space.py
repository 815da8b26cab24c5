"""Motions that exist in a state, their inertia, and those that are lost, in words.

With orthonormal U that span the range of J, and A the whitened Jacobian, A A* = J 𝓜⁻¹ J*,

    Λ = U (U* J 𝓜⁻¹ J* U)⁻¹ U* = U (R* R)⁻¹ U*,      A* U = Q R:

nothing is squared before it is inverted, so that near a singularity half as many digits are lost
as by (A A*)⁻¹.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.scalar.orthogonal import orthonormal, singular, solved_below, triangular
from linkwise.spatial.array import Array
from linkwise.spatial.choice import gate, maximum, where

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


ALIGNED = 1e-3
"""Largest angle to an axis [rad] at which a direction is called by the axis's name."""

_KINDS = ("turn about", "move along")


class Motions(NamedTuple):
    """`MotionSpace` of one state, in a formula; `exists` has ones and zeros (m,)."""

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
        inertia: Λ (batch, m, m), zero along directions without motion.
        rank: Number of independent motions (batch,).
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
        """Among all states, of which these are valid; NaN and rank 0 for the others."""
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
        scale: Factors that make the rows of J comparable (m,), lengths for rows that turn.
        tolerance: Singular values of the scaled J below this part of the largest count as zero.
        floor: So do those below this, for all or for each (batch, 1).
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

    Lost directions are carried along as zeros, so that the code is the same for all ranks: the
    basis is D⁻¹ times left singular vectors that exist, D times those that are lost, D the scale.
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
    """The values of the valid states among all, NaN for the others."""
    out = np.full((len(fine), *values.shape[1:]), np.nan)
    out[fine] = values
    return out


def lost_in_words(lost: Array, nodes: Sequence[str], axes: Sequence[str]) -> list[str]:
    """The motions that nodes lack: along axes by name, the rest by components or by number.

    Args:
        lost: Orthonormal columns (6 k, r), (angular, linear) for each node.
        nodes: Names of the k nodes.
        axes: The owner of the axes, for each node: "the world".
    """
    sentences = list[str]()
    aligned = (lost**2).sum(axis=1) > 1.0 - ALIGNED**2  # axes that lie in the lost space
    for i, name in enumerate(nodes):
        for kind, what in enumerate(_KINDS):
            gone = aligned[6 * i + 3 * kind : 6 * i + 3 * kind + 3]
            if gone.any():
                letters = " and ".join("xyz"[j] for j in np.flatnonzero(gone))
                sentences.append(f"{name!r} cannot {what} {letters} of {axes[i]}")
    rest = lost.shape[1] - int(aligned.sum())
    if rest:
        sentences.append(_oblique(lost, aligned, rest, nodes, axes))
    return sentences


def _oblique(
    lost: Array, aligned: NDArray[np.bool_], rest: int, nodes: Sequence[str], axes: Sequence[str]
) -> str:
    """The lost directions that are not along axes."""
    inside = lost @ lost.T * ~aligned * ~aligned[:, None]
    vector = np.linalg.eigh(inside)[1][:, -1].reshape(-1, 2, 3)  # node, turning or moving
    sizes = np.linalg.norm(vector, axis=-1)
    i, kind = divmod(int(np.argmax(sizes)), 2)
    if rest == 1 and sizes[i, kind] > 1.0 - ALIGNED**2:
        axis = vector[i, kind] * np.sign(vector[i, kind][np.argmax(np.abs(vector[i, kind]))])
        parts = ", ".join(f"{part:.3g}" for part in np.where(np.abs(axis) < ALIGNED, 0.0, axis))
        return f"{nodes[i]!r} cannot {_KINDS[kind]} ({parts}) of {axes[i]}"
    shares = np.diag(inside).reshape(-1, 2, 3).sum(axis=-1)
    i, kind = divmod(int(np.argmax(shares)), 2)
    if shares[i, kind] > rest - ALIGNED**2:  # all in one node, all turning or all moving
        return f"{nodes[i]!r} cannot {_KINDS[kind]} {rest} directions oblique to {axes[i]}"
    return f"{rest} combination{'s' * (rest > 1)} of turning and moving cannot be had"
