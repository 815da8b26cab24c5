"""The proof of a rule: from definitions and axioms, or as the difference of two proved rules."""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.algebra.derivation import Derivation, Step
from linkwise.algebra.expr import Expr, Inverse, identity
from linkwise.algebra.normal_form import opened
from linkwise.algebra.rule import Rule
from linkwise.algebra.rules import ALL
from linkwise.algebra.search import by_normal_form
from linkwise.algebra.words import expand


def proof_of(rule: Rule) -> Derivation | None:
    """A derivation of left = right that never uses the rule itself, or None if none was found.

    Definitions and axioms are their own proof, in one step.

    Args:
        rule: A rule of the table.
    """
    if rule.kind != "theorem":
        return Derivation(rule.left, (_by(rule, rule.left, rule.right),))
    found = _without(rule, rule)
    return found if found is not None else _difference(rule)


def inverse_proof_of(rule: Rule) -> Derivation | None:
    """For a rule A⁻¹ = X the derivation of A X = I; None for others, or if none was found.

    `proof_of` may open A⁻¹ by the recursion that this very rule states; multiplying out does not.
    """
    if rule.kind != "theorem" or not isinstance(rule.left, Inverse):
        return None
    one = identity(rule.left.range)
    return by_normal_form(rule.left.of @ rule.right, one, chain=rule.where == "serial chains")


def _without(rule: Rule, excluded: Rule) -> Derivation | None:
    chain = rule.where == "serial chains"
    return by_normal_form(rule.left, rule.right, chain=chain, without=excluded.name)


def _difference(rule: Rule) -> Derivation | None:
    """X = Y by two rules A = B, A = C: X = X + (A - B), = X + (A - B) + (C - A), which is Y."""
    target = expand(rule.right, opened=opened)
    for first, second in _pairs(rule):
        one = rule.left + (first.left - first.right)
        two = one + (second.right - second.left)
        if expand(two, opened=opened) != target:
            continue
        if _without(first, rule) is None or _without(second, rule) is None:
            continue
        steps = [_by(first, rule.left, one), _by(second, one, two)]
        if two is not rule.right:
            steps.append(Step(two, rule.right, "collected", "the same words", "arithmetic"))
        return Derivation(rule.left, tuple(steps))
    return None


def _pairs(rule: Rule) -> Iterator[tuple[Rule, Rule]]:
    """Other theorems about one and the same expression, between the spaces of the rule."""
    spaces = (rule.left.range, rule.left.domain)
    others = [r for r in ALL if r.name != rule.name and (r.left.range, r.left.domain) == spaces]
    for first in others:
        for second in others:
            if first is not second and first.left is second.left:
                yield first, second


def _by(rule: Rule, before: Expr, after: Expr) -> Step:
    return Step(before, after, rule.name, str(rule), rule.source, rule.where, rule)
