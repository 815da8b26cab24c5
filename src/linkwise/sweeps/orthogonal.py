"""Least squares in a kernel: columns made orthogonal in sequence, without square roots.

A = Q U with U unit upper triangular and Q* Q = Δ diagonal, by the modified method of Gram and
Schmidt. The right side goes through the same steps, so that errors grow with the condition of A
and not with its square, as with normal equations; the pivots Δ are the same. Redundant rows do no
harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Matrix = Any
"""An array of numbers, or of dtype object: numbers and graph nodes mixed."""


@dataclass(frozen=True, slots=True, eq=False)
class Orthogonal:
    """The factors of A (m, n), of full column rank.

    Attributes:
        columns: The columns of Q, each (m,).
        upper: U, with ones on its diagonal (n, n).
        pivots: The diagonal of Δ: squares of the lengths of Q's columns.
        reciprocal: That of Δ⁻¹.
    """

    columns: list[Matrix]
    upper: Matrix
    pivots: list[Any]
    reciprocal: list[Any]

    def solve(self, right: Matrix) -> Matrix:
        """The x (n, c) for which A x is closest to `right` (m, c)."""
        left, rows = right, list[Matrix]()
        for q, r in zip(self.columns, self.reciprocal, strict=True):
            y = r * (q @ left)
            left = left - np.multiply.outer(q, y)
            rows.append(y)
        for i in reversed(range(len(rows))):
            for j in range(i + 1, len(rows)):
                rows[i] = rows[i] - self.upper[i, j] * rows[j]
        return np.stack(rows)


def orthogonal(matrix: Matrix) -> Orthogonal:
    """The factors of a matrix (m, n).

    Raises:
        ZeroDivisionError: A column depends on those before it in every state.
    """
    n = matrix.shape[1]
    columns: list[Matrix] = [matrix[:, j] for j in range(n)]
    upper = np.eye(n, dtype=matrix.dtype)
    pivots, reciprocal = list[Any](), list[Any]()
    for j in range(n):
        d = columns[j] @ columns[j]
        if isinstance(d, float | int) and d == 0.0:
            raise ZeroDivisionError("a column depends on those before it in every state")
        pivots.append(d)
        reciprocal.append(1.0 / d)
        for k in range(j + 1, n):
            upper[j, k] = reciprocal[j] * (columns[j] @ columns[k])
            columns[k] = columns[k] - upper[j, k] * columns[j]
    return Orthogonal(columns, upper, pivots, reciprocal)
