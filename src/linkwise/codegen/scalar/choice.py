"""Choices, roots and angles in formulas: on graph nodes and on numbers alike.

Everything that branches is made of one operation, the gate: x where c > 0, else 0. Both sides are
computed, so that all states of a batch do the same.
"""

from __future__ import annotations

import math
from typing import Any


def gate(condition: Any, x: Any) -> Any:
    """x where the condition is positive, else 0."""
    if hasattr(condition, "gate"):
        return condition.gate(x)
    return x if condition > 0.0 else 0.0


def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition is positive, else y."""
    return gate(condition, x) + (y - gate(condition, y))


def maximum(x: Any, y: Any) -> Any:
    """The larger one."""
    return where(x - y, x, y)


def minimum(x: Any, y: Any) -> Any:
    """The smaller one."""
    return where(x - y, y, x)


def clip(x: Any, low: Any, high: Any) -> Any:
    """x, or the bound it is beyond."""
    return minimum(maximum(x, low), high)


def absolute(x: Any) -> Any:
    """|x|."""
    return where(x, x, -x)


def root(x: Any) -> Any:
    """√x."""
    return x.sqrt() if hasattr(x, "sqrt") else math.sqrt(x)


def sine(x: Any) -> Any:
    """The sine of x [rad]."""
    return x.sin() if hasattr(x, "sin") else math.sin(x)


def cosine(x: Any) -> Any:
    """The cosine of x [rad]."""
    return x.cos() if hasattr(x, "cos") else math.cos(x)


def norm(x: Any) -> Any:
    """√(x* x) of a vector (n,)."""
    return root(sum((e * e for e in x[1:]), x[0] * x[0]))


def angle(y: Any, x: Any) -> Any:
    """The angle of the point (x, y), from -π to π [rad]; 0 for the origin.

    The smaller of |x|, |y| over the larger is the tangent t ≤ 1 of an angle up to π/4. That of
    half the angle is t / (1 + √(1 + t²)); halved twice, the series of the arc tangent ends soon.
    """
    across, along = absolute(y), absolute(x)
    steep = across - along
    small, large = where(steep, along, across), where(steep, across, along)
    t = small / where(large, large, 1.0)
    half = t / (1.0 + root(1.0 + t * t))
    quarter = half / (1.0 + root(1.0 + half * half))
    square, total = quarter * quarter, 0.0
    for n in range(TERMS, -1, -1):
        total = (-1.0) ** n / (2 * n + 1) + square * total
    found = 4.0 * quarter * total
    found = where(steep, 0.5 * math.pi - found, found)
    found = where(-x, math.pi - found, found)
    return where(-y, -found, found)


TERMS = 13
"""Of the arc tangent below tan π/16 = 0.199: the first one left out is below 1e-21."""
