"""Numbers that a mechanism can have, nearest to an estimate of base parameters.

    θ̂ = argmin |b̂ − K θ|² in the metric of b̂'s covariance,   over inertias that bodies can have

in free coordinates (`pseudo_inertia.py`), with a weak pull towards the numbers that the mechanism
came with, which decides what the measurements leave open.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.dynamics.regressor import BaseParameters
from linkwise.identification import model
from linkwise.identification.least_squares import Fit, scipy
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

MOST = 200
"""Evaluations of one search, at most."""

SHARES = (1e-6, 1e-4, 1e-2, 1.0)
"""Measurements count by this share in one search after the other: precise ones leave a narrow
valley, which is easier to follow than to find."""


def possible(
    mech: Mechanism, kinds: tuple[str, ...], base: BaseParameters, fit: Fit, pull: float
) -> tuple[Array, Array]:
    """θ̂ and gains: numbers that a mechanism can have, nearest to b̂ in its metric.

    Squares have no bounds, and a fast search; where it ends far away, since they have no slope at
    zero, a slower one has bounds.
    """
    near = _nearest(model.FreeNumbers.of(mech, kinds), base, fit, pull)
    if distance(base, fit, *near) <= 1.0:
        return near
    other = _nearest(model.FreeNumbers.of(mech, kinds, straight=True), base, fit, pull)
    return min(near, other, key=lambda x: distance(base, fit, *x))


def distance(base: BaseParameters, fit: Fit, values: Array, gains: Array) -> float:
    """How far numbers are from the estimate, in standard deviations."""
    miss = fit.information @ (np.concatenate([base.matrix @ values, gains]) - fit.estimate)
    return float(np.sqrt(np.mean(miss**2)))


def _nearest(
    free: model.FreeNumbers, base: BaseParameters, fit: Fit, pull: float
) -> tuple[Array, Array]:
    """Numbers in these coordinates that are nearest to the estimate."""
    info = fit.information
    count, size = len(base.names), len(free.first)
    if not size:
        return free.start, fit.estimate[count:]
    weight, gains = np.sqrt(pull), np.maximum(np.abs(fit.estimate[count:]), 1e-300)

    def misses(x: Array, share: float) -> Array:
        both = np.concatenate([base.matrix @ free.numbers(x[:size])[0], gains * x[size:]])
        miss = info @ (both - fit.estimate)
        return np.concatenate([share * miss, weight * (x - first)[:size]])

    def slopes(x: Array, share: float) -> Array:
        rows = base.matrix @ free.numbers(x[:size])[1]
        both = np.hstack([info[:, :count] @ rows, info[:, count:] * gains])
        return np.vstack([share * both, weight * np.eye(size, len(x))])

    x = np.concatenate([free.first, fit.estimate[count:] / gains])
    first = x
    low, how = np.full(len(x), -np.inf), dict[str, Any](method="lm")
    if free.bounded.any():
        low[:size][free.bounded] = 0.0
        how = {"bounds": (low, np.inf)}
    solve = scipy("optimize").least_squares
    for share in SHARES:
        x = np.maximum(x, low)
        x = solve(misses, x, slopes, args=(share,), x_scale="jac", max_nfev=MOST, **how).x
    return free.numbers(x[:size])[0], gains * x[size:]
