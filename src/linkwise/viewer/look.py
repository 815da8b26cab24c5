"""Colours and light of a page: on light paper and on dark, as of the pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from linkwise.errors import ModelError

Rgb: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Look:
    """Colours (red, green, blue), each from 0 to 255.

    Attributes:
        name: "light" or "dark".
        grid: Lines of the floor.
        section: Every fifth of them.
        bodies: For shapes without a colour, in turn.
        hinge: Drums of generated hinges, and axes that turn.
        slide: Axes that slide.
        mass: Centres of mass.
        inertia: Ellipsoids of inertia.
        belted: Belted ellipsoids.
        force: Arrows of forces.
        traces: Paths of nodes, in turn.
    """

    name: str
    grid: Rgb
    section: Rgb
    bodies: tuple[Rgb, ...]
    hinge: Rgb
    slide: Rgb
    mass: Rgb
    inertia: Rgb
    belted: Rgb
    force: Rgb
    traces: tuple[Rgb, ...]


_BODIES = ((196, 201, 207), (92, 128, 161), (226, 221, 208), (120, 134, 148))
LIGHT = Look(
    "light",
    grid=(226, 223, 215),
    section=(205, 201, 191),
    bodies=_BODIES,
    hinge=(232, 130, 41),
    slide=(47, 102, 144),
    mass=(200, 85, 61),
    inertia=(88, 129, 87),
    belted=(141, 106, 159),
    force=(200, 30, 60),
    traces=((200, 85, 61), (47, 102, 144), (88, 129, 87), (141, 106, 159)),
)
DARK = Look(
    "dark",
    grid=(42, 49, 58),
    section=(62, 71, 82),
    bodies=_BODIES,
    hinge=(239, 146, 72),
    slide=(111, 177, 224),
    mass=(239, 127, 99),
    inertia=(143, 193, 132),
    belted=(195, 154, 214),
    force=(255, 92, 110),
    traces=((239, 127, 99), (111, 177, 224), (143, 193, 132), (195, 154, 214)),
)


def look_of(theme: Look | str) -> Look:
    """A look by itself or by its name; raises for one that there is not."""
    if isinstance(theme, Look):
        return theme
    look = {"light": LIGHT, "dark": DARK}.get(theme)
    if look is None:
        raise ModelError(f"theme is {theme!r}; it must be 'light' or 'dark'.")
    return look


def rgb(color: tuple[float, ...] | None) -> Rgb | None:
    """A model's colour, each from 0 to 1, as numbers up to 255; None stays None."""
    if color is None:
        return None
    r, g, b = (round(255.0 * min(max(c, 0.0), 1.0)) for c in color[:3])
    return (r, g, b)
