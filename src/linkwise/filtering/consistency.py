"""Whether a filter knows how well it knows: errors and innovations against chi-square.

    NEES  e* P⁻¹ e  of the error e of an estimate           chi-square with n degrees of freedom
    NIS   ε* D⁻¹ ε  of the innovation ε of a measurement    chi-square with its size

Their averages over many runs stay within bounds that narrow with the number of runs. Above them the
filter trusts itself too much; below, too little.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from linkwise.arguments import count, number
from linkwise.brief import brief
from linkwise.errors import MissingExtraError, ModelError
from linkwise.spatial.array import Array, ArrayLike, floats


@brief
class Consistency(NamedTuple):
    """Averages over runs, with the bounds that hold with the stated probability.

    Attributes:
        average: Average over the runs (ticks,).
        lower: Lower bound of each of them.
        upper: Upper bound of each of them.
        inside: Share of ticks whose average is within the bounds.
    """

    average: Array
    lower: float
    upper: float
    inside: float


def quantile(level: float, size: int) -> float:
    """The bound below which chi-square with `size` degrees of freedom is with a probability."""
    level = number(level, "gate", above=0.0, below=1.0)
    return float(_chi2().ppf(level, size))


def consistency(values: ArrayLike, size: int, *, level: float = 0.95) -> Consistency:
    """Compare NEES or NIS of many runs with chi-square.

    Args:
        values: NEES or NIS (runs, ticks); NaN where there is none.
        size: Degrees of freedom: numbers in the error or in the measurement.
        level: Probability with which an average is within the bounds.
    """
    array, size = floats(values, "values"), count(size, "size", least=1)
    level = number(level, "level", above=0.0, below=1.0)
    if array.ndim != 2 or not array.size:
        raise ModelError(f"values has shape {array.shape}; it must be (runs, ticks).")
    came = np.isfinite(array)
    runs: Array = np.asarray(came.sum(axis=0))
    if not runs.all():
        raise ModelError("values has a tick without any number; leave such ticks out.")
    average = floats(np.where(came, array, 0.0).sum(axis=0) / runs, "average")
    least, chi2 = int(np.min(runs)), _chi2()
    lower, upper = (
        float(chi2.ppf(0.5 + sign * 0.5 * level, least * size) / least) for sign in (-1, 1)
    )
    inside = float(np.mean((lower <= average) & (average <= upper)))
    return Consistency(average, lower, upper, inside)


def _chi2() -> Any:
    try:
        return import_module("scipy.stats").chi2
    except ImportError:
        raise MissingExtraError("chi-square bounds", package="scipy", extra="simulate") from None
