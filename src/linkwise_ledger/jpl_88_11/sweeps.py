"""The loops of JPL 88-11, as printed: over links from the tip to the base and back.

What the paper writes for k - 1 is summed over children; index 0 is the environment, which
touches one link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

import numpy as np

from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.jpl_88_11.links import (
    Links,
    body_axes,
    inverse_dynamics,
    pinned,
    sliding,
)

Blocks: TypeAlias = dict[int, Array]
Algorithm: TypeAlias = Callable[[Links], Sequence[Array]]


@dataclass
class Filter:
    """P(k), D(k), L(k) of (4.4) to (4.6), ψ(k+1, k) of (4.7) and G(k) of (5.12)."""

    P: Blocks = field(default_factory=dict[int, Array])
    D: Blocks = field(default_factory=dict[int, Array])
    D_inv: Blocks = field(default_factory=dict[int, Array])
    L: Blocks = field(default_factory=dict[int, Array])
    G: Blocks = field(default_factory=dict[int, Array])
    psi: Blocks = field(default_factory=dict[int, Array])


def riccati(links: Links) -> Filter:
    """(4.4) to (4.7), with the inverse of D(1) in L(1), and up to k = N."""
    at = Filter()
    for k in links.inward:
        H, phi = links.H[k], links.phi
        at.P[k] = links.M[k]
        for c in links.children(k):
            projected = at.P[c] @ links.H[c].T @ at.D_inv[c] @ links.H[c] @ at.P[c]
            at.P[k] = at.P[k] + phi[c] @ (at.P[c] - projected) @ phi[c].T  # (4.5)
        at.D[k] = H @ at.P[k] @ H.T  # (4.6)
        at.D_inv[k] = np.asarray(np.linalg.inv(at.D[k]), dtype=np.float64)
        at.G[k] = at.P[k] @ H.T @ at.D_inv[k]  # (5.12)
        at.L[k] = phi[k] @ at.P[k] @ H.T @ at.D_inv[k]
        at.psi[k] = phi[k] - at.L[k] @ H  # (4.7)
    return at


def colored(links: Links, at: Filter, eps: Sequence[Array]) -> tuple[Blocks, Blocks]:
    """(4.13): y = (I + H Φ L) ε, and ẑ."""
    z, y = Blocks(), Blocks()
    for k in links.inward:
        z[k] = np.zeros(6)
        for c in links.children(k):
            z[k] = z[k] + links.phi[c] @ z[c] + at.L[c] @ eps[c]
        y[k] = links.H[k] @ z[k] + eps[k]
    return z, y


def whitened(links: Links, at: Filter, y: Sequence[Array]) -> tuple[Blocks, Blocks]:
    """(4.15): ε = (I - H Ψ L) y, and ẑ."""
    z, eps = Blocks(), Blocks()
    for k in links.inward:
        z[k] = np.zeros(6)
        for c in links.children(k):
            shift = links.phi[c] - at.L[c] @ links.H[c]
            z[k] = z[k] + shift @ z[c] + at.L[c] @ y[c]
        eps[k] = -links.H[k] @ z[k] + y[k]
    return z, eps


def bias_free(links: Links) -> list[Array]:
    """(4.17): T' = T less what the loops of section 2 give without accelerations."""
    none = [np.zeros(len(x)) for x in links.T]
    hat = inverse_dynamics(links, none)
    return [T - x for T, x in zip(links.T, hat, strict=True)]


def residuals(links: Links, at: Filter, *, as_printed: bool = False) -> Blocks:
    """(4.19), (4.20): ν from T'. Printed is T, not T', where ε is made."""
    free = bias_free(links)
    measured = links.T if as_printed else free
    z, nu = Blocks(), Blocks()
    for k in links.inward:
        z[k] = np.zeros(6)
        for c in links.children(k):
            shift = links.phi[c] - at.L[c] @ links.H[c]
            z[k] = z[k] + shift @ z[c] + at.L[c] @ free[c]
        nu[k] = at.D_inv[k] @ (measured[k] - links.H[k] @ z[k])
    return nu


def smoothed(links: Links, at: Filter, nu: Blocks) -> tuple[Blocks, Blocks, Blocks]:
    """(4.21b), (4.22b): θ̈, λ and α; without the last two lines (4.21), (4.22)."""
    acceleration, costate, zeta, alpha = Blocks(), Blocks(), Blocks(), Blocks()
    for k in links.outward:
        p = links.parent[k]
        lambda_up, zeta_up = (costate[p], zeta[p]) if p >= 0 else (np.zeros(6), np.zeros(6))
        shift = links.phi[k] - at.L[k] @ links.H[k]
        costate[k] = shift.T @ lambda_up + links.H[k].T @ nu[k]
        acceleration[k] = nu[k] - at.L[k].T @ lambda_up
        zeta[k] = links.phi[k].T @ zeta_up + links.a[k]
        alpha[k] = costate[k] + zeta[k]
    return acceleration, costate, alpha


def fd1(links: Links) -> list[Array]:
    """FD1 by its loops (4.19) to (4.22)."""
    at = riccati(links)
    acceleration, _, _ = smoothed(links, at, residuals(links, at))
    return [acceleration[k] for k in links.outward]


def fd2(links: Links) -> list[Array]:
    """α(k) of FD2 by its loops (4.21b) to (4.23); α(0) is the last."""
    at = riccati(links)
    _, _, alpha = smoothed(links, at, residuals(links, at))
    tip = links.phi_tip.T @ alpha[links.tip] + links.a_tip  # (4.23)
    return [*(alpha[k] for k in links.outward), tip]


def fd3(links: Links) -> list[Array]:
    """FD3, (5.8) to (5.10), in the three sweeps that the text says."""
    at = riccati(links)
    zeta, z, eps = Blocks(), Blocks(), Blocks()
    for k in links.outward:
        p = links.parent[k]
        zeta[k] = links.a[k] + (links.phi[k].T @ zeta[p] if p >= 0 else 0.0)
    for k in links.inward:
        z[k] = links.M[k] @ zeta[k] + links.b[k]
        for c in links.children(k):
            z[k] = z[k] + at.psi[c] @ z[c] + at.L[c] @ links.T[c]
        if k == links.tip:
            z[k] = z[k] + links.phi_tip @ links.f_tip
        eps[k] = links.T[k] - links.H[k] @ z[k]
    nu = {k: at.D_inv[k] @ eps[k] for k in eps}
    acceleration, _, _ = smoothed(links, at, nu)
    return [acceleration[k] for k in links.outward]


def fd4_residuals(links: Links, at: Filter) -> tuple[Blocks, Blocks]:
    """(5.16): z and ν; z(0) = f(0), and ψ(1,0) = φ(1,0) since L(0) H(0) = 0."""
    z, nu = Blocks(), Blocks()
    for k in links.inward:
        z[k] = links.b[k]
        for c in links.children(k):
            z[k] = z[k] + at.psi[c] @ z[c] + at.L[c] @ links.T[c]
            z[k] = z[k] + at.psi[c] @ at.P[c] @ links.a[c]
        if k == links.tip:
            z[k] = z[k] + links.phi_tip @ links.f_tip
        nu[k] = at.D_inv[k] @ (links.T[k] - links.H[k] @ z[k])
    return z, nu


def fd4(links: Links) -> list[Array]:
    """FD4 by its loops (5.16), (5.17)."""
    at = riccati(links)
    _, nu = fd4_residuals(links, at)
    costate, acceleration = Blocks(), Blocks()
    for k in links.outward:
        p = links.parent[k]
        lambda_up = costate[p] if p >= 0 else np.zeros(6)
        H, G, a = links.H[k], at.G[k], links.a[k]
        costate[k] = at.psi[k].T @ lambda_up + H.T @ nu[k] + (np.eye(6) - G @ H).T @ a
        acceleration[k] = nu[k] - at.L[k].T @ lambda_up - G.T @ a
    return [acceleration[k] for k in links.outward]


@cache
def arms(case: Case) -> tuple[Links, ...]:
    """The case in body axes; in world axes its tree on pins, and with slides among them."""
    return body_axes(case), pinned(case), sliding(case)


def finds_accelerations(algorithm: Algorithm) -> Callable[[Case], float]:
    """The check that an algorithm finds the accelerations of the joints."""

    def check(case: Case) -> float:
        return max(
            apart(np.concatenate(algorithm(links)), np.concatenate(links.theta_ddot))
            for links in arms(case)
        )

    return check
