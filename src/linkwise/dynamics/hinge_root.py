"""Square roots of the hinge inertias D, one small block for each hinge.

D = s s* with s upper triangular. Bodies are stored base first, so that a causal operator stands on
and above the block diagonal: (I + H φ K) s is upper triangular down to the single freedom, and
hence the one such factor of 𝓜 that has a positive diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra.symbols import articulated
from linkwise.dynamics.codes import Codes
from linkwise.dynamics.kernels import kernel
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.choice import root

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

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


@once_per_mechanism
def places(mech: Mechanism) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]:
    """Bodies (hinges,) and freedoms (hinges, m) of the hinges that have m freedoms, for each m."""
    sizes = [body.hinge.nv for body in mech.bodies]
    found = list[tuple[NDArray[np.int64], NDArray[np.int64]]]()
    for m in sorted(set(sizes) - {0}):
        of = np.array([k for k, size in enumerate(sizes) if size == m], dtype=np.int64)
        found.append((of, mech.v_start[of][:, None] + np.arange(m)))
    return tuple(found)


def hinge_blocks(mech: Mechanism, name: str, codes: Codes, *arrays: Array) -> HingeBlocks:
    """The blocks of a memoryless operator.

    Args:
        mech: The mechanism.
        name: A quantity that gives blocks, (..., n_bodies, r, r).
        codes: Collects what is wrong with states, whose blocks are NaN.
        arrays: What it takes: q (..., nq), and v (..., nv) where it needs them.
    """
    blocks, where = codes.run(kernel(mech, name), *arrays), places(mech)
    values = (blocks[..., of, : at.shape[1], : at.shape[1]] for of, at in where)
    return HingeBlocks(tuple(at for _, at in where), tuple(values))


def hinge_root(mech: Mechanism, q: Array, codes: Codes | None = None) -> HingeBlocks:
    """s with s s* = D, the upper triangular root of each block of D.

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq).
        codes: Collects what is wrong with states of a batch; without it nobody is told.
    """
    D = hinge_blocks(mech, "hinge_inertia", codes or Codes(None, q), q)
    return HingeBlocks(D.places, tuple(upper_root(value) for value in D.values))


def whitened(at: Writing, X: Any) -> Any:
    """s⁻¹ X (nv, m) for X (nv, m), D = s s*, as a formula; s is a lower triangle here."""
    D, rows = at.value(articulated.D, blocks=True), list[Any]()
    for k, body in enumerate(at.mech.bodies):
        start, n = int(at.mech.v_start[k]), body.hinge.nv
        s = np.full((n, n), 0.0, dtype=object)
        for i in range(n):
            for j in range(i + 1):
                left = D[k, i, j] - sum(s[i, :j] * s[j, :j])
                s[i, j] = root(left) if i == j else left / s[j, j]
            below = X[start + i] - sum(s[i, j] * rows[start + j] for j in range(i))
            rows.append(below / s[i, i])
    return np.array(rows, dtype=object).reshape(X.shape)


def upper_root(A: Array) -> Array:
    """The upper triangular U with U U* = A, positive on its diagonal: Cholesky from the end."""
    if A.shape[-1] == 1:
        return np.sqrt(A)
    fine = np.isfinite(A).all(axis=(-1, -2), keepdims=True)
    turned = np.linalg.cholesky(np.where(fine, A, np.eye(A.shape[-1]))[..., ::-1, ::-1])
    return np.where(fine, turned[..., ::-1, ::-1], np.nan)


def _inverse(A: Array) -> Array:
    return 1.0 / A if A.shape[-1] == 1 else np.asarray(np.linalg.inv(A), dtype=np.float64)
