"""The layers of a page by name, and the state that some of them are drawn for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
    """Names of layers; raises for one that there is not."""
    given = (names,) if isinstance(names, str) else tuple(names)
    for name in given:
        if name not in LAYERS:
            raise unknown_name("layer", name, LAYERS, owner="the viewer")
    return given


def check_nodes(mech: Mechanism, nodes: str | Iterable[str]) -> tuple[str, ...]:
    """Names of nodes or bodies; raises for one that the mechanism does not have."""
    names = (nodes,) if isinstance(nodes, str) else tuple(nodes)
    for name in names:
        if mech.node(name).body == "world" and name == "world":
            raise ModelError("the ground moves nowhere; name a node or a body.")
    return names
