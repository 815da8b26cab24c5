"""Derivatives along many directions at once: for mechanisms whose code for all would be long.

The direction is an input of the kernel, and a state becomes a batch of all directions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from linkwise.dynamics.kernels import BatchOptions
from linkwise.errors import ShapeError
from linkwise.spatial.array import Array, ArrayLike, floats

STRAIGHT = 10
"""Most degrees of freedom whose directions are all in one kernel."""


def along_all(
    call: Callable[..., Any],
    arrays: Mapping[str, ArrayLike],
    nv: int,
    options: BatchOptions,
    warn: Callable[[Any], None],
) -> Array:
    """A derivative by q and v along each velocity: (..., q or v, nv, results).

    Args:
        call: The kernel of `lw.jvp(..., "q", "v")`.
        arrays: Its inputs besides the directions, each of one state or a batch.
        nv: The number of velocities.
        options: Those of the caller.
        warn: Reports codes of a batch.
    """

    def split(*rows: Any, **some: Any) -> Array:
        *state, ways = rows
        return call(*state, ways[..., :nv], ways[..., nv:], **some)

    flat = along_each(split, arrays, 2 * nv, options, warn)  # all of q, then all of v
    return flat.reshape(*flat.shape[:-2], 2, nv, flat.shape[-1])


def along_each(
    call: Callable[..., Any],
    arrays: Mapping[str, ArrayLike],
    count: int,
    options: BatchOptions,
    warn: Callable[[Any], None],
) -> Array:
    """The results for each unit vector as the last input (..., count, results).

    Args:
        call: A kernel.
        arrays: Its other inputs, each of one state or a batch.
        count: The length of the last input.
        options: Those of the caller.
        warn: Reports codes of a batch.
    """
    given = [floats(x, name) for name, x in arrays.items()]
    try:
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in given))
    except ValueError as error:
        raise ShapeError(f"the batches of {', '.join(arrays)} differ: {error}.") from None
    rows = [np.repeat(x, count, axis=0) if x.ndim == 2 else x for x in given]
    ways = np.tile(np.eye(count), (int(np.prod(lead)), 1))
    status, codes = options.get("status"), np.zeros(len(ways), np.int32)
    flat = call(*rows, ways, status=codes, threads=options.get("threads"))
    each = codes.reshape(*lead, count).max(axis=-1, initial=0)
    if status is not None:
        status[...] = each
    elif not lead and each:
        call(*given, np.zeros(count))  # raises
    elif each.any():
        warn(np.atleast_1d(each))
    return flat.reshape(*lead, count, -1)
