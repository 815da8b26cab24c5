"""Roots L of the mass matrix, 𝓜 = L L*, with which vectors are whitened.

Of small mechanisms L is the upper triangle of Cholesky. Of large ones it is (I + H φ K) s, which
sweeps apply, with one small block of s for each hinge: D = s s*, s upper triangular. Bodies are
stored base first, so that a causal operator lies on and above the block diagonal: (I + H φ K) s is
upper triangular down to the single joint velocity, and hence the one such factor of 𝓜 that has a
positive diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import mass, tau
from linkwise.algebra.symbols import articulated
from linkwise.brief import brief
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.orthogonal import solved, solved_below, triangle_of
from linkwise.dynamics.kernels import named
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.choice import where

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

LARGE = 50
"""Joint velocities from which on sweeps are faster than triangles."""

PIVOT = {8: 1e-14, 4: 1e-6}
"""Least part of the inertia of a joint that is independent of others, by bytes of a number."""

Places: TypeAlias = tuple[NDArray[np.int64], ...]


@dataclass(frozen=True, slots=True)
class HingeBlocks:
    """A memoryless operator from JOINT to JOINT: its blocks, those of one size together.

    Attributes:
        places: For each size m, the velocities of the hinges that have m of them (hinges, m).
        values: For each size m, the blocks (..., hinges, m, m).
    """

    places: Places
    values: tuple[Array, ...]

    def times(self, x: Array) -> Array:
        """The operator applied to x (..., nv)."""
        lead = np.broadcast_shapes(x.shape[:-1], *(value.shape[:-3] for value in self.values))
        out = np.empty((*lead, x.shape[-1]))
        for place, value in zip(self.places, self.values, strict=True):
            out[..., place] = (value @ x[..., place][..., None])[..., 0]
        return out

    def inverse(self) -> HingeBlocks:
        """The inverse, block by block."""
        return HingeBlocks(self.places, tuple(_inverse(value) for value in self.values))

    def for_rows(self) -> HingeBlocks:
        """The same for each row of a matrix: applied to (..., rows, nv)."""
        return HingeBlocks(self.places, tuple(value[..., None, :, :, :] for value in self.values))


@once_per_mechanism
def places(mech: Mechanism) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]:
    """Bodies (hinges,) and velocities (hinges, m) of the hinges with m of them, for each m."""
    sizes = [body.hinge.nv for body in mech.bodies]
    groups = list[tuple[NDArray[np.int64], NDArray[np.int64]]]()
    for m in sorted(set(sizes) - {0}):
        of = np.array([k for k, size in enumerate(sizes) if size == m], dtype=np.int64)
        groups.append((of, mech.v_start[of][:, None] + np.arange(m)))
    return tuple(groups)


def hinge_root(mech: Mechanism, q: Array) -> HingeBlocks:
    """s with s s* = D, the upper triangular root of each block of D; NaN where D has none."""
    D = named(mech, "hinge_inertia")(q, status=np.empty(q.shape[:-1], np.int32))
    where = places(mech)
    values = (upper_root(D[..., of, : at.shape[1], : at.shape[1]]) for of, at in where)
    return HingeBlocks(tuple(at for _, at in where), tuple(values))


@dataclass(frozen=True, slots=True)
class HingeRoot:
    """s with s s* = D, in a formula.

    Attributes:
        blocks: For each body the place of its hinge in v, and the upper triangle s (m, m).
    """

    blocks: list[tuple[slice, Any]]

    def times(self, x: Any) -> Any:
        """s x of x (nv,)."""
        return self._each(lambda s, x: s @ x, x)

    def star_times(self, x: Any) -> Any:
        """s* x."""
        return self._each(lambda s, x: s.T @ x, x)

    def solved(self, x: Any) -> Any:
        """s⁻¹ x of x (nv,) or (nv, m)."""
        return self._each(solved, x)

    def star_solved(self, x: Any) -> Any:
        """s⁻* x."""
        return self._each(solved_below, x)

    def both_solved(self, D: Any) -> list[Any]:
        """s⁻¹ D s⁻* of blocks D (n_bodies, r, r)."""
        parts = list[Any]()
        for (_, s), block in zip(self.blocks, D, strict=True):
            left = solved(s, block[: len(s), : len(s)])
            parts.append(solved(s, left.T).T)
        return parts

    def _each(self, act: Callable[[Any, Any], Any], x: Any) -> Any:
        return np.concatenate([x[:0], *(act(s, x[place]) for place, s in self.blocks)])


def root_of(at: Writing, **given: Any) -> HingeRoot:
    """The upper triangular root of each block of D, in a formula; at another q if given."""
    D, starts = at.value(articulated.D, blocks=True, **given), at.mech.v_start.tolist()
    sizes = enumerate(body.hinge.nv for body in at.mech.bodies)
    return HingeRoot(
        [(slice(starts[k], starts[k + 1]), triangle_of(D[k, :n, :n])) for k, n in sizes]
    )


def upper_root(A: Array) -> Array:
    """The upper triangular U with U U* = A, positive on its diagonal: Cholesky from the end."""
    if A.shape[-1] == 1:
        return np.sqrt(A)
    fine = np.isfinite(A).all(axis=(-1, -2), keepdims=True)
    turned = np.linalg.cholesky(np.where(fine, A, np.eye(A.shape[-1]))[..., ::-1, ::-1])
    return np.where(fine, turned[..., ::-1, ::-1], np.nan)


def _inverse(A: Array) -> Array:
    return 1.0 / A if A.shape[-1] == 1 else np.asarray(np.linalg.inv(A), dtype=np.float64)


@brief
class MassRoot(NamedTuple):
    """L.

    Attributes:
        at: The formula.
        q: Joint positions (nq,).
        triangle: L (nv, nv); empty for large mechanisms.
    """

    at: Writing
    q: Any
    triangle: Any

    def whitened(self, X: Any) -> Any:
        """L⁻¹ X for X (nv,) or (nv, k)."""
        if len(self.triangle):
            return solved(self.triangle, X)
        at, columns = self.at, X.reshape(len(X), -1).T
        swept = [at.value(articulated.whitening @ tau, q=self.q, tau=x) for x in columns]
        return root_of(at, q=self.q).solved(np.array(swept).T).reshape(X.shape)

    def unwhitened(self, W: Any) -> Any:
        """L⁻* W for W (nv, k): velocities of diagonal ones."""
        if len(self.triangle):
            return solved_below(self.triangle, W)
        s, at = root_of(self.at, q=self.q), self.at
        swept = [
            at.value(articulated.whitening.T @ tau, q=self.q, tau=s.star_solved(w)) for w in W.T
        ]
        return np.array(swept).T

    def acceleration(self, w: Any, force: Any) -> Any:
        """v̇ = L⁻* w = 𝓜⁻¹ f, for f = L w."""
        if len(self.triangle):
            return solved_below(self.triangle, w)
        return self.at.value(mass.inv @ tau, q=self.q, tau=force)


def mass_root(at: Writing, inertia: Any) -> MassRoot:
    """The root of 𝓜 (nv, nv); a hinge that nothing resists is reported.

    Args:
        at: The formula.
        inertia: 𝓜; None for large mechanisms, which need none.
    """
    if inertia is None:
        return MassRoot(at, at.q, np.zeros((0, 0)))
    diagonal = np.diag(inertia)
    for i, x in enumerate(diagonal):
        if getattr(x, "constant", None) == 0.0:  # in every state
            k = int(np.searchsorted(at.mech.v_start, i, side="right")) - 1
            raise status.error(status.hinge(k), at.mech)
    triangle = triangle_of(inertia)
    for k in range(at.mech.n_bodies):
        for i in range(int(at.mech.v_start[k]), int(at.mech.v_start[k + 1])):
            pivot = triangle[i, i] * triangle[i, i] / where(diagonal[i], diagonal[i], 1.0)
            at.check(status.hinge(k), pivot, PIVOT[at.itemsize], np.inf)
    return MassRoot(at, at.q, triangle)
