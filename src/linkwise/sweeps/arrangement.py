"""Equal forms of an expression that lead to different sweeps, of which the cheapest is taken."""

from __future__ import annotations

from linkwise.algebra import role
from linkwise.algebra.expr import (
    Adjoint,
    Expr,
    Inverse,
    Product,
    Sum,
    Symbol,
    inverse,
    product,
    total,
)
from linkwise.algebra.invert import opened_inverse, opened_name
from linkwise.algebra.space import BODY, CONSTRAINT, INBOARD, JOINT
from linkwise.algebra.words import count, expand, is_symmetric, left_factored, rebuilt

TREE_SPACES = (JOINT, BODY, INBOARD)

MOST_WORDS = 300
"""A longer expression is not multiplied out: its factors are applied as they stand."""


def upper_half(expr: Expr) -> Expr | None:
    """X + Y of a symmetric X + Y + Y*, with X memoryless and Y strictly causal.

    Strictly causal operators take from descendants only: they stand above the block diagonal.
    """
    if expr.range is not expr.domain or expr.range not in TREE_SPACES:
        return None
    stands = rebuilt(expr, opened)
    if count(stands) > MOST_WORDS or stands.causality == "memoryless":
        return None
    if not is_symmetric(expr):
        return None
    kept = dict[tuple[Expr, ...], float]()
    for word, number in expand(stands).items():
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


def arrangements(expr: Expr) -> list[Expr]:
    """Names and inverses opened: as it stands, and collected so that recursions are shared."""
    stands = rebuilt(expr, opened)
    if count(stands) > MOST_WORDS:
        return [stands]
    collected = left_factored(expand(stands), expr.range, expr.domain)
    found = [stands] if collected is stands else [stands, collected]
    return found + [x for form in found if (x := _parted(form)) is not form]


def _parted(expr: Expr) -> Expr:
    """What comes of constraints apart from the rest: H ψ (s + B Q* λ) = H ψ s + H ψ B Q* λ.

    And Q B* (x + y) = Q B* x + Q B* y. The columns of H ψ B Q* are known then, and spare a sweep.
    """
    if isinstance(expr, Sum):
        return total([(number, _parted(inner)) for number, inner in expr.terms])
    if isinstance(expr, Inverse) and expr.range is CONSTRAINT:
        return inverse(_parted(expr.of))
    if not isinstance(expr, Product):
        return expr
    factors = [_parted(factor) for factor in expr.factors]
    for i, factor in enumerate(factors):
        if not isinstance(factor, Sum) or factor.range is not BODY:
            continue
        if expr.range is CONSTRAINT:
            groups = [[term] for term in factor.terms]
        else:
            own = [term for term in factor.terms if _of_constraints(term[1])]
            groups = [[term for term in factor.terms if term not in own], own]
        if all(groups) and len(groups) > 1:
            ways = [product((*factors[:i], total(part), *factors[i + 1 :])) for part in groups]
            return total([(1.0, _parted(way)) for way in ways])
    return product(factors)


def _of_constraints(expr: Expr) -> bool:
    """Whether it is a product with a factor that leads to the constraints."""
    factors = expr.factors if isinstance(expr, Product) else (expr,)
    return any(CONSTRAINT in (factor.range, factor.domain) for factor in factors)


def opened(leaf: Expr) -> Expr | None:
    """What a letter stands for, where it is not a letter of the sweeps."""
    return opened_inverse(leaf) if isinstance(leaf, Inverse) else opened_name(leaf)


def is_step(expr: Expr) -> bool:
    """Whether an operator goes from each body to its parent, one step."""
    if not isinstance(expr, Symbol):
        return False
    key = expr.role
    return isinstance(key, role.Shift) or (
        isinstance(key, role.Riccati) and key.part in ("K", "E_psi")
    )
