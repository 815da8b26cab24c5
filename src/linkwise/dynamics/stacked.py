"""Stacked vectors, six numbers a body: as users hold them (n, 6), and as kernels do (6 n,)."""

from __future__ import annotations

import numpy as np

from linkwise.errors import ShapeError
from linkwise.spatial.array import Array, ArrayLike, floats


def flat(x: ArrayLike, count: int, what: str) -> Array:
    """(n, 6) or (batch, n, 6) as the rows of a kernel."""
    if type(x) is np.ndarray and x.shape == (count, 6):
        return x.reshape(-1)  # most calls: the kernel looks at the rest
    array = floats(x, what)
    if array.ndim not in (2, 3) or array.shape[-2:] != (count, 6):
        raise ShapeError(
            f"{what} has shape {array.shape}; it must be ({count}, 6), six numbers for each body, "
            f"or (batch, {count}, 6)."
        )
    return array.reshape(*array.shape[:-2], 6 * count)


def flat_out(out: Array | None, count: int) -> Array | None:
    """The memory of `out` (..., n, 6) as the rows of a kernel."""
    if out is None:
        return None
    if not isinstance(out, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ShapeError(f"out is a {type(out).__name__}; it must be an array.")
    if out.ndim not in (2, 3) or out.shape[-2:] != (count, 6) or not out.flags.c_contiguous:
        raise ShapeError(
            f"out has shape {out.shape}; it must be contiguous, ({count}, 6) or "
            f"(batch, {count}, 6)."
        )
    return out.reshape(*out.shape[:-2], 6 * count)


def six_each(rows: Array, out: Array | None = None) -> Array:
    """Rows (..., 6 n) of a kernel as (..., n, 6); `out` itself where they are in it."""
    if out is not None:
        return out
    if rows.ndim == 1:
        return rows.reshape(-1, 6)
    return rows.reshape(*rows.shape[:-1], rows.shape[-1] // 6, 6)
