"""Colours of a page on light and on dark paper; its layers, and the state they are drawn for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from linkwise.errors import ModelError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

LAYERS = {
    "shapes": "shapes of the bodies",
    "collision": "collision shapes",
    "frames": "frames of bodies and nodes",
    "axes": "axes of the hinges",
    "masses": "centres of mass",
    "inertia": "ellipsoids of inertia",
    "belted": "belted ellipsoids: effective mass",
    "forces": "forces of loops and contacts",
    "traces": "paths of nodes",
    "names": "names of the bodies",
    "grid": "floor",
}
"""What can be shown, and what it is."""

INSIDE = ("frames", "axes", "masses", "inertia", "forces")
"""Layers that are inside of the shapes; these turn to glass while one of them is shown."""

GLASS = 0.4
"""Opacity of such shapes."""

ON_BODIES = ("shapes", "collision", "frames", "masses", "inertia", "names")
"""Layers that go along with the bodies; the others are made anew for each state."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What the layers that depend on the state are drawn for.

    Attributes:
        q: Joint positions (nq,).
        v: Joint velocities (nv,); None for a mechanism held at rest.
        tau: Joint forces (nv,).
        time: Of a motion [s].
    """

    q: Array
    v: Array | None = None
    tau: Array | None = None
    time: float = 0.0


def check_layers(names: Iterable[str]) -> tuple[str, ...]:
    """Names of layers; raises for an unknown one."""
    given = (names,) if isinstance(names, str) else tuple(names)
    for name in given:
        if name not in LAYERS:
            raise unknown_name("layer", name, LAYERS, owner="the viewer")
    return given


def check_nodes(mech: Mechanism, nodes: str | Iterable[str]) -> tuple[str, ...]:
    """Names of nodes or bodies; raises for an unknown one."""
    names = (nodes,) if isinstance(nodes, str) else tuple(nodes)
    for name in names:
        if mech.node(name).body == "world" and name == "world":
            raise ModelError("the ground moves nowhere; name a node or a body.")
    return names


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
    """A look, or the look of a name; raises for an unknown one."""
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
