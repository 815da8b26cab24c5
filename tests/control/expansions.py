"""What an iteration expands its first knot to."""

import numpy as np

from linkwise.control.solver import Iteration
from linkwise.control.velocity_recursion import VelocityRecursion
from linkwise.spatial.array import Array


def expansion(it: Iteration) -> list[Array]:
    """F, G, W and g of the first knot."""
    expand, done = it.calls[0][0]
    expand()
    row, (_, recursion) = done.records[0, 0, it.nx :], it.program.knot
    W = row[len(row) - recursion.k * recursion.wide :].reshape(recursion.k, -1)
    parts = [np.array(x.of(row), float) if x.entries else W for x in recursion.layout[:4]]
    W = W[:, : it.n + it.m]
    if isinstance(recursion, VelocityRecursion):  # it is D, of δτ = D (δx, δv')
        W = np.linalg.solve(W[:, it.n :], np.concatenate([-W[:, : it.n], np.eye(it.m)], axis=1))
    return [*parts[:2], W, parts[3]]
