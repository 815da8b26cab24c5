"""What the papers print, executed to the letter: loops over bodies, and what does not fit.

Their k - 1 means the children of body k, their k + 1 its parent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from linkwise.algebra.dense import Dense
from linkwise.algebra.expr import Expr
from linkwise.algebra.rules import BY_NAME
from linkwise.algebra.space import JOINT, Space
from linkwise.algebra.symbols import D, E_phi, E_psi, H, M
from linkwise.errors import ExpressionError
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case
from linkwise_ledger.entry import Check
from linkwise_ledger.section import same


def drawn(case: Case, space: Space, which: int = 0) -> Array:
    """A vector of the space, the same each time; `which` tells several apart."""
    rng = np.random.default_rng((case.seed, 7, which))
    return rng.standard_normal(case.dense.size(space))


def split(case: Case, x: Array, space: Space) -> list[Array]:
    """The blocks of a stacked vector, one for each body."""
    return [x[s] for s in case.dense.slices(space)]


def stacked(case: Case, blocks: Mapping[int, Array]) -> Array:
    """The stacked vector of blocks, one for each body."""
    return np.concatenate([np.zeros(0), *(blocks[k] for k in case.outward)])


def inward(case: Case, step: Expr, k: int, x: Mapping[int, Array]) -> Array:
    """E(k, k-1) x(k-1): on a tree, the sum over the children; zero at the tips."""
    total = np.zeros(6)
    for c in case.children(k):
        total += case.block(step, k, c) @ x[c]
    return total


def outward(case: Case, step: Expr, k: int, x: Mapping[int, Array]) -> Array:
    """E*(k+1, k) x(k+1): from the parent; zero where it is the ground."""
    p = case.parent(k)
    return np.zeros(6) if p < 0 else case.block(step, p, k).T @ x[p]


def inward_both(case: Case, step: Expr, k: int, x: Mapping[int, Array]) -> Array:
    """E(k, k-1) x(k-1) E*(k, k-1), summed over the children."""
    total = np.zeros((6, 6))
    for c in case.children(k):
        E = case.block(step, k, c)
        total += E @ x[c] @ E.T
    return total


def outward_both(case: Case, step: Expr, k: int, x: Mapping[int, Array]) -> Array:
    """E*(k+1, k) x(k+1) E(k+1, k); zero where the parent is the ground."""
    p = case.parent(k)
    if p < 0:
        return np.zeros((6, 6))
    E = case.block(step, p, k)
    return E.T @ x[p] @ E


def diagonal(case: Case, blocks: Mapping[int, Array], like: Expr) -> Array:
    """The memoryless operator of these blocks, between the spaces of another."""
    return case.dense.diagonal([blocks[k] for k in case.outward], like.range, like.domain)


def each(*sides: tuple[Expr, Expr]) -> Check:
    """The check that every left side equals its right side."""

    def check(case: Case) -> float:
        return max(case.residual(left, right) for left, right in sides)

    return check


def rule_named(name: str) -> Check:
    """The check of an identity of the table."""
    return same(BY_NAME[name].left, BY_NAME[name].right)


def unformed(build: Callable[[], Expr]) -> Check:
    """The check of what is printed where its factors do not fit: infinite, if they indeed do not.

    Args:
        build: Writes the expression as it is printed; the algebra refuses it.
    """

    def check(case: Case) -> float:
        try:
            build()
        except ExpressionError:
            return float("inf")
        return 0.0

    return check


def rate(value: Callable[[float], Array], step: float = 0.004) -> Array:
    """The derivative of a smooth value at zero, by central differences of order eight."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    terms = (w * (value(i * step) - value(-i * step)) for i, w in weights.items())
    return np.asarray(sum(terms) / step, dtype=np.float64)


Blocks = dict[int, Array]


def paths(case: Case) -> list[tuple[int, int]]:
    """Pairs (k, i) of a body k and a body i that hangs on it, or is it."""
    pairs: list[tuple[int, int]] = []
    for i in case.outward:
        k = i
        while k >= 0:
            pairs.append((k, i))
            k = case.parent(k)
    return pairs


def accelerations(case: Case, vdot_: Array) -> dict[int, Array]:
    """α(k) = φ*(k+1, k) α(k+1) + H*(k) θ̈(k), from the base to the tips."""
    given, alpha = split(case, vdot_, JOINT), dict[int, Array]()
    for k in case.outward:
        alpha[k] = outward(case, E_phi, k, alpha) + case.block(H, k).T @ given[k]
    return alpha


def forces(case: Case, alpha: dict[int, Array]) -> dict[int, Array]:
    """f(k) = φ(k, k-1) f(k-1) + M(k) α(k), from the tips, with f(0) = 0, to the base."""
    f: dict[int, Array] = {}
    for k in case.inward:
        f[k] = inward(case, E_phi, k, f) + case.block(M, k) @ alpha[k]
    return f


def kinetic_energy(case: Case, v_: Array) -> float:
    """½ Σ V*(k) M(k) V(k), with V from the recursion."""
    V_ = accelerations(case, v_)
    return 0.5 * sum(float(V_[k] @ case.block(M, k) @ V_[k]) for k in case.outward)


def step_to_parent(case: Case, k: int) -> Array:
    """φ(k+1, k): from body k to what it hangs on, the ground too."""
    return case.dense.step[k].shift


@dataclass
class Filter:
    """What the Riccati recursion leaves at each body."""

    P: Blocks = field(default_factory=dict[int, Array])
    D: Blocks = field(default_factory=dict[int, Array])
    G: Blocks = field(default_factory=dict[int, Array])
    K: Blocks = field(default_factory=dict[int, Array])
    Pi: Blocks = field(default_factory=dict[int, Array])
    Pi_bar: Blocks = field(default_factory=dict[int, Array])
    psi: Blocks = field(default_factory=dict[int, Array])


def kalman_filter(case: Case) -> Filter:
    """The Riccati recursion as two papers print it; P(0) = 0, k-1 are the children."""
    at = Filter()
    for k in case.inward:
        H_k = case.block(H, k)
        before = (at.psi[c] @ at.P[c] @ at.psi[c].T for c in case.children(k))
        at.P[k] = sum(before, case.block(M, k))
        at.D[k] = H_k @ at.P[k] @ H_k.T
        at.G[k] = at.P[k] @ H_k.T @ np.linalg.inv(at.D[k])
        at.K[k] = step_to_parent(case, k) @ at.G[k]
        at.Pi[k] = at.G[k] @ H_k
        at.Pi_bar[k] = np.eye(6) - at.Pi[k]
        at.psi[k] = step_to_parent(case, k) @ at.Pi_bar[k]
    return at


def costate_blocks(case: Case) -> dict[int, Array]:
    """Υ(k) = ψ*(k+1, k) Υ(k+1) ψ(k+1, k) + H*(k) D⁻¹(k) H(k), from the base to the tips."""
    blocks_at: dict[int, Array] = {}
    for k in case.outward:
        H_k, D_inv = case.block(H, k), case.block(D.inv, k)
        blocks_at[k] = outward_both(case, E_psi, k, blocks_at) + H_k.T @ D_inv @ H_k
    return blocks_at


def at_tip(case: Case) -> tuple[int, Array]:
    """The body that has the node of the case, and φ(1, 0) from the node to that body."""
    node = case.dense.nodes[0]
    return case.mech.body_index[node.body], node.pose.shift


@cache
def weightless(case: Case) -> Case:
    """The same mechanism in the same state, without gravity."""
    return Case(case.name, case.mech.with_gravity(np.zeros(3)), case.seed)


def moved(case: Case, t: float) -> Dense:
    """The operators a time t later, if the velocities stay what they are."""
    q = case.mech.integrate(case.q, case.v, t)
    return Dense(case.mech, q, case.v, nodes=[case.node])
