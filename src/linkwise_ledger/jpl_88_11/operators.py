"""The blocks of the links, stacked to operators as in (3.4) to (3.10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from linkwise.spatial.array import Array
from linkwise_ledger.case import Case
from linkwise_ledger.jpl_88_11.links import Links, pinned, sliding


@dataclass(frozen=True)
class Operators:
    """The operators of section 3 as matrices; rows of the link at the base come first.

    Attributes:
        phi: (3.4).
        H: (3.5).
        M: (3.6).
        B: (3.7).
        E: (3.8), as a column: the block φᵀ(N+1, N) stands at the links on the ground.
        a: (3.10).
        b: (3.10).
        theta_dot: (3.9).
        theta_ddot: Its rate.
        T: (3.9).
    """

    phi: Array
    H: Array
    M: Array
    B: Array
    E: Array
    a: Array
    b: Array
    theta_dot: Array
    theta_ddot: Array
    T: Array

    @property
    def J(self) -> Array:
        """(3.13)."""
        return self.B.T @ self.phi.T @ self.H.T

    @property
    def mass(self) -> Array:
        """(3.20)."""
        return self.H @ self.phi @ self.M @ self.phi.T @ self.H.T


def stacked(links: Links) -> Operators:
    """Blocks put where (3.4) to (3.10) put them."""
    n = len(links.parent)
    phi, B, E = np.zeros((6 * n, 6 * n)), np.zeros((6 * n, 6)), np.zeros((6 * n, 6))
    for j in range(n):
        block, i = np.eye(6), j
        while i >= 0:  # φ(i, j) = φ(i, i-1) ... φ(j+1, j), (3.3)
            phi[rows(i), rows(j)] = block
            block, i = links.phi[i] @ block, links.parent[i]
        if links.parent[j] < 0:
            E[rows(j)] = links.phi[j].T
    B[rows(links.tip)] = links.phi_tip
    return Operators(
        phi,
        diagonal(links.H),
        diagonal(links.M),
        B,
        E,
        np.concatenate(links.a),
        np.concatenate(links.b),
        np.concatenate(links.theta_dot),
        np.concatenate(links.theta_ddot),
        np.concatenate(links.T),
    )


def rows(k: int) -> slice:
    """Where link k stands."""
    return slice(6 * k, 6 * k + 6)


def diagonal(blocks: Sequence[Array]) -> Array:
    """diag[...] of blocks of any shapes."""
    height, width = sum(len(x) for x in blocks), sum(x.shape[1] for x in blocks)
    found, i, j = np.zeros((height, width)), 0, 0
    for x in blocks:
        found[i : i + len(x), j : j + x.shape[1]] = x
        i, j = i + len(x), j + x.shape[1]
    return found


@cache
def on_pins(case: Case) -> Operators:
    """The tree of a case on pins, in world axes."""
    return stacked(pinned(case))


@cache
def on_slides(case: Case) -> Operators:
    """With slides among the pins."""
    return stacked(sliding(case))
