"""Replaying a derivation: each step is done again from what it says, and must give what it gave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from linkwise.algebra import role
from linkwise.algebra.armature import without_armature
from linkwise.algebra.derivation import Derivation, Step, leaves
from linkwise.algebra.evidence import Evidence
from linkwise.algebra.expr import Expr, Product, Symbol, product
from linkwise.algebra.family import Family, riccati
from linkwise.algebra.invert import families_of
from linkwise.algebra.normal_form import (
    Replacement,
    normal_form,
    opened,
    replaced,
    shared_families,
)
from linkwise.algebra.rule import Rule
from linkwise.algebra.rules import BY_NAME
from linkwise.algebra.search import behind, directions, everywhere, kept_sums
from linkwise.algebra.symbols import H, M, articulated, bare_tree
from linkwise.algebra.words import Words, collected, expand, flat, same


def replays(derivation: Derivation) -> bool:
    """Whether every step starts where the one before ended and follows by its identity.

    Raises:
        ProofError: Every step follows, yet the two ends are not equal as matrices.
    """
    here = derivation.start
    for step in derivation.steps:
        if step.before is not here or not justified(step):
            return False
        here = step.after
    if derivation.steps:
        Evidence(derivation.start, here).check(derivation.where, derivation.needs)
    return True


def justified(step: Step) -> bool:
    """Whether a step follows by its identity, or by definitions and arithmetic if it has none.

    Where a product with an inverse has gone on the way (A A⁻¹ = I), the normal forms are compared.
    """
    if step.needs:
        return without_armature(step.before) is without_armature(step.after)
    turned = replace(step, before=step.before.T, after=step.after.T)
    if _follows(step) or _follows(turned):
        return True
    if step.rule is None and (
        _taken_out(step.before, step.after) or _taken_out(step.after, step.before)
    ):
        return True
    families = shared_families(step.before, step.after)
    sides = (normal_form(side, families=families) for side in (step.before, step.after))
    return same(*sides)


def _taken_out(plain: Expr, factored: Expr, depth: int = 3) -> bool:
    """Whether x = A (A⁻¹ x) or x = (x A⁻¹) A was done, a few times."""
    if same(_canonical(expand(plain), set()), _canonical(expand(factored), set())):
        return True
    for x, y in ((plain, factored), (plain.T, factored.T)) if depth else ():
        if isinstance(y, Product):
            rest = product(y.factors[1:])
            inside = behind(expand(x), y.factors[0])
            if inside is not None and _taken_out(
                flat(inside, rest.range, rest.domain), rest, depth - 1
            ):
                return True
    return False


def _follows(step: Step) -> bool:
    if step.rule is None:
        return same(expand(step.before, opened=opened), expand(step.after, opened=opened))
    if step.where != step.rule.where or not in_table(step.rule):
        return False
    for keep in _alphabets(step):
        before, after = expand(step.before, keep), expand(step.after, keep)
        for move in _moves(step.rule, keep):
            if _leads(before, after, move, keep) or _leads(after, before, move, keep):
                return True
    return _added(step, step.rule)


def in_table(rule: Rule) -> bool:
    """Whether this is an identity of the table, about a family in which it holds."""
    named = BY_NAME.get(rule.name)
    if named is None or (named.where, named.needs) != (rule.where, rule.needs):
        return False
    words = {**expand(rule.left), **expand(rule.right)}
    shifts = [riccati(E, M, H) for E in _shifts(rule)]
    for family in (articulated, bare_tree, *families_of(words), *shifts):
        about = named.about(family) if named.holds_in(family) else None
        for form in () if about is None else (about, about.adjoint):
            if form.left is rule.left and form.right is rule.right:
                return True
    return False


def _shifts(rule: Rule) -> Iterator[Symbol]:
    """The one-step operators a rule speaks of; some speak of nothing else."""
    for leaf in (*leaves(rule.left), *leaves(rule.right)):
        if isinstance(leaf.role, role.Shift):
            yield leaf


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
