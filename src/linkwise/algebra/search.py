"""Rewriting: the search for the cheapest equal form, and for a path between two given forms.

Names are opened first, and inverses that a recursion can do; then identities replace stretches of
words, everywhere they occur, in all ways that the budget allows. Forms are compared by the
cost of the program they lower to. Roles and families alone decide which identities apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heappop, heappush
from typing import Any

from linkwise.algebra import role
from linkwise.algebra.armature import no_armature
from linkwise.algebra.budget import Budget
from linkwise.algebra.derivation import Derivation, Step
from linkwise.algebra.differential_form import decomposed, is_derivative
from linkwise.algebra.expr import (
    Adjoint,
    Expr,
    Inverse,
    Product,
    Symbol,
    inverse,
    nodes,
    substituted,
)
from linkwise.algebra.family import Family
from linkwise.algebra.invert import families_of, opened_inverse
from linkwise.algebra.normal_form import (
    CHAIN,
    COMPOSITE,
    COSTATE,
    LAST,
    LYAPUNOV,
    Reduction,
    Replacement,
    normal_form,
    opened,
    position,
    replaced,
    shared_families,
)
from linkwise.algebra.rule import Rule
from linkwise.algebra.rules import BY_NAME
from linkwise.algebra.space import ONE
from linkwise.algebra.words import Words, collected, count, expand, factored, flat, same

SIMPLIFYING = (
    "whitened propagation",
    "gain through whitening",
    "coloring whitened",
    "whitened coloring",
    "H G = I",
    "composite decomposition",
    "mixed decomposition",
    "articulated decomposition",
    "smoothed bias",
    "innovations factorisation",
    "costate covariance",
    "state from filtered state and costate",
    "ψ K H φ",
)
"""Identities that a search for a cheaper form reads from left to right."""

MOST_WORDS = 500
"""A longer expression, multiplied out, is not searched."""

Cost = Callable[[Expr], object]
State = frozenset[tuple[tuple[Expr, ...], float]]


# --------------------------------------------------------------------------- opening a form


def opened_steps(expr: Expr) -> Derivation:
    """Names and inverses opened, one step each."""
    steps, here = list[Step](), expr
    while True:
        opening = _next_opening(here)
        if opening is None:
            return Derivation(expr, tuple(steps))
        old, new, title, source = opening
        after = substituted(here, {old: new}.get)
        steps.append(Step(here, after, title, f"{old} = {new}", source))
        here = after


def _next_opening(expr: Expr) -> tuple[Expr, Expr, str, str] | None:
    # Inverses of names first (𝓜⁻¹ reads better than the inverse of five factors), then names.
    for node in nodes(expr):
        if isinstance(node, Inverse):
            new = opened_inverse(node)
            if new is not None and not isinstance(new, Inverse):
                return node, new, "inverse by recursion", "000 Lemma 4.3"
            if new is not None and isinstance(node.of, Symbol):
                innermost = opened_inverse(new)
                if innermost is not None:
                    return node, innermost, "inverse of the mass operator", "000 Lemma 4.3"
    for node in nodes(expr):
        if isinstance(node, Symbol) and isinstance(node.role, role.Named):
            return node, node.role.definition, f"definition of {node}", "definition"
    return None


# ------------------------------------------------------------------------------- replacing


def kept_sums(families: tuple[Family, ...]) -> set[Expr]:
    """The sums that stay whole: I - H ψ K and I + H φ K, with their adjoints."""
    kept = set[Expr]()
    for family in families:
        kept |= {family.whitening, family.whitening.T, family.coloring, family.coloring.T}
    return kept


def moves(words: Words, names: tuple[str, ...], *, both: bool) -> Iterator[Replacement]:
    """The rules of these names as they may be used for the families of some words."""
    return iter(_moves(families_of(words), names, both))


@lru_cache(maxsize=64)
def _moves(
    families: tuple[Family, ...], names: tuple[str, ...], both: bool
) -> tuple[Replacement, ...]:
    kept = kept_sums(families)
    rules = (
        BY_NAME[name].about(family)
        for family in families
        for name in names
        if BY_NAME[name].holds_in(family)
    )
    return tuple(
        move
        for about in rules
        for rule in (about, about.adjoint)
        for move in directions(rule, kept, both=both)
    )


def directions(rule: Rule, kept: set[Expr], *, both: bool) -> Iterator[Replacement]:
    """A rule as replacements: of its left side, and with `both` of its right side."""
    left, right = (expand(side, kept, opened=_without_inverse) for side in (rule.left, rule.right))
    if len(left) == 1:
        ((word, number),) = left.items()
        if word:
            yield Replacement(rule, word, {w: c / number for w, c in right.items()})
    if both and len(right) == 1:
        ((word, number),) = right.items()
        if word:
            yield Replacement(rule, word, {w: c / number for w, c in left.items()})


def _without_inverse(letter: Expr) -> Expr | None:
    """𝓜⁻¹ as expressions have it once they are opened."""
    result = opened_inverse(letter) if isinstance(letter, Inverse) else None
    return opened_inverse(result) if isinstance(result, Inverse) else result


def everywhere(words: Words, move: Replacement) -> Words:
    """The replacement at every place it applies (a few rounds, since it may bring itself back)."""
    for _ in range(4):
        if not any(position(word, move.word) >= 0 for word in words):
            break
        words = replaced(words, move)
    return words


@dataclass(slots=True)
class _Form:
    """A form that was reached: its words, and how."""

    words: Words
    expr: Expr
    step: Step | None
    before: _Form | None

    def path(self) -> tuple[Step, ...]:
        steps, here = list[Step](), self
        while here.step is not None and here.before is not None:
            steps.append(here.step)
            here = here.before
        return tuple(reversed(steps))


def _neighbours(form: _Form, names: tuple[str, ...], *, both: bool) -> Iterator[_Form]:
    for move in moves(form.words, names, both=both):
        if not any(position(word, move.word) >= 0 for word in form.words):
            continue
        words = everywhere(form.words, move)
        if words == form.words:
            continue
        expr = factored(words, form.expr.range, form.expr.domain)
        rule = move.rule
        step = Step(form.expr, expr, rule.name, str(rule), rule.source, rule.where, rule)
        yield _Form(words, expr, step, form)


def _start(expr: Expr) -> tuple[Derivation, _Form]:
    """The opened expression as words, with the step that multiplies it out if that changes it."""
    opening = opened_steps(expr)
    words = expand(opening.result, kept_sums(families_of(expand(opening.result))))
    shown = factored(words, expr.range, expr.domain)
    if shown is not opening.result:
        step = Step(opening.result, shown, "collected", "products multiplied out", "arithmetic")
        opening = Derivation(expr, (*opening.steps, step))
    return opening, _Form(words, shown, None, None)


# -------------------------------------------------------------------------------- cheapest


def cheapest(expr: Expr, cost: Cost, budget: Budget) -> Derivation:
    """The cheapest equal form that was found within the budget, with its derivation.

    Args:
        expr: The expression.
        cost: What to minimise; forms it raises a ValueError for are passed over.
        budget: When to stop.
    """
    if is_derivative(expr):
        return _derivative_form(expr)
    inside = _inside_inverses(expr, cost, budget)
    if inside.steps:
        return inside.then(cheapest(inside.result, cost, budget))
    if count(expr, opened) > MOST_WORDS:
        return opened_steps(expr)  # too long to multiply out: only names and inverses
    opening, first = _start(expr)
    best, best_cost = first, _cost_of(cost, first.expr)
    seen, letters = {frozenset(first.words.items())}, 0
    queue: list[tuple[bool, Any, int, _Form]] = [(best_cost is None, best_cost, 0, first)]
    last = min(budget.forms, 1 + budget.idle)
    while queue and len(seen) < last and letters < budget.letters:
        form = heappop(queue)[-1]  # the cheapest first
        for near in _neighbours(form, SIMPLIFYING, both=False):
            key = frozenset(near.words.items())
            letters += _letters(near.words)
            if key in seen:
                continue
            seen.add(key)
            near_cost = _cost_of(cost, near.expr)
            heappush(queue, (near_cost is None, near_cost, len(seen), near))
            if near_cost is not None and (best_cost is None or near_cost < best_cost):  # type: ignore[operator]
                best, best_cost = near, near_cost
                last = min(budget.forms, len(seen) + budget.idle)
            if len(seen) >= last or letters >= budget.letters:
                break
    own_cost = _cost_of(cost, expr)
    if own_cost is not None and (best_cost is None or own_cost < best_cost):  # type: ignore[operator]
        return Derivation(expr)  # multiplying out did not help
    return Derivation(expr, (*opening.steps, *best.path()))


def _derivative_form(expr: Expr) -> Derivation:
    """A derivative as a matrix, by the decomposition lemma; applied to a vector, as it is."""
    after = expr if expr.is_vector or expr.range is ONE else decomposed(expr)
    if after is expr:
        return Derivation(expr)
    lemma = "φ X φ* = R + φ̃ R + R φ̃*,  R = E_φ R E_φ* + X"
    return Derivation(expr, (Step(expr, after, "decomposition lemma", lemma, "004 Lemma 1"),))


def _inside_inverses(expr: Expr, cost: Cost, budget: Budget) -> Derivation:
    """What stays an inverse is made cheap inside: (J 𝓜⁻¹ J*)⁻¹ is the inverse of a cheaper form."""
    steps, here = list[Step](), expr
    for node in list(nodes(expr)):
        if isinstance(node, Inverse) and node.size > 2 and opened_inverse(node) is None:
            for s in cheapest(node.of, cost, budget).steps:
                after = substituted(here, {inverse(s.before): inverse(s.after)}.get)
                steps.append(replace(s, before=here, after=after))
                here = after
    return Derivation(expr, tuple(steps))


def _letters(words: Words) -> int:
    return sum(map(len, words))


def _cost_of(cost: Cost, expr: Expr) -> object | None:
    try:
        return cost(expr)
    except ValueError:
        return None


# ------------------------------------------------------------------------------- connecting


def connect(expr: Expr, to: Expr, budget: Budget) -> Derivation | None:
    """A derivation from one form to another, or None if none was found.

    A short path is tried first; failing that, both are reduced to their normal form.
    """
    if max(count(expr, opened), count(to, opened)) > MOST_WORDS:
        return None
    derivation = _short_path(expr, to, budget)
    return derivation if derivation is not None else by_normal_form(expr, to)


def _short_path(expr: Expr, to: Expr, budget: Budget) -> Derivation | None:
    opening, first = _start(expr)
    closing, last = _start(to)
    target = expand(last.expr)
    seen, queue, letters = {frozenset(first.words.items())}, [first], 0
    while queue:
        form = queue.pop(0)
        if same(expand(form.expr), target):
            way = Derivation(expr, (*opening.steps, *form.path()))
            return _joined(way, closing.reversed())
        if len(seen) >= budget.forms or letters >= budget.letters:
            return None
        for near in _neighbours(form, SIMPLIFYING, both=False):
            letters += _letters(near.words)
            key = frozenset(near.words.items())
            if key not in seen:
                seen.add(key)
                queue.append(near)
    return None


def _joined(way: Derivation, back: Derivation) -> Derivation:
    """Two chains that meet in forms with the same words, perhaps differently collected."""
    if way.result is not back.start:
        step = Step(way.result, back.start, "collected", "the same words", "arithmetic")
        way = Derivation(way.start, (*way.steps, step))
    return way.then(back)


MODULES = ((), LYAPUNOV, COMPOSITE, COSTATE, (*COMPOSITE, *COSTATE), (*COSTATE[1:], *LAST))


def by_normal_form(
    expr: Expr, to: Expr, *, chain: bool = False, without: str = ""
) -> Derivation | None:
    """A derivation through the common normal form, or None where the two differ.

    Args:
        expr: One side.
        to: The other side.
        chain: Also use what holds on serial chains only.
        without: Name of a rule not to use: the one to be proved.
    """
    derivation = _common_form(expr, to, chain=chain, without=without)
    return (
        derivation if derivation is not None else _cleared(expr, to, chain=chain, without=without)
    )


def _cleared(
    expr: Expr, to: Expr, *, chain: bool, without: str, depth: int = 2
) -> Derivation | None:
    """X = A⁻¹ (A X) = A⁻¹ (A Y) = Y, or the same from the right, where A X and A Y are simpler."""
    for star in (False, True):
        left, right = (expr.T, to.T) if star else (expr, to)
        for head, one, other in _without_head(left, right):
            way = _common_form(one, other, chain=chain, without=without)
            if way is None and depth > 1:
                way = _cleared(one, other, chain=chain, without=without, depth=depth - 1)
            if way is not None:
                derivation = _behind(head, left, way, right)
                return _adjoint(derivation) if star else derivation
    return None


def _without_head(left: Expr, right: Expr) -> Iterator[tuple[Expr, Expr, Expr]]:
    """What terms begin with, and the sides without it."""
    sides = expand(left), expand(right)
    for head in dict.fromkeys(word[0] for words in sides for word in words if word):
        ends = [behind(words, head) for words in sides]
        if ends[0] is not None and ends[1] is not None:
            one, other = (flat(words or {}, head.domain, left.domain) for words in ends)
            yield head, one, other


def behind(words: Words, head: Expr) -> Words | None:
    """A⁻¹ x for words x, or None: all of them begin with A, or A is known to have an inverse."""
    leaf = head.of if isinstance(head, Adjoint) else head
    key = leaf.role if isinstance(leaf, Symbol) else None
    invertible = isinstance(head, Inverse) or (isinstance(key, role.Resolvent) and key.invertible)
    if not invertible and any(word[:1] != (head,) for word in words):
        return None
    back = inverse(head) if invertible else head
    letters = back.factors if isinstance(back, Product) else (back,)
    return collected(
        (word[1:] if word[:1] == (head,) else (*letters, *word), number)
        for word, number in words.items()
    )


def _behind(head: Expr, expr: Expr, way: Derivation, to: Expr) -> Derivation:
    """A derivation between X and Y as one between A X and A Y."""
    steps = [Step(expr, head @ way.start, "taken out", f"{head} in front", "arithmetic")]
    steps += [replace(s, before=head @ s.before, after=head @ s.after) for s in way.steps]
    steps.append(Step(head @ way.result, to, "multiplied out", f"{head} in front", "arithmetic"))
    return Derivation(expr, tuple(step for step in steps if step.before is not step.after))


def _adjoint(way: Derivation) -> Derivation:
    steps = (replace(s, before=s.before.T, after=s.after.T) for s in way.steps)
    return Derivation(way.start.T, tuple(steps))


def _common_form(expr: Expr, to: Expr, *, chain: bool, without: str) -> Derivation | None:
    families = shared_families(expr, to)
    for modules in MODULES:
        if without in modules:
            continue
        names = (*modules, *CHAIN) if chain else modules
        left, right = list[Reduction](), list[Reduction]()
        one = normal_form(expr, modules=names, families=families, trace=left)
        other = normal_form(to, modules=names, families=families, trace=right)
        if same(one, other):
            there = _reductions(expr, left)
            back = _reductions(to, right)
            return _joined(there, back.reversed())
    return None


def _reductions(expr: Expr, trace: list[Reduction]) -> Derivation:
    here = flat(expand(expr, opened=opened), expr.range, expr.domain)
    steps = list[Step]()
    if here is not expr:
        steps.append(Step(expr, here, "definitions", "names and products opened", "definition"))
    for reduction in trace:
        after = flat(reduction.words, expr.range, expr.domain)
        rule = reduction.rule
        if after is here:  # D⁻¹ D = I, which products have done already
            continue
        steps.append(Step(here, after, rule.name, str(rule), rule.source, rule.where, rule))
        here = after
    return Derivation(expr, tuple(steps))


def without_armature_steps(expr: Expr, to: Expr, way: Derivation) -> Derivation:
    """A derivation between the sides with N = 0, as one between the sides themselves."""
    there, back = no_armature(expr), no_armature(to)
    return Derivation(expr, (*there.steps, *way.steps, *back.reversed().steps))
