"""The pieces of a text that means an expression, and how a place in it is shown.

The longest known name is taken, so that papers can be typed as they are printed: Hφ̃ is H φ̃, while
HX is one unknown name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NoReturn

from linkwise.algebra.armature import without_armature
from linkwise.algebra.expr import Expr, Symbol
from linkwise.algebra.family import BARE_ASCII
from linkwise.algebra.symbols import VOCABULARY
from linkwise.errors import ExpressionError, unknown_name

SHOWN = 90
"""Characters of the text that an error message shows around the place."""

ALIASES: Mapping[str, str] = {
    **{"ϕ": "phi", "ϕ̃": "phi_tilde", "E_ϕ": "E_phi", "Δ_ϕ": "Delta_phi", "P^+": "P_plus"},
    **{"ℳ": "mass", "𝒞": "bias", "𝔞": "a", "𝔟": "b", "𝒯": "tau", "𝒱": "V", "Ω": "Omega"},
}
"""Other ways to write names of the vocabulary."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text.

    Attributes:
        kind: "number", "name", "open", "close", "sign", "times", "star", "adjoint", "inverse",
            "both", "over", "equals" or "end".
        text: As written; for brackets the plain one, for signs + or -.
        start: Where it begins.
        stop: Where it ends.
        apart: Whether there is space in front of it.
    """

    kind: str
    text: str
    start: int
    stop: int
    apart: bool = False


_T = r"T(?![A-Za-z0-9_])"


def _exponent(of: str) -> str:
    """^x or ^{x}."""
    return rf"|\^\s*(?:{of}|\{{\s*{of}\s*\}})"


_PATTERNS = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("number", r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"),
        ("both", r"⁻\*|⁻ᵀ" + _exponent(rf"[-−]\s*(?:\*|{_T})")),
        ("inverse", r"⁻¹|\.inv(?![A-Za-z0-9_])" + _exponent(r"[-−]\s*1(?![\d.])")),
        ("adjoint", rf"['†ᵀ]|\.{_T}" + _exponent(rf"(?:\*|{_T})")),
        ("star", r"\*"),
        ("sign", r"[-−+]"),
        ("times", r"[@·⋅]"),
        ("over", r"/"),
        ("equals", r"="),
        ("open", r"(?:\\left\s*)?[(\[{]"),
        ("close", r"(?:\\right\s*)?[)\]}]"),
    )
)
_SPACE = re.compile(r"(?:\s|\\[ ,;:])+")
_WORD = re.compile(r"\\?[^\W\d]\w*|\\")


def tokens(text: str, names: Mapping[str, Expr]) -> Iterator[Token]:
    """The pieces of a text, "end" last; raises ExpressionError at an unknown one."""
    by_initial = dict[str, list[str]]()
    for name in sorted(names, key=len, reverse=True):  # φ̃ before φ
        by_initial.setdefault(name[0], []).append(name)
    at = 0
    while True:
        space = _SPACE.match(text, at)
        apart = space is not None
        at = space.end() if space is not None else at
        if at == len(text):
            break
        token = _name(text, at, by_initial.get(text[at], ())) or _mark(text, at)
        if token is None:
            _unknown(text, at, names)
        yield Token(token.kind, token.text, token.start, token.stop, apart)
        at = token.stop
    yield Token("end", "", at, at)


def safe_tokens(text: str, names: Mapping[str, Expr]) -> list[Token]:
    """The pieces, or none if the text cannot be split."""
    try:
        return list(tokens(text, names))
    except ExpressionError:
        return []


def _name(text: str, at: int, candidates: list[str] | tuple[str, ...]) -> Token | None:
    """The longest known name that begins here and is not the beginning of a longer word."""
    for name in candidates:
        stop = at + len(name)
        if text.startswith(name, at) and not _goes_on(text, stop):
            return Token("name", name, at, stop)
    return None


def _goes_on(text: str, stop: int) -> bool:
    """Whether a name that ends here goes on: H in HX does, H in Hφ and φ in φM do not."""
    if stop == len(text):
        return False
    last, following = text[stop - 1], text[stop]
    if unicodedata.combining(following):
        return True
    return _ascii_word(last) and _ascii_word(following)


def _ascii_word(letter: str) -> bool:
    return letter.isascii() and (letter.isalnum() or letter == "_")


def _mark(text: str, at: int) -> Token | None:
    for kind, pattern in _PATTERNS:
        match = pattern.match(text, at)
        if match is None:
            continue
        plain = match[0]
        if kind in ("open", "close"):
            plain = plain[-1]
        elif kind == "sign":
            plain = "+" if plain == "+" else "-"
        return Token(kind, plain, at, match.end())
    return None


def _unknown(text: str, at: int, names: Mapping[str, Expr]) -> NoReturn:
    """The error for what is neither a name nor a mark."""
    word = _WORD.match(text, at)
    stop = word.end() if word is not None else at + 1
    while stop < len(text) and unicodedata.combining(text[stop]):
        stop += 1
    piece = text[at:stop]
    if text[at] == "^":
        fail(text, at, at + 1, "after ^ there can be -1 (inverse), T or * (adjoint), -T or -*")
    if word is None or piece == "\\":
        fail(text, at, stop, f"{piece!r} means nothing here")
    parts = _split(piece, names)
    if parts:
        fail(text, at, stop, f"{piece!r} is not a name; did you mean {' '.join(parts)!r}?")
    known = sorted(n for n in names if n.isascii() and "\\" not in n and "^" not in n)
    fail(text, at, stop, str(unknown_name("operator", piece, known, owner="the vocabulary")))


def _split(word: str, names: Mapping[str, Expr]) -> list[str]:
    """Names that a word is made of: HPH is H P H; no names if there is no way to split it."""
    if len(word) > 40:
        return []
    ways: list[list[str] | None] = [[], *([None] * len(word))]
    for stop in range(1, len(word) + 1):
        for start in range(stop):
            before = ways[start]
            if before is not None and word[start:stop] in names:
                ways[stop] = [*before, word[start:stop]]
                break
    return ways[-1] or []


def known_names(extra: Mapping[str, Expr] | None) -> Mapping[str, Expr]:
    """The vocabulary, and your own names."""
    return (
        _vocabulary() if not extra else {**_vocabulary(), **{n: e for n, e in extra.items() if n}}
    )


@cache
def _vocabulary() -> dict[str, Expr]:
    """Every way to write a name: as typed, as printed, as LaTeX."""
    names = dict(VOCABULARY)
    for expr in VOCABULARY.values():
        if isinstance(expr, Symbol):
            names |= {expr.name: expr, expr.tex: expr}
    for expr in VOCABULARY.values():  # P₀, typed P_0 or P0, and so on
        bare = without_armature(expr)
        if bare is not expr and isinstance(bare, Symbol):
            names |= {bare.name: bare, bare.tex: bare, bare.ascii: bare}
            names[bare.ascii.removesuffix(BARE_ASCII) + "0"] = bare
    return names | {alias: VOCABULARY[name] for alias, name in ALIASES.items()}


# ----------------------------------------------------------------------------------- errors


def fail(text: str, start: int, stop: int, reason: str) -> NoReturn:
    """Raise an ExpressionError that shows the place."""
    sentence = reason if reason.endswith((".", "?")) else f"{reason}."
    raise ExpressionError(shown(text, start, stop, sentence))


def shown(text: str, start: int, stop: int, reason: str) -> str:
    """The reason, the text (or the part of it that matters), and a caret under the place."""
    if not text.strip():
        return f"{reason} The text is empty."
    first = max(0, start - SHOWN // 2)
    last = min(len(text), first + SHOWN)
    before = "..." if first > 0 else ""
    after = "..." if last < len(text) else ""
    window = "".join(c if c.isprintable() else " " for c in text[first:last])
    marked = max(1, width(text[start : min(stop, last)]))
    offset = len(before) + width(window[: start - first])
    return f"{reason}\n    {before}{window}{after}\n    {' ' * offset}{'^' * marked}"


def width(text: str) -> int:
    """Columns of a terminal that a text takes: marks above a letter take none."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return wide + sum(not unicodedata.combining(c) for c in text)
