"""A normal form: definitions opened, then axioms applied as far as they go.

The axioms, read from left to right, are a terminating system of replacements on words: φ E_φ and
E_φ φ go to φ - I, ψ K H φ to φ - ψ, M to P - E_φ P E_φ* + K D K*, and so on. Two expressions with
the same normal form are equal, and the two chains of steps are a proof. (The converse is not
claimed: different normal forms prove nothing.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from linkwise.algebra import role
from linkwise.algebra.expr import Adjoint, Expr, Inverse, Symbol, identity, inverse, product
from linkwise.algebra.family import Family, resolvent
from linkwise.algebra.invert import families_of, opened_inverse, opened_name
from linkwise.algebra.rule import Rule
from linkwise.algebra.rules import BY_NAME
from linkwise.algebra.space import JOINT
from linkwise.algebra.words import Word, Words, collected, count, expand, flat

CORE = (
    *("φ E_φ", "E_φ φ", "ψ E_φ", "E_φ ψ", "D = H P H* + N", "gain", "shifted gain", "H G"),
    *("φ G", "ψ G", "ψ K H φ", "φ K H ψ", "Riccati equation"),
)
"""Axioms that are always used."""

LYAPUNOV = ("Lyapunov equation",)
"""M by the composite inertia R instead of P."""

COMPOSITE = ("covariance of the filtered state",)
"""Used where R meets P."""

CHAIN = ("no siblings",)
"""Used for statements about serial chains only."""

COSTATE = ("costate covariance", "G* Υ", "G* Υ with armature")
"""Used where Υ appears."""

LAST = ("costate equation",)
"""Used where nothing else applies: H* D⁻¹ H is shorter than what it is by Υ."""

LIMIT = 4000
"""Replacements before giving up."""

MOST_INSIDE = 500
"""An inverse of more words, multiplied out, stays as it is written."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """An axiom as it is used: a stretch of a word, and what it is replaced by."""

    rule: Rule
    word: Word
    by: Words


@dataclass(frozen=True, slots=True)
class Reduction:
    """One step of a reduction: the rule and the words after it."""

    rule: Rule
    words: Words


def normal_form(
    expr: Expr,
    *,
    modules: Sequence[str] = (),
    families: Sequence[Family] = (),
    trace: list[Reduction] | None = None,
) -> Words:
    """The normal form of an expression as words.

    Args:
        expr: The expression.
        modules: Further axioms besides the core, by name.
        families: Those whose axioms are used, in this order; default: those of the expression. To
            compare two sides use the same ones: `shared_families`.
        trace: Collects the steps, if given.
    """
    words = expand(expr, opened=opened)
    allowed = tuple(replacements(families or families_of(words), tuple(modules)))
    done = 0
    while done < LIMIT:
        replacement = next(_applicable(words, allowed), None)
        if replacement is None:
            return words
        words = replaced(words, replacement)
        done += 1
        if trace is not None:
            trace.append(Reduction(replacement.rule, words))
    return words


def shared_families(*sides: Expr) -> tuple[Family, ...]:
    """The families of all sides of an equation."""
    words: Words = {}
    for side in sides:
        words |= expand(side, opened=opened)
    return families_of(words)


def opened(leaf: Expr) -> Expr | None:
    """The definition of a letter: names, strict resolvents, parts of a family, known inverses."""
    if isinstance(leaf, Inverse):
        return _opened_inverse(leaf)
    symbol = leaf.of if isinstance(leaf, Adjoint) else leaf
    inside = _definition(symbol) if isinstance(symbol, Symbol) else None
    if inside is None:
        return opened_name(leaf)
    return inside.T if isinstance(leaf, Adjoint) else inside


def _opened_inverse(leaf: Inverse) -> Expr | None:
    result = opened_inverse(leaf)
    if result is not None or isinstance(leaf.of, Symbol | Adjoint):
        return result
    # What stays an inverse gets a normal form inside, so that equal ones are one letter.
    if count(leaf.of, opened) > MOST_INSIDE:
        return None
    inside = flat(normal_form(leaf.of), leaf.range, leaf.domain)
    if inside is leaf.of:
        return None
    again = inverse(inside)
    return None if again is leaf else again


def _definition(symbol: Symbol) -> Expr | None:
    key = symbol.role
    if isinstance(key, role.Resolvent) and key.strict:
        return resolvent(key.of) - identity(symbol.range)
    if isinstance(key, role.Composite) and key.symmetric and symbol.range is JOINT:
        return key.definition  # noise such as 2 N
    if isinstance(key, role.Riccati):
        family = Family(*key.family)
        parts: dict[str, Callable[[], Expr]] = {
            "Pi": lambda: family.G @ family.H,
            "Pi_bar": lambda: identity(symbol.range) - family.G @ family.H,
            "P_plus": lambda: family.P - family.G @ family.H @ family.P,
            "E_psi": lambda: family.E - family.K @ family.H,
        }
        make = parts.get(key.part)
        return None if make is None else make()
    return None


def replacements(families: Iterable[Family], modules: tuple[str, ...]) -> Iterable[Replacement]:
    """The axioms as they may be used for some families."""
    yield from _gather()
    cores = set[tuple[Symbol, Symbol]]()
    first = [name for name in modules if name not in LAST]
    for family in families:
        for rule in (BY_NAME[name] for name in (*first, *CORE)):
            if rule.name == "Riccati equation" and (family.E, family.M) in cores:
                yield _solved(rule.about(family), family)
            elif rule.holds_in(family):
                yield from _both(rule, family)
        cores.add((family.E, family.M))
    for family in families:
        for rule in (BY_NAME[name] for name in modules if name in LAST):
            yield from _both(rule, family)


def _solved(rule: Rule, family: Family) -> Replacement:
    """E P E* = P - M + K D K*: two families of one core meet where M is that of the first."""
    word = (family.E, family.P, family.E.T)
    return Replacement(rule, word, expand(product(word) + rule.right - rule.left, opened=opened))


@lru_cache(maxsize=1)
def _gather() -> tuple[Replacement, ...]:
    """S Δ_φ = E_φ, and its adjoint."""
    rule = BY_NAME["E_φ = S Δ_φ"]
    return tuple(_one(r) for r in (rule, rule.adjoint))


@lru_cache(maxsize=512)
def _both(rule: Rule, family: Family) -> tuple[Replacement, ...]:
    """A rule and its adjoint, about one family."""
    ours = rule.about(family)
    forms = [ours] if ours.left is ours.left.T else [ours, ours.adjoint]
    return tuple(_one(r) for r in forms)


def _one(rule: Rule) -> Replacement:
    left = expand(rule.left)
    ((word, number),) = left.items()
    by = {w: c / number for w, c in expand(rule.right, opened=opened).items()}
    return Replacement(rule, word, by)


def _applicable(words: Words, allowed: Sequence[Replacement]) -> Iterator[Replacement]:
    yield from _cancellations(words)  # before M of M M⁻¹ is replaced by something longer
    for replacement in allowed:
        if any(position(word, replacement.word) >= 0 for word in words):
            yield replacement


def _cancellations(words: Words) -> Iterable[Replacement]:
    """A⁻¹ A = I, which multiplying out can bring side by side."""
    for word in words:
        for x, y in pairwise(word):
            if (isinstance(x, Inverse) and x.of is y) or (isinstance(y, Inverse) and y.of is x):
                leaf = y if isinstance(x, Inverse) else x
                one = identity(leaf.range)
                cancel = Rule(f"{x} {y} = I", one, one, "any tree", "definition", "definition")
                yield Replacement(cancel, (x, y), {(): 1.0})
                return


def position(word: Word, part: Word) -> int:
    """Position of `part` in `word`, or -1."""
    n = len(part)
    for i in range(len(word) - n + 1):
        if word[i : i + n] == part:
            return i
    return -1


def replaced(words: Words, replacement: Replacement) -> Words:
    """The words after one replacement, at its first place in each word."""
    pairs = list[tuple[Word, float]]()
    for word, number in words.items():
        i = position(word, replacement.word)
        if i < 0:
            pairs.append((word, number))
            continue
        head, tail = word[:i], word[i + len(replacement.word) :]
        pairs += [(head + middle + tail, number * c) for middle, c in replacement.by.items()]
    return collected(pairs)
