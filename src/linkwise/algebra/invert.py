"""Which inverses can be written without one, by a recursion.

(A B)⁻¹            B⁻¹ A⁻¹ of square factors that have inverses
φ⁻¹                I - E
(I - E)⁻¹          φ
(H φ M φ* H* + N)⁻¹   (I - H ψ K)* D⁻¹ (I - H ψ K), by the Riccati recursion of E, M, H and N
(I + H φ K)⁻¹      I - H ψ K, and the other way round
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from linkwise.algebra import role
from linkwise.algebra.expr import (
    Adjoint,
    Expr,
    Inverse,
    Product,
    Symbol,
    identity,
    inverse,
    nodes,
    product,
)
from linkwise.algebra.family import Family, composite, family_of, resolvent, riccati
from linkwise.algebra.space import Space
from linkwise.algebra.symbols import H, N, articulated
from linkwise.algebra.words import Word, Words, count, expand, flat

MOST_WORDS = 100
"""A longer sum, multiplied out, is none of those with a known inverse."""


def opened_name(leaf: Expr) -> Expr | None:
    """The definition of a named operator."""
    symbol = leaf.of if isinstance(leaf, Adjoint) else leaf
    if isinstance(symbol, Symbol) and isinstance(symbol.role, role.Named):
        definition = symbol.role.definition
        return definition.T if isinstance(leaf, Adjoint) else definition
    return None


def opened_inverse(expr: Inverse) -> Expr | None:
    """The same operator without this inverse, or None if it must stay one."""
    if isinstance(expr.of, Symbol | Adjoint):
        return _of_leaf(expr.of)
    if isinstance(expr.of, Product):
        of_factors = _of_product(expr.of.factors, 1.0)
        if of_factors is not None:
            return of_factors
    if count(expr.of, opened_name) > MOST_WORDS:
        return None
    words = expand(expr.of, opened=opened_name)
    if len(words) == 1:
        ((word, number),) = words.items()
        family = pattern(word)
        if family is not None:
            return _innovations(family) / number
        return _of_product(word, number)
    # 2 I - 2 E is 2 (I - E), and 2 𝓜 + N is 2 (𝓜 + N / 2).
    leading = next((number for word, number in words.items() if _ends(word) is not None), None)
    scale = words.get((), next(iter(words.values()), 1.0)) if leading is None else leading
    result = _of_sum({word: number / scale for word, number in words.items()})
    return None if result is None else result / scale


def _of_leaf(leaf: Expr) -> Expr | None:
    star = isinstance(leaf, Adjoint)
    symbol = leaf.of if isinstance(leaf, Adjoint) else leaf
    assert isinstance(symbol, Symbol)
    if isinstance(symbol.role, role.Resolvent):
        E = symbol.role.of
        return identity(E.range) - (E.T if star else E)
    if isinstance(symbol.role, role.Named):
        definition = symbol.role.definition
        return inverse(definition.T if star else definition)
    return None


def _of_product(word: Word, number: float) -> Expr | None:
    if len(word) > 1 and all(f.range is f.domain for f in word):
        try:
            return product(tuple(inverse(f) for f in reversed(word))) / number
        except ValueError:
            return None
    return None


def pattern(word: Word) -> Family | None:
    """The Riccati family of a word H φ M φ* H*, identified by roles, not by names."""
    return _family({word: 1.0}) if len(word) == 5 else None


def _family(words: Words) -> Family | None:
    """The Riccati family of H φ M φ* H* + N, with M and N symmetric and memoryless, maybe sums."""
    ends: tuple[Symbol, Symbol] | None = None
    core, noise = Words(), Words()
    for word, number in words.items():
        word_ends = _ends(word)
        if word_ends is None:
            noise[word] = number
        elif ends is None or word_ends == ends:
            ends, core[word[2:-2]] = word_ends, number
        else:
            return None
    if ends is None:
        return None
    H, phi = ends
    assert isinstance(phi.role, role.Resolvent)
    M, N = _one_operator(core, phi.range), _one_operator(noise, H.range) if noise else None
    return None if M is None or (noise and N is None) else riccati(phi.role.of, M, H, N)


def _ends(word: Word) -> tuple[Symbol, Symbol] | None:
    """H and φ of a word H φ ... φ* H*."""
    if len(word) < 5:
        return None
    left, phi, phi_star, right = (*word[:2], *word[-2:])
    if not (isinstance(phi, Symbol) and isinstance(phi.role, role.Resolvent)) or phi.role.strict:
        return None
    if not isinstance(left, Symbol) or left.causality != "memoryless" or not left.role.full_rank:
        return None
    return (left, phi) if left.T is right and phi.T is phi_star else None


def _one_operator(words: Words, space: Space) -> Symbol | None:
    """A symmetric, memoryless sum of words as one symbol."""
    expr = flat(words, space, space)
    if expr.causality != "memoryless" or not expr.symmetric:
        return None
    return expr if isinstance(expr, Symbol) else composite(expr)


def _of_sum(words: Words) -> Expr | None:
    """I - E, H φ M φ* H* + N, and I ± H φ K; the identity has the number one."""
    rest = {word: number for word, number in words.items() if word}
    if () in words and len(rest) == 1:
        ((word, number),) = rest.items()
        result = _one_plus(word, number)
        if result is not None:
            return result
    family = _family(words)
    return None if family is None else _innovations(family)


def _one_plus(word: Word, number: float) -> Expr | None:
    if len(word) == 1 and number == -1.0:
        leaf = word[0].of if isinstance(word[0], Adjoint) else word[0]
        is_shift = isinstance(leaf, Symbol) and (
            isinstance(leaf.role, role.Shift)
            or (isinstance(leaf.role, role.Riccati) and leaf.role.part == "E_psi")
        )
        if is_shift:
            assert isinstance(leaf, Symbol)
            phi = resolvent(leaf)
            return phi.T if isinstance(word[0], Adjoint) else phi
    if len(word) == 3:
        star = isinstance(word[0], Adjoint)
        letters = tuple(f.T for f in reversed(word)) if star else word
        last = letters[-1]
        family = family_of(last) if isinstance(last, Symbol) else None
        if family is not None and last is family.K and letters[0] is family.H:
            result: Expr | None = None
            if letters[1] is family.phi and number == 1.0:
                result = family.whitening
            elif letters[1] is family.psi and number == -1.0:
                result = family.coloring
            return result.T if result is not None and star else result
    return None


def _innovations(family: Family) -> Expr:
    """(I - H ψ K)* D⁻¹ (I - H ψ K)."""
    return family.whitening.T @ family.D.inv @ family.whitening


def families_of(words: Words) -> tuple[Family, ...]:
    """Families of the letters, then those implied by N and by words H φ M φ* H* and φ M φ*.

    The standard one if there is none. Words imply one family per core: with N in an expression,
    H φ M φ* H* is a part of 𝓜.
    """
    families: dict[Family, None] = {}
    letters = dict.fromkeys(letter for word in words for letter in word)
    leaves = dict.fromkeys(node for letter in letters for node in nodes(letter))
    for leaf in leaves:
        family = family_of(leaf) if isinstance(leaf, Symbol) else None
        if family is not None:
            families[family] = None
    if N in leaves:
        families[articulated] = None
    patterns = (pattern(word[i : i + 5]) for word in words for i in range(len(word) - 4))
    for family in patterns:
        if family is not None and not _has(families, family.E, family.M, family.H):
            families[family] = None
    for E, core in _composites(words):
        if not _has(families, E, core):
            families[riccati(E, core, H)] = None
    return tuple(families) or (articulated,)


def _has(families: Iterable[Family], E: Symbol, M: Symbol, H: Symbol | None = None) -> bool:
    """Whether one of them is that of a shift, a core and a projection, whatever its noise."""
    return any(f.E is E and f.M is M and H in (None, f.H) for f in families)


def _composites(words: Words) -> Iterator[tuple[Symbol, Symbol]]:
    """Shift and core of φ M φ*, and of composite inertias: what Lyapunov's equation speaks of."""
    for word in words:
        for letter in word:
            key = letter.role if isinstance(letter, Symbol) else None
            if isinstance(key, role.Lyapunov) and key.a is key.b and isinstance(key.core, Symbol):
                yield key.a, key.core
        for phi, core, star in zip(word, word[1:], word[2:], strict=False):
            key = phi.role if isinstance(phi, Symbol) and phi.T is star else None
            if (
                isinstance(key, role.Resolvent)
                and not key.strict
                and isinstance(key.of.role, role.Shift)
                and isinstance(core, Symbol)
                and isinstance(core.role, role.Memoryless)
                and core.symmetric
            ):
                yield key.of, core
