"""Equal forms of an expression that lead to different sweeps; the cheapest is taken."""

from __future__ import annotations

from functools import lru_cache

from linkwise.algebra import role
from linkwise.algebra.expr import (
    Adjoint,
    Expr,
    Inverse,
    Symbol,
    product,
)
from linkwise.algebra.invert import opened_inverse, opened_name
from linkwise.algebra.space import BODY, INBOARD, INERTIA, JOINT
from linkwise.algebra.words import count, expand, is_symmetric, left_factored, rebuilt

TREE_SPACES = (JOINT, BODY, INBOARD, INERTIA)

MOST_WORDS = 300
"""A longer expression is not multiplied out: its factors are applied as written."""


def upper_half(expr: Expr) -> Expr | None:
    """X + Y of a symmetric X + Y + Y*, with X memoryless and Y strictly causal.

    Strictly causal operators take from descendants only: they are above the block diagonal.
    """
    if expr.range is not expr.domain or expr.range not in TREE_SPACES:
        return None
    open_form = rebuilt(expr, opened)
    if count(open_form) > MOST_WORDS or open_form.causality == "memoryless":
        return None
    if not is_symmetric(expr):
        return None
    kept = dict[tuple[Expr, ...], float]()
    for word, number in expand(open_form).items():
        causality = product(word).causality if word else "memoryless"
        if causality == "memoryless":
            kept[word] = number
        elif causality == "mixed" or not any(_is_strict(letter) for letter in word):
            return None
        elif causality == "causal":
            kept[word] = number
    return left_factored(kept, expr.range, expr.domain)


def _is_strict(letter: Expr) -> bool:
    """Whether an operator has nothing on its block diagonal."""
    leaf = letter.of if isinstance(letter, Adjoint) else letter
    if not isinstance(leaf, Symbol):
        return False
    key = leaf.role
    if isinstance(key, role.Resolvent):
        return key.strict
    return is_step(leaf)


@lru_cache(maxsize=256)
def arrangements(expr: Expr) -> tuple[Expr, ...]:
    """Names and inverses opened: as written, and collected so that recursions are shared."""
    open_form = rebuilt(expr, opened)
    if count(open_form) > MOST_WORDS:
        return (open_form,)
    collected = left_factored(expand(open_form), expr.range, expr.domain)
    return (open_form,) if collected is open_form else (open_form, collected)


def opened(leaf: Expr) -> Expr | None:
    """The definition of a letter that sweeps do not have."""
    return opened_inverse(leaf) if isinstance(leaf, Inverse) else opened_name(leaf)


def is_step(expr: Expr) -> bool:
    """Whether an operator takes one step, from each body to its parent."""
    if not isinstance(expr, Symbol):
        return False
    key = expr.role
    return isinstance(key, role.Shift) or (
        isinstance(key, role.Riccati) and key.part in ("K", "E_psi")
    )
