"""Inputs of a rollout whose meaning does not depend on how many cases are computed together.

A rollout reads an array (k, n) as a row for each step or for each motion, by what k is. In a study
the number of motions is that of a batch, so here its place says what it is:

| who gives it | (k, n) is | else |
| --- | --- | --- |
| options of the study | a row for each step, k = steps | one for all cases: (n,) or (1, k, n) |
| `setup` | a row for each case, k = cases | (n,), (1, steps, n) or (cases, steps, n) |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import ShapeError
from linkwise.simulation.rollout_input import check_controller, commands, law_inputs
from linkwise.spatial.array import Array, floats

ARRAYS, GROUPS = ("tau", "controls"), ("inputs", "parameters", "noise")
"""Arguments of `lw.rollout` that are held over steps: arrays, and dictionaries of arrays."""

Change = Callable[[str, Any], Any]
"""From the name of an input and its array to another array."""


def check_steps(options: Mapping[str, Any], steps: int) -> None:
    """Raise ShapeError for an input of all cases that has rows of single cases."""

    def check(name: str, array: Any) -> Any:
        rows = array.shape[0] if array.ndim == 2 else 1
        if array.ndim > 3 or (array.ndim == 3 and array.shape[0] != 1) or rows not in (1, steps):
            n = array.shape[-1]
            raise ShapeError(
                f"{name} has shape {array.shape}; for all cases of a study it is ({n},), or "
                f"({steps}, {n}) with a row for each of the {steps} steps. Give `setup` a function "
                f"that returns (cases, {n}) for a row of each case."
            )
        return array

    _changed(options, check)


def of_cases(given: Mapping[str, Any], cases: int, steps: int) -> dict[str, Any]:
    """What `setup` returned, with rows of cases held over all steps (cases, 1, n).

    Raises:
        ShapeError: Rows that are not those of the cases.
    """

    def change(name: str, array: Any) -> Any:
        if array.ndim != 2 or array.shape[0] == 1:
            return array
        if array.shape[0] == cases:
            return array[:, None]
        n = array.shape[1]
        raise ShapeError(
            f"setup returned {name} of shape {array.shape} for {cases} cases; it must be "
            f"({cases}, {n}) with a row for each case, (1, {steps}, {n}) with one for each step, "
            f"or ({cases}, {steps}, {n})."
        )

    return _changed(given, change)


def _changed(options: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """The same arguments with each held array changed."""
    result = dict(options)
    for name in ARRAYS:
        if result.get(name) is not None:
            result[name] = change(name, _array(result[name], name))
    for group in GROUPS:
        if isinstance(result.get(group), Mapping):
            each = cast("Mapping[str, Any]", result[group]).items()
            result[group] = {k: _each(f"{group}[{k!r}]", x, change) for k, x in each}
    controller: object = result.get("controller")
    if isinstance(controller, tuple):
        law, goal = check_controller(cast("tuple[Any, ...]", controller))
        if law is not None and goal is not None and "goal" in law_inputs(law):
            result["controller"] = (law, change("the goal", commands(law, goal)["goal"]))
    return result


def _each(name: str, value: Any, change: Change) -> Any:
    """An array, or a deviation of noise with its times."""
    if isinstance(value, tuple) and name.startswith("noise"):
        sigma, *times = cast("tuple[Any, ...]", value)
        return (change(name, _array(sigma, name)), *times)
    return change(name, _array(value, name))


def _array(value: Any, name: str) -> Any:
    return value if hasattr(value, "ndim") else floats(value, name)


def at_records(row: Array, steps: NDArray[np.int64], cases: int, size: int) -> Array:
    """A held input at the records of a batch (cases, k, n).

    Args:
        row: The input (n,), (steps, n), (1, steps, n), (cases, 1, n) or (cases, steps, n).
        steps: The step that begins at each record (k,); the last one begins none.
        cases: Of the batch.
        size: n; one number may replace a row.
    """
    if row.ndim > 1 and row.shape[-2] > 1:
        row = np.take(row, np.minimum(steps, row.shape[-2] - 1), axis=-2)
    return np.broadcast_to(row, (cases, len(steps), size))
