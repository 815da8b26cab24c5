"""Inertias that a body can have: the pseudo-inertia and its Cholesky coordinates.

    J = [ ½ tr(I) 1 − I   h ]     is positive definite exactly if m > 0 and I is the tensor of
        [ h*              m ]     masses that are nowhere negative

so that J = U U* with an upper triangular U of positive diagonal, written in ten free numbers: the
logarithms of its diagonal and what stands above it. Any ten numbers are an inertia.
"""

from __future__ import annotations

import numpy as np

from linkwise.spatial.array import Array

PLACES = tuple((i, j) for i in range(4) for j in range(i, 4))
"""Entries of U, in the order of the ten numbers."""

ROWS, COLUMNS = np.array(PLACES).T


def _maps() -> tuple[Array, Array]:
    """Linear maps from the ten inertial parameters to J (16, 10), and back (10, 16)."""
    to = np.zeros((4, 4, 10))
    to[3, 3, 0] = 1.0
    for i in range(3):
        to[i, 3, 1 + i] = to[3, i, 1 + i] = 1.0
        for k in range(3):  # ½ (Jxx + Jyy + Jzz) − J_ii
            to[i, i, 4 + k] = -0.5 if k == i else 0.5
    for place, (i, j) in zip((7, 8, 9), ((0, 1), (0, 2), (1, 2)), strict=True):
        to[i, j, place] = to[j, i, place] = -1.0
    flat = to.reshape(16, 10)
    return flat, np.asarray(np.linalg.pinv(flat), dtype=np.float64)


TO_PSEUDO, FROM_PSEUDO = _maps()

LARGEST = 50.0
"""Logarithm of a diagonal entry beyond which a search has gone astray."""

FLAT = 1e-9
"""Moments of Σ below this part of the largest are those of bodies without thickness, such as rods,
up to rounding; their logarithms could be anything."""

RAISED = 1e-2
"""These, and those that no body can have, are raised to this part of the largest."""


def pseudo_inertia(ten: Array) -> Array:
    """J (4, 4) of ten inertial parameters."""
    return (TO_PSEUDO @ ten).reshape(4, 4)


def is_consistent(ten: Array) -> bool:
    """Whether a body can have these ten inertial parameters."""
    return bool(np.linalg.eigvalsh(pseudo_inertia(ten))[0] > 0.0)


def coordinates(ten: Array) -> Array:
    """The ten free numbers of an inertia, or of one near it that a body with thickness can have.

    Where bodies are thick is seen at their centre of mass c, relative to their own size:

        [ Σ + m c c*   m c ]
        [ m c*         m   ],     Σ = ∫ (r − c) (r − c)* dm
    """
    J = pseudo_inertia(ten)
    mass, h = J[3, 3], J[:3, 3]
    if not mass > 0.0:
        values, vectors = np.linalg.eigh(J)
        return _of_pseudo((vectors * np.maximum(values, RAISED * np.abs(values).max())) @ vectors.T)
    outer = np.outer(h, h) / mass
    values, vectors = np.linalg.eigh(J[:3, :3] - outer)
    size = float(np.abs(values).max())
    if size <= FLAT * float(np.trace(outer)):  # a point mass
        size = float(np.trace(outer)) or mass
    if values[0] <= FLAT * size:
        values = np.where(values <= FLAT * size, RAISED * size, values)
        J[:3, :3] = (vectors * values) @ vectors.T + outer
    return _of_pseudo(J)


def exact_coordinates(ten: Array) -> Array:
    """The ten free numbers of an inertia that a body can have."""
    return _of_pseudo(pseudo_inertia(ten))


def _of_pseudo(matrix: Array) -> Array:
    # An upper factor: the lower one of the matrix read from its end.
    root = np.linalg.cholesky(matrix[::-1, ::-1])[::-1, ::-1]
    return np.array([np.log(root[i, j]) if i == j else root[i, j] for i, j in PLACES])


def parameters(free: Array) -> tuple[Array, Array]:
    """Ten inertial parameters (10,) of ten free numbers, and their derivative (10, 10)."""
    root, rates = _root(free)
    slopes = np.zeros((10, 4, 4))
    slopes[range(10), ROWS, COLUMNS] = rates
    product = slopes @ root.T
    changes = product + product.transpose(0, 2, 1)
    return FROM_PSEUDO @ (root @ root.T).ravel(), FROM_PSEUDO @ changes.reshape(10, 16).T


def bending(free: Array, slope: Array) -> Array:
    """Second derivatives (10, 10) by the free numbers of slope* π.

    With slope* π = tr(G U U*):   ∂² / ∂U_ij ∂U_kl = 2 G_ik δ_jl,   and U_ii is an exponential.
    """
    root, rates = _root(free)
    G = (FROM_PSEUDO.T @ slope).reshape(4, 4)
    G = 0.5 * (G + G.T)
    out = 2.0 * G[np.ix_(ROWS, ROWS)] * (COLUMNS[:, None] == COLUMNS) * np.outer(rates, rates)
    places = np.flatnonzero(ROWS == COLUMNS)
    out[places, places] += 2.0 * np.diag(G @ root) * np.diag(root)
    return out


def share_to_flat(ten: Array, change: Array) -> float:
    """By what share of a change the body becomes flat; infinite if it does not."""
    root = np.linalg.cholesky(pseudo_inertia(ten))
    inside = np.linalg.solve(root, np.linalg.solve(root, pseudo_inertia(change)).T)
    least = float(np.linalg.eigvalsh(0.5 * (inside + inside.T))[0])
    return -1.0 / least if least < 0.0 else np.inf


def sizes(free: Array) -> Array:
    """For each of ten free numbers, a change that is large: 1 of logarithms, else √J_ii."""
    lengths = np.linalg.norm(_root(free)[0], axis=1)
    return np.where(ROWS == COLUMNS, 1.0, lengths[ROWS])


def _root(free: Array) -> tuple[Array, Array]:
    """U, and the derivatives of its entries by the ten free numbers."""
    diagonal = ROWS == COLUMNS
    entries = np.where(diagonal, np.exp(np.minimum(free, LARGEST)), free)
    root = np.zeros((4, 4))
    root[ROWS, COLUMNS] = entries
    return root, np.where(diagonal, entries, 1.0)
