"""Choices, roots and angles that run on graph nodes and on numbers, one by one or in arrays.

All branches are made of one operation, the gate: x where c > 0, else 0. Both sides are computed, so
that all states of a batch do the same; the unused side must be finite to leave no trace.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def gate(condition: Any, x: Any) -> Any:
    """x where the condition is positive, else 0."""
    if _is_of_numbers(condition):
        return _WHERE(condition > 0.0, x, 0.0)
    if _is_array(condition) or _is_array(x):
        return _GATE(condition, x)
    if isinstance(condition, float | int):
        return x if condition > 0.0 else 0.0
    return condition.gate(x)


def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition is positive, else y."""
    if _is_of_numbers(condition):
        return _WHERE(condition > 0.0, x, y)
    return gate(condition, x) + (y - gate(condition, y))


def maximum(x: Any, y: Any) -> Any:
    """The larger one."""
    return where(x - y, x, y)


def minimum(x: Any, y: Any) -> Any:
    """The smaller one."""
    return where(x - y, y, x)


def clip(x: Any, low: Any, high: Any) -> Any:
    """x limited to the bounds."""
    return minimum(maximum(x, low), high)


def absolute(x: Any) -> Any:
    """|x|."""
    return where(x, x, -x)


def root(x: Any) -> Any:
    """√x."""
    if _is_array(x):
        return np.sqrt(x) if _is_of_numbers(x) else _ROOT(x)
    return x.sqrt() if hasattr(x, "sqrt") else math.sqrt(x)


def sine(x: Any) -> Any:
    """The sine of x [rad]."""
    if _is_array(x):
        return np.sin(x) if _is_of_numbers(x) else _SINE(x)
    return x.sin() if hasattr(x, "sin") else math.sin(x)


def cosine(x: Any) -> Any:
    """The cosine of x [rad]."""
    if _is_array(x):
        return np.cos(x) if _is_of_numbers(x) else _COSINE(x)
    return x.cos() if hasattr(x, "cos") else math.cos(x)


def taken(table: bytes, x: Any) -> Any:
    """The number of a table (bytes of float64) at a place, rounded down and kept within it."""
    if hasattr(x, "take") and not hasattr(x, "dtype"):
        return x.take(table)
    numbers = np.frombuffer(table)
    index = np.clip(np.nan_to_num(x), 0.0, len(numbers) - 1.0).astype(np.intp)
    return numbers[index] if np.ndim(index) else float(numbers[index])


def norm(x: Any) -> Any:
    """√(x* x) of a vector (n,)."""
    squares = [e * e for e in x]
    return root(sum(squares[1:], squares[0])) if squares else 0.0


def angle(y: Any, x: Any) -> Any:
    """The angle of the point (x, y), from -π to π [rad]; 0 for the origin.

    The smaller of |x|, |y| over the larger is the tangent t ≤ 1 of an angle up to π/4. That of
    half the angle is t / (1 + √(1 + t²)); halved twice, the series of the arc tangent ends soon.
    """
    if _is_of_numbers(y) and _is_of_numbers(x):
        return np.arctan2(y, x)
    if _is_array(y) or _is_array(x):
        return _ANGLE(y, x)
    across, along = absolute(y), absolute(x)
    steep = across - along
    small, large = where(steep, along, across), where(steep, across, along)
    t = small / where(large, large, 1.0)
    half = t / (1.0 + root(1.0 + t * t))
    quarter = half / (1.0 + root(1.0 + half * half))
    square, total = quarter * quarter, 0.0
    for n in range(TERMS, -1, -1):
        total = (-1.0) ** n / (2 * n + 1) + square * total
    turn = 4.0 * quarter * total
    turn = where(steep, 0.5 * math.pi - turn, turn)
    turn = where(-x, math.pi - turn, turn)
    return where(-y, -turn, turn)


TERMS = 13
"""Terms of the arc tangent below tan π/16 = 0.199: the first one omitted is below 1e-21."""


def _is_of_numbers(x: Any) -> bool:
    """Whether it is an array of numbers, or one of its entries."""
    return getattr(x, "dtype", object) != np.dtype(object)


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray)


_WHERE: Any = np.where
_GATE: Any = np.frompyfunc(gate, 2, 1)
_ROOT: Any = np.frompyfunc(root, 1, 1)
_SINE: Any = np.frompyfunc(sine, 1, 1)
_COSINE: Any = np.frompyfunc(cosine, 1, 1)
_ANGLE: Any = np.frompyfunc(angle, 2, 1)
