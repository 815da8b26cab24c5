"""Roots L of the mass matrix, 𝓜 = L L*, with which vectors are whitened.

Of small mechanisms L is the upper triangle of Cholesky. Of large ones it is (I + H φ K) s, which
sweeps apply, with one small block of s for each hinge: D = s s*, s upper triangular. Bodies are
stored base first, so that a causal operator lies on and above the block diagonal: (I + H φ K) s is
upper triangular down to the single joint velocity, and hence the one such factor of 𝓜 that has a
positive diagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.algebra import mass, tau
from linkwise.algebra.symbols import articulated
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.orthogonal import solved, solved_below, triangle_of
from linkwise.spatial.choice import where

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

LARGE = 50
"""Joint velocities from which on sweeps are faster than triangles."""

PIVOT = {8: 1e-14, 4: 1e-6}
"""Least part of the inertia of a joint that is independent of others, by bytes of a number."""


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
    return MassRoot(at, at.q, mass_triangle(at, inertia, range(at.mech.nv)))


def mass_triangle(at: Writing, inertia: Any, velocities: Sequence[int]) -> Any:
    """The upper triangle L with L L* = 𝓜 in some velocities; reports hinges as `mass_root` does."""
    inertia = inertia[np.ix_(velocities, velocities)]
    diagonal = np.diag(inertia)
    bodies = np.searchsorted(at.mech.v_start, list(velocities), side="right") - 1
    for k, x in zip(bodies.tolist(), diagonal, strict=True):
        if getattr(x, "constant", None) == 0.0:  # in every state
            raise status.error(status.hinge(k), at.mech)
    triangle = triangle_of(inertia)
    for i, k in enumerate(bodies.tolist()):
        pivot = triangle[i, i] * triangle[i, i] / where(diagonal[i], diagonal[i], 1.0)
        at.check(status.hinge(k), pivot, PIVOT[at.itemsize], np.inf)
    return triangle
