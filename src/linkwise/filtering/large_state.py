"""States of filters of many states in the memory of their matrices, and rows of measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.codegen.matrices import Matrices, Matrix, padded
from linkwise.codegen.scalar.passes import WIDTH
from linkwise.codegen.writing import Writing
from linkwise.filtering.motion import State
from linkwise.filtering.tangent import carried
from linkwise.filtering.tick import error_parts
from linkwise.sweeps.sparse import times

NAMES = ("q", "v", "extra", "tau")


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Arrays that functions of columns read, one after another.

    Attributes:
        row: Their numbers.
        sizes: How many numbers each has, by name.
    """

    row: Matrix
    sizes: dict[str, int]

    def split(self, flat: Any) -> dict[str, Any]:
        """The arrays by name."""
        parts = np.split(flat, np.cumsum(list(self.sizes.values()))[:-1])
        return dict(zip(self.sizes, parts, strict=True))


def given(work: Matrices, x: State, **more: Any) -> Given:
    """A state and other arrays in memory."""
    arrays = {name: getattr(x, name) for name in NAMES} | more
    flat = np.concatenate([np.zeros(0, dtype=object), *arrays.values()])
    return Given(work.vector(flat), {name: len(array) for name, array in arrays.items()})


def state_of(arrays: dict[str, Any]) -> State:
    """The state among arrays."""
    return State(*(arrays[name] for name in NAMES))


def joint(work: Matrices, n: int, rows: int) -> Matrix:
    """Room for rows of H P⁻, of H P⁻ H*, and for innovations."""
    return work.room(rows, joint_columns(n, rows))


def joint_columns(n: int, rows: int) -> int:
    """Columns of these; ε is in the first of the last eight."""
    return padded(n) + padded(rows) + WIDTH


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """J of positions, for the error of a state: other than the identity in some rows.

    Attributes:
        places: These rows.
        turn: J of positions there.
    """

    places: list[int]
    turn: Any

    def rows(self, A: Any) -> Any:
        """J A."""
        if not self.places:
            return A
        out = A.copy()
        out[self.places] = times(self.turn, A[: self.turn.shape[1]])
        return out


def corrected(at: Writing, x: State, P: Any, d: Any) -> tuple[State, Any, Turn]:
    """x ⊕ d, the covariance about it, and J."""
    dq, dv, extra = error_parts(at.mech, d)
    q, turn = carried(at, x.q, dq)
    places = [i for i, row in enumerate(turn) if not _is_unit(row, i)]
    J = Turn(places, turn[places])
    half = J.rows(P)
    P = J.rows(half.T)
    lower = np.tril_indices(len(P), -1)
    P[lower] = P.T[lower]
    return State(q, x.v + dv, x.extra + extra, x.tau), P, J


def _is_unit(row: Any, i: int) -> bool:
    """Whether a row of J is one of the identity."""
    return all(getattr(e, "constant", e) == float(i == j) for j, e in enumerate(row))
