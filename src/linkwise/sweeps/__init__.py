"""In which order do bodies get visited? Expressions lowered to statements, a few passes of them."""

from linkwise.sweeps.program import Program

__all__ = ["Program"]
