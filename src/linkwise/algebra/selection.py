"""Projections onto the velocities of some hinges: constant operators that hold the names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from linkwise.algebra import role
from linkwise.algebra.expr import Expr, Symbol, substituted, symbol
from linkwise.algebra.space import JOINT

Any_ = TypeVar("Any_")


def selection(name: str, hinges: Iterable[str], *, ascii: str = "", tex: str = "") -> Symbol:
    """U: one at all velocities of the named hinges, zero elsewhere; U U = U = U*.

    Args:
        name: What it is called where it is printed.
        hinges: Names of hinges; those that a mechanism does not have select nothing.
        ascii: How it is typed, if not by its name.
        tex: Its LaTeX, if not its name.
    """
    key = role.Selection("hinges", is_symmetric=True, hinges=tuple(sorted(set(hinges))))
    return symbol(name, JOINT, JOINT, key, ascii or name, tex or name)


def unnamed(expr: Expr) -> tuple[Expr, dict[role.Selection, role.Selection]]:
    """The expression with numbers instead of names of hinges, and what to put in their place.

    No identity depends on which hinges are meant: a derivation for one choice holds for all.
    """
    numbered = dict[role.Selection, role.Selection]()

    def number(key: role.Selection) -> role.Selection:
        return numbered.setdefault(key, replace(key, hinges=(f"#{len(numbered)}",)))

    numbered_expr = with_selections(expr, number)
    return numbered_expr, {new: old for old, new in numbered.items()}


def with_selections(value: Any_, change: Callable[[role.Selection], role.Selection | None]) -> Any_:
    """An expression or a derivation with other selections, also inside what defines operators."""

    def leaf(part: Expr) -> Expr | None:
        if not isinstance(part, Symbol):
            return None
        key = go(part.role)
        return symbol(part.name, part.range, part.domain, key, part.ascii, part.tex)

    def go(part: Any) -> Any:
        if isinstance(part, Expr):
            return substituted(part, leaf)
        if isinstance(part, role.Selection):
            return change(part) or part
        if isinstance(part, tuple):
            return tuple(go(x) for x in part)  # type: ignore[misc]
        if not is_dataclass(part) or isinstance(part, type):
            return part
        inside = {field.name: getattr(part, field.name) for field in fields(part)}
        new = {name: go(value) for name, value in inside.items()}
        return part if new == inside else replace(part, **new)

    return go(value)
