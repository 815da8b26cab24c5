"""Accelerations of loops in the scalar graph: a solve whose rows may depend on each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.sweeps.factored import factored

DAMPING = {8: 1e-13, 4: 1e-5}
"""δ, relative to the diagonal entries, by bytes of a number: above the rounding of pivots."""

INDEPENDENT = 1e-11
"""Pivots below this fraction of their diagonal entry belong to rows that depend on others: there
the accelerations have lost the digits, 4e-16 over it."""

EMPTY = {8: 1e-9, 4: 1e-4}
"""Diagonal entries this far below their mean are small: pivots are compared with no less."""

ZEROS = {8: 1e-25, 4: 1e-11}
"""Diagonal entries this far below their mean are rounding, of rows of zeros that nothing moves."""

HELD = {8: 1e-17, 4: 1e-7}
"""What is added to those, relative to the mean: rounding ε in such rows, of A and of b, costs ε²
over it in all accelerations."""


def solved(A: Any, b: Any, itemsize: int, mass: float, *, counted: bool) -> tuple[Any, Any]:
    """A x = b for a symmetric A that may be singular, where b is such that there is a solution.

    Rows of constraints may depend on others, and which ones is not known beforehand. So A is made
    definite by little more than rounding, A + δ diag, and by more in rows of zeros: that is
    factored without pivots, and stably. The error is δ over the least eigenvalue that counts, and
    solving for the residual squares that. In directions that A leaves undecided x stays small.

    Args:
        A: The matrix (n, n).
        b: The right side (n, m).
        itemsize: Bytes of a number.
        mass: The total mass of the mechanism, which gives the scale of A.
        counted: Whether the number of independent rows is needed.

    Returns:
        x, and how many rows are independent.
    """
    n, delta = len(A), DAMPING[itemsize]
    mean: Any = sum(A[j, j] for j in range(n)) / n
    if isinstance(mean, float) and mean == 0.0:  # nothing that the constraints could move
        return np.zeros(b.shape), 0.0
    # Moved as one piece, the mechanism has this: nothing counts that is far below.
    mean = mean + (1.0 / mass if mass > 0.0 else 0.0)
    definite, damping = A.copy(), list[Any]()
    for j in range(n):
        part = A[j, j] / (ZEROS[itemsize] * mean)
        damping.append(delta * A[j, j] + HELD[itemsize] * mean / (1.0 + part * part))
        definite[j, j] = A[j, j] + damping[j]
    factors = factored(definite)
    independent: Any = 0.0
    if counted:
        parts = [
            (pivot - damping[j]) / (A[j, j] + EMPTY[itemsize] * mean)
            for j, pivot in enumerate(factors.pivots)
        ]
        # A pivot, as a part r of its diagonal entry, counts as r² / (r² + t²): one above the
        # threshold t, nothing if it is rounding; `linkwise.dynamics.closure_rank` does the same.
        for part in parts:
            independent = independent + part * part / (part * part + INDEPENDENT**2)
    x = factors @ b
    return x + factors @ (b - A @ x), independent
