"""Symbols spelt out for terminals that lack them: φ as phi, D⁻¹ as D^-1, as they can be typed."""

from __future__ import annotations

import codecs

from linkwise.algebra.show import spelt


def spell(error: UnicodeError) -> tuple[str, int]:
    """Replaces what an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return spelt(error.object[error.start : error.end]), error.end


def register() -> str:
    """The name under which `reconfigure(errors=...)` finds this."""
    codecs.register_error("linkwise.spell", spell)
    return "linkwise.spell"
