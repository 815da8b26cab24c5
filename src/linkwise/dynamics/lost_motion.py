"""Motions that nodes cannot have, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from linkwise.spatial.array import Array

ALIGNED = 1e-3
"""How far from an axis [rad] a direction may be and still be called by its name."""

_KINDS = ("turn about", "move along")


def lost_in_words(lost: Array, nodes: Sequence[str], axes: Sequence[str]) -> list[str]:
    """What nodes cannot do: along axes by name, the rest by components or by number.

    Args:
        lost: Orthonormal columns (6 k, r), (angular, linear) for each node.
        nodes: Names of the k nodes.
        axes: Whose axes they are, for each node: "the world".
    """
    told = list[str]()
    whole = (lost**2).sum(axis=1) > 1.0 - ALIGNED**2  # axes that lie in the lost space
    for i, name in enumerate(nodes):
        for kind, what in enumerate(_KINDS):
            gone = whole[6 * i + 3 * kind : 6 * i + 3 * kind + 3]
            if gone.any():
                letters = " and ".join("xyz"[j] for j in np.flatnonzero(gone))
                told.append(f"{name!r} cannot {what} {letters} of {axes[i]}")
    rest = lost.shape[1] - int(whole.sum())
    if rest:
        told.append(_oblique(lost, whole, rest, nodes, axes))
    return told


def _oblique(
    lost: Array, whole: NDArray[np.bool_], rest: int, nodes: Sequence[str], axes: Sequence[str]
) -> str:
    """What is lost besides whole axes."""
    inside = lost @ lost.T * ~whole * ~whole[:, None]
    found = np.linalg.eigh(inside)[1][:, -1].reshape(-1, 2, 3)  # node, turning or moving
    sizes = np.linalg.norm(found, axis=-1)
    i, kind = divmod(int(np.argmax(sizes)), 2)
    if rest == 1 and sizes[i, kind] > 1.0 - ALIGNED**2:
        axis = found[i, kind] * np.sign(found[i, kind][np.argmax(np.abs(found[i, kind]))])
        parts = ", ".join(f"{part:.3g}" for part in np.where(np.abs(axis) < ALIGNED, 0.0, axis))
        return f"{nodes[i]!r} cannot {_KINDS[kind]} ({parts}) of {axes[i]}"
    shares = np.diag(inside).reshape(-1, 2, 3).sum(axis=-1)
    i, kind = divmod(int(np.argmax(shares)), 2)
    if shares[i, kind] > rest - ALIGNED**2:  # all in one node, all turning or all moving
        return f"{nodes[i]!r} cannot {_KINDS[kind]} {rest} directions oblique to {axes[i]}"
    return f"{rest} combination{'s' * (rest > 1)} of turning and moving cannot be had"
