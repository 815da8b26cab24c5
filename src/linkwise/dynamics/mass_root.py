"""A root L of the mass matrix in formulas, 𝓜 = L L*: what is whitened by it.

Of small mechanisms L is the upper triangle of Cholesky. Of large ones, (I + H φ K) s with D = s s*,
which sweeps apply (`hinge_root.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.algebra import mass, tau
from linkwise.algebra.symbols import articulated
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.orthogonal import solved, solved_below, triangle_of
from linkwise.dynamics.hinge_root import root_of
from linkwise.spatial.choice import where

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

LARGE = 50
"""Freedoms from which on sweeps take less time than triangles."""

PIVOT = {8: 1e-14, 4: 1e-6}
"""Least part of the inertia of a freedom that is its own, by bytes of a number."""


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
    triangle, own = triangle_of(inertia), np.diag(inertia)
    for k in range(at.mech.n_bodies):
        for i in range(int(at.mech.v_start[k]), int(at.mech.v_start[k + 1])):
            pivot = triangle[i, i] * triangle[i, i] / where(own[i], own[i], 1.0)
            at.check(status.hinge(k), pivot, PIVOT[at.itemsize], np.inf)
    return MassRoot(at, at.q, triangle)
