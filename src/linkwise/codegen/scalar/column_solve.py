"""Linear systems inside a graph whose columns may be done side by side.

A graph has each number of A⁻¹ B as a separate node. That many columns are solved with the same
factors L Δ L* is written beside it, so that code for one state can take several columns at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns X = ±A⁻¹ B of one matrix, rows in the order of elimination."""

    right: Any  # nodes of B (n, m), -1 for zeros
    result: Any  # nodes of X (n, m), -1 for zeros
    sign: float  # of X


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSolve:
    """Matrices that are solved with the same factors."""

    lower: dict[tuple[int, int], int]  # nodes of L below its diagonal
    reciprocal: tuple[int, ...]  # nodes of Δ⁻¹
    matrices: tuple[Columns, ...]

    def placed(self, outputs: Sequence[int]) -> list[tuple[int, int]] | None:
        """For each matrix where X(0, 0) is among the outputs, and the distance of its rows.

        None unless all entries of all of them are where these two say. Zeros may be anything.
        """
        at, places = np.array(outputs), list[tuple[int, int]]()
        for matrix in self.matrices:
            if not (matrix.result >= 0).any():
                return None  # nothing but zeros, or nothing at all
            n, m = matrix.result.shape
            rows, columns = np.nonzero(matrix.result >= 0)
            values = matrix.result[rows, columns]
            place = self._place(at, rows, columns, values, (n, m))
            if place is None:
                return None
            places.append(place)
        return places

    @staticmethod
    def _place(
        at: Any, rows: Any, columns: Any, values: Any, shape: tuple[int, int]
    ) -> tuple[int, int] | None:
        n, m = shape
        for first in np.flatnonzero(at == values[0]).tolist():
            for stride in (m, -m, 2 * m, -2 * m):
                start = first - int(rows[0]) * stride - int(columns[0])
                places = start + rows * stride + columns
                if min(start, start + (n - 1) * stride) < 0 or places.max() >= len(at):
                    continue
                if (at[places] == values).all():
                    return start, stride
        return None
