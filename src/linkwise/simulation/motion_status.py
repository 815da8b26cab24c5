"""Motions of a batch that cannot begin: their inputs are not finite, or off the manifold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen import arrays
from linkwise.codegen.scalar import status
from linkwise.codegen.stepping.device import Motions
from linkwise.dynamics.kernels import is_closed
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.input_status import input_status
from linkwise.spatial.array import floats

NAMED = ("inputs", "parameters")
"""Inputs that are given by name."""


def with_status(
    mech: Mechanism, given: Mapping[str, Any], steps: int
) -> tuple[NDArray[np.int32] | None, dict[str, Any]]:
    """A code for each motion, and the inputs with those of another motion where there is a code.

    What motions share, and single motions, are left to the checks that follow; so are arrays that
    do not fit together, and a batch of a mechanism with loops in which no motion is left.

    Args:
        mech: The mechanism.
        given: "q" and "v", (n,) or (batch, n); and inputs, (batch, 1 or steps, n), or (batch, n)
            where these are not rows of steps; "inputs" and "parameters" are mappings.
        steps: The number of steps.

    Returns:
        The codes (batch,), or None for no trouble; and the inputs.
    """
    same, flat = dict(given), dict[str, Any]()
    for name, x in given.items():
        inner = {f"{name} {key}": y for key, y in x.items()} if name in NAMED else {name: x}
        flat |= inner
    if any(map(arrays.is_on_gpu, flat.values())):
        return None, same
    rows = {name: floats(x, name) for name, x in flat.items() if _is_array(name, x)}
    axes = {name: 2 if name in ("q", "v") else 3 for name in rows}
    lengths = {len(x) for name, x in rows.items() if x.ndim == axes[name]}
    batch = max(lengths, default=0)
    if not lengths or not lengths <= {1, batch}:
        return None, same
    apart = {name: x for name, x in rows.items() if x.ndim > 1 and len(x) == batch}
    if batch == steps:  # (steps, n)
        apart = {name: x for name, x in apart.items() if x.ndim == axes[name]}
    codes = np.zeros(batch, np.int32)
    for name, x in apart.items():
        if name in ("q", "v"):
            new = input_status(mech, {name: x})[0]
        else:
            new = np.where(np.isfinite(x).all(axis=tuple(range(1, x.ndim))), 0, status.INPUT)
        codes = np.where(codes != 0, codes, new).astype(np.int32)
    good = np.flatnonzero(codes == 0)
    if len(good) == batch or (not len(good) and is_closed(mech)):
        return None, same
    for name, x in apart.items():
        none = mech.neutral() if name == "q" and x.shape[-1] == mech.nq else 0.0
        usable = np.where((codes != 0).reshape(-1, *[1] * (x.ndim - 1)), none, x)
        if len(good):
            usable[codes != 0] = x[good[0]]
        kind, _, key = name.partition(" ")
        same[kind] = {**same[kind], key: usable} if key else usable
    return codes, same


def _is_array(name: str, x: Any) -> bool:
    """Whether an input is numbers, rather than missing, by name, or a goal such as a pose."""
    if name == "goal":
        return hasattr(x, "__array__")
    return x is not None and not isinstance(x, Mapping)


def without(motions: Motions, codes: NDArray[np.int32]) -> Motions:
    """The motions, with NaN and a code where one could not begin."""
    lost, parts = codes != 0, dict[str, Any]()
    for name in ("q", "v", "more"):
        x = parts[name] = getattr(motions, name).copy()
        x[arrays.cupy().asarray(lost) if arrays.is_on_gpu(x) else lost] = np.nan
    failed = np.where(lost, -1, motions.failed)
    return replace(motions, **parts, status=np.where(lost, codes, motions.status), failed=failed)
