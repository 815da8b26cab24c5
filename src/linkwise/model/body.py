"""The records a mechanism is made of: bodies, nodes, loops and couplings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.drive import Drive
from linkwise.model.geometry import Geometry
from linkwise.model.hinges import Hinge, Locked
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose

WORLD = "world"
"""Name of the ground: body index -1, never moving."""


@dataclass(frozen=True, slots=True, eq=False)
class Lump:
    """A part of a flexible body that moves with the coordinates of the body's hinge.

    Its pose in the parent's body frame is  inboard · hinge.pose(q), with `inboard` and q those of
    the body.

    Attributes:
        hinge: How it moves; its coordinates are those of the body's hinge.
        inertia: Its inertia, about the frame O of that hinge.
    """

    hinge: Hinge
    inertia: SpatialInertia


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A rigid body, or the frame of a flexible one, and the hinge that joins it to its parent.

    The pose of the body frame in the parent's body frame is  inboard · hinge.pose(q) · outboard.

    Attributes:
        name: The body's name.
        parent: Name of the parent body, or "world".
        hinge: How it moves relative to the parent.
        hinge_name: The hinge's name.
        inboard: Pose of the hinge frame O+ in the parent's body frame.
        outboard: Pose of the body frame in the hinge frame O; the identity for a body frame at
            the hinge, anything else for one away from it.
        inertia: The body's inertia, about the body frame, without that of its nodes.
        drive: Rotor, friction, spring and limits of the hinge.
        geometry: Shapes for the viewer, in the body frame.
        lumps: For a flexible body, the parts of it that move with the same coordinates. Its block
            in the space BODY has six numbers for itself and six for each of them.
    """

    name: str
    parent: str
    hinge: Hinge
    hinge_name: str
    inboard: Pose = field(default_factory=Pose.identity)
    outboard: Pose = field(default_factory=Pose.identity)
    inertia: SpatialInertia = field(default_factory=SpatialInertia.zero)
    drive: Drive = field(default_factory=Drive)
    geometry: tuple[Geometry, ...] = ()
    lumps: tuple[Lump, ...] = ()

    def pose(self, q: Array) -> Pose:
        """Pose in the parent's body frame for the hinge's coordinates q (..., nq)."""
        return self.inboard @ self.hinge.pose(q) @ self.outboard


NodeKind = Literal["frame", "link", "payload"]


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A frame of interest fixed on a body; it may carry inertia.

    A link welded to the body and a payload are both nodes with inertia: the inertia of a body is
    its own plus that of its nodes.

    Attributes:
        name: Unique among nodes and bodies.
        body: Name of the body it is fixed to, or "world".
        pose: In that body's frame.
        inertia: What it carries, about its own frame; None for a bare frame.
        kind: "frame", "link" (a rigidly attached part of the model) or "payload".
        geometry: Shapes for the viewer, in the node's frame.
    """

    name: str
    body: str
    pose: Pose = field(default_factory=Pose.identity)
    inertia: SpatialInertia | None = None
    kind: NodeKind = "frame"
    geometry: tuple[Geometry, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A closure between two nodes, with the relative motion that a hinge between them would allow.

    The pose of node b in node a must be hinge.pose(θ) for some θ: a `Locked` hinge makes a weld
    (six rows), a `Pin` five rows, `Spherical` three, `Screws` any directions.

    Attributes:
        name: The loop's name.
        node_a: The node on which O+ of the hinge sits (a body's name means its frame).
        node_b: The node on which O of the hinge sits.
        hinge: The relative motion that is allowed.
        drive: What acts inside the hinge.
    """

    name: str
    node_a: str
    node_b: str
    hinge: Hinge = field(default_factory=Locked)
    drive: Drive = field(default_factory=Drive)

    @property
    def rows(self) -> int:
        """Number of blocked velocity directions."""
        return 6 - self.hinge.nv


@dataclass(frozen=True, slots=True)
class Coupling:
    """A coordinate that follows others: gears, mimic joints, differentials, cams.

    q_dependent = offset + Σ_j (c_j1 q_j + c_j2 q_j² + ...)

    Attributes:
        name: The coupling's name.
        dependent: The hinge whose coordinate follows; "hinge[i]" where it has several.
        terms: For each independent hinge its coefficients (c_1, c_2, ...).
        offset: Constant part [rad or m].
    """

    name: str
    dependent: str
    terms: tuple[tuple[str, tuple[float, ...]], ...]
    offset: float = 0.0

    def value(self, independent: dict[str, Array]) -> Array:
        """The dependent coordinate, from the independent ones by name."""
        self._check(independent)
        total = np.full(np.shape(next(iter(independent.values()))), self.offset)
        for name, coefficients in self.terms:
            power = 1.0
            for c in coefficients:
                power = power * independent[name]
                total = total + c * power
        return total

    def slopes(self, independent: dict[str, Array]) -> dict[str, Array]:
        """Derivative of the dependent coordinate by each independent one: Σ_i i c_i q^(i-1)."""
        self._check(independent)
        slopes = dict[str, Array]()
        for name, coefficients in self.terms:
            slope, power = np.zeros(np.shape(independent[name])), 1.0
            for i, c in enumerate(coefficients, start=1):
                power = power * independent[name] if i > 1 else power
                slope = slope + i * c * power
            slopes[name] = slope
        return slopes

    def curvatures(self, independent: dict[str, Array]) -> dict[str, Array]:
        """Second derivative by each independent one: Σ_i i (i - 1) c_i q^(i-2)."""
        self._check(independent)
        curvatures = dict[str, Array]()
        for name, coefficients in self.terms:
            curvature, power = np.zeros(np.shape(independent[name])), 1.0
            for i, c in enumerate(coefficients[1:], start=2):
                power = power * independent[name] if i > 2 else power
                curvature = curvature + i * (i - 1) * c * power
            curvatures[name] = curvature
        return curvatures

    def _check(self, independent: dict[str, Array]) -> None:
        missing = [name for name, _ in self.terms if name not in independent]
        if missing or not independent:
            raise ModelError(
                f"coupling {self.name!r} needs the coordinates of "
                f"{', '.join(name for name, _ in self.terms) or 'a hinge'}; found those of "
                f"{', '.join(independent) or 'none'}."
            )
