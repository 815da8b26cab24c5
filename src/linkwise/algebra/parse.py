r"""Text to expressions: what is typed in a terminal, printed by `str(expr)` or by `expr.latex()`.

The grammar, on one screen:

    equation  ::=  sum = sum
    sum       ::=  [+ -] term, [+ -] term, ...
    term      ::=  [number] [*] factor [@ ·] factor ...     side by side is a product
    factor    ::=  atom mark mark ... [/ number]
    atom      ::=  name | ( sum ) | [ sum ] | { sum }
    mark      ::=  * ' ^T ^* .T     adjoint, directly behind what it belongs to
                |  ^-1 ⁻¹ .inv      inverse
                |  ^-* ^-T ⁻*       inverse of the adjoint
    name      ::=  phi, E_psi, mass ... | φ, E_ψ, 𝓜 ... | \phi, \mathcal{E}_\psi ...

`*` behind an operator is the adjoint, as in the papers; behind a number it multiplies. `M` is the
spatial inertia of the bodies, `mass` or 𝓜 the mass operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NoReturn

from linkwise.algebra.expr import ANY, Expr, Sum, product, total, zero
from linkwise.algebra.lexeme import Token, fail, known_names, safe_tokens, shown, tokens
from linkwise.algebra.symbols import M, mass
from linkwise.errors import ExpressionError

LONGEST_TEXT = 20_000
"""Longest text that is read [characters]."""

DEEPEST = 60
"""Most brackets inside each other."""

CLOSING = {"(": ")", "[": "]", "{": "}"}


def parse(text: str, *, names: Mapping[str, Expr] | None = None, like: Expr | None = None) -> Expr:
    """The expression that a text means.

    Args:
        text: For instance "J mass^-1 J*" or "(I - H ψ K) H φ".
        names: Operators of your own by name, besides the vocabulary.
        like: Where the text is only "0" or a multiple of "I", which tell no spaces: an expression
            whose spaces they take.

    Raises:
        ExpressionError: The text is not an expression; shows the place and what is expected there.
    """
    parser = _Parser(text, known_names(names))
    try:
        expr = parser.expression()
    except _MeaningError as error:
        raise ExpressionError(f"{error}{_about_mass(text, names)}") from None
    return _typed(expr, like)


def parse_equation(text: str, *, names: Mapping[str, Expr] | None = None) -> tuple[Expr, Expr]:
    """Both sides of "left = right"; a bare I or 0 on one side takes the spaces of the other."""
    left, right = _Parser(text, known_names(names)).equation()
    return _typed(left, right), _typed(right, left)


def parse_kindly(text: str) -> tuple[Expr, str]:
    """The expression and a remark: M is read as the mass operator where only that has a meaning.

    Much of the literature writes M for the mass matrix, as in J M⁻¹ J*. Where M, the spatial
    inertia of the bodies, does not fit and the mass operator does, the latter was meant.
    """
    try:
        return parse(text), ""
    except ExpressionError:
        read = _with_mass(text, None)
        if read is None:
            raise
        return read, f"M is read as {mass}, the mass operator; {M} is the inertia of the bodies."


class _MeaningError(ExpressionError):
    """A text that is well-formed but means nothing: spaces that do not meet, no inverse."""


def _typed(expr: Expr, like: Expr | None) -> Expr:
    if like is None or expr.range is not ANY:
        return expr
    return total(((1.0, expr), (0.0, like)))  # adding nothing of the other gives the spaces


def _with_mass(text: str, names: Mapping[str, Expr] | None) -> Expr | None:
    """The expression with M read as the mass operator, or None if that has no meaning either."""
    known = known_names(names)
    if not any(t.kind == "name" and known[t.text] is M for t in safe_tokens(text, known)):
        return None
    try:
        return _Parser(text, {n: mass if e is M else e for n, e in known.items()}).expression()
    except ExpressionError:
        return None


def _about_mass(text: str, names: Mapping[str, Expr] | None) -> str:
    if _with_mass(text, names) is None:
        return ""
    return (
        f"\n{M} is the spatial inertia of the bodies (BODY to BODY). The mass operator H φ M φ* H* "
        f"is written mass or {mass}: with it in place of {M} the text has a meaning."
    )


# ----------------------------------------------------------------------------------- parser


class _Parser:
    """Recursive descent over the tokens."""

    def __init__(self, text: str, names: Mapping[str, Expr]) -> None:
        if len(text) > LONGEST_TEXT:
            raise ExpressionError(
                f"the text has {len(text)} characters; at most {LONGEST_TEXT} are read."
            )
        self.text = text
        self.names = names
        self.tokens = list(tokens(text, names))
        self.at = 0
        self.depth = 0

    def peek(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def fail(self, token: Token, reason: str) -> NoReturn:
        fail(self.text, token.start, token.stop, reason)

    def expression(self) -> Expr:
        """A sum, and nothing behind it."""
        expr = self.sum()
        if self.peek().kind == "equals":
            self.fail(self.peek(), "one expression is expected, not an equation")
        self.expect_end()
        return expr

    def equation(self) -> tuple[Expr, Expr]:
        """Two sums with = between them."""
        left = self.sum()
        if self.peek().kind != "equals":
            self.fail(self.peek(), "expected = and the other side of the equation")
        self.take()
        right = self.sum()
        self.expect_end()
        return left, right

    def expect_end(self) -> None:
        if self.peek().kind == "close":
            self.fail(self.peek(), f"no bracket is open for this {self.peek().text}")
        if self.peek().kind != "end":
            self.fail(self.peek(), f"{self.peek().text!r} is not expected here")

    def sum(self) -> Expr:
        """Terms with signs."""
        terms = list[tuple[float, Expr]]()
        first: tuple[Token, Expr] | None = None
        while not terms or self.peek().kind == "sign":
            sign = -1.0 if self.peek().kind == "sign" and self.take().text == "-" else 1.0
            start = self.peek()
            number, expr = self.term()
            if expr.range is not ANY and first is not None:
                self.meaning(start, lambda a=first[1], b=expr: total(((1.0, a), (1.0, b))))
            elif expr.range is not ANY:
                first = (start, expr)
            terms.append((sign * number, expr))
        return self.meaning(self.peek(), lambda: total(terms))

    def term(self) -> tuple[float, Expr]:
        """A number and a product."""
        start = self.peek()
        number = self.scale()
        factors, last = list[Expr](), None
        while self.peek().kind in ("name", "open") or (not factors and number is None):
            place = self.peek()
            factor = self.factor()
            if last is not None and factor.range is not ANY:
                self.meaning(place, lambda a=last, b=factor: product((a, b)))
            last = factor if factor.range is not ANY else last
            factors.append(factor)
            number = self.divided(1.0 if number is None else number)
            if self.peek().kind == "times":
                self.take()
                if self.peek().kind not in ("name", "open"):
                    self.fail(self.peek(), "expected an operator after the product sign")
        if self.peek().kind == "number":
            self.fail(self.peek(), "a number goes in front of a product: 2 H φ")
        if not factors:
            assert number is not None
            if number != 0.0:
                self.fail(start, f"a number is not an operator; {number:g} times the identity is "
                                 f"{number:g} I")  # fmt: skip
            return 1.0, zero(ANY, ANY)
        assert number is not None
        return number, self.meaning(start, lambda: product(factors))

    def scale(self) -> float | None:
        """Numbers in front of a product, or None."""
        if self.peek().kind != "number":
            return None
        number = self.number()
        while True:
            if self.peek().kind == "star":
                self.take()
                if self.peek().kind not in ("number", "name", "open"):
                    self.fail(self.peek(), "expected an operator after a number and *")
            number = self.divided(number)
            if self.peek().kind != "number":
                return number
            number *= self.number()

    def divided(self, number: float) -> float:
        """Divisors behind a number or a factor."""
        while self.peek().kind == "over":
            self.take()
            if self.peek().kind != "number":
                self.fail(self.peek(), "only numbers divide; the inverse of A is A^-1")
            place = self.peek()
            divisor = self.number()
            if divisor == 0.0:
                self.fail(place, "division by zero")
            number /= divisor
        return number

    def number(self) -> float:
        token = self.take()
        value = float(token.text)
        if not math.isfinite(value):
            self.fail(token, "this number is too large")
        return value

    def factor(self) -> Expr:
        """An atom with its marks."""
        start = self.peek()
        expr = self.atom()
        while True:
            token = self.peek()
            if token.kind == "star":
                if token.apart:
                    self.fail(token, "a separate * could be the adjoint or a product; "
                                     "write A* (no space) or A @ B")  # fmt: skip
                expr = expr.T
            elif token.kind == "adjoint":
                expr = expr.T
            elif token.kind == "inverse":
                expr = self.meaning(start, lambda e=expr: e.inv)
            elif token.kind == "both":
                expr = self.meaning(start, lambda e=expr: e.T.inv)
            else:
                return expr
            self.take()

    def atom(self) -> Expr:
        """A name, or a sum in brackets."""
        token = self.take()
        if token.kind == "name":
            return self.names[token.text]
        if token.kind == "open":
            return self.bracket(token)
        if token.kind == "end":
            self.fail(token, "the text ends where an operator, a number or ( is expected")
        self.fail(token, f"expected an operator, a number or (, not {token.text!r}")

    def bracket(self, opening: Token) -> Expr:
        """A sum and the bracket that closes it."""
        if self.depth == DEEPEST:
            self.fail(opening, f"more than {DEEPEST} brackets inside each other")
        self.depth += 1
        expr = self.sum()
        self.depth -= 1
        closing = self.peek()
        if closing.kind == "end":
            self.fail(opening, f"this {opening.text} is never closed")
        if closing.kind != "close" or closing.text != CLOSING[opening.text]:
            instead = "" if closing.kind != "close" else f", not {closing.text!r}"
            self.fail(closing, f"expected {CLOSING[opening.text]!r} here{instead}")
        self.take()
        return expr

    def meaning(self, token: Token, make: Callable[[], Expr]) -> Expr:
        """What `make` builds; its error is raised with the place in the text."""
        try:
            expr = make()
        except ExpressionError as error:
            raise _MeaningError(shown(self.text, token.start, token.stop, str(error))) from None
        except (ZeroDivisionError, OverflowError):
            self.fail(token, "a number here is too large or too small")
        if isinstance(expr, Sum) and not all(math.isfinite(c) for c, _ in expr.terms):
            self.fail(token, "a number here is too large or too small")
        return expr
