"""Derivatives along velocities of the hinge: f* D_n ... D_1 H* x of the hinge map, and of 𝒬."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from linkwise.model.hinges.hinge import ConstantHinge, Hinge, qdot_map
from linkwise.model.hinges.jet import Jet


class Moving(Protocol):
    """What the form needs: a hinge, or an aggregate of bodies that moves like one."""

    @property
    def nv(self) -> int:
        """Number of velocities."""
        ...

    def hinge_map_rate(self, q: Any, v: Any) -> Any:
        """Ḣ (..., nv, rows)."""
        ...

    def qdot(self, q: Any, v: Any) -> Any:
        """Time derivative of the coordinates (..., nq)."""
        ...


def form_block(hinge: Moving, q: Any, shift: Any, slots: Sequence[Any]) -> Any:
    """The matrix of the form f* D_n ... D_1 H* x, with two of its vectors left open.

    D_i is the derivative along velocities y_i that are held, the first one innermost. In general
    the order matters: velocities of hinges with quaternions are not rates of coordinates.

    Args:
        hinge: The hinge.
        q: Its coordinates (1, nq).
        shift: φ (6, 6) from the body frame to the hinge: H about the body frame is H φ. Of an
            aggregate, of as many rows as its bodies have.
        slots: f, x, y_1 ... y_n, each an array, or "row" or "column" where it is open.
    """
    nv = hinge.nv
    spans = [len(shift) if i == 0 else nv for i in range(len(slots))]
    none = isinstance(hinge, ConstantHinge) or not nv

    def matrix(ways: Sequence[Any]) -> Any:
        return (_derivative(hinge, q, ways)[0] @ shift).T

    return _filled(slots, spans, nv, None if none else matrix)


def coordinate_block(hinge: Hinge, q: Any, slots: Sequence[Any]) -> Any:
    """The matrix of the form f* D_n ... D_1 𝒬 x likewise, with v = 𝒬 q̇; x has nq entries."""
    nv = hinge.nv
    spans = [hinge.nq if i == 1 else nv for i in range(len(slots))]
    none = type(hinge).qdot is Hinge.qdot  # 𝒬 is one

    def matrix(ways: Sequence[Any]) -> Any:
        return _coordinate_derivative(hinge, q, ways)[0]

    return _filled(slots, spans, nv, None if none else matrix)


def _coordinate_derivative(hinge: Hinge, q: Any, ways: Sequence[Any]) -> Any:
    """D_n ... D_1 𝒬 (..., nv, nq) at q (..., nq), along velocities (..., nv) that are held."""
    if not ways:
        out = np.empty((*q.shape[:-1], hinge.nv, hinge.nq), dtype=object)
        for i in np.ndindex(*q.shape[:-1]):
            N = qdot_map(hinge, q[i])
            out[i] = _solved(N.T @ N, N.T)
        return out
    *inner, last = ways

    def formula(q: Any, *held: Any) -> Any:
        return _coordinate_derivative(hinge, q, held)

    rate = hinge.qdot(q, last)
    return Jet.slope(formula, (q, rate), *((np.broadcast_to(y, last.shape), None) for y in inner))


def _solved(A: Any, B: Any) -> Any:
    """A⁻¹ B of a small positive definite A, by arithmetic that jets have."""
    A, B = A.astype(object), B.astype(object)
    for i in range(len(A)):
        scale = 1.0 / A[i, i] if isinstance(A[i, i], float) else A[i, i].reciprocal()
        A[i], B[i] = A[i] * scale, B[i] * scale
        for j in range(len(A)):
            if j != i:
                A[j], B[j] = A[j] - A[j, i] * A[i], B[j] - A[j, i] * B[i]
    return B


def _filled(
    slots: Sequence[Any],
    spans: Sequence[int],
    nv: int,
    matrix: Callable[[Sequence[Any]], Any] | None,
) -> Any:
    """The matrix of a form with two open slots.

    Args:
        slots: f, x, y_1 ... y_n.
        spans: Their lengths.
        nv: That of the directions.
        matrix: From directions (1, nv) to the matrix of f and x; None where it is zero.
    """
    names = [x if isinstance(x, str) else "" for x in slots]
    row, column = names.index("row"), names.index("column")
    out = np.full((spans[row], spans[column]), 0.0, dtype=object)
    if matrix is None:
        return np.zeros(out.shape)
    along = range(2, len(slots))
    opened = [i for i in along if isinstance(slots[i], str)]
    for units in np.ndindex(*(spans[i] for i in opened)):
        at = dict(zip(opened, units, strict=True))
        ways = [np.eye(nv)[at[i]] if i in at else slots[i] for i in along]
        value: Any = matrix([way[None] for way in ways])
        value = value if isinstance(slots[1], str) else (value @ slots[1])[:, None]
        value = value if isinstance(slots[0], str) else slots[0][None] @ value
        # Open f and x are the rows and columns of value; open directions have one entry here.
        place = tuple(slice(None) if i < 2 else at[i] for i in (row, column))
        out[place] = (value.T if row > column else value).reshape(np.shape(out[place]))
    return _numbers(out)


def _derivative(hinge: Moving, q: Any, ways: Sequence[Any]) -> Any:
    """D_n ... D_1 H (..., nv, 6) at q (..., nq), along velocities (..., nv) that are held."""
    *inner, last = ways
    if not inner:
        return hinge.hinge_map_rate(q, last)

    def formula(q: Any, *held: Any) -> Any:
        return _derivative(hinge, q, held)

    rate = hinge.qdot(q, last)
    return Jet.slope(formula, (q, rate), *((np.broadcast_to(y, last.shape), None) for y in inner))


def _numbers(array: Any) -> Any:
    """As floats where all entries are."""
    if all(isinstance(x, float) for x in array.flat):
        return array.astype(np.float64)
    return array
