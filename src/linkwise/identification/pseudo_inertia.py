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

LEAST = 1e-3
"""Eigenvalues that no body can have are raised to this part of the largest."""


def pseudo_inertia(ten: Array) -> Array:
    """J (4, 4) of ten inertial parameters."""
    return (TO_PSEUDO @ ten).reshape(4, 4)


def is_consistent(ten: Array) -> bool:
    """Whether a body can have these ten inertial parameters."""
    return bool(np.linalg.eigvalsh(pseudo_inertia(ten))[0] > 0.0)


def coordinates(ten: Array) -> Array:
    """The ten free numbers of an inertia, or of the nearest one that a body can have."""
    values, vectors = np.linalg.eigh(pseudo_inertia(ten))
    if values[0] <= 0.0:
        values = np.maximum(values, LEAST * np.abs(values).max())
    near = (vectors * values) @ vectors.T
    # An upper factor: the lower one of the matrix read from its end.
    root = np.linalg.cholesky(near[::-1, ::-1])[::-1, ::-1]
    return np.array([np.log(root[i, j]) if i == j else root[i, j] for i, j in PLACES])


def parameters(free: Array) -> tuple[Array, Array]:
    """Ten inertial parameters (10,) of ten free numbers, and their derivative (10, 10)."""
    root, slopes = np.zeros((4, 4)), np.zeros((10, 4, 4))
    for k, (i, j) in enumerate(PLACES):
        root[i, j] = np.exp(min(free[k], LARGEST)) if i == j else free[k]
        slopes[k, i, j] = root[i, j] if i == j else 1.0
    product = slopes @ root.T
    changes = product + product.transpose(0, 2, 1)
    return FROM_PSEUDO @ (root @ root.T).ravel(), FROM_PSEUDO @ changes.reshape(10, 16).T
