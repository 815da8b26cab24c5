"""What an iteration expands its first knot to."""

import numpy as np

from linkwise.control.solver import Iteration
from linkwise.spatial.array import Array


def expansion(it: Iteration) -> list[Array]:
    """F, G, W and g of the first knot."""
    expand, done = it.calls[0][0]
    expand()
    row, (_, recursion) = done.records[0, 0, it.nx :], it.program.knot
    W = row[len(row) - recursion.k * recursion.wide :].reshape(recursion.k, -1)
    parts = [np.array(x.of(row), float) if x.entries else W for x in recursion.layout[:4]]
    return [*parts[:2], W[:, : it.n + it.m], parts[3]]
