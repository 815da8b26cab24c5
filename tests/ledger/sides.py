"""What a check of the ledger compares: two sides, not one thing with itself, and not two zeros."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import add, matmul
from typing import Any

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.armature import without_armature
from linkwise.algebra.expr import Adjoint, Expr, Inverse, Product, Sum, Symbol
from linkwise_ledger import case as case_module
from linkwise_ledger.case import Case


def opened(expr: Expr) -> Expr:
    """An expression with its names replaced by what they stand for, as matrices are evaluated."""
    if isinstance(expr, Symbol):
        return opened(expr.role.definition) if isinstance(expr.role, role.Named) else expr
    if isinstance(expr, Adjoint):
        return opened(expr.of).T
    if isinstance(expr, Inverse):
        return opened(expr.of).inv
    if isinstance(expr, Product):
        return reduce(matmul, [opened(x) for x in expr.factors])
    if isinstance(expr, Sum):
        return reduce(add, [c * opened(x) for c, x in expr.terms])
    return expr


class Sides:
    """The comparisons made while a check runs.

    Attributes:
        count: How many there were.
        alone: Those of one thing with itself, in words.
        moving: How many had a side that is not zero.
    """

    def __init__(self) -> None:
        self.count, self.moving, self.alone = 0, 0, list[str]()

    def compared(self, name: str, same: bool, zero: bool) -> None:
        self.count += 1
        self.moving += not zero
        if same:
            self.alone.append(name)

    def assert_two(self) -> None:
        """There are two sides, and not only zeros."""
        assert not self.alone, f"compared with itself: {self.alone[0]}"
        assert self.moving or not self.count, "zeros are compared with zeros"


@contextmanager
def watched(sides: Sides | None = None) -> Iterator[Sides]:
    """Notes every comparison of the ledger, through whichever module it is called."""
    sides = Sides() if sides is None else sides
    residual, apart = Case.residual, case_module.apart

    def watched_residual(self: Case, left: Expr, right: Expr) -> float:
        one, other = (opened(without_armature(x)) for x in (left, right))  # cases have none
        sides.compared(f"{left} = {right}", one == other, zero=False)
        return residual(self, left, right)

    def watched_apart(result: Any, expected: Any) -> float:
        x, y = np.asarray(result), np.asarray(expected)
        same = x.size > 1 and np.shares_memory(x, y) and x.strides == y.strides
        sides.compared(f"an array {x.shape}", same, zero=not (x.any() or y.any()))
        return apart(result, expected)

    modules = [
        m
        for name, m in list(sys.modules.items())
        if name.startswith("linkwise_ledger") and getattr(m, "apart", None) is apart
    ]
    _set(modules, watched_apart, watched_residual)
    try:
        yield sides
    finally:
        _set(modules, apart, residual)


def _set(modules: list[Any], apart: Callable[..., float], residual: Callable[..., float]) -> None:
    for module in modules:
        module.apart = apart
    Case.residual = residual  # type: ignore[method-assign]
