"""Expressions as sums of words, and back.

A word is a sequence of factors that are not split further; an expression is a number for each of
its words. Rewriting is replacing a stretch of a word. Some sums, such as I - H ψ K, are kept as
one letter: they are the operators of the theory, and words stay few and short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import TypeAlias

from linkwise.algebra.expr import (
    Expr,
    Identity,
    Inverse,
    Product,
    Sum,
    Zero,
    added,
    identity,
    product,
    substituted,
    total,
)
from linkwise.algebra.space import ONE, Space

Word: TypeAlias = tuple[Expr, ...]
Words: TypeAlias = dict[Word, float]

Opened = Callable[[Expr], Expr | None]


def expand(expr: Expr, keep: Collection[Expr] = (), opened: Opened | None = None) -> Words:
    """The words of an expression, with all products multiplied out.

    Args:
        expr: The expression.
        keep: Sums to keep as letters.
        opened: Gives the expression that a letter means, or None to keep it.
    """
    memo = dict[Expr, Words]()

    def words(e: Expr) -> Words:
        if e not in memo:
            memo[e] = _expand(e)
        return memo[e]

    def _expand(e: Expr) -> Words:
        if isinstance(e, Identity):
            return {(): 1.0}
        if isinstance(e, Zero):
            return {}
        if e in keep:
            return {(e,): 1.0}
        if isinstance(e, Sum):
            return collected((w, c * n) for c, inner in e.terms for w, n in words(inner).items())
        if isinstance(e, Product):
            result: Words = {(): 1.0}
            for factor in e.factors:
                right = words(factor)
                result = collected(
                    (u + w, m * n) for u, m in result.items() for w, n in right.items()
                )
            return result
        inside = opened(e) if opened is not None else None
        return {(e,): 1.0} if inside is None else words(inside)

    return words(expr)


def count(expr: Expr, opened: Opened | None = None) -> int:
    """How many words an expression would have, multiplied out (before equal ones are collected)."""
    memo = dict[Expr, int]()

    def go(e: Expr) -> int:
        if e not in memo:
            memo[e] = _go(e)
        return memo[e]

    def _go(e: Expr) -> int:
        if isinstance(e, Sum):
            return sum(go(inner) for _, inner in e.terms)
        if isinstance(e, Product):
            return math.prod(go(factor) for factor in e.factors)
        inside = opened(e) if opened is not None else None
        return 1 if inside is None else go(inside)

    return go(expr)


def rebuilt(expr: Expr, opened: Opened) -> Expr:
    """The expression with its letters opened, but not multiplied out."""

    def change(part: Expr) -> Expr | None:
        if isinstance(part, Sum | Product):
            return None
        inside = opened(part)
        return part if inside is None else substituted(inside, change)

    return substituted(expr, change)


def collected(pairs: Iterable[tuple[Word, float]]) -> Words:
    """Numbers of equal words added up, zeros left out."""
    out: Words = {}
    for word, number in pairs:
        value = added(out.get(word, 0.0), number)
        if value == 0.0:
            out.pop(word, None)
        else:
            out[word] = value
    return out


def same(a: Words, b: Words) -> bool:
    """Whether two sums have the same words with the same numbers, but for round-off of these."""
    return a.keys() == b.keys() and all(math.isclose(a[w], b[w], rel_tol=1e-12) for w in a)


def flat(words: Words, range_: Space, domain: Space) -> Expr:
    """The sum of the words as it stands."""
    from linkwise.algebra.expr import zero

    if not words:
        return zero(range_, domain)
    return total((number, _word(word, range_)) for word, number in words.items())


def _word(word: Word, space: Space) -> Expr:
    return product(word) if word else identity(space)


def factored(words: Words, range_: Space, domain: Space) -> Expr:
    """The sum with common factors taken out, on whichever side gives the shorter expression."""
    from linkwise.algebra.expr import zero

    if not words:
        return zero(range_, domain)
    words = _with_halves(words)
    plain = flat(words, range_, domain)
    sides = (0,) if domain is ONE else (0, -1)  # vectors are made from the right
    candidates = [_grouped(tuple(words.items()), range_, side) for side in sides]
    head, tail = _common_ends(list(words))
    if head and tail and len(words) > 1:
        inside = {w[len(head) : len(w) - len(tail)]: number for w, number in words.items()}
        between = factored(inside, head[-1].domain, tail[0].range)
        candidates.insert(0, product((*head, between, *tail)))
    grouped = min(candidates, key=lambda e: e.size)
    # Factoring has to pay: R + φ~ R + R φ~* is easier to read as it is.
    return grouped if grouped.size + 1 < plain.size else plain


def _with_halves(words: Words) -> Words:
    """Words that use what is inside their inverses: with (X* D⁻¹ X)⁻¹ also X and X* are letters.

    Those are computed for the inverse anyhow, so that words are collected around them.
    """
    letters = {letter: None for word in words for letter in word}
    kept = {letter for letter in letters if isinstance(letter, Sum)}
    for letter in letters:
        if isinstance(letter, Inverse) and isinstance(letter.of, Product):
            half = _half(letter.of)
            for part in (half, half.T) if half is not None else ():
                inside = expand(part, kept | {x.T for x in kept})
                words = words if (part,) in inside else _divided(words, part, inside)
    return words


def _half(square: Product) -> Expr | None:
    """X of X* D X, if it has this form."""
    factors = square.factors
    n = len(factors) // 2
    mirrored = all(factors[i].T is factors[-1 - i] for i in range(n))
    return product(factors[-n:]) if mirrored and n else None


def _divided(words: Words, part: Expr, inside: Words) -> Words:
    """Words with `part` as a letter, wherever all of its words occur."""
    (first, number), *_ = inside.items()
    size = len(first)
    for word in list(words):
        for i in range(len(word) - size + 1):
            if word[i : i + size] != first or word not in words:
                continue
            head, tail, scale = word[:i], word[i + size :], words[word] / number
            multiple = {(*head, *w, *tail): scale * n for w, n in inside.items()}
            if all(math.isclose(words.get(w, 0.0), n, rel_tol=1e-12) for w, n in multiple.items()):
                rest = {w: n for w, n in words.items() if w not in multiple}
                again = collected([*rest.items(), ((*head, part, *tail), scale)])
                return _divided(again, part, inside)
    return words


def is_symmetric(expr: Expr) -> bool:
    """Whether an operator is its own adjoint: by its form, or word by word when multiplied out."""
    if expr.symmetric:
        return True
    if expr.range is not expr.domain or count(expr) > MOST_COMPARED:
        return False
    words = expand(expr)
    return words == {tuple(x.T for x in reversed(w)): number for w, number in words.items()}


MOST_COMPARED = 300
"""Words of an expression that are compared with those of its adjoint."""


def _common_ends(words: list[tuple[Expr, ...]]) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """The letters that all words begin with, and those that all end with, without overlap."""
    first, shortest = words[0], min(len(word) for word in words)
    head = 0
    while head < shortest and all(word[head] is first[head] for word in words):
        head += 1
    tail = 0
    while tail < shortest - head and all(word[-1 - tail] is first[-1 - tail] for word in words):
        tail += 1
    return first[:head], first[len(first) - tail :]


def left_factored(words: Words, range_: Space, domain: Space) -> Expr:
    """The sum with common factors taken out on the left, which is how sweeps share recursions."""
    from linkwise.algebra.expr import zero

    return _grouped(tuple(words.items()), range_, 0) if words else zero(range_, domain)


DEEPEST_GROUP = 60
"""Letters of a word that are looked at for common ones: deeper, it is left as it is."""


@lru_cache(maxsize=8192)
def _grouped(
    pairs: tuple[tuple[Word, float], ...], space: Space, side: int, level: int = 0
) -> Expr:
    """Words that begin (side 0) or end (side -1) with the same letter go under one."""
    words = dict(pairs)
    if len(words) == 1 or level > DEEPEST_GROUP:
        return flat(words, space, space)
    groups = dict[Expr | None, list[tuple[Word, float]]]()
    vectors = side == 0 and all(word and word[-1].domain is ONE for word in words)
    for word, number in (_unfolded(words) if vectors else words).items():
        letter = word[side] if word else None
        rest = word[1:] if side == 0 else word[:-1]
        groups.setdefault(letter, []).append((rest, number))
    terms = list[tuple[float, Expr]]()
    for letter, rest in groups.items():
        if letter is None:
            terms.append((rest[0][1], identity(space)))
            continue
        inner_space = letter.domain if side == 0 else letter.range
        sign, inner = _signed(_grouped(tuple(rest), inner_space, side, level + 1))
        parts = (letter, inner) if side == 0 else (inner, letter)
        terms.append((sign, product(parts)))
    return _joined(terms, side)


def _unfolded(words: Words) -> Words:
    """A sum such as I - H ψ K multiplied out where its recursion goes with that of other vectors.

    Then (I - H ψ K) x - H ψ y is x - H ψ (K x + y), which is one recursion instead of two.
    """
    firsts = {word[0]: None for word in words if word}
    for letter in firsts:
        if not isinstance(letter, Sum):
            continue
        inside = expand(letter)
        if len(inside) == 2 and () in inside and any(w[0] in firsts for w in inside if w):
            parts = [
                ((*w, *word[1:]), number * n)
                for word, number in words.items()
                for w, n in (inside.items() if word[0] is letter else [(word[:1], 1.0)])
            ]
            return collected(parts)
    return words


def _joined(terms: list[tuple[float, Expr]], side: int) -> Expr:
    """The sum of terms, those that end with the same sum under one: A S + B S = (A + B) S."""
    groups = dict[Expr, list[tuple[float, Word]]]()
    for number, term in terms:
        factors: list[Expr] = list(term.factors) if isinstance(term, Product) else [term]
        factors = factors if side == 0 else factors[::-1]
        ends = len(factors) > 1 and isinstance(factors[-1], Sum)
        groups.setdefault(factors[-1] if ends else term, []).append((number, tuple(factors)))
    if len(groups) == len(terms):
        return total(terms)
    joined = list[tuple[float, Expr]]()
    for group in groups.values():
        shared = _shared_end([word for _, word in group]) if len(group) > 1 else 0
        heads = [(number, word[: len(word) - shared]) for number, word in group]
        sign, inner = _signed(total((n, _turned(word, side)) for n, word in heads))
        first = group[0][1]
        joined.append((sign, _turned((inner, *first[len(first) - shared :]), side)))
    return total(joined)


def _turned(word: Word, side: int) -> Expr:
    return product(word if side == 0 else word[::-1])


def _shared_end(words: list[Word]) -> int:
    """How many letters all words end with, one of each being left."""
    most = min(len(word) for word in words) - 1
    return next((i for i in range(most) if len({word[-1 - i] for word in words}) > 1), most)


def _signed(expr: Expr) -> tuple[float, Expr]:
    """±1 and the expression, so that X and -X give the same one: its shortest term is positive.

    Of several shortest terms most are positive, in a tie the first.
    """
    if not isinstance(expr, Sum):
        return 1.0, expr
    least = min(term.size for _, term in expr.terms)
    signs = [1 if number > 0.0 else -1 for number, term in expr.terms if term.size == least]
    return (1.0, expr) if (sum(signs) or signs[0]) > 0 else (-1.0, -expr)
