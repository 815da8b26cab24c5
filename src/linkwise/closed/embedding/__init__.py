"""Constraint embedding: loops and couplings built into a tree of aggregate bodies."""

from linkwise.closed.embedding.embed import embed
from linkwise.closed.embedding.full_motion import (
    full_acceleration,
    full_velocity,
    independent_force,
    independent_velocity,
)
from linkwise.model.embedded import Aggregate, Embedded

__all__ = [
    "Aggregate",
    "Embedded",
    "embed",
    "full_acceleration",
    "full_velocity",
    "independent_force",
    "independent_velocity",
]
