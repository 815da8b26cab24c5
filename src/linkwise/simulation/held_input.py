"""Shapes of what is held over the steps of a rollout: for all, for each step, for each motion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np

from linkwise.errors import ShapeError
from linkwise.spatial.array import Array


def shaped(
    held: Mapping[str, Any],
    sizes: Mapping[str, int],
    steps: int,
    states: Iterable[Any],
    numbers: Iterable[str] = (),
) -> dict[str, Any]:
    """Arrays (n,), (steps, n), (batch, 1, n) or (batch, steps, n) from what was given.

    A row for each motion, (batch, n), is taken for one if it can be nothing else: there are as many
    states, or as many motions of another input, and not as many steps.

    Args:
        held: What is held, by name; arrays that are no NumPy ones are left as they are.
        sizes: n of each.
        steps: How many steps there are.
        states: q and v, (n,) or (batch, n).
        numbers: Names of those where one number may stand for all n of a row, (..., 1).

    Raises:
        ShapeError: An array that does not fit; says what it may be, and what to write.
    """
    wide = set(numbers)
    batches = {int(x.shape[0]) for x in states if x.ndim == 2}
    batches |= {int(x.shape[0]) for x in held.values() if x.ndim == 3}
    batches -= {1, steps}
    found = dict[str, Any]()
    for name, array in held.items():
        found[name] = array
        if isinstance(array, np.ndarray):
            here = cast(Array, array)
            found[name] = _shaped(here, name, sizes[name], steps, batches, name in wide)
    return found


def _shaped(array: Array, name: str, size: int, steps: int, batches: set[int], wide: bool) -> Array:
    if wide and array.shape[-1:] == (1,):
        array = np.broadcast_to(array, (*array.shape[:-1], size))
    shape = array.shape
    if shape == (size,):
        return array
    if array.ndim == 2 and shape[1] == size:
        if shape[0] in (1, steps):
            return array
        if shape[0] in batches:
            return array[:, None]
    if array.ndim == 3 and shape[2] == size and shape[1] in (1, steps):
        return array
    told = (
        f"{name} has shape {shape}; it must be ({size},), ({steps}, {size}) with one row for each "
        f"of the {steps} steps, (batch, 1, {size}) with one for each motion, or "
        f"(batch, {steps}, {size})."
    )
    if array.ndim == 1:
        told += f" For {shape[0]} motions with a number each: {name}[:, None, None]"
        told += "." if wide or size == 1 else f" * np.ones({size})."
    elif array.ndim == 2 and shape[1] == size:
        told += f" For {shape[0]} motions with a row each: {name}[:, None]."
    raise ShapeError(told)
