"""Square roots of the hinge inertias D, one small block for each hinge.

D = s s* with s upper triangular. Bodies are stored base first, so that a causal operator stands on
and above the block diagonal: (I + H φ K) s is upper triangular down to the single freedom, and
hence the one such factor of 𝓜 that has a positive diagonal.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.kernels import kernel
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

Places: TypeAlias = tuple[NDArray[np.int64], ...]


@dataclass(frozen=True, slots=True)
class HingeBlocks:
    """A memoryless operator from JOINT to JOINT: its blocks, those of one size together.

    Attributes:
        places: For each size m, the freedoms of the hinges that have m of them (hinges, m).
        values: For each size m, the blocks (..., hinges, m, m).
    """

    places: Places
    values: tuple[Array, ...]

    def times(self, x: Array) -> Array:
        """The operator applied to x (..., nv)."""
        return self._applied(x, self.values)

    def star_times(self, x: Array) -> Array:
        """Its adjoint applied to x (..., nv)."""
        return self._applied(x, tuple(np.swapaxes(value, -1, -2) for value in self.values))

    def inverse(self) -> HingeBlocks:
        """Block by block; the blocks of a single freedom are divided."""
        return HingeBlocks(self.places, tuple(_inverse(value) for value in self.values))

    def for_rows(self) -> HingeBlocks:
        """The same for each row of a matrix: applied to (..., rows, nv)."""
        return HingeBlocks(self.places, tuple(value[..., None, :, :, :] for value in self.values))

    def _applied(self, x: Array, values: tuple[Array, ...]) -> Array:
        lead = np.broadcast_shapes(x.shape[:-1], *(value.shape[:-3] for value in values))
        out = np.empty((*lead, x.shape[-1]))
        for place, value in zip(self.places, values, strict=True):
            out[..., place] = (value @ x[..., place][..., None])[..., 0]
        return out


def places(mech: Mechanism) -> Places:
    """The freedoms of the hinges, hinges with equally many together."""
    if "hinge places" not in mech.kept:
        found = defaultdict[int, list[NDArray[np.int64]]](list)
        for k, body in enumerate(mech.bodies):
            if body.hinge.nv:
                found[body.hinge.nv].append(mech.v_start[k] + np.arange(body.hinge.nv))
        mech.kept["hinge places"] = tuple(np.array(found[size]) for size in sorted(found))
    return mech.kept["hinge places"]


def hinge_blocks(mech: Mechanism, name: str, *arrays: Array) -> HingeBlocks:
    """The blocks of a memoryless operator, from a kernel that applies it to a vector x.

    The j-th column of every block comes of one call, with x = 1 at the j-th freedom of each hinge.

    Args:
        mech: The mechanism.
        name: The quantity of the product; its last argument is x.
        arrays: The others: q (..., nq), and v (..., nv) where it needs them.
    """
    found, where = kernel(mech, name), places(mech)
    most = max((place.shape[1] for place in where), default=0)
    picks = np.zeros((most, mech.nv))
    for place in where:
        for j in range(place.shape[1]):
            picks[j, place[:, j]] = 1.0
    lead = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
    # Trouble is told by the kernel that this goes with, so that codes are asked for and dropped.
    if not lead:  # one state: all columns in one call
        columns = list(found(*arrays, picks, status=np.zeros(most, dtype=np.int32)))
    else:
        columns = [found(*arrays, x, status=np.zeros(lead, dtype=np.int32)) for x in picks]
    values = tuple(
        np.stack([column[..., place] for column in columns[: place.shape[1]]], axis=-1)
        for place in where
    )
    return HingeBlocks(where, values)


def hinge_root(mech: Mechanism, q: Array) -> HingeBlocks:
    """s with s s* = D, the upper triangular root of each block of D."""
    D = hinge_blocks(mech, "hinge_inertia_product", q)
    return HingeBlocks(D.places, tuple(upper_root(value) for value in D.values))


def upper_root(A: Array) -> Array:
    """The upper triangular U with U U* = A, positive on its diagonal: Cholesky from the end."""
    if A.shape[-1] == 1:
        return np.sqrt(A)
    fine = np.isfinite(A).all(axis=(-1, -2), keepdims=True)
    turned = np.linalg.cholesky(np.where(fine, A, np.eye(A.shape[-1]))[..., ::-1, ::-1])
    return np.where(fine, turned[..., ::-1, ::-1], np.nan)


def _inverse(A: Array) -> Array:
    return 1.0 / A if A.shape[-1] == 1 else np.asarray(np.linalg.inv(A), dtype=np.float64)
