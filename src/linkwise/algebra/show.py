"""Expressions as mathematics: Unicode text, LaTeX, and ASCII as it is typed."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from linkwise.algebra.expr import Adjoint, Expr, Identity, Inverse, Product, Sum, Symbol, Zero


@dataclass(frozen=True, slots=True)
class Style:
    """How the parts of an expression are written."""

    leaf: Callable[[Symbol], str]
    star: str
    minus_one: str
    both: str
    gap: str
    open: str
    close: str


UNICODE = Style(lambda s: s.name, "*", "⁻¹", "⁻*", " ", "(", ")")
LATEX = Style(lambda s: s.tex, "^{*}", "^{-1}", "^{-*}", r" ", r"\left(", r"\right)")


def unicode(expr: Expr) -> str:
    """For the terminal: H φ M φ* H*."""
    return _text(expr, UNICODE)


def latex(expr: Expr) -> str:
    """For documents."""
    return _text(expr, LATEX)


def _text(expr: Expr, style: Style) -> str:
    if isinstance(expr, Symbol):
        return style.leaf(expr)
    if isinstance(expr, Identity):
        return "I"
    if isinstance(expr, Zero):
        return "0"
    if isinstance(expr, Adjoint):
        return raised(style.leaf(expr.of), style.star, style)
    if isinstance(expr, Inverse):
        return _inverse(expr, style)
    if isinstance(expr, Product):
        return style.gap.join(_factor(f, style) for f in expr.factors)
    assert isinstance(expr, Sum)
    return _sum(expr, style)


def raised(base: str, mark: str, style: Style) -> str:
    """A symbol with a star or a power at it."""
    # In LaTeX a base that is itself raised (P^{+}) needs braces around it.
    return f"{{{base}}}{mark}" if style is LATEX and "^" in base else base + mark


def _inverse(expr: Inverse, style: Style) -> str:
    if isinstance(expr.of, Adjoint):
        return raised(style.leaf(expr.of.of), style.both, style)
    if isinstance(expr.of, Symbol):
        return raised(_text(expr.of, style), style.minus_one, style)
    return f"{style.open}{_text(expr.of, style)}{style.close}{style.minus_one}"


def _factor(expr: Expr, style: Style) -> str:
    if not isinstance(expr, Sum):
        return _text(expr, style)
    # A sum of adjoints is nicer as the adjoint of a sum: (I - H ψ K)*.
    flipped = expr.T
    if isinstance(flipped, Sum) and _stars(flipped) < _stars(expr):
        return f"{style.open}{_sum(flipped, style)}{style.close}{style.star}"
    return f"{style.open}{_sum(expr, style)}{style.close}"


def _stars(expr: Expr) -> int:
    if isinstance(expr, Adjoint):
        return 1
    if isinstance(expr, Product):
        return sum(_stars(f) for f in expr.factors)
    if isinstance(expr, Sum):
        return sum(_stars(e) for _, e in expr.terms)
    return _stars(expr.of) if isinstance(expr, Inverse) else 0


def _sum(expr: Sum, style: Style) -> str:
    # Positive terms first: `τ - H z` reads better than `-H z + τ`.
    terms = sorted(expr.terms, key=lambda term: term[0] < 0.0)
    text = ""
    for i, (number, inner) in enumerate(terms):
        sign = "-" if number < 0.0 else "+"
        size = abs(number)
        scale = "" if size == 1.0 else f"{_number(size)}{style.gap}"
        body = f"{scale}{_term(inner, style, scaled=bool(scale))}"
        if i == 0:
            text = f"-{body}" if sign == "-" else body
        else:
            text += f" {sign} {body}"
    return text


def _term(expr: Expr, style: Style, *, scaled: bool) -> str:
    inner = _text(expr, style)
    return f"{style.open}{inner}{style.close}" if scaled and isinstance(expr, Sum) else inner


def _number(value: float) -> str:
    """Exactly: the text is read back as the same number."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


SPELT = {
    **{"φ": "phi", "ψ": "psi", "Φ": "Phi", "Ψ": "Psi", "Π": "Pi", "Υ": "Upsilon", "Ξ": "Xi"},
    **{"κ": "kappa", "ẍ": "servo"},
    **{"Ω": "Omega", "Δ": "Delta", "τ": "tau", "𝓜": "mass", "ε": "eps", "ν": "nu"},
    **{"λ": "lambda", "α": "alpha", "Σ": "sum", "̃": "_tilde", "̄": "_bar", "̇": "dot"},
    **{"⁺": "_plus", "′": "_prime", "⁻": "^-", "…": "...", "×": "x", "·": "."},
}


def spelt(text: str) -> str:
    """The text in ASCII: by its spelling, by plain digits, or by question marks."""
    return "".join(c if c.isascii() else SPELT.get(c) or _plain(c) for c in text)


def _plain(letter: str) -> str:
    """₂ and ² are 2, ª is a; what has no plain form is a question mark."""
    folded = unicodedata.normalize("NFKC", letter)
    return folded if folded.isascii() else "?"
