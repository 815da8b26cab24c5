"""Heavy paths: a tree as paths, of which at most log₂ N lie between a body and the ground.

The heavy child of a body carries most bodies. A body and its heavy child are on one path; any other
child begins a path of the next level. A chain is one path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of a tree, base first.

    Attributes:
        top: The first body of the path of each body.
        heavy: The child on the same path, or -1 at its tip.
        levels: For each level its bodies, path after path, each from its base to its tip.
    """

    top: Indices
    heavy: Indices
    levels: tuple[Indices, ...]


@once_per_mechanism
def heavy_paths(mech: Mechanism | Embedded) -> Paths:
    """The paths of a mechanism."""
    parent = [int(p) for p in mech.parent]
    n = len(parent)
    size, heavy = [1] * n, [-1] * n
    for k in reversed(range(n)):
        p = parent[k]
        if p >= 0:
            size[p] += size[k]
    for k in range(n):
        p = parent[k]
        if p >= 0 and (heavy[p] < 0 or size[k] > size[heavy[p]]):
            heavy[p] = k
    top, level = list(range(n)), [0] * n
    for k in range(n):
        p = parent[k]
        if p >= 0:
            on = heavy[p] == k
            top[k] = top[p] if on else k
            level[k] = level[p] if on else level[p] + 1
    tops, of = np.array(top, dtype=np.int64), np.array(level, dtype=np.int64)
    order = np.lexsort((np.arange(n), tops))
    levels = tuple(order[of[order] == i] for i in range(int(of.max(initial=-1)) + 1))
    return Paths(tops, np.array(heavy, dtype=np.int64), levels)
