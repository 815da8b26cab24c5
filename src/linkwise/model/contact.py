"""Which shapes may touch each other, and how they rub: surfaces, pairs and exclusions.

The rules are those of MuJoCo. Two shapes meet where the masks of their surfaces agree and neither
their bodies are excluded nor fixed to each other; a pair that is listed meets in any case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from linkwise.arguments import all_are, count, flag, is_a, name, names, number
from linkwise.errors import ModelError

CONDIMS = (1, 3, 4, 6)
"""Directions in which a contact pushes: normal; sliding; spinning; rolling."""


@dataclass(frozen=True, slots=True)
class Surface:
    """How a shape touches others.

    Attributes:
        friction: Coulomb's coefficient of sliding.
        torsional: Length [m] of the moment that resists spinning about the normal.
        rolling: Length [m] of the moment that resists rolling.
        condim: 1 for no friction, 3 for sliding, 4 for spinning too, 6 for rolling too.
        contype: Bits of the groups it belongs to.
        conaffinity: Bits of the groups that it touches.
        priority: Of two surfaces the one with the higher priority gives the friction; where both
            have the same, the larger of each number holds.
        margin: Distance [m] at which it pushes already; those of two surfaces add up.
    """

    friction: float = 1.0
    torsional: float = 0.005
    rolling: float = 0.0001
    condim: int = 3
    contype: int = 1
    conaffinity: int = 1
    priority: int = 0
    margin: float = 0.0

    def __post_init__(self) -> None:
        put = object.__setattr__
        for what in ("friction", "torsional", "rolling"):
            put(self, what, number(getattr(self, what), f"{what} of a surface", least=0.0))
        put(self, "margin", number(self.margin, "margin of a surface"))
        for what in ("contype", "conaffinity"):
            count(getattr(self, what), f"{what} of a surface", least=-(2**31))
        count(self.priority, "priority of a surface", least=-(2**31))
        if self.condim not in CONDIMS:
            allowed = ", ".join(map(str, CONDIMS))
            raise ModelError(
                f"condim of a surface is {self.condim!r}; it must be one of {allowed}."
            )


@dataclass(frozen=True, slots=True)
class ContactPair:
    """Two shapes that touch whatever their masks say, with separate laws.

    Attributes:
        shape_a: Name of a shape.
        shape_b: Name of the other.
        surface: The laws of their contact; the masks are not used.
    """

    shape_a: str
    shape_b: str
    surface: Surface = field(default_factory=Surface)

    def __post_init__(self) -> None:
        name(self.shape_a, "shape of a contact pair")
        name(self.shape_b, "shape of a contact pair")
        is_a(Surface, self.surface, "surface of a contact pair")


@dataclass(frozen=True, slots=True)
class ContactRules:
    """What a file says about contacts besides the surfaces of its shapes.

    Attributes:
        pairs: Shapes that touch whatever their masks say.
        excludes: Pairs of bodies or nodes, by name, whose shapes never touch by their masks.
        parents: Whether a body and its parent do not touch.
        active: Whether anything touches anything.
    """

    pairs: tuple[ContactPair, ...] = ()
    excludes: tuple[tuple[str, str], ...] = ()
    parents: bool = True
    active: bool = True

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "pairs", all_are(ContactPair, self.pairs, "pairs of contact rules"))
        what = "excludes of contact rules"
        pairs = cast(Any, is_a(tuple, self.excludes, what))
        put(self, "excludes", tuple(names(pair, what) for pair in pairs))
        flag(self.parents, "parents of contact rules")
        flag(self.active, "active of contact rules")


def meet(a: Surface, b: Surface) -> bool:
    """Whether the masks of two surfaces agree."""
    return bool(a.contype & b.conaffinity or b.contype & a.conaffinity)


def combined(a: Surface, b: Surface) -> Surface:
    """The laws of a contact between two surfaces."""
    if a.priority != b.priority:
        first = a if a.priority > b.priority else b
        laws = (first.friction, first.torsional, first.rolling, first.condim)
    else:
        laws = (
            max(a.friction, b.friction),
            max(a.torsional, b.torsional),
            max(a.rolling, b.rolling),
            max(a.condim, b.condim),
        )
    return Surface(*laws, margin=a.margin + b.margin)


def pair_laws(rules: ContactRules, shape_a: str, shape_b: str) -> Surface | None:
    """The laws of a listed pair; None for one that is not listed."""
    for pair in rules.pairs:
        if {pair.shape_a, pair.shape_b} == {shape_a, shape_b}:
            return pair.surface
    return None


def excluded(rules: ContactRules, carrier_a: str, carrier_b: str) -> bool:
    """Whether two bodies or nodes do not touch."""
    return (carrier_a, carrier_b) in rules.excludes or (carrier_b, carrier_a) in rules.excludes


def joined(rules: ContactRules, other: ContactRules, renamed: Callable[[str], str]) -> ContactRules:
    """The rules with those of a mechanism that is mounted, whose bodies get other names."""
    excludes = tuple((renamed(a), renamed(b)) for a, b in other.excludes)
    return ContactRules(
        (*rules.pairs, *other.pairs),
        (*rules.excludes, *excludes),
        rules.parents and other.parents,
        rules.active,
    )
