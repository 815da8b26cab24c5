"""Products of matrices of graph nodes, most of whose entries are zero in every state."""

from __future__ import annotations

from typing import Any

import numpy as np

NUMBERS = (float, int)


def is_zero(x: Any) -> bool:
    """Whether an entry, a number or a graph node, is zero in every state."""
    return x == 0.0 if isinstance(x, NUMBERS) else getattr(x, "is_zero", False)


def times(a: Any, b: Any) -> Any:
    """a @ b; of graph nodes without the zeros, of which matrices over a tree are full."""
    kinds = [getattr(x, "dtype", None) for x in (a, b)]  # None of blocks that keep a structure
    if any(kind is None for kind in kinds) or object not in kinds:  # float64 equals None
        return a @ b
    out = np.full((len(a), b.shape[1]), 0.0, dtype=object)
    rows = [[(j, x) for j, x in enumerate(row) if not is_zero(x)] for row in a.tolist()]
    for c, column in enumerate(b.T.tolist()):
        entries = {j: x for j, x in enumerate(column) if not is_zero(x)}
        if not entries:
            continue
        for r, row in enumerate(rows):
            total: Any = None
            for j, x in row:
                if j in entries:
                    part = x * entries[j]
                    total = part if total is None else total + part
            if total is not None:
                out[r, c] = total
    return out
