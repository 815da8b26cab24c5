"""Points of bodies that may touch the ground: where they are, and how they rub and bounce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, cast

import numpy as np

from linkwise.arguments import is_a, name, number
from linkwise.errors import ModelError
from linkwise.grasp.contact import Contact
from linkwise.model.grid import Grid, grown
from linkwise.simulation.implicit.support import Support, Vector
from linkwise.spatial.array import Array, ArrayLike, constant, unit
from linkwise.spatial.choice import absolute, minimum, norm, taken, where
from linkwise.spatial.vector import cross

FLAT = Grid(np.zeros((2, 2)))
"""No heights."""


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

    @classmethod
    def of(cls, contact: Contact, **place: Any) -> Ground:
        """A ground with the laws of a contact of `lw.Grasp`, for feet as for fingers.

        Args:
            contact: The contact; one-sided, with friction of the kind "separate".
            **place: `point`, `normal` and `restitution`.

        Raises:
            ModelError: It cannot break, or slip and twist depend on each other.
        """
        is_a(Contact, contact, "contact")
        mixed = contact.kind == "soft_finger" and contact.law != "separate"
        if contact.two_sided or contact.kind == "edge" or mixed:
            raise ModelError(
                f"a contact of the kind {contact.kind!r}, law {contact.law!r} and two_sided="
                f"{contact.two_sided} is not one of the ground's: they are one-sided, 'rigid', "
                "'soft_finger', 'point' or 'frictionless', and have law='separate'."
            )
        spin = contact.torsion or 0.0 if contact.kind in ("rigid", "soft_finger") else 0.0
        roll = contact.extent or 0.0 if contact.kind == "rigid" else 0.0
        if contact.kind == "rigid" and not (spin and roll):
            raise ModelError("a rigid contact with the ground needs torsion and extent [m].")
        friction = 0.0 if contact.kind == "frictionless" else contact.friction
        return cls(friction=friction, torsional=spin, rolling=roll, **place)

    @property
    def contact(self) -> Contact:
        """Its laws as a contact of `lw.Grasp`, whose normal is z: press, slip, twist and tip."""
        kind = "point" if self.friction > 0.0 else "frictionless"
        kind = "soft_finger" if self.torsional > 0.0 else kind
        return Contact(
            cast(Any, "rigid" if self.rolling > 0.0 else kind),
            self.friction,
            self.torsional if self.torsional > 0.0 or self.rolling > 0.0 else None,
            self.rolling or None,
            law="separate",
            two_sided=False,
        )

    @property
    def axes(self) -> Array:
        """The normal and two tangents (3, 3), by rows; right-handed."""
        return _axes(self.normal).copy()


@lru_cache(maxsize=64)
def _axes(normal: Vector) -> Array:
    n = np.array(normal)
    t = np.eye(3)[int(np.argmin(np.abs(n)))]
    t = t - (n @ t) * n
    t = t / np.linalg.norm(t)
    return np.array([n, t, np.cross(n, t)])


@dataclass(frozen=True, slots=True, init=False)
class HeightField(Ground):
    """Uneven ground: triangles over a grid of heights (`model/grid.py`), with the laws of a Ground.

    A point touches the triangle below it, a ball the surface grown by its radius. Nothing is
    touched beyond the edges of the rectangle.

    Attributes:
        grid: The heights above the plane through `point`.
        half: Half the lengths of the rectangle along x and y [m].
        along: Direction of the columns (3,), across the normal.
    """

    grid: Grid = FLAT
    half: tuple[float, float] = (1.0, 1.0)
    along: Vector = (1.0, 0.0, 0.0)

    def __init__(
        self,
        heights: ArrayLike | Grid,
        size: tuple[float, float],
        *,
        point: ArrayLike = (0.0, 0.0, 0.0),
        normal: ArrayLike = (0.0, 0.0, 1.0),
        along: ArrayLike = (1.0, 0.0, 0.0),
        friction: float = 1.0,
        torsional: float = 0.0,
        rolling: float = 0.0,
        restitution: float = 0.0,
    ) -> None:
        """Heights over a rectangle.

        Args:
            heights: (rows, columns) [m]: columns along x, rows along y, both growing.
            size: Lengths of the rectangle along x and y [m].
            point: The middle of the rectangle, at height 0 [m].
            normal: Direction of the heights.
            along: Direction of x; what it has along the normal is taken away.
            friction: As in `Ground`.
            torsional: As in `Ground`.
            rolling: As in `Ground`.
            restitution: As in `Ground`.

        Raises:
            ModelError: Something is not a number of the allowed range.
        """
        put = object.__setattr__
        laws = {"friction": friction, "torsional": torsional, "rolling": rolling}
        laws |= {"restitution": restitution}
        for name_, value in {"point": point, "normal": normal, **laws}.items():
            put(self, name_, value)
        Ground.__post_init__(self)
        lengths = constant(size, (2,), "size of a height field")
        if not (lengths > 0.0).all():
            raise ModelError(f"size of a height field is {size!r}; lengths are positive [m].")
        put(self, "half", (0.5 * float(lengths[0]), 0.5 * float(lengths[1])))
        put(self, "grid", heights if isinstance(heights, Grid) else Grid(heights))
        n, x = np.array(self.normal), constant(along, (3,), "along of a height field")
        put(self, "along", three(unit(x - (n @ x) * n, "along of a height field")))

    @property
    def axes(self) -> Array:
        """The normal of the field and its x and y (3, 3), by rows."""
        n, x = np.array(self.normal), np.array(self.along)
        return np.array([n, x, np.cross(n, x)])

    def under(self, centre: Any, radius: float) -> tuple[Any, Any]:
        """The gap [m] of a ball and the normal (3,) of the triangle that it touches.

        Args:
            centre: Of the ball (3,), in the world: numbers or graph nodes.
            radius: Its radius [m].
        """
        axes, grid = self.axes, grown(self.grid, self.half, radius)
        z, *place = (
            sum(a * x for a, x in zip(axis, centre - np.array(self.point), strict=True))
            for axis in axes
        )
        counts = grid.columns - 1, grid.rows - 1
        steps = [2.0 * half / n for half, n in zip(self.half, counts, strict=True)]
        cell, share = list[Any](), list[Any]()
        for x, half, step, n in zip(place, self.half, steps, counts, strict=True):
            u = (x + half) / step
            cell.append(taken(_counting(n), u))
            share.append(u - cell[-1])
        (s, t), at = share, cell[1] * grid.columns + cell[0]
        h00, h10, h01, h11 = (
            taken(grid.data, at + k) for k in (0, 1, grid.columns, grid.columns + 1)
        )
        first = s - t
        along, across = where(first, h10 - h00, h11 - h01), where(first, h11 - h10, h01 - h00)
        height = h00 + s * along + t * across
        normal = (1.0, -along / steps[0], -across / steps[1])
        size = norm(normal)
        inside = minimum(*(h - absolute(x) for x, h in zip(place, self.half, strict=True)))
        gap = where(inside, (z - height) / size, BEYOND)
        return gap, sum(x / size * axis for x, axis in zip(normal, axes, strict=True))

    def frame(self, normal: Any) -> Any:
        """A normal (..., 3) and two tangents (..., 3, 3), by rows; the first is along x."""
        n = [normal[..., i] for i in range(3)]
        x = np.array(self.along)
        part = n[0] * x[0] + n[1] * x[1] + n[2] * x[2]
        first = [x[i] - part * n[i] for i in range(3)]
        size = norm(first)
        first = [a / size for a in first]
        second = cross(np.stack(n, axis=-1), np.stack(first, axis=-1))
        return np.stack([np.stack(n, axis=-1), np.stack(first, axis=-1), second], axis=-2)


BEYOND = 1e3
"""The gap [m] beyond the edges of a height field."""


@cache
def _counting(n: int) -> bytes:
    """The table 0, 1, ... n - 1: what is taken from it is the whole part, within the grid."""
    return np.arange(float(n)).tobytes()


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


def axes_of(points: Sequence[ContactPoint], normals: Any, library: Any = np) -> Any:
    """The axes (..., contacts, 3, 3) of contacts in the world.

    Args:
        points: The contacts.
        normals: (..., 3 n) at those over height fields, one after another.
        library: NumPy or CuPy, whose arrays normals are.
    """
    lead = normals.shape[:-1]
    fixed = np.array([point.ground.axes for point in points])
    all_axes = library.broadcast_to(library.asarray(fixed, normals.dtype), (*lead, *fixed.shape))
    if not normals.shape[-1]:
        return all_axes  # which takes no memory for each of them
    axes, start = all_axes.copy(), 0
    for i, point in enumerate(points):
        if isinstance(point.ground, HeightField):
            axes[..., i, :, :] = point.ground.frame(normals[..., start : start + 3])
            start += 3
    return axes
