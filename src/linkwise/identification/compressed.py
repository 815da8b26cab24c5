"""Least squares with weights of joints, from the triangles of each joint.

    [W_j  y_j] = Q_j [R_j  z_j]     so that   |y_j − W_j b|² = |z_j − R_j b|²                  (1)
                     [ 0   ρ_j]                                + ρ_j²

for the rows of joint j at all samples. One factorisation of each, without the columns that are
zero there (those of bodies that the joint does not move), serves all rounds: weights σ_j scale the
triangles, which are as short as there are unknowns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from linkwise.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False)
class Triangles:
    """The triangles (1), with columns of W divided by their lengths.

    Attributes:
        R: Of each joint, behind one another (rows, count + 1, count).
        z: The right sides (rows, count + 1); ρ_j is the last.
        scale: Lengths of the columns of W (count,).
    """

    R: Array
    z: Array
    scale: Array

    @classmethod
    def of(cls, W: Array, y: Array, known: Array) -> Triangles:
        """The triangles of (samples, rows, count) equations; those that are not known are zero."""
        rows, count = W.shape[1:]
        R, z = np.zeros((rows, count + 1, count)), np.zeros((rows, count + 1))
        every = bool(known.all())
        for j in range(rows):
            part, right = W[:, j], y[:, j]
            if not every:
                use = known[:, j] > 0.0
                part, right = part[use], right[use]
            some = np.flatnonzero(part.any(axis=0))
            both = np.empty((len(part), len(some) + 1))
            both[:, :-1], both[:, -1] = part[:, some], right
            triangle = cast("Array", np.linalg.qr(both, mode="r"))
            size = len(triangle)  # as many as samples, or one more than columns
            R[j, :size, some] = triangle[:, :-1].T
            z[j, :size] = triangle[:, -1]
        scale = np.sqrt((R**2).sum(axis=(0, 1)))
        return cls(R / np.where(scale > 0.0, scale, 1.0), z, scale)

    def solved(self, deviation: Array) -> tuple[Array, Array]:
        """The b of least Σ_j |y_j − W_j b|² / σ_j², times `scale`; and the triangle of all rows."""
        weighted = self.R / deviation[:, None, None]
        Q, R = np.linalg.qr(weighted.reshape(-1, len(self.scale)))
        factor = np.asarray(R, dtype=np.float64)
        right = Q.T @ (self.z / deviation[:, None]).ravel()
        return np.asarray(np.linalg.solve(factor, cast("Any", right)), dtype=np.float64), factor

    def squares(self, x: Array) -> Array:
        """|y_j − W_j b|² of each joint (rows,)."""
        return ((self.z - self.R @ x) ** 2).sum(axis=1)


def settled(
    triangles: Triangles, deviations: Callable[[Array], Array], rounds: int
) -> tuple[Array, Array, Array]:
    """b times `scale`, the triangle, and σ, which are those that `deviations` makes of squares."""
    deviation = np.ones(len(triangles.z))
    x, factor = triangles.solved(deviation)
    for _ in range(rounds - 1):
        deviation = deviations(triangles.squares(x))
        before, (x, factor) = x, triangles.solved(deviation)
        if np.abs(x - before).max() <= 1e-9 * np.abs(x).max():
            break
    return x, factor, deviation
