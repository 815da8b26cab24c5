"""How small a pivot of D may be before its hinge is called singular.

D(k) = H(k) P(k) H*(k), and P(k) is the body's own inertia plus something positive: no pivot of D is
smaller than the same pivot of H M H*. One that falls below a hundredth of it is rounding error.
Where the body itself has no inertia in that direction, or the direction depends on q, the size of
what it is and carries is the measure.
"""

from __future__ import annotations

import numpy as np

from linkwise.model.embedded import Embedded
from linkwise.model.lumps import inertia_at
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

OWN = 0.01
"""Least pivot of D, relative to the body's own."""

CARRIED = {8: 1e-13, 4: 3e-7}
"""Least pivot of D, relative to the inertia of what is carried, by bytes of a number."""

ROUNDING = 1e-14
"""Least pivot of H M H*, relative to the inertia of the body: below it is rounding error."""

SINGULAR = {8: 1e-12, 4: 1e-5}
"""Least pivot of a matrix over nodes, relative to its diagonal entry, by bytes of a number."""


def thresholds(mech: Mechanism, k: int, itemsize: int = 8) -> Array:
    """The smallest pivot of D for each velocity of body k, in the units of its inertia (nv_k,)."""
    body = mech.bodies[k]
    H = np.atleast_2d(body.hinge.hinge_map(body.hinge.neutral()) @ body.outboard.shift)
    if body.lumps:
        D = H @ mech.inertias[k].matrix @ H.T
        for lump in body.lumps:
            H_i = lump.hinge.hinge_map(lump.hinge.neutral())
            D = D + H_i @ lump.inertia.matrix @ H_i.T
        return CARRIED[itemsize] * np.diag(D)
    inertia = mech.inertias[k]
    noise = ROUNDING * _size(H, float(np.trace(inertia.J)), float(inertia.mass))
    alone = _pivots(H @ inertia.matrix @ H.T, noise)
    limit = np.full(body.hinge.nq, np.inf)
    elsewhere = body.hinge.random(np.random.default_rng(0), -limit, limit)
    turned = body.hinge.hinge_map(elsewhere)
    if not np.array_equal(turned @ body.outboard.shift, H):  # H depends on q
        alone = np.zeros(len(H))
    if (alone > 0.0).all():
        return OWN * alone
    return np.where(alone > 0.0, OWN * alone, CARRIED[itemsize] * _size(H, *carried(mech, k)))


def aggregate_thresholds(tree: Embedded, g: int, itemsize: int = 8) -> Array:
    """The least pivot of D at each independent velocity of an aggregate (n_u,).

    Which bodies move with it depends on q; what its own body is and carries is the measure.
    """
    mech, group, least = tree.mech, tree.bodies[g], list[float]()
    for i in (group.velocities[j] for j in group.independent):
        k = int(np.searchsorted(mech.v_start, i, side="right")) - 1
        hinge, inner = mech.bodies[k].hinge, i - int(mech.v_start[k])
        row = np.atleast_2d(hinge.hinge_map(hinge.neutral()))[inner : inner + 1]
        least.append(float(_size(row, *carried(mech, k))[0]))
    return CARRIED[itemsize] * np.array(least)


def _size(H: Array, angular: float, linear: float) -> Array:
    """Size of H M H* at each row of H, for an inertia M of that size."""
    return angular * (H[:, :3] ** 2).sum(axis=1) + linear * (H[:, 3:] ** 2).sum(axis=1)


def _pivots(D: Array, noise: Array) -> Array:
    """Diagonal of L D L*, without pivoting; zero from where it breaks down, or is noise."""
    A, n = D.copy(), len(D)
    pivots = np.zeros(n)
    for j in range(n):
        if A[j, j] <= max(1e-12 * D[j, j], noise[j]):
            return pivots
        pivots[j] = A[j, j]
        A[j:, j:] -= np.outer(A[j:, j], A[j, j:]) / A[j, j]
    return pivots


def carried(mech: Mechanism, k: int) -> tuple[float, float]:
    """Sizes of the rotational inertia and of the mass met first on the way out from body k."""
    angular, linear, stack = 0.0, 0.0, [(k, 0.0)]
    while stack:
        j, reach = stack.pop()
        inertia = mech.inertias[j]
        if mech.bodies[j].lumps:
            inertia = inertia_at(mech.bodies[j], mech.bodies[j].hinge.neutral())
        angular += float(np.trace(inertia.J)) + float(inertia.mass) * reach**2
        linear += float(inertia.mass)
        if j == k or float(inertia.mass) == 0.0:
            for c in mech.children[j]:
                stack.append((c, reach + float(np.linalg.norm(mech.bodies[c].inboard.p))))
    return angular, linear
