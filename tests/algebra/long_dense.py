"""The dense reference in extended precision: differences of it are good to more than float64.

All arithmetic on the state has 64 bits of mantissa, eleven more than usual: formulas of hinges,
loops and couplings keep the type of the coordinates, and matrices are inverted here, since LAPACK
has no such type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

import linkwise as lw
from linkwise.algebra.dense import Dense
from linkwise.algebra.expr import Expr
from linkwise.model.hinges.hinge import QUATERNION
from linkwise.spatial import quaternion

Long = Any
"""Arrays of np.longdouble."""

assert np.finfo(np.longdouble).eps < 2e-19, "long doubles of this machine have no extra digits"


def long(x: Any) -> Long:
    return np.asarray(x, dtype=np.longdouble)


def solved(A: Long, right: Long) -> Long:
    """A⁻¹ X by elimination, with pivots from all rows."""
    A, X = long(A).copy(), long(right).copy()
    n = len(A)
    for j in range(n):
        best = j + int(np.argmax(np.abs(A[j:, j])))
        A[[j, best]], X[[j, best]] = A[[best, j]], X[[best, j]]
        if A[j, j] == 0.0:
            raise np.linalg.LinAlgError
        X[j], A[j] = X[j] / A[j, j], A[j] / A[j, j]
        rest = np.arange(n) != j
        X[rest] -= np.outer(A[rest, j], X[j])
        A[rest] -= np.outer(A[rest, j], A[j])
    return X


STENCIL = np.array([3, -32, 168, -672, 0, 672, -168, 32, -3], dtype=np.longdouble) / 840
"""Central differences of order eight, for steps of -4 to 4."""


class LongDense(Dense):
    """`Dense` on long doubles, but for matrices of constraints, whose rows may depend."""

    kind: ClassVar[Any] = np.longdouble

    def checked(self, mech: lw.Mechanism, q: Any, v: Any) -> tuple[Long, Long]:
        return long(q), long(v)

    def inverted(self, matrix: Long) -> Long:
        return solved(matrix, np.eye(len(matrix)))

    def solved(self, matrix: Long, right: Long) -> Long:
        return solved(matrix, right)


def integrate(mech: lw.Mechanism, q: Any, move: Any) -> Long:
    """`mech.integrate`, with quaternions of unit length to all digits."""
    q, move, out = long(q), long(move), list[Long]()
    for body in mech.bodies:
        at = q[mech.q_slice(body.hinge_name)].copy()
        if body.hinge.coordinates[:4] == QUATERNION:
            at[:4] = quaternion.normalise(at[:4])
        out.append(body.hinge.integrate(at, move[mech.v_slice(body.hinge_name)]))
    return np.concatenate(out)


def differences(at: Callable[[Long], Dense], exprs: Sequence[Expr], h: float = 2e-3) -> list[Long]:
    """Derivatives of vectors at s = 0, where `at` gives what the mechanism is at s."""
    totals: list[Long] = [long(0.0)] * len(exprs)
    for c, s in zip(STENCIL, range(-4, 5), strict=True):
        if c:
            dense, each = at(long(h) * s), zip(totals, exprs, strict=True)
            totals = [t + c / long(h) * dense.matrix(x)[:, 0] for t, x in each]
    return totals
