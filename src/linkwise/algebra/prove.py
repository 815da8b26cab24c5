"""Whether two expressions are equal: a proof, and what numbers say; and the proofs of the rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from linkwise.algebra.armature import without_armature
from linkwise.algebra.budget import Budget
from linkwise.algebra.derivation import Derivation, Step
from linkwise.algebra.evidence import Evidence
from linkwise.algebra.expr import ANY, Expr, Inverse, identity
from linkwise.algebra.normal_form import opened
from linkwise.algebra.rule import Rule
from linkwise.algebra.rules import ALL
from linkwise.algebra.search import by_normal_form, connect, without_armature_steps
from linkwise.algebra.symbols import bare_tree
from linkwise.algebra.words import expand
from linkwise.errors import ExpressionError
from linkwise.front_door import open_front_door

ENOUGH = Budget(400)
"""Of a search from both sides."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether two expressions were proved equal, and how.

    Attributes:
        left: One side.
        right: The other side.
        derivation: The proof, or None.
        numbers: What matrices of sample mechanisms say.
    """

    left: Expr
    right: Expr
    derivation: Derivation | None
    numbers: Evidence

    @property
    def on_trees(self) -> float:
        """Largest relative difference on branched trees with armature, as matrices."""
        return self.numbers.on_trees

    @property
    def on_chains(self) -> float:
        """The same on serial chains."""
        return self.numbers.on_chains

    @property
    def proved(self) -> bool:
        """Whether there is a proof."""
        return self.derivation is not None

    @property
    def verdict(self) -> str:
        """In words."""
        numbers = f"(difference {self.on_trees:.1e} on trees, {self.on_chains:.1e} on chains)"
        domain = self.numbers.domain
        if domain is None:
            return f"The two are not equal {numbers}."
        where, needs = domain
        if needs:
            bare = self.numbers.on_bare_trees, self.numbers.on_bare_chains
            numbers = f"{numbers[:-1]}; without armature {bare[0]:.1e} and {bare[1]:.1e})"
        if self.derivation is not None:
            count = len(self.derivation)
            steps = f"{count} step" + ("" if count == 1 else "s")
            where, needs = self.derivation.where, self.derivation.needs
            apart = "; with armature the two are not equal" if needs else ""
            return f"Proved in {steps}, on {where}{_without(needs)}{apart} {numbers}."
        if where == "any tree":
            return f"The two agree numerically{_without(needs)} {numbers}; the proof is missing."
        return (
            f"The two agree on serial chains{_without(needs)} but not on branched trees {numbers}."
        )

    def __str__(self) -> str:
        head = f"{self.left} = {self.right}\n{self.verdict}"
        return head if self.derivation is None else f"{head}\n{self.derivation}"


def _bare(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    return without_armature(left), without_armature(right)


def _without(needs: str) -> str:
    return " without armature" if needs else ""


def prove(left: Expr, right: Expr) -> Proof:
    """A proof that two expressions are equal, or what numbers say about them.

    Args:
        left: One side.
        right: The other side; a bare I takes the space of the left.

    Raises:
        ExpressionError: The two map between different spaces.
        ProofError: A proof was found that the numbers contradict: a bug in Linkwise.
    """
    left, right = left + 0.0 * right, right + 0.0 * left
    if (left.range, left.domain) != (right.range, right.domain):
        raise ExpressionError(f"{left} and {right} map between different spaces.")
    numbers, derivation = Evidence(left, right), None
    match numbers.domain:
        case ("any tree", ""):
            derivation = connect(left, right, ENOUGH)
        case ("serial chains", ""):
            derivation = by_normal_form(left, right, chain=True)
        case ("any tree", "N = 0"):
            derivation = connect(*_bare(left, right), ENOUGH)
        case ("serial chains", "N = 0"):
            derivation = by_normal_form(*_bare(left, right), chain=True)
        case _:
            pass
    if derivation is not None and derivation.start is not left:
        derivation = without_armature_steps(left, right, derivation)
    if derivation is not None:
        numbers.check(derivation.where, derivation.needs)
    return Proof(left, right, derivation, numbers)


def path(expr: Expr, to: Expr, budget: Budget = ENOUGH) -> Derivation:
    """A derivation from one expression to another; raises where none was found.

    Args:
        expr: Where it begins.
        to: Where it ends; a bare I takes the space of the other.
        budget: When the search ends.
    """
    if to.range is ANY:
        to = to + 0.0 * expr
    if (expr.range, expr.domain) != (to.range, to.domain):
        raise ExpressionError(
            f"{expr} maps {expr.domain} to {expr.range}, but {to} maps {to.domain} to {to.range}: "
            "they cannot be equal."
        )
    derivation, numbers = connect(expr, to, budget), Evidence(expr, to)
    if derivation is None:
        verdict = Proof(expr, to, None, numbers).verdict
        raise ExpressionError(f"no derivation was found from  {expr}  to  {to}. {verdict}")
    numbers.check(derivation.where, derivation.needs)
    return derivation


open_front_door(globals(), ("prove",))


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
    derivation = _proof_without(rule, rule)
    return derivation if derivation is not None else _difference(rule)


def inverse_proof_of(rule: Rule) -> Derivation | None:
    """For a rule A⁻¹ = X the derivation of A X = I; None for others, or if none was found.

    `proof_of` may open A⁻¹ by the recursion that this very rule states; multiplying out does not.
    """
    if rule.kind != "theorem" or not isinstance(rule.left, Inverse):
        return None
    one = identity(rule.left.range)
    return _proved(rule.left.of @ rule.right, one, rule)


def _proof_without(rule: Rule, excluded: Rule) -> Derivation | None:
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
        if _proof_without(first, rule) is None or _proof_without(second, rule) is None:
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
