"""Which hinges have coordinates that are just numbers."""

from __future__ import annotations

from linkwise.model.hinges.hinge import Hinge
from linkwise.model.hinges.reversed import Reversed


def is_plain(hinge: Hinge) -> bool:
    """Whether q' = v, freedom by freedom, and q moves along it by adding; from either side."""
    while isinstance(hinge, Reversed):
        hinge = hinge.hinge
    return type(hinge).qdot is Hinge.qdot and type(hinge).integrate is Hinge.integrate
