"""Factors of small matrices of numbers or graph nodes: inverses and least squares.

The inverse of a positive definite matrix is kept as its factors, (L Δ L*)⁻¹.

An inverse written out loses as many digits as the matrix has condition, and P⁺ = P - P H* D⁻¹ H P,
where nearly everything may cancel, shows it. With Y = L⁻¹ H P it is P - Y* Δ⁻¹ Y, which does not.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.sweeps.sparse import is_zero, times

Matrix = Any
"""An array of numbers, or of dtype object: numbers and graph nodes mixed."""


@dataclass(frozen=True, slots=True, eq=False)
class Factored:
    """A⁻¹ of A = L Δ L*, without square roots; with `free`, U (U A U + 1 - U)⁻¹ U."""

    lower: Matrix  # L, with ones on its diagonal (n, n)
    pivots: list[Any]  # the diagonal of Δ (n,)
    reciprocal: list[Any]  # that of Δ⁻¹ (n,)
    # the diagonal of U (n,), 1 where the hinge is free and 0 where it is locked, or None
    free: Matrix | None = None

    __array_ufunc__ = None  # NumPy arrays leave products with it to this class

    @property
    def T(self) -> Factored:
        """The adjoint: itself."""
        return self

    def half(self, x: Matrix) -> Matrix:
        """Y = L⁻¹ U x, for x (n, m)."""
        y: Any = x
        if not isinstance(x, np.ndarray):  # another block that keeps its structure
            y = np.eye(len(self.pivots), dtype=object) @ x
        y = y.astype(np.result_type(y, self.lower))
        y = y if self.free is None else self.free[:, None] * y
        for i in range(len(self.pivots)):
            for j in range(i):
                if not is_zero(self.lower[i, j]):
                    y[i] = y[i] - self.lower[i, j] * y[j]
        return y

    def congruence(self, x: Matrix) -> Matrix:
        """x* A⁻¹ x = Y* Δ⁻¹ Y, for x (n, m)."""
        y = self.half(x)
        return times(y.T, self._scaled(y))

    def __matmul__(self, x: Matrix) -> Matrix:
        y = self._scaled(self.half(x))
        if y.dtype == object:
            self._substitute_back(y)
        else:
            for i in reversed(range(len(self.pivots))):
                for j in range(i + 1, len(self.pivots)):
                    y[i] = y[i] - self.lower[j, i] * y[j]
        return y if self.free is None else self.free[:, None] * y

    def _substitute_back(self, y: Matrix) -> None:
        """y = L⁻* y of graph nodes, where L may have the zeros of a tree.

        Row i follows from the rows above it: the j > i with L(j, i) ≠ 0. Where a column of y is
        zero from row i up to row t, it follows from the rows above t alone, which are fewer:
        y(i) = Σ W(i, t)(j) y(j). These weights pay where more columns have use for them than there
        are rows above t.
        """
        n, filled = len(self.pivots), ~np.vectorize(is_zero, otypes=[bool])(y)
        above = [[j for j in range(i + 1, n) if not is_zero(self.lower[j, i])] for i in range(n)]
        tree = all(not rows or rows[1:] == above[rows[0]] for rows in above)
        top, uses = np.full(y.shape, -1), Counter[tuple[int, int]]()
        for i in reversed(range(n)):
            for c in range(y.shape[1]):
                if tree and not filled[i, c]:
                    t = top[above[i][0], c] if above[i] else -1
                    top[i, c] = i if t < 0 else t
                    uses[i, int(top[i, c])] += 1
        weights = dict[tuple[int, int], dict[int, Any]]()
        for i in reversed(range(n)):
            direct = {j: -self.lower[j, i] for j in above[i]}
            for t in {int(x) for x in top[i] if x not in (-1, i)}:
                if uses[i, t] > len(above[t]):
                    weights[i, t] = self._weights(direct, t, above[t], weights)
            for c in range(y.shape[1]):
                rows = weights.get((i, int(top[i, c])), direct)
                for j, w in reversed(rows.items()):  # last what was computed last
                    y[i, c] = y[i, c] + w * y[j, c]

    def _weights(
        self,
        direct: dict[int, Any],
        t: int,
        above: list[int],
        weights: dict[tuple[int, int], dict[int, Any]],
    ) -> dict[int, Any]:
        """W(i, t): what y(i) takes from the rows above t, where all from i up to t are zero."""
        out = {j: direct[j] for j in above}
        for s, w in direct.items():
            if s not in out:
                inner = weights.get((s, t)) or {j: -self.lower[j, s] for j in above}
                for j in above:
                    out[j] = out[j] + w * inner[j]
        return out

    def __rmatmul__(self, x: Matrix) -> Matrix:
        return (self @ x.T).T

    def __rmul__(self, number: float) -> Matrix:
        return number * self.matrix

    @property
    def matrix(self) -> Matrix:
        """A⁻¹ written out (n, n)."""
        return self.congruence(np.eye(len(self.pivots), dtype=self.lower.dtype))

    def _scaled(self, y: Matrix) -> Matrix:
        out = y.copy()
        for i, r in enumerate(self.reciprocal):
            out[i] = r * y[i]
        return out


def factored(matrix: Matrix, free: Matrix | None = None) -> Factored:
    """The inverse of a positive definite matrix (n, n), as factors.

    Args:
        matrix: The matrix; only its lower half is read.
        free: For a hinge that is locked in some directions: 1 where free, 0 where locked (n,).

    Raises:
        ZeroDivisionError: A pivot is zero in every state.
    """
    if free is not None:
        matrix = free[:, None] * matrix * free[None, :] + np.diag(1.0 - free)
    n = len(matrix)
    lower, scaled = np.eye(n, dtype=matrix.dtype), np.eye(n, dtype=matrix.dtype)  # L and L Δ
    pivots, reciprocal = list[Any](), list[Any]()
    for j in range(n):
        d = matrix[j, j]
        for k in range(j):
            d = d - lower[j, k] * scaled[j, k]
        if isinstance(d, float | int) and d == 0.0:
            raise ZeroDivisionError("the matrix is singular in every state")
        pivots.append(d)
        reciprocal.append(1.0 / d)
        for i in range(j + 1, n):
            e = matrix[i, j]
            for k in range(j):
                e = e - lower[i, k] * scaled[j, k]
            scaled[i, j], lower[i, j] = e, e * reciprocal[j]
    return Factored(lower, pivots, reciprocal, free)


@dataclass(frozen=True, slots=True, eq=False)
class Orthogonal:
    """The factors of A (m, n), of full column rank."""

    columns: list[Matrix]  # the columns of Q, each (m,)
    upper: Matrix  # U, with ones on its diagonal (n, n)
    pivots: list[Any]  # the diagonal of Δ: squares of the lengths of Q's columns
    reciprocal: list[Any]  # that of Δ⁻¹

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
