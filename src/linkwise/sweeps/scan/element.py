"""Elements of associative scans: what a run of bodies does to what comes in at its end.

| recursion | an element maps | by |
| --- | --- | --- |
| y(k) = A y + x | a vector y | (A, x): A y + x |
| R(k) = A R B + M | a matrix R | (A, B, M): A R B + M |
| X(k) = X X_pk | a pose X | (rot, p) |
| Riccati | a symmetric S ≥ 0 | (A, L, U): P + A (S⁻¹ + J)⁻¹ A*, P = L L*, J = U U* |

Two neighbours make one element of the same kind, so `prefixes` combines n of them in 2 log₂ n
rounds, all pairs of a round at once. An element with A = 0 forgets what comes in: several
paths of a tree go through one scan, in sequence.

The last row is a Kalman filter over the bodies (Särkkä and García-Fernández 2021, doi
10.1109/TAC.2020.2976316), without its vectors. Of a run of bodies P is the articulated inertia seen
from its inboard end while the outboard end is free, J the inverse inertia seen from the outboard
end while the inboard end is held, and A how motion comes through. Their factors L and U are
carried, as in Yaghoobi, Corenflos, Hassan and Särkkä (arXiv 2207.00426): P and J themselves would
lose half of the digits where inertias are far apart. All arrays have a leading axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from linkwise.spatial.array import Array

Element: TypeAlias = tuple[Array, ...]
"""Arrays (n, ...), one for each part of n elements."""


SINGULAR = 1e-15
"""Pivots below this part of their diagonal entry are zero."""


def prefixes(elements: Element, combine: Callable[[Element, Element], Element]) -> Element:
    """All of e_0, e_0 then e_1, e_0 then e_1 then e_2, ... in 2 log₂ n rounds."""
    n = len(elements[0])
    if n < 2:
        return elements
    even, odd = (tuple(x[i : n - n % 2 : 2] for x in elements) for i in (0, 1))
    pairs = prefixes(combine(even, odd), combine)
    inner = combine(tuple(x[: (n - 1) // 2] for x in pairs), tuple(x[2::2] for x in elements))
    out = tuple(np.empty_like(x) for x in elements)
    for into, first, pair, single in zip(out, elements, pairs, inner, strict=True):
        into[0], into[1::2], into[2::2] = first[0], pair, single
    return out


def affine(i: Element, j: Element) -> Element:
    """y -> A y + x, first i and then j."""
    (A_i, x_i), (A_j, x_j) = i, j
    return A_j @ A_i, A_j @ x_i + x_j


def congruence(i: Element, j: Element) -> Element:
    """R -> A R B + M."""
    (A_i, B_i, M_i), (A_j, B_j, M_j) = i, j
    return A_j @ A_i, B_i @ B_j, A_j @ M_i @ B_j + M_j


def pose(i: Element, j: Element) -> Element:
    """X -> X (rot, p), with p (n, 3, 1); `keep` (n, 1, 1) is zero where X is forgotten."""
    (rot_i, p_i, keep_i), (rot_j, p_j, keep_j) = i, j
    stays = keep_j != 0.0
    rot = np.where(stays, rot_i @ rot_j, rot_j)
    return rot, np.where(stays, rot_i @ p_j + p_i, p_j), keep_i * keep_j


def kalman(i: Element, j: Element) -> Element:
    """S -> P + A (S⁻¹ + J)⁻¹ A* with P = L L* and J = U U*, first i and then j.

    With L_i* U_j = X σ Z* (singular values), c = (1 + σ²)^-½, Y = L_i X c and W = U_j Z c,

        L L* = L_j L_j* + A_j Y (A_j Y)*
        U U* = U_i U_i* + A_i* W (A_i* W)*
        A = A_j (I - Y σ W*) A_i

    Sums of squares are factored by QR and never formed, so nothing cancels in them.
    """
    (A_i, lower_i, upper_i), (A_j, lower_j, upper_j) = i, j
    X, sigma, right = np.linalg.svd(star(lower_i) @ upper_j)  # X σ Z*
    sigma = sigma[:, None, :]
    c = 1.0 / np.hypot(1.0, sigma)
    Y, W = (lower_i @ X) * c, (upper_j @ star(right)) * c
    through = np.eye(Y.shape[-1]) - (Y * sigma) @ star(W)
    lower, upper = squares(lower_j, A_j @ Y), squares(upper_i, star(A_i) @ W)
    return A_j @ through @ A_i, lower, upper


def squares(x: Array, y: Array) -> Array:
    """L with L L* = x x* + y y*, by QR."""
    stacked = np.concatenate([star(x), star(y)], axis=-2)
    return star(np.asarray(np.linalg.qr(stacked, mode="r"), dtype=np.float64))


def cholesky(matrix: Array) -> Array:
    """L with L L* = a positive definite matrix."""
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


def solve(matrix: Array, right: Array) -> Array:
    """matrix⁻¹ right."""
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)


def root(matrix: Array) -> Array:
    """L with L L* = a symmetric, positive semidefinite matrix (n, r, r), by pivoted Cholesky.

    The next pivot is the largest one, as a part of its diagonal entry. What is left when all are
    small is rounding. Without pivoting it would not be: next to a pivot ε there are entries √ε.
    """
    n, r, _ = matrix.shape
    rest, lower = matrix.copy(), np.zeros_like(matrix)
    size = np.einsum("nii->ni", matrix)
    size = np.where(size > 0.0, size, 1.0)
    at, left = np.arange(n, dtype=np.int64), np.ones((n, r))
    for j in range(r):
        p = np.argmax(left * np.einsum("nii->ni", rest) / size, axis=1)
        pivot = rest[at, p, p] * left[at, p]
        there = pivot > SINGULAR * size[at, p]
        scale = np.where(there, 1.0 / np.sqrt(np.where(there, pivot, 1.0)), 0.0)
        lower[:, :, j] = column = rest[at, :, p] * left * scale[:, None]
        rest -= column[:, :, None] * column[:, None, :]
        left[at, p] = 0.0
    return lower


def star(matrix: Array) -> Array:
    """The adjoint of each matrix."""
    return np.swapaxes(matrix, -1, -2)


def rounds(n: int) -> int:
    """Rounds in which `prefixes` combines n elements."""
    return 0 if n < 2 else 1 + rounds(n // 2) + (n > 2)
