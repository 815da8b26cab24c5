"""Points of bodies that may touch the ground: where they are, and how they rub and bounce."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np

from linkwise.arguments import is_a, name, number
from linkwise.simulation.implicit.support import Support, Vector
from linkwise.spatial.array import Array, ArrayLike, constant, unit


@dataclass(frozen=True, slots=True)
class Ground:
    """A fixed plane, with the laws of its contacts.

    Attributes:
        point: A point of the plane (3,) [m].
        normal: Its normal (3,), towards the side that is free.
        friction: Coulomb's coefficient μ of sliding: |f_t| ≤ μ f_n.
        torsional: Length [m] of the moment about the normal: |m_n| ≤ torsional f_n.
        rolling: Length [m] of the moment that resists rolling: |m_t| ≤ rolling f_n.
        restitution: Speed after over speed before an impact, from 0 to 1.
    """

    point: Vector = (0.0, 0.0, 0.0)
    normal: Vector = (0.0, 0.0, 1.0)
    friction: float = 1.0
    torsional: float = 0.0
    rolling: float = 0.0
    restitution: float = 0.0

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "point", three(constant(self.point, (3,), "point of the ground")))
        put(self, "normal", three(unit(self.normal, "normal of the ground")))
        for field_ in ("friction", "torsional", "rolling"):
            put(self, field_, number(getattr(self, field_), f"{field_} of the ground", least=0.0))
        e = number(self.restitution, "restitution of the ground", least=0.0, most=1.0)
        put(self, "restitution", e)

    @property
    def axes(self) -> Array:
        """The normal and two tangents (3, 3), by rows; right-handed."""
        n = np.array(self.normal)
        t = np.eye(3)[int(np.argmin(np.abs(n)))]
        t = t - (n @ t) * n
        t = t / np.linalg.norm(t)
        return np.array([n, t, np.cross(n, t)])


@dataclass(frozen=True, slots=True)
class ContactPoint:
    """A ball fixed on a body that may touch the ground; a corner has the radius 0.

    Attributes:
        name: Its name in reports.
        body: The body's name.
        point: Its centre in the body frame (3,) [m].
        radius: Its radius [m].
        ground: What it touches.
        support: For a shape on which the point of contact moves: which point touches, instead of
            `point`.
        error: How far the shape may extend beyond its points [m], where it has too many corners.
    """

    name: str
    body: str
    point: Vector = (0.0, 0.0, 0.0)
    radius: float = 0.0
    ground: Ground = field(default_factory=Ground)
    support: Support | None = None
    error: float = 0.0

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "name", name(self.name, "name of a contact"))
        put(self, "body", name(self.body, f"body of contact {self.name!r}"))
        is_a(Ground, self.ground, f"ground of contact {self.name!r}")
        put(self, "point", three(constant(self.point, (3,), f"point of contact {self.name!r}")))
        radius = number(self.radius, f"radius of contact {self.name!r}", least=0.0)
        put(self, "radius", radius)
        if self.support is not None:
            is_a(Support, self.support, f"support of contact {self.name!r}")
        put(self, "error", number(self.error, f"error of contact {self.name!r}", least=0.0))

    @property
    def rows(self) -> int:
        """Directions in which the ground pushes: normal, sliding (2), spinning, rolling (2)."""
        return 3 + (self.ground.torsional > 0.0) + 2 * (self.ground.rolling > 0.0)


def three(x: ArrayLike) -> Vector:
    """Three numbers as a tuple."""
    return cast("Vector", tuple(float(e) for e in np.asarray(x)))
