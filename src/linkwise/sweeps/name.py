"""Names for the quantities of a program, as the papers would call them."""

from __future__ import annotations

from collections.abc import Iterable

from linkwise.algebra import role
from linkwise.algebra.expr import Adjoint, Expr, Inverse, Product, Sum, Symbol, nodes
from linkwise.algebra.space import JOINT, NODE


class Names:
    """Gives out names, each once, and none that is taken."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._used = dict.fromkeys(taken, 1)

    def of(self, expr: Expr, *, result: bool = False) -> str:
        """A name for the value of an expression."""
        return self.fresh("y" if result else _stem(expr))

    def fresh(self, stem: str) -> str:
        """The stem, or the stem with a number if it is taken."""
        count = self._used.get(stem, 0) + 1
        self._used[stem] = count
        return stem if count == 1 else f"{stem}{_subscript(count)}"


def _subscript(number: int) -> str:
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in str(number))


def _stem(expr: Expr) -> str:
    """z for filtered forces, λ for smoothed accelerations, f and α for rigid ones, ε, ν, τ′, x."""
    lead = expr.factors[0] if isinstance(expr, Product) else expr
    star = isinstance(lead, Adjoint)
    leaf = lead.of if isinstance(lead, Adjoint) else lead
    if isinstance(leaf, Symbol) and isinstance(leaf.role, role.Resolvent):
        rigid = isinstance(leaf.role.of.role, role.Shift)
        if star and rigid:
            return "V" if _is_velocity(expr) else "α"
        return "λ" if star else ("f" if rigid else "z")
    if isinstance(lead, Inverse) and expr.range is JOINT:
        return "ν"
    if isinstance(lead, Sum) and expr.range is JOINT:
        return "ε" if _is_filtered(lead) else _corrected(lead)
    return "w" if expr.range is NODE else "x"


def _is_filtered(expr: Expr) -> bool:
    """Whether a resolvent ψ of a Riccati family is in it."""
    roles = [node.role for node in nodes(expr) if isinstance(node, Symbol)]
    return any(isinstance(r, role.Resolvent) and isinstance(r.of.role, role.Riccati) for r in roles)


def _corrected(expr: Sum) -> str:
    """τ′ for τ less something: the forces without bias of algorithm FD."""
    vectors = [
        e for _, e in expr.terms if isinstance(e, Symbol) and isinstance(e.role, role.Vector)
    ]
    return f"{vectors[0].name}′" if vectors else "ε"


def _is_velocity(expr: Expr) -> bool:
    last = expr.factors[-1] if isinstance(expr, Product) else expr
    return (
        isinstance(last, Symbol)
        and isinstance(last.role, role.Vector)
        and (last.role.source == "v")
    )
