"""Gains of servos: a positive number, one for each row, or a symmetric matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.scalar.orthogonal import solved, solved_below, triangle_of
from linkwise.errors import ModelError, ShapeError
from linkwise.spatial.array import Array, ArrayLike, floats

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

ASYMMETRY = 1e-9
"""A matrix whose entries differ from its transpose by more than this fraction is not symmetric."""


def checked_gain(gain: ArrayLike, name: str, size: int | None = None) -> Array:
    """A gain as float64 (), (m,) or (m, m); raises unless it is finite and positive.

    Args:
        gain: A number, one for each row, or a symmetric positive definite matrix.
        name: What it is called in messages: "kp of the servo 'hand'".
        size: Number of rows m, if known.
    """
    k = np.array(floats(gain, name), dtype=np.float64)
    m = size if size is not None else (len(k) if k.ndim else 1)
    if k.shape not in ((), (m,), (m, m)):
        raise ShapeError(
            f"{name} has shape {k.shape}; it must be a number, ({m},) or a matrix ({m}, {m})."
        )
    if not np.isfinite(k).all():
        raise ModelError(f"{name} is not finite; gains are positive numbers.")
    if k.ndim < 2 and not (k > 0.0).all():
        raise ModelError(f"{name} is {_shown(k)}; every gain must be above zero.")
    if k.ndim == 2:
        if np.abs(k - k.T).max() > ASYMMETRY * np.abs(k).max():
            raise ModelError(f"{name} is a matrix that is not symmetric; a gain matrix must be.")
        lowest = float(np.linalg.eigvalsh(0.5 * (k + k.T))[0])
        if lowest <= 0.0:
            raise ModelError(
                f"{name} is a matrix with the eigenvalue {lowest:.4g}; it must be positive "
                "definite, all its eigenvalues above zero."
            )
    k.setflags(write=False)
    return k


def times(gain: Array, x: Array) -> Array:
    """A gain times vectors (..., m)."""
    return x @ gain if gain.ndim == 2 else gain * x


def over(gain: Any, x: Any) -> Any:
    """The inverse of a gain times a vector (m,)."""
    if gain.ndim < 2:
        return x / gain
    factor = triangle_of(gain)
    return solved_below(factor, solved(factor, x))


def spread_out(gain: Any, m: int) -> Array:
    """The numbers of a gain: one for each row (m,), or all of a matrix (m m,)."""
    k = np.asarray(gain, dtype=np.float64)
    return k.ravel() if k.ndim == 2 else np.array(np.broadcast_to(k, (m,)))


def gains_read(at: Writing, name: str, sizes: list[int], matrix: list[bool]) -> list[Any]:
    """Gains (m,) or (m, m), in sequence in one input."""
    counts = [m * m if square else m for m, square in zip(sizes, matrix, strict=True)]
    parts = np.split(at.read(name, sum(counts)), np.cumsum(counts)[:-1])
    each = zip(parts, sizes, matrix, strict=True)
    return [part.reshape(m, m) if square else part for part, m, square in each]


def along(gain: Any, directions: Any) -> Any:
    """d* K d for unit directions, the columns of (m, k): the gain along each (k,)."""
    return (directions * times(gain, directions.T).T).sum(axis=0)


def gain_in_words(gain: ArrayLike) -> str:
    """A gain in one word or list: "25", "[1, 2, 3]", "matrix (6, 6)"."""
    k = np.asarray(gain)
    if k.ndim == 0:
        return f"{float(k):g}"
    return f"matrix {k.shape}" if k.ndim == 2 else f"[{', '.join(f'{x:g}' for x in k.tolist())}]"


def _shown(k: Array) -> str:
    return f"{float(k):g}" if k.ndim == 0 else str(k.tolist())
