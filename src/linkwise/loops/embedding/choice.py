"""Which velocities of an aggregate are independent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.errors import ClosureError
from linkwise.spatial.array import Array

CLEAR = 0.1
"""A velocity follows from the loops if at least this part of what it does to them is its own."""

ROUNDING = 1e-9
"""Singular values below this part of the largest count as zero."""


def dependent(G: Array, free: Sequence[int], may_follow: Sequence[int], what: str) -> list[int]:
    """The columns of G that shall follow from all others, so that G w = 0.

    Those of hinges far from the base are taken first, as long as each is clearly independent of
    those taken before; then the ones that are most so.

    Args:
        G: What the loops ask of the velocities (rows, n).
        free: Columns that matter.
        may_follow: Those of them that may be chosen.
        what: Whose they are, for a message.
    """
    rank = _rank(G[:, list(free)])
    largest = max((float(np.linalg.norm(G[:, j])) for j in free), default=0.0)
    chosen, left = list[int](), np.array(G, dtype=np.float64)
    for j in reversed(may_follow):
        size = float(np.linalg.norm(left[:, j]))
        own = float(np.linalg.norm(G[:, j]))
        if len(chosen) < rank and size > CLEAR * max(own, CLEAR * largest):
            _take(chosen, left, j)
    while len(chosen) < rank:
        sizes = [float(np.linalg.norm(left[:, j])) for j in may_follow]
        best = int(np.argmax(sizes)) if sizes else -1
        if best < 0 or sizes[best] <= ROUNDING * largest:
            raise ClosureError(
                f"{what} have {len(free) - rank} independent velocities at this configuration, and "
                "those that were named do not determine the others. Name others, or fewer."
            )
        _take(chosen, left, may_follow[best])
    return sorted(chosen)


def _take(chosen: list[int], left: Array, j: int) -> None:
    """Column j is chosen; what it does is taken out of all others."""
    unit = left[:, j] / np.linalg.norm(left[:, j])
    left -= np.outer(unit, unit @ left)
    left[:, j] = 0.0
    chosen.append(j)


def _rank(G: Array) -> int:
    if not G.size:
        return 0
    values = np.linalg.svd(G, compute_uv=False)
    return int((values > ROUNDING * values[0]).sum()) if values[0] > 0.0 else 0
