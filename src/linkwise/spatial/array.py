"""How arrays enter and leave the library: float64, shapes checked, read-only when kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.arguments import Array, ArrayLike, constant, floats, unit

__all__ = [
    "Array",
    "ArrayLike",
    "constant",
    "floats",
    "frozen",
    "read_only",
    "stack",
    "unit",
]


def frozen(array: Array) -> Array:
    """The same array, made read-only."""
    array.setflags(write=False)
    return array


def read_only(array: Array) -> Array:
    """A view for others that cannot be written into; the array itself stays as it is."""
    return frozen(array.view())


def stack(rows: Sequence[Sequence[object]]) -> Array:
    """Matrix from scalars `(...)` given row by row; they are broadcast against each other.

    Works for floats and for arrays of dtype object, so that a formula written with it can be
    evaluated on numbers and traced on symbols alike.
    """
    entries = np.broadcast_arrays(*[np.asarray(x) for row in rows for x in row])
    matrix = np.stack(entries, axis=-1)
    return matrix.reshape(*matrix.shape[:-1], len(rows), len(rows[0]))
