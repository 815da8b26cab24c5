"""Mechanisms that identities are tried on, and what their residuals are measured against."""

from __future__ import annotations

from functools import cache

import numpy as np

import linkwise as lw
from linkwise.algebra import JOINT, D, role
from linkwise.algebra.dense import Dense
from linkwise.algebra.expr import Expr, Inverse, Product, Sum, Symbol
from linkwise.algebra.normal_form import opened
from linkwise.algebra.symbols import bare_tree
from linkwise.spatial.array import Array

MOVING = (
    *("pin", "prismatic", "helical", "cylindrical", "universal"),
    *("planar", "spherical", "gimbal", "translation", "screws"),
)
"""Hinges of one to three freedoms: none of them cuts off what hangs on it, none is stiff."""


@cache
def branched(seed: int) -> lw.Mechanism:
    """A branched tree of 3 to 9 bodies with hinges of one to three freedoms."""
    return lw.models.random_tree(3 + seed % 7, seed, hinges=MOVING)


@cache
def bushy(seed: int) -> lw.Mechanism:
    """A tree of pins with two siblings that both carry further bodies, all of like mass."""
    hinges, draws = ("pin",), (1000 * seed + i for i in range(1000))
    options = {"hinges": hinges, "branching": 0.7, "mass_ratio": 2.0}
    trees = (lw.models.random_tree(12, draw, **options) for draw in draws)
    return next(tree for tree in trees if _branches(tree))


def _branches(tree: lw.Mechanism) -> bool:
    carrying = set(tree.parent.tolist())
    return any(len(carrying & set(children)) > 1 for children in tree.children)


@cache
def floating(seed: int) -> lw.Mechanism:
    """A branched tree on a free base."""
    return lw.models.random_tree(3 + seed % 6, seed, hinges=MOVING, floating=True)


@cache
def welded(seed: int) -> lw.Mechanism:
    """A branched tree where about half of the hinges have no freedom."""
    return lw.models.random_tree(3 + seed % 6, seed, hinges=(*MOVING, *(["locked"] * len(MOVING))))


@cache
def every_hinge(seed: int) -> lw.Mechanism:
    """A branched tree dealt from all kinds of hinges, free and locked ones among them."""
    return lw.models.random_tree(3 + seed % 8, seed)


@cache
def serial(seed: int) -> lw.Mechanism:
    """A serial chain with hinges of one to three freedoms, cut from a tree; short ones too."""
    tree = lw.models.random_tree(9, seed, hinges=MOVING, branching=0.1)
    depth = [0] * tree.n_bodies
    for k, p in enumerate(tree.parent.tolist()):
        depth[k] = 0 if p < 0 else depth[p] + 1
    tip = int(np.argmax(depth))
    return tree.extract(tree.bodies[0].name, tree.bodies[tip].name)


def condition(dense: Dense) -> float:
    """The worst condition number of a D(k) or D₀(k), with its units scaled away."""
    worst = 1.0
    for full in (dense.matrix(D), dense.matrix(bare_tree.D)):
        for s in dense.slices(JOINT):
            size = np.sqrt(np.diag(full[s, s]))
            if len(size):
                worst = max(worst, float(np.linalg.cond(full[s, s] / np.outer(size, size))))
    return worst


def magnitude(dense: Dense, expr: Expr) -> Array:
    """Entries of the expression if nothing in it cancelled: what round-off is proportional to."""
    if isinstance(expr, Sum):
        parts = [abs(c) * magnitude(dense, e) for c, e in expr.terms]
        return sum(parts[1:], parts[0])
    if isinstance(expr, Product):
        result = magnitude(dense, expr.factors[0])
        for factor in expr.factors[1:]:
            result = result @ magnitude(dense, factor)
        return result
    if isinstance(expr, Inverse):
        inverse = np.abs(dense.matrix(expr))
        return inverse @ magnitude(dense, expr.of) @ inverse
    if isinstance(expr, Symbol) and isinstance(expr.role, role.Siblings):
        shift, middle = expr.role.shift, expr.role.inside
        return magnitude(dense, shift.T @ middle @ shift)
    inside = opened(expr)  # I - G H is zero at a free hinge, but for round-off of its terms
    return np.abs(dense.matrix(expr)) if inside is None else magnitude(dense, inside)
