"""The step from an aggregate body to the body it hangs on: many rigid shifts, done as a recursion.

Body i of the aggregate stands on another one of it, or on body s of the parent:

    E f :   y(i) = f(i) + Σ φ(i, c) y(c),     (E f)(s) = Σ φ(s, r) y(r)     over its roots r
    E* V:   W(i) = φ*(inner(i), i) W(inner(i)),     from V(s)

as many shifts as there are bodies; poses are never multiplied out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.sweeps.factored import Factored

Matrix = Any
"""An array of numbers, or of dtype object: numbers and graph nodes mixed."""


@dataclass(frozen=True, slots=True, eq=False)
class AggregateShift:
    """E(p, g), or its adjoint; multiplies from either side.

    Attributes:
        steps: φ(inner(i), i) of each body, with `@` and `T`.
        inner: The place of the body it stands on; -1 for the one outside.
        slot: The place of that one in the parent aggregate.
        count: Bodies of the parent aggregate; 1 for the ground.
        star: The adjoint is meant.
    """

    steps: tuple[Any, ...]
    inner: tuple[int, ...]
    slot: int = 0
    count: int = 1
    star: bool = False

    __array_ufunc__ = None  # NumPy arrays leave products with it to this class

    @property
    def T(self) -> AggregateShift:
        """The adjoint."""
        return AggregateShift(self.steps, self.inner, self.slot, self.count, not self.star)

    def __matmul__(self, x: Matrix) -> Matrix:
        if isinstance(x, FilteredInertia):
            return Carried(self, x)
        return self._outward(x) if self.star else self._inward(x)

    def __rmatmul__(self, x: Matrix) -> Matrix:
        return (self.T @ x.T).T

    def _outward(self, x: Matrix) -> Matrix:
        found = list[Matrix]()
        for step, i in zip(self.steps, self.inner, strict=True):
            above = x[6 * self.slot : 6 * self.slot + 6] if i < 0 else found[i]
            found.append(step.T @ above)
        return np.concatenate(found)

    def _inward(self, x: Matrix) -> Matrix:
        parts: list[Matrix] = [x[6 * i : 6 * i + 6] for i in range(len(self.steps))]
        total: Matrix = None
        for k in reversed(range(len(parts))):
            moved, i = self.steps[k] @ parts[k], self.inner[k]
            if i >= 0:
                parts[i] = parts[i] + moved
            else:
                total = moved if total is None else total + moved
        if self.count == 1:
            return total
        out = np.zeros((6 * self.count, total.shape[1]), dtype=total.dtype)
        out[6 * self.slot : 6 * self.slot + 6] = total
        return out

    def of_blocks(self, P: Matrix) -> Matrix:
        """E P E* at body s (6, 6), of a block-diagonal P."""
        parts: list[Matrix] = [P[_six(i), _six(i)] for i in range(len(self.steps))]
        total: Matrix = None
        for k in reversed(range(len(parts))):
            moved, i = mirrored(self.steps[k] @ parts[k] @ self.steps[k].T), self.inner[k]
            if i >= 0:
                parts[i] = parts[i] + moved
            else:
                total = moved if total is None else total + moved
        return total

    @property
    def dense(self) -> Matrix:
        """Written out."""
        return self @ np.eye(6 * (self.count if self.star else len(self.steps)))


@dataclass(frozen=True, slots=True, eq=False)
class FilteredInertia:
    """P⁺ = P - Y* Δ⁻¹ Y with Y = L⁻¹ H P, of a block-diagonal P: not multiplied out.

    Attributes:
        P: Block diagonal (6 m, 6 m).
        HP: H P (n_u, 6 m).
        D: The inverse of D, as factors.
    """

    P: Matrix
    HP: Matrix
    D: Factored

    __array_ufunc__ = None

    @property
    def T(self) -> FilteredInertia:
        """The adjoint: itself."""
        return self

    @property
    def dense(self) -> Matrix:
        """Written out."""
        return self.P - self.D.congruence(self.HP)

    def __matmul__(self, x: Matrix) -> Matrix:
        return self.P @ x - self.HP.T @ (self.D @ (self.HP @ x))

    def __rmatmul__(self, x: Matrix) -> Matrix:
        return (self @ x.T).T


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """E P⁺, waiting for its E*: E P E* - (E P H*) D⁻¹ (E P H*)*, six by six."""

    shift: AggregateShift
    inertia: FilteredInertia

    __array_ufunc__ = None

    def __matmul__(self, back: AggregateShift) -> Matrix:
        E, inside = self.shift, self.inertia
        one = AggregateShift(E.steps, E.inner)
        six = one.of_blocks(inside.P) - inside.D.congruence((one @ inside.HP.T).T)
        if E.count == 1:
            return six
        out = np.zeros((6 * E.count, 6 * E.count), dtype=six.dtype)
        out[_six(E.slot), _six(E.slot)] = six
        return out


def _six(i: int) -> slice:
    return slice(6 * i, 6 * i + 6)


def mirrored(matrix: Matrix) -> Matrix:
    """A symmetric block whose lower half is the same objects as the upper one."""
    for i in range(len(matrix)):
        for j in range(i):
            matrix[i, j] = matrix[j, i]
    return matrix


def block_diagonal(blocks: list[Matrix]) -> Matrix:
    """Blocks along the diagonal of a matrix, zeros elsewhere."""
    rows, columns = (sum(x.shape[i] for x in blocks) for i in (0, 1))
    kind = object if any(x.dtype == object for x in blocks) else np.float64
    out, r, c = np.zeros((rows, columns), dtype=kind), 0, 0
    for x in blocks:
        out[r : r + x.shape[0], c : c + x.shape[1]] = x
        r, c = r + x.shape[0], c + x.shape[1]
    return out
