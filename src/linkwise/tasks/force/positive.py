"""Numbers that have to be positive."""

from __future__ import annotations

import numpy as np

from linkwise.errors import ModelError
from linkwise.spatial.array import floats


def positive(what: str, value: object, unit: str) -> float:
    """A finite number above zero.

    Raises:
        ModelError: It is not; says what it is, and its unit.
    """
    number = floats(value, what)
    if number.shape != () or not 0.0 < number < np.inf:
        raise ModelError(f"{what} is {value!r}; it must be a finite number above zero [{unit}].")
    return float(number)


def not_negative(what: str, value: object, unit: str) -> float:
    """A finite number, zero or above.

    Raises:
        ModelError: It is not; says what it is, and its unit.
    """
    number = floats(value, what)
    if number.shape != () or not 0.0 <= number < np.inf:
        raise ModelError(f"{what} is {value!r}; it must be a finite number, not negative [{unit}].")
    return float(number)
