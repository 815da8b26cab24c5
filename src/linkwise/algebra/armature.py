"""Expressions of mechanisms without armature: N = 0, also inside operators built on it.

The articulated quantities P, D, G, K, ψ ... are those of D = H P H* + N. Without armature they
become those of the bare tree, D₀ = H P₀ H*, which print with a zero: P₀, D₀, ψ₀, and 𝓜 becomes
𝓜₀ = H φ M φ* H*.
"""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from linkwise.algebra import role
from linkwise.algebra.derivation import Derivation, Step
from linkwise.algebra.expr import Expr, Symbol, Zero, substituted, symbol, zero
from linkwise.algebra.family import (
    BARE,
    BARE_ASCII,
    Family,
    composite,
    family_of,
    lyapunov,
    marked,
    resolvent,
    riccati,
)


@lru_cache(maxsize=1024)
def without_armature(expr: Expr) -> Expr:
    """The expression with N = 0; the same object if N is not in it."""
    return substituted(expr, lambda part: _leaf(part) if isinstance(part, Symbol) else None)


def _leaf(leaf: Symbol) -> Expr:
    key = leaf.role
    if isinstance(key, role.Memoryless):
        return zero(leaf.range, leaf.domain) if key.source == "N" else leaf
    if isinstance(key, role.Resolvent):
        return resolvent(_symbol(key.of), strict=key.strict)
    if isinstance(key, role.Riccati):
        return cast("Expr", getattr(_bare_family(Family(*key.family)), key.part))
    family = family_of(leaf)
    if family is not None and leaf is family.Upsilon:
        return _bare_family(family).Upsilon
    if family is not None and leaf is family.Xi:
        return _bare_family(family).Xi
    return _defined(leaf)


def _defined(leaf: Symbol) -> Expr:
    """Names, memoryless sums and Lyapunov recursions, by what they are made of."""
    key = leaf.role
    if isinstance(key, role.Lyapunov):
        a, b, core = _symbol(key.a), _symbol(key.b), without_armature(key.core)
        if leaf is lyapunov(key.a, key.core, key.b):
            return lyapunov(a, core, b)
        new: role.Role = role.Lyapunov(a, b, core, key.outward)
    elif isinstance(key, role.Named):
        new = role.Named(without_armature(key.definition))
    elif isinstance(key, role.Composite):
        definition = without_armature(key.definition)
        if isinstance(definition, Symbol | Zero):
            return definition
        if leaf is composite(key.definition):
            return composite(definition)
        return symbol(leaf.name, leaf.range, leaf.domain, role.Composite(definition))
    else:
        return leaf
    if new == key:
        return leaf
    name, tex = leaf.name + BARE, marked(leaf.tex, BARE)
    return symbol(name, leaf.range, leaf.domain, new, leaf.ascii + BARE_ASCII, tex)


def _bare_family(family: Family) -> Family:
    E, M, H = _symbol(family.E), _symbol(family.M), _symbol(family.H)
    if family.noise is None:
        return Family(E, M, H, None, family.mark)
    noise = without_armature(family.noise)
    if isinstance(noise, Zero):
        return riccati(E, M, H)
    assert isinstance(noise, Symbol)
    return Family(E, M, H, noise, family.mark)


def _symbol(leaf: Symbol) -> Symbol:
    bare = without_armature(leaf)
    assert isinstance(bare, Symbol), f"{leaf} is nothing but armature"
    return bare


def no_armature(expr: Expr) -> Derivation:
    """The step from an expression to what it is on mechanisms without armature."""
    bare = without_armature(expr)
    if bare is expr:
        return Derivation(expr)
    return Derivation(expr, (Step(expr, bare, "no armature", "N = 0", "domain", needs="N = 0"),))
