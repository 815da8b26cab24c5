"""Points of bodies that may touch the ground: where they are, and how they rub and bounce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import cast

import numpy as np

from linkwise.arguments import is_a, name, names, number
from linkwise.errors import ModelError, unknown_name
from linkwise.model.geometry import Geometry
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, constant, unit

Vector = tuple[float, float, float]

KINDS = ("sphere", "capsule", "box")
"""Shapes whose contact with a plane is that of a few balls fixed on the body."""


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
        put(self, "point", _three(constant(self.point, (3,), "point of the ground")))
        put(self, "normal", _three(unit(self.normal, "normal of the ground")))
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
    """

    name: str
    body: str
    point: Vector = (0.0, 0.0, 0.0)
    radius: float = 0.0
    ground: Ground = field(default_factory=Ground)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "name", name(self.name, "name of a contact"))
        put(self, "body", name(self.body, f"body of contact {self.name!r}"))
        is_a(Ground, self.ground, f"ground of contact {self.name!r}")
        put(self, "point", _three(constant(self.point, (3,), f"point of contact {self.name!r}")))
        radius = number(self.radius, f"radius of contact {self.name!r}", least=0.0)
        put(self, "radius", radius)

    @property
    def rows(self) -> int:
        """Directions in which the ground pushes: normal, sliding (2), spinning, rolling (2)."""
        return 3 + (self.ground.torsional > 0.0) + 2 * (self.ground.rolling > 0.0)


def ground_contacts(
    mech: Mechanism, ground: Ground | None = None, *, bodies: Sequence[str] | None = None
) -> tuple[ContactPoint, ...]:
    """The points at which the collision shapes of a mechanism may touch the ground.

    A sphere is one ball, a capsule is a ball at each end, a box has its eight corners. A node of a
    body may be named as well: it is a point without shape.

    Args:
        mech: The mechanism.
        ground: The plane and its friction; default: z = 0 with friction 1.
        bodies: Names of bodies or nodes; default: all bodies with such shapes.

    Raises:
        ModelError: A named body has shapes, none of which can touch the ground; or no body has.
    """
    ground = Ground() if ground is None else ground
    points = list[ContactPoint]()
    if bodies is not None:
        for body in names(bodies, "bodies"):
            points += _named(mech, body, ground)
        return tuple(points)
    for body in mech.bodies:
        points += _balls(mech, body.name, ground)
    if not points:
        raise ModelError(
            f"{mech.name!r} has no collision shape that can touch the ground: "
            f"{', '.join(KINDS)}. Name nodes that touch it: bodies=['foot']."
        )
    return tuple(points)


def _named(mech: Mechanism, body: str, ground: Ground) -> list[ContactPoint]:
    """The points of a body's shapes, or of a node."""
    if body in mech.node_index:
        node = mech.node(body)
        return [ContactPoint(body, node.body, _three(node.pose.p), 0.0, ground)]
    if body not in mech.body_index or mech.body_index[body] < 0:
        known = [*mech.node_index, *(b.name for b in mech.bodies)]
        raise unknown_name("node or body", body, known, owner=f"mechanism {mech.name!r}")
    points = _balls(mech, body, ground)
    if not points:
        raise ModelError(
            f"body {body!r} has no collision shape that can touch the ground: {', '.join(KINDS)}. "
            "Name a node of it, or give lw.simulation.ContactPoint with a radius."
        )
    return points


def _balls(mech: Mechanism, body: str, ground: Ground) -> list[ContactPoint]:
    """The balls of all shapes that move with a body."""
    shapes = [(x, np.eye(3), np.zeros(3)) for x in mech.body(body).geometry]
    for node in mech.nodes:
        if node.body == body:
            shapes += [(x, node.pose.rot, node.pose.p) for x in node.geometry]
    points = list[ContactPoint]()
    for shape, rot, p in shapes:
        if shape.role == "visual":
            continue
        for centre, radius in _of_shape(shape):
            place = rot @ (shape.pose.rot @ centre + shape.pose.p) + p
            title = f"{shape.name or body}/{len(points)}"
            points.append(ContactPoint(title, body, _three(place), radius, ground))
    return points


def _of_shape(shape: Geometry) -> list[tuple[Array, float]]:
    """Centres in the shape's frame, and radii."""
    if shape.shape == "sphere":
        return [(np.zeros(3), shape.size[0])]
    if shape.shape == "capsule":
        radius, length = shape.size
        return [(np.array([0.0, 0.0, z]), radius) for z in (-0.5 * length, 0.5 * length)]
    if shape.shape == "box":
        half = 0.5 * np.array(shape.size)
        return [(half * np.array(signs), 0.0) for signs in product((-1.0, 1.0), repeat=3)]
    return []


def _three(x: ArrayLike) -> Vector:
    return cast("Vector", tuple(float(e) for e in np.asarray(x)))
