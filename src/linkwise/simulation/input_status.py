"""The status of the inputs of a batch: which rows are not finite, or off the manifold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import floats
from linkwise.codegen.scalar import status
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array


def input_status(
    mech: Mechanism, given: Mapping[str, Any]
) -> tuple[NDArray[np.int32], dict[str, Any]]:
    """A code for each row, and the arrays with such rows replaced by usable numbers.

    Shapes are left to the checks that follow.

    Args:
        given: Arrays by name, (..., n); "q" is checked for quaternions as well. Commands of
            actuators may be numbers (...) by name.
    """
    codes = np.zeros((), np.int32)
    usable = dict[str, Any]()
    for name, value in given.items():
        if isinstance(value, Mapping):
            columns = dict[str, Array]()
            for key, x in cast("Mapping[str, Any]", value).items():
                column = floats(x, f"{name}[{key!r}]")
                codes = _joined(codes, np.where(np.isfinite(column), 0, status.INPUT))
                columns[key] = np.where(np.isfinite(column), column, 0.0)
            usable[name] = columns
            continue
        array = floats(value, name)
        usable[name] = array
        if not array.ndim or (name == "q" and array.shape[-1] != mech.nq):
            continue
        bad = np.where(np.isfinite(array).all(axis=-1), 0, status.INPUT).astype(np.int32)
        if name == "q":
            bad = np.where(bad != 0, bad, _off_manifold(mech, array))
        if bad.any():
            spare = mech.neutral() if name == "q" else 0.0
            usable[name] = np.where(bad[..., None] != 0, spare, array)
            codes = _joined(codes, bad)
    return codes, usable


def _joined(first: NDArray[np.int32], second: NDArray[Any]) -> NDArray[np.int32]:
    """The first code of each row."""
    try:
        return np.where(first != 0, first, second).astype(np.int32)
    except ValueError:  # of batches that differ, which a later check reports
        return first


def _off_manifold(mech: Mechanism, q: Array) -> NDArray[np.int32]:
    """The code of the first quaternion of each row that is not of unit length."""
    codes = np.zeros(q.shape[:-1], np.int32)
    for k, body in enumerate(mech.bodies):
        part, start = body.hinge.quaternion, int(mech.q_start[k])
        if part is not None:
            length = np.linalg.norm(q[..., start + part.start : start + part.stop], axis=-1)
            off = ~(np.abs(length - 1.0) <= quaternion.TOLERANCE)
            codes = np.where((codes == 0) & off, status.quaternion(k), codes)
    return codes
