"""The proof of a rule: from definitions and axioms, or as the difference of two proved rules."""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.algebra.armature import without_armature
from linkwise.algebra.derivation import Derivation, Step
from linkwise.algebra.expr import Expr, Inverse, identity
from linkwise.algebra.normal_form import opened
from linkwise.algebra.rule import Rule
from linkwise.algebra.rules import ALL
from linkwise.algebra.search import by_normal_form, without_armature_steps
from linkwise.algebra.symbols import bare_tree
from linkwise.algebra.words import expand


def proof_of(rule: Rule) -> Derivation | None:
    """A derivation of left = right that never uses the rule itself, or None if none was found.

    Definitions and axioms are their own proof, in one step. What needs N = 0 is proved with that.

    Args:
        rule: A rule of the table.
    """
    if rule.kind != "theorem":
        bare = rule.about(bare_tree) if rule.needs else rule
        itself = Derivation(bare.left, (_by(bare, bare.left, bare.right),))
        return without_armature_steps(rule.left, rule.right, itself) if rule.needs else itself
    derivation = _without(rule, rule)
    return derivation if derivation is not None else _difference(rule)


def inverse_proof_of(rule: Rule) -> Derivation | None:
    """For a rule A⁻¹ = X the derivation of A X = I; None for others, or if none was found.

    `proof_of` may open A⁻¹ by the recursion that this very rule states; multiplying out does not.
    """
    if rule.kind != "theorem" or not isinstance(rule.left, Inverse):
        return None
    one = identity(rule.left.range)
    return _proved(rule.left.of @ rule.right, one, rule)


def _without(rule: Rule, excluded: Rule) -> Derivation | None:
    return _proved(rule.left, rule.right, rule, without=excluded.name)


def _proved(left: Expr, right: Expr, rule: Rule, without: str = "") -> Derivation | None:
    """A derivation in the domain of a rule."""
    chain, sides = rule.where == "serial chains", (left, right)
    if rule.needs:
        sides = (without_armature(left), without_armature(right))
    derivation = by_normal_form(*sides, chain=chain, without=without)
    if derivation is None or not rule.needs:
        return derivation
    return without_armature_steps(left, right, derivation)


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
