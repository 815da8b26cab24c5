"""Symbols spelt out for terminals that lack them: φ as phi, D⁻¹ as D^-1, as they can be typed."""

from __future__ import annotations

import codecs
import unicodedata

SPELT = {
    **{"φ": "phi", "ψ": "psi", "Φ": "Phi", "Ψ": "Psi", "Π": "Pi", "Υ": "Upsilon", "Ξ": "Xi"},
    **{"Ω": "Omega", "Δ": "Delta", "τ": "tau", "𝓜": "mass", "ε": "eps", "ν": "nu"},
    **{"λ": "lambda", "α": "alpha", "Σ": "sum", "̃": "_tilde", "̄": "_bar", "̇": "dot"},
    **{"⁺": "_plus", "′": "_prime", "⁻": "^-", "…": "...", "×": "x", "·": "."},
}


def spell(error: UnicodeError) -> tuple[str, int]:
    """Replaces what an encoding lacks: by its spelling, by plain digits, or by a question mark."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(SPELT.get(letter) or _plain(letter) for letter in text), error.end


def _plain(letter: str) -> str:
    """₂ and ² are 2, ª is a; what has no plain form is a question mark."""
    folded = unicodedata.normalize("NFKC", letter)
    return folded if folded.isascii() else "?"


def register() -> str:
    """The name under which `reconfigure(errors=...)` finds this."""
    codecs.register_error("linkwise.spell", spell)
    return "linkwise.spell"
