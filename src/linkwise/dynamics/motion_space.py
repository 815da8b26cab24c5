"""Motions that exist in a state, their inertia, and those that are lost, in words.

With orthonormal U that span the range of J, and A the whitened Jacobian, A A* = J 𝓜⁻¹ J*,

    Λ = U (U* J 𝓜⁻¹ J* U)⁻¹ U* = U (R* R)⁻¹ U*,      A* U = Q R:

nothing is squared before it is inverted, so that near a singularity half as many digits are lost
as by (A A*)⁻¹.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.scalar.orthogonal import (
    orthonormal,
    part_of_largest,
    singular,
    solved_below,
    triangular,
)
from linkwise.spatial.array import Array
from linkwise.spatial.choice import gate, maximum, where

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


ALIGNED = 1e-3
"""Largest angle to an axis [rad] at which a direction is called by the axis's name."""

_KINDS = ("turn about", "move along")


class Motions(NamedTuple):
    """Of one state, in a formula.

    Attributes:
        inertia: Λ (m, m), zero along directions without motion.
        rank: Number of independent motions.
        basis: Orthonormal columns (m, m), the motions that exist first.
        singular_values: Of the scaled Jacobian (m,), the largest first.
        condition: Largest inertia over smallest of the motions that exist, scaled.
        exists: 1 for columns of the basis that are motions, 0 for others (m,).
    """

    inertia: Any
    rank: Any
    basis: Any
    singular_values: Any
    condition: Any
    exists: Any


def motions(
    at: Writing, J: Any, A: Any, scale: Any, tolerance: Any, floor: Any, opened: Any = None
) -> Motions:
    """The motions that exist, for one state.

    Lost directions are carried along as zeros, so that the code is the same for all ranks: the
    basis is D⁻¹ times left singular vectors that exist, D times those that are lost, D the scale.

    Args:
        at: The formula.
        J: Rows (m, n) of the motions.
        A: The same, whitened (m, n): A A* = J 𝓜⁻¹ J*.
        scale: D, factors that make the rows of J comparable (m,), lengths for rows that turn.
        tolerance: Singular values of the scaled J below this part of the largest count as zero.
        floor: So do those below this.
        opened: D J (m, n) before anything was held, which has the largest of all; J by default.
    """
    span, values = singular(at, scale[:, None] * J)
    if opened is None:
        least = maximum(tolerance * values[0], floor)
    else:
        least = maximum(part_of_largest(at, opened, tolerance, values), floor)
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
    R = triangular(at.shortened(A).T @ basis, exists)  # A* U = Q R
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
