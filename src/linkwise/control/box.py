"""A small quadratic programme with bounds, in array code: ½ x* A x + b* x, low ≤ x ≤ high.

Projected Newton: entries at a bound that the gradient pushes outward stay there, a Newton step is
made with the others and cut off at the bounds. Of a few step lengths the best one is taken. Once
the entries at bounds do not change any more the step is exact, so that few rounds are needed.

Source: tassa2014control.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.spatial.choice import clip
from linkwise.sweeps.factored import factored

LENGTHS = (1.0, 0.5, 0.2, 0.05)
"""Steps that are tried, the best of which is taken."""

ROUNDS = 30
"""Rounds at most; as a rule a few more than there are bounds that change sides."""

DONE = 1e-12
"""Decrease relative to the programme's value below which it is solved."""


def boxed(at: Any, A: Any, b: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """The solution x (m,), and 1 for entries that are free (m,), 0 for those at a bound.

    Args:
        at: What has `loop`, as `Writing` does.
        A: Positive definite (m, m).
        b: (m,).
        low: Lower bounds (m,).
        high: Upper bounds (m,), not below the lower ones.
    """
    m = len(b)
    start = [clip(x, lo, hi) for x, lo, hi in zip([0.0] * m, low, high, strict=True)]
    given = np.concatenate([A[np.triu_indices(m)], b, low, high])
    x, _ = at.loop(_round, np.array(start, dtype=object), given, most=ROUNDS)
    return x, _free(A, b, low, high, x)


def _free(A: Any, b: Any, low: Any, high: Any, x: Any) -> Any:
    """1 where x is off its bounds or the gradient pushes it inward, else 0."""
    gradient, out = A @ x + b, list[Any]()
    for g, value, lo, hi in zip(gradient, x, low, high, strict=True):
        # at a bound: not strictly inside
        below, above = (value - lo).gate(1.0), (hi - value).gate(1.0)
        held = (1.0 - below) * g.gate(1.0) + (1.0 - above) * (-g).gate(1.0)
        out.append(1.0 - held)
    return np.array(out, dtype=object)


def _round(at: Any, x: Any, given: Any) -> tuple[Any, Any]:
    m = len(x)
    half = m * (m + 1) // 2
    A = np.empty((m, m), dtype=object)
    i, j = np.triu_indices(m)
    A[i, j] = A[j, i] = given[:half]
    b, low, high = np.split(given[half:], 3)
    free = _free(A, b, low, high, x)
    gradient = A @ x + b
    matrix = free[:, None] * A * free + np.diag(1.0 - free)
    step = -(factored(matrix) @ (free * gradient)[:, None])[:, 0]

    def value(y: Any) -> Any:
        return (0.5 * (A @ y) + b) @ y

    here = value(x)
    best, chosen = here, x
    for length in LENGTHS:
        trial = x + length * step
        y = np.array([clip(*e) for e in zip(trial, low, high, strict=True)], dtype=object)
        now = value(y)
        better = best - now
        chosen = np.array(
            [
                better.gate(new) + (1.0 - better.gate(1.0)) * old
                for new, old in zip(y, chosen, strict=True)
            ],
            dtype=object,
        )
        best = best - better.gate(better)
    size = here.gate(here) - (-here).gate(here)
    return chosen, (here - best) - DONE * (size + 1e-300)
