"""A mechanism in a random state, with its operators as matrices: what statements are tried on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np

from linkwise import models
from linkwise.algebra.dense import Dense
from linkwise.algebra.derivation import random_dense, residual
from linkwise.algebra.expr import Expr
from linkwise.algebra.space import Space
from linkwise.arguments import is_a
from linkwise.errors import ModelError
from linkwise.model.builder import Builder
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose

MOVING = (
    *("pin", "prismatic", "helical", "cylindrical", "universal"),
    *("planar", "spherical", "gimbal", "translation", "screws"),
)


class Case:
    """A mechanism in a random state, without armature: the papers know none.

    Papers number bodies from the tip to the base: `outward` and `inward` give the bodies in the
    order of their loops, so that "for k = 1 ... n" of a paper is `for k in case.inward`.

    Args:
        name: For messages.
        mech: The mechanism.
        seed: Of its state, and of all values that are drawn for it.
    """

    def __init__(self, name: str, mech: Mechanism, seed: int = 0) -> None:
        if not is_a(Mechanism, mech, "mech").bodies:
            raise ModelError(f"case {name!r}: {mech.name!r} has no bodies to try statements on.")
        self.name, self.mech, self.seed = name, mech.without_armature(), seed
        rng = np.random.default_rng(seed)
        self.q, self.v = mech.random(rng), mech.random_velocity(rng)
        self._places: dict[Space, list[slice]] = {}
        self.node = mech.nodes[-1].name if mech.nodes else mech.bodies[-1].name

    @property
    def nodes(self) -> list[str]:
        """The nodes of the space NODE: one here; a case of several arms has all their tips."""
        return [self.node]

    @property
    def is_chain(self) -> bool:
        """Whether no body has two children."""
        return all(len(children) <= 1 for children in self.mech.children)

    @property
    def inward(self) -> list[int]:
        """Indices of the bodies from the tips to the base."""
        return list(range(self.mech.n_bodies))[::-1]

    @property
    def outward(self) -> list[int]:
        """Indices of the bodies from the base to the tips."""
        return list(range(self.mech.n_bodies))

    @cached_property
    def dense(self) -> Dense:
        """The operators as matrices, in the state (q, v), with the nodes of the case.

        Vectors of the user have no values yet: set `dense.values["tau"]`, or use `residual`.
        """
        return Dense(self.mech, self.q, self.v, nodes=self.nodes)

    def matrix(self, expr: Expr) -> Array:
        """An expression as a matrix; a vector as (n,)."""
        return self.dense(expr)

    def block(self, expr: Expr, k: int, i: int | None = None) -> Array:
        """The block at bodies k and i, or k and k; of a vector, the one at k."""
        rows = self._slices(expr.range)[k]
        if expr.is_vector:
            return self.dense(expr)[rows]
        columns = self._slices(expr.domain)[k if i is None else i]
        return self.dense(expr)[rows, columns]

    def _slices(self, space: Space) -> list[slice]:
        if space not in self._places:
            self._places[space] = self.dense.slices(space)
        return self._places[space]

    def residual(self, left: Expr, right: Expr) -> float:
        """How far two expressions are apart; vectors and operators of the user are drawn."""
        dense = random_dense(self.mech, [left, right], self.seed, self.nodes)
        return residual(dense, left, right)

    def parent(self, k: int) -> int:
        """Index of the parent of body k, -1 for the ground."""
        return int(self.mech.parent[k])

    def children(self, k: int) -> Sequence[int]:
        """Indices of the children of body k."""
        return [int(c) for c in self.mech.children[k]]


def apart(computed: Any, expected: Any) -> float:
    """Largest difference of two arrays, relative to the largest entry of either.

    Infinite where their shapes differ, not a number where an entry is none.
    """
    x, y = np.asarray(computed, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if x.shape != y.shape:
        return float("inf")
    scale = max(np.abs(x).max(initial=0.0), np.abs(y).max(initial=0.0))
    if scale == 0.0:
        return 0.0
    with np.errstate(invalid="ignore"):  # NaN is no agreement, and no warning
        return float(np.abs(x - y).max() / scale)


def cases(where: str = "trees") -> tuple[Case, ...]:
    """What statements about "chains", or about "trees" (chains among them), are tried on."""
    if where == "chains":
        return tuple(case for case in _every() if case.is_chain)
    return _every()


@cache
def _every() -> tuple[Case, ...]:
    return (
        Case("puma560", models.puma560()),
        Case("chain of pins", models.chain(5), 1),
        Case("chain of mixed hinges", _serial(6, 3), 2),
        Case("branched tree", models.random_tree(8, 7, hinges=MOVING, branching=0.7), 3),
        Case("floating tree", models.random_tree(6, 6, hinges=MOVING, floating=True), 4),
    )


def _serial(n: int, seed: int) -> Mechanism:
    """The bodies of a random tree, hung one on the other."""
    tree = models.random_tree(n, seed, hinges=MOVING, drives=False)
    b, last = Builder(f"random_chain_{n}_{seed}"), "world"
    for body in tree.bodies:
        b.body(
            body.name,
            last,
            body.hinge,
            inboard=body.inboard,
            outboard=body.outboard,
            inertia=body.inertia,
        )
        last = body.name
    b.node("tip", last, Pose.rpy((0.2, -0.4, 0.3), (0.1, 0.2, -0.1)))
    return b.build()
