"""What documents print, executed to the letter: their loops over bodies, and what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.algebra.rules import BY_NAME
from linkwise.algebra.space import Space
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
