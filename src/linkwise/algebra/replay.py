"""Replaying a derivation: each step is done again from what it says, and must give what it gave."""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.algebra.derivation import Derivation, Step
from linkwise.algebra.expr import Expr, product
from linkwise.algebra.family import Family
from linkwise.algebra.invert import families_of
from linkwise.algebra.normal_form import Replacement, normal_form, opened, replaced
from linkwise.algebra.rule import Rule
from linkwise.algebra.search import directions, everywhere, kept_sums
from linkwise.algebra.words import Words, collected, expand, flat, same


def replays(derivation: Derivation) -> bool:
    """Whether every step starts where the one before ended and follows by its identity."""
    here = derivation.start
    for step in derivation.steps:
        if step.before is not here or not justified(step):
            return False
        here = step.after
    return True


def justified(step: Step) -> bool:
    """Whether a step follows by its identity, or by definitions and arithmetic if it has none.

    Where a product with an inverse has gone on the way (A A⁻¹ = I), the normal forms are compared.
    """
    return _follows(step) or same(normal_form(step.before), normal_form(step.after))


def _follows(step: Step) -> bool:
    if step.rule is None:
        return same(expand(step.before, opened=opened), expand(step.after, opened=opened))
    for keep in _alphabets(step):
        before, after = expand(step.before, keep), expand(step.after, keep)
        for move in _moves(step.rule, keep):
            if _leads(before, after, move, keep) or _leads(after, before, move, keep):
                return True
    return _added(step, step.rule)


def _added(step: Step, rule: Rule) -> bool:
    """Whether left - right (or right - left) was added, which is zero."""
    change, zero = step.after - step.before, rule.left - rule.right
    if (change.range, change.domain) != (zero.range, zero.domain):
        return False
    return any(not expand(change + sign * zero, opened=opened) for sign in (1.0, -1.0))


def _alphabets(step: Step) -> Iterator[set[Expr]]:
    """With the sums of the theory kept whole, and with everything multiplied out."""
    families: tuple[Family, ...] = families_of(expand(step.before)) + families_of(
        expand(step.after)
    )
    yield kept_sums(families)
    yield set()


def _moves(rule: Rule, keep: set[Expr]) -> Iterator[Replacement]:
    for form in (rule, rule.adjoint):
        for move in directions(form, keep, both=True):
            yield move
            by = flat(move.by, move.word[0].range, move.word[-1].domain)
            yield Replacement(move.rule, move.word, expand(by, opened=opened))


def _leads(start: Words, end: Words, move: Replacement, keep: set[Expr]) -> bool:
    return any(
        _canonical(words, keep) == end for words in (replaced(start, move), everywhere(start, move))
    )


def _canonical(words: Words, keep: set[Expr]) -> Words:
    """With A A⁻¹ = I done, as products do it."""
    pairs = (
        (inner, number * c)
        for word, number in words.items()
        for inner, c in expand(product(word), keep).items()
    )
    return collected(pairs)
