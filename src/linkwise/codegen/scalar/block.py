"""Blocks with their structure: a rigid shift is a rotation and an offset, not 36 numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.sweeps.aggregate_shift import AggregateShift

Objects = Any
"""An array of dtype object: numbers and graph nodes mixed."""


def columns_crossed(p: Objects, x: Objects) -> Objects:
    """p × each column of x (3, m)."""
    return np.stack(
        [p[1] * x[2] - p[2] * x[1], p[2] * x[0] - p[0] * x[2], p[0] * x[1] - p[1] * x[0]]
    )


@dataclass(frozen=True, slots=True, eq=False)
class ShiftBlock:
    """φ = [[rot, p~ rot], [0, rot]], or its adjoint; multiplies from either side."""

    rot: Objects
    p: Objects
    star: bool = False

    __array_ufunc__ = None  # NumPy arrays leave products with it to this class

    @property
    def T(self) -> ShiftBlock:
        """The adjoint."""
        return ShiftBlock(self.rot, self.p, not self.star)

    def __matmul__(self, x: Objects) -> Objects:
        if self.star:
            back = self.rot.T
            moved = x[3:] - columns_crossed(self.p, x[:3])  # v + ω × p
            return np.concatenate([back @ x[:3], back @ moved])
        force = self.rot @ x[3:]
        return np.concatenate([self.rot @ x[:3] + columns_crossed(self.p, force), force])

    def __rmatmul__(self, x: Objects) -> Objects:
        return (self.T @ x.T).T


@dataclass(frozen=True, slots=True, eq=False)
class WorldBlock:
    """to_W = φ⁻* = [[rot, 0], [p~ rot, rot]] of a pose in the world, or its adjoint."""

    rot: Objects
    p: Objects
    star: bool = False

    __array_ufunc__ = None

    @property
    def T(self) -> WorldBlock:
        """The adjoint."""
        return WorldBlock(self.rot, self.p, not self.star)

    @property
    def inverse(self) -> ShiftBlock:
        """φ*, and φ of the adjoint."""
        return ShiftBlock(self.rot, self.p, not self.star)

    def __matmul__(self, x: Objects) -> Objects:
        if self.star:
            moment = x[:3] - columns_crossed(self.p, x[3:])
            return np.concatenate([self.rot.T @ moment, self.rot.T @ x[3:]])
        turn = self.rot @ x[:3]
        return np.concatenate([turn, self.rot @ x[3:] + columns_crossed(self.p, turn)])

    def __rmatmul__(self, x: Objects) -> Objects:
        return (self.T @ x.T).T


@dataclass(frozen=True, slots=True, eq=False)
class ArticulatedBlock:
    """ψ = φ (I - G H) or K = φ G, or an adjoint, applied factor by factor and never multiplied out.

    Attributes:
        shift: φ(p, k), or that of an aggregate.
        G: Gain at k.
        H: Hinge map at k; None for K.
        star: The adjoint is meant.
    """

    shift: ShiftBlock | AggregateShift
    G: Objects
    H: Objects | None
    star: bool = False

    __array_ufunc__ = None

    @property
    def T(self) -> ArticulatedBlock:
        """The adjoint."""
        return ArticulatedBlock(self.shift, self.G, self.H, not self.star)

    def __matmul__(self, x: Objects) -> Objects:
        if self.star:
            moved = self.shift.T @ x
            gained = self.G.T @ moved
            return gained if self.H is None else moved - self.H.T @ gained
        inner = self.G @ x if self.H is None else x - self.G @ (self.H @ x)
        return self.shift @ inner

    def __rmatmul__(self, x: Objects) -> Objects:
        return (self.T @ x.T).T
