"""Blocks that keep their structure: a rigid shift is a rotation and an offset, not 36 numbers.

Each multiplies from either side with `@`, has its adjoint `T`, and is written out by `dense`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.sweeps.factored import Factored
from linkwise.sweeps.sparse import is_zero, times

Matrix = Any
"""An array of numbers, or of dtype object: numbers and graph nodes mixed."""


def columns_crossed(p: Matrix, x: Matrix) -> Matrix:
    """p × each column of x (3, m)."""
    return np.stack(
        [p[1] * x[2] - p[2] * x[1], p[2] * x[0] - p[0] * x[2], p[0] * x[1] - p[1] * x[0]]
    )


class Structured:
    """A block that is not an array."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy arrays leave products with it to this class

    @property
    def T(self) -> Any:
        """The adjoint."""
        raise NotImplementedError

    @property
    def dense(self) -> Matrix:
        """The block as an array."""
        raise NotImplementedError

    def __matmul__(self, x: Any) -> Any:
        raise NotImplementedError

    def __rmatmul__(self, x: Matrix) -> Matrix:
        return (self.T @ x.T).T


def dense(block: Any) -> Any:
    """A block as an array."""
    return block.dense if isinstance(block, Structured) else block


@dataclass(frozen=True, slots=True, eq=False)
class ShiftBlock(Structured):
    """φ = [[rot, p~ rot], [0, rot]], or its adjoint."""

    rot: Matrix
    p: Matrix
    star: bool = False

    @property
    def T(self) -> ShiftBlock:
        """The adjoint."""
        return ShiftBlock(self.rot, self.p, not self.star)

    @property
    def dense(self) -> Matrix:
        """(6, 6)."""
        return self @ np.eye(6)

    def __matmul__(self, x: Matrix) -> Matrix:
        if x.dtype != object:
            return self._applied(x)
        filled = [c for c, column in enumerate(x.T.tolist()) if not all(map(is_zero, column))]
        if len(filled) == x.shape[1]:
            return self._applied(x)
        out = np.full(x.shape, 0.0, dtype=object)
        if filled:
            out[:, filled] = self._applied(x[:, filled])
        return out

    def _applied(self, x: Matrix) -> Matrix:
        if self.star:
            back = self.rot.T
            moved = x[3:] - columns_crossed(self.p, x[:3])  # v + ω × p
            return np.concatenate([times(back, x[:3]), times(back, moved)])
        force = times(self.rot, x[3:])
        return np.concatenate([times(self.rot, x[:3]) + columns_crossed(self.p, force), force])


@dataclass(frozen=True, slots=True, eq=False)
class WorldBlock(Structured):
    """to_W = φ⁻* = [[rot, 0], [p~ rot, rot]] of a pose in the world, or its adjoint."""

    rot: Matrix
    p: Matrix
    star: bool = False

    @property
    def T(self) -> WorldBlock:
        """The adjoint."""
        return WorldBlock(self.rot, self.p, not self.star)

    @property
    def inverse(self) -> ShiftBlock:
        """φ*, and φ of the adjoint."""
        return ShiftBlock(self.rot, self.p, not self.star)

    @property
    def dense(self) -> Matrix:
        """(6, 6)."""
        return self @ np.eye(6)

    def __matmul__(self, x: Matrix) -> Matrix:
        if self.star:
            moment = x[:3] - columns_crossed(self.p, x[3:])
            return np.concatenate([self.rot.T @ moment, self.rot.T @ x[3:]])
        turn = self.rot @ x[:3]
        return np.concatenate([turn, self.rot @ x[3:] + columns_crossed(self.p, turn)])


@dataclass(frozen=True, slots=True, eq=False)
class BlockDiagonal(Structured):
    """Structured blocks along a diagonal, as to_W of the parts of a flexible body."""

    parts: tuple[Any, ...]

    @property
    def T(self) -> BlockDiagonal:
        """The adjoint."""
        return BlockDiagonal(tuple(x.T for x in self.parts))

    @property
    def inverse(self) -> BlockDiagonal:
        """The inverse."""
        return BlockDiagonal(tuple(x.inverse for x in self.parts))

    @property
    def dense(self) -> Matrix:
        """The block as an array."""
        return block_diagonal([dense(x) for x in self.parts])

    def __matmul__(self, x: Matrix) -> Matrix:
        return np.concatenate(
            [a @ b for a, b in zip(self.parts, np.split(x, len(self.parts)), strict=True)]
        )


@dataclass(frozen=True, slots=True, eq=False)
class ArticulatedBlock(Structured):
    """ψ = φ (I - G H), or K = φ G where H is None, or an adjoint: applied factor by factor."""

    shift: Any
    G: Matrix
    H: Matrix | None
    star: bool = False

    @property
    def T(self) -> ArticulatedBlock:
        """The adjoint."""
        return ArticulatedBlock(self.shift, self.G, self.H, not self.star)

    def __matmul__(self, x: Matrix) -> Matrix:
        if self.star:
            moved = self.shift.T @ x
            gained = self.G.T @ moved
            return gained if self.H is None else moved - self.H.T @ gained
        inner = self.G @ x if self.H is None else x - self.G @ (self.H @ x)
        return self.shift @ inner


@dataclass(frozen=True, slots=True, eq=False)
class AggregateShift(Structured):
    """E(p, g), the step from an aggregate body to its parent, or its adjoint: a recursion.

    Body i of the aggregate hangs on another one in it, or on body s of the parent:

        E f :   y(i) = f(i) + Σ φ(i, c) y(c),     (E f)(s) = Σ φ(s, r) y(r)     over its roots r
        E* V:   W(i) = φ*(inner(i), i) W(inner(i)),     from V(s)

    That takes as many shifts as there are bodies; poses are never multiplied out.
    """

    steps: tuple[Any, ...]  # φ(inner(i), i) of each body
    inner: tuple[int, ...]  # the index of the body that body i hangs on; -1 for the one outside
    slot: int = 0  # the index of that one in the parent aggregate
    count: int = 1  # bodies of the parent aggregate; 1 for the ground
    star: bool = False  # whether this is the adjoint

    @property
    def T(self) -> AggregateShift:
        """The adjoint."""
        return AggregateShift(self.steps, self.inner, self.slot, self.count, not self.star)

    @property
    def dense(self) -> Matrix:
        """The block as an array."""
        return self @ np.eye(6 * (self.count if self.star else len(self.steps)))

    def __matmul__(self, x: Matrix) -> Matrix:
        if isinstance(x, FilteredInertia):
            return Carried(self, x)
        return self._outward(x) if self.star else self._inward(x)

    def _outward(self, x: Matrix) -> Matrix:
        rows = list[Matrix]()
        for step, i in zip(self.steps, self.inner, strict=True):
            rows.append(step.T @ (x[_six(self.slot)] if i < 0 else rows[i]))
        return np.concatenate(rows)

    def _inward(self, x: Matrix) -> Matrix:
        parts: list[Matrix] = [x[_six(i)] for i in range(len(self.steps))]
        total = self._gathered(parts, _product)
        if self.count == 1:
            return total
        out = np.zeros((6 * self.count, total.shape[1]), dtype=total.dtype)
        out[_six(self.slot)] = total
        return out

    def _gathered(self, parts: list[Matrix], moved: Callable[[Any, Matrix], Matrix]) -> Matrix:
        """The parts of all bodies, moved from each body to the one it hangs on and summed."""
        total: Matrix = None
        for k in reversed(range(len(parts))):
            part, i = moved(self.steps[k], parts[k]), self.inner[k]
            if i >= 0:
                parts[i] = parts[i] + part
            else:
                total = part if total is None else total + part
        return total

    def of_blocks(self, P: Matrix) -> Matrix:
        """E P E* at body s (6, 6), for a block-diagonal P."""
        parts: list[Matrix] = [P[_six(i), _six(i)] for i in range(len(self.steps))]

        def moved(step: Any, part: Matrix) -> Matrix:
            return mirrored(step @ part @ step.T)

        return self._gathered(parts, moved)


@dataclass(frozen=True, slots=True, eq=False)
class FilteredInertia(Structured):
    """P⁺ = P - (H P)* D⁻¹ H P for a block-diagonal P (6 m, 6 m): not multiplied out."""

    P: Matrix
    HP: Matrix
    D: Factored

    @property
    def T(self) -> FilteredInertia:
        """The adjoint: itself."""
        return self

    @property
    def dense(self) -> Matrix:
        """The block as an array."""
        return self.P - self.D.congruence(self.HP)

    def __matmul__(self, x: Matrix) -> Matrix:
        return self.P @ x - self.HP.T @ (self.D @ (self.HP @ x))


@dataclass(frozen=True, slots=True, eq=False)
class Carried(Structured):
    """E P⁺, to be multiplied by E*: E P E* - (E P H*) D⁻¹ (E P H*)*, six by six."""

    shift: AggregateShift
    inertia: FilteredInertia

    def __matmul__(self, x: AggregateShift) -> Matrix:
        E, inside = self.shift, self.inertia
        one = AggregateShift(E.steps, E.inner)
        six = one.of_blocks(inside.P) - inside.D.congruence((one @ inside.HP.T).T)
        if E.count == 1:
            return six
        out = np.zeros((6 * E.count, 6 * E.count), dtype=six.dtype)
        out[_six(E.slot), _six(E.slot)] = six
        return out


def _product(step: Any, part: Matrix) -> Matrix:
    return step @ part


def _six(i: int) -> slice:
    return slice(6 * i, 6 * i + 6)


def mirrored(matrix: Matrix) -> Matrix:
    """A symmetric block, after its lower half was set to the same objects as the upper one."""
    for i in range(len(matrix)):
        for j in range(i):
            matrix[i, j] = matrix[j, i]
    return matrix


def diagonal(values: Matrix) -> Matrix:
    """A diagonal matrix (n, n) of values (n,)."""
    out = np.full((len(values), len(values)), 0.0, dtype=values.dtype)
    np.fill_diagonal(out, values)
    return out


def block_diagonal(blocks: list[Matrix]) -> Matrix:
    """Blocks along the diagonal of a matrix, zeros elsewhere."""
    rows, columns = (sum(x.shape[i] for x in blocks) for i in (0, 1))
    kind = object if any(x.dtype == object for x in blocks) else np.float64
    out, r, c = np.zeros((rows, columns), dtype=kind), 0, 0
    for x in blocks:
        out[r : r + x.shape[0], c : c + x.shape[1]] = x
        r, c = r + x.shape[0], c + x.shape[1]
    return out
