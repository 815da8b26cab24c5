"""How arrays enter and leave the library: float64, shapes checked, read-only when kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import ShapeError

Array: TypeAlias = NDArray[np.float64]
"""A float64 array. Functions of a hinge also run on arrays of dtype object (see `stack`)."""

ArrayLike: TypeAlias = Array | Sequence[float] | Sequence[Sequence[float]] | float


def floats(value: Any, what: str) -> Array:
    """`value` as a float64 array of any shape; raises where it is not made of numbers."""
    try:
        if not np.iscomplexobj(value):
            return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    text = repr(value)
    shown = text if len(text) <= 60 else text[:57] + "..."
    raise ShapeError(f"{what} must be made of real numbers, in rows of one length; found {shown}.")


def constant(value: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """A read-only float64 copy of `value` with exactly `shape` and finite entries."""
    array = np.array(floats(value, what))
    if array.shape != shape:
        raise ShapeError(f"{what} has shape {array.shape}; it must have shape {shape}.")
    if not np.isfinite(array).all():
        raise ShapeError(f"{what} must be finite; found {array.tolist()}.")
    array.setflags(write=False)
    return array


def frozen(array: Array) -> Array:
    """The same array, made read-only."""
    array.setflags(write=False)
    return array


def read_only(array: Array) -> Array:
    """A view for others that cannot be written into; the array itself stays as it is."""
    return frozen(array.view())


def unit(value: ArrayLike, what: str) -> Array:
    """A read-only unit 3-vector along `value`; entries that are exactly 0 or ±1 stay exact."""
    axis = constant(value, (3,), what)
    length = float(np.sqrt(axis @ axis))
    if length == 0.0 or not np.isfinite(length):
        # Too long to square, too short to be squared, or zero: scale first and look again.
        largest = float(np.abs(axis).max())
        if largest == 0.0:
            raise ShapeError(f"{what} is the zero vector; give a direction of any other length.")
        axis = axis / largest
        length = float(np.sqrt(axis @ axis))
    # Within rounding of one it is taken as it is, so that a unit vector stays bit for bit the same.
    return axis if abs(length - 1.0) < 4e-16 else frozen(axis / length)


def stack(rows: Sequence[Sequence[object]]) -> Array:
    """Matrix from scalars `(...)` given row by row; they are broadcast against each other.

    Works for floats and for arrays of dtype object, so that a formula written with it can be
    evaluated on numbers and traced on symbols alike.
    """
    entries = np.broadcast_arrays(*[np.asarray(x) for row in rows for x in row])
    matrix = np.stack(entries, axis=-1)
    return matrix.reshape(*matrix.shape[:-1], len(rows), len(rows[0]))
