"""Projections onto the freedoms of some hinges: constant, with the names in the operator itself."""

from __future__ import annotations

from collections.abc import Iterable

from linkwise.algebra import role
from linkwise.algebra.expr import Symbol, symbol
from linkwise.algebra.space import JOINT


def selection(name: str, hinges: Iterable[str], *, ascii: str = "", tex: str = "") -> Symbol:
    """U: one at all freedoms of the hinges that are named, zero elsewhere; U U = U = U*.

    Args:
        name: What it is called where it is printed.
        hinges: Names of hinges; those that a mechanism does not have select nothing.
        ascii: How it is typed, if not by its name.
        tex: Its LaTeX, if not its name.
    """
    key = role.Selection("hinges", is_symmetric=True, hinges=tuple(sorted(set(hinges))))
    return symbol(name, JOINT, JOINT, key, ascii or name, tex or name)


__all__ = ["selection"]
