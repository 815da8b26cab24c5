"""The symbols of the theory spelt out in ASCII: φ as phi, D⁻¹ as D^-1, as they can be typed."""

from __future__ import annotations

import unicodedata

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
