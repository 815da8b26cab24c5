"""The loops of Part II, run as printed on one arm: k - 1 are the children, k + 1 the parent."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linkwise.algebra.space import JOINT
from linkwise.algebra.symbols import D, Delta_phi, H, L, rot_W
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case
from linkwise_ledger.literal import split, stacked
from linkwise_ledger.recursion import Blocks, at_tip


class Filtered(NamedTuple):
    """ẑ, ε and ν of all links, stacked."""

    z: Array
    eps: Array
    nu: Array


def transition(arm: Case, k: int) -> Array:
    """ψ(k+1, k) = φ(k+1, k) - L(k) H(k)."""
    return arm.block(Delta_phi, k) - arm.block(L, k) @ arm.block(H, k)


def to_tip(arm: Case) -> tuple[int, Array]:
    """Link 1, and φ(1, 0) from the tip, in the axes of the world, to it."""
    tip, shift = at_tip(arm)
    return tip, shift @ arm.matrix(rot_W).T


def residuals(arm: Case, moments: Array, f: Array | None = None) -> Filtered:
    """(5.10a) to (5.10d); with f(0), ẑ = ψ (S L T' + B f(0)) as in (6.17)."""
    given, (tip, reach) = split(arm, moments, JOINT), to_tip(arm)
    z, eps, nu = Blocks(), Blocks(), Blocks()
    for k in arm.inward:
        z[k] = np.zeros(6)
        for c in arm.children(k):
            z[k] = z[k] + transition(arm, c) @ z[c] + arm.block(L, c) @ given[c]
        if k == tip and f is not None:
            z[k] = z[k] + reach @ f
        eps[k] = given[k] - arm.block(H, k) @ z[k]
        nu[k] = arm.block(D.inv, k) @ eps[k]
    return Filtered(stacked(arm, z), stacked(arm, eps), stacked(arm, nu))


def smoothed(arm: Case, nu: Array, *, as_printed: bool = False) -> tuple[Array, Array]:
    """(5.10e) to (5.10g), (6.4d) to (6.4f): λ and accelerations.

    Printed is k = 1 … N below (5.10e): λ(k+1) is then read before it is there.
    """
    given = split(arm, nu, JOINT)
    costate, moved = Blocks(), Blocks()
    for k in arm.inward if as_printed else arm.outward:
        p = arm.parent(k)
        above = np.zeros(6) if p < 0 else costate[p]
        costate[k] = transition(arm, k).T @ above + arm.block(H, k).T @ given[k]
        moved[k] = given[k] - arm.block(L, k).T @ above
    return stacked(arm, costate), stacked(arm, moved)


def corrections(
    arm: Case, f: Array, *, shift: str = "psi", sign: float = -1.0, first: bool = True
) -> Array:
    """(6.4): Δθ̈ by contact forces. Printed are shift "phi", sign + and no ν(1).

    Args:
        arm: The arm.
        f: f(0), in the axes of the world.
        shift: What takes ẑ(k-1) to ẑ(k).
        sign: Of ν.
        first: Whether ν is computed for link 1, where the loop below (6.4a) does not come.
    """
    tip, reach = to_tip(arm)
    z, nu = Blocks(), Blocks()
    for k in arm.inward:
        z[k] = np.zeros(6)
        for c in arm.children(k):
            step = transition(arm, c) if shift == "psi" else arm.block(Delta_phi, c)
            z[k] = z[k] + step @ z[c]
        if k == tip:
            z[k] = z[k] + reach @ f
        nu[k] = sign * arm.block(D.inv, k) @ arm.block(H, k) @ z[k]
        if k == tip and not first:
            nu[k] = 0.0 * nu[k]
    return smoothed(arm, stacked(arm, nu))[1]


def tip_compliance(arm: Case) -> tuple[Blocks, Array]:
    """(6.10): Λ(k) from the base, and Λ(0)."""
    found = Blocks()
    for k in arm.outward:
        p, H_k = arm.parent(k), arm.block(H, k)
        found[k] = H_k.T @ arm.block(D.inv, k) @ H_k
        if p >= 0:
            step = transition(arm, k)
            found[k] = found[k] + step.T @ found[p] @ step
    tip, reach = to_tip(arm)
    return found, reach.T @ found[tip] @ reach
