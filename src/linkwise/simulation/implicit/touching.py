"""Which points of a mechanism may touch the ground? One answer for rollouts and simulations.

Against a plane only the convex hull of what moves together counts. So all boxes and meshes of a
body that meet the plane by the same laws are one shape with corners; balls, capsules, cylinders and
ellipsoids are separate shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import pi
from typing import NamedTuple, cast

import numpy as np

from linkwise.arguments import all_are, names
from linkwise.errors import LinkwiseError, ModelError, unknown_name
from linkwise.io.mesh_path import resolve_mesh
from linkwise.io.mjcf.mesh_file import read_mesh_file
from linkwise.model.body import WORLD
from linkwise.model.contact import Surface, combined, excluded, meet, pair_laws
from linkwise.model.geometry import Geometry
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.implicit.ground import ContactPoint, Ground, HeightField, three
from linkwise.simulation.implicit.hull import hull, hull_corners
from linkwise.simulation.implicit.support import LEANS, Corners, Ellipsoid, Rim, Support, Vector
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.tasks.force.surface import CompliantSurface

KINDS = ("sphere", "capsule", "cylinder", "ellipsoid", "box", "mesh")
"""Shapes that may touch a plane."""

FEW = 8
"""Corners that are all points of contact; of more, a few are chosen in each step."""

MOST_POINTS = 64
"""Points of a mechanism above which corners are chosen more sparingly: 3, 2 or 1 of each body."""


@dataclass(frozen=True, slots=True, eq=False)
class _Carried:
    """A shape with its carrier, a body or node, and its pose in the body frame or in the world."""

    shape: Geometry
    carrier: str
    pose: Pose


Groups = dict[tuple[str, Ground], list[_Carried]]
"""The shapes of each body that meet a ground."""


def contact_points(
    mech: Mechanism,
    contacts: Ground | Sequence[ContactPoint] | None = None,
    integrator: str = "implicit",
) -> tuple[ContactPoint, ...]:
    """The points of a mechanism that may touch something.

    Args:
        mech: The mechanism.
        contacts: None for what the mechanism describes: its collision shapes against the planes and
            height fields of its world, with friction, masks and exclusions of the file. A `Ground`
            or `HeightField` for all its collision shapes against that, or the points themselves.
        integrator: By which steps it moves; only "implicit" ones take contacts of this kind.

    Raises:
        ModelError: A shape that may touch the ground cannot be used; says why.
    """
    if contacts is None:
        return _points(mech, _described(mech)) if integrator == "implicit" else ()
    check_kind(contacts, integrator)
    if isinstance(contacts, Ground):
        points = ground_contacts(mech, contacts)
    else:
        points = all_are(ContactPoint, contacts, "contacts")
    for point in points:
        mech.body(point.body)  # raises for an unknown name
    return points


def check_kind(contacts: object, integrator: str) -> None:
    """Raise for contacts that another call or integrator takes."""
    from linkwise.simulation.collision import Collisions  # which imports this file

    several = cast("list[object]", contacts) if isinstance(contacts, list | tuple) else [contacts]
    each = list(several)
    if isinstance(contacts, Collisions):
        raise ModelError(
            "contacts=Collisions(...) are contacts between bodies; they act in lw.simulate with "
            "integrator='implicit' only. Give a lw.simulation.Ground, points, or None for what the "
            "mechanism describes."
        )
    if integrator != "implicit" and any(isinstance(x, Ground | ContactPoint) for x in each):
        raise ModelError(
            f"contacts were given with integrator={integrator!r}; they act by impulses, in steps "
            "by integrator='implicit'."
        )
    if isinstance(contacts, Mapping) or any(isinstance(x, tuple | CompliantSurface) for x in each):
        raise ModelError(
            "contacts with compliant surfaces act in lw.simulate with other integrators than "
            "'implicit'. Give a lw.simulation.Ground, points, or None for what the mechanism "
            "describes."
        )


def ground_contacts(
    mech: Mechanism, ground: Ground | None = None, *, bodies: Sequence[str] | None = None
) -> tuple[ContactPoint, ...]:
    """The points at which the collision shapes of a mechanism may touch the ground.

    A sphere is one ball, a capsule is a ball at each end, a cylinder has four points on its rims,
    an ellipsoid one. Boxes and meshes of a body have up to eight corners, or four that are chosen
    among more in each step. A node of a body may be named as well: it is a point without shape.

    Args:
        mech: The mechanism.
        ground: The plane and its friction; default: z = 0 with friction 1.
        bodies: Names of bodies or nodes; default: all bodies with such shapes.

    Raises:
        ModelError: A named body has shapes, none of which can touch the ground; or no body has; or
            a mesh cannot be read.
    """
    ground = Ground() if ground is None else ground
    if bodies is not None:
        points = list[ContactPoint]()
        for body in names(bodies, "bodies"):
            points += _named(mech, body, ground)
        return tuple(points)
    groups: Groups = {(body.name, ground): _colliding(mech, body.name) for body in mech.bodies}
    points = _points(mech, groups)
    if not points:
        raise ModelError(
            f"{mech.name!r} has no collision shape that can touch the ground: "
            f"{', '.join(KINDS)}. Name nodes that touch it: bodies=['foot']."
        )
    return points


def _named(mech: Mechanism, body: str, ground: Ground) -> Sequence[ContactPoint]:
    """The points of a body's shapes, or of a node."""
    if body in mech.node_index:
        node = mech.node(body)
        return [ContactPoint(body, node.body, three(node.pose.p), 0.0, ground)]
    if body not in mech.body_index or mech.body_index[body] < 0:
        known = [*mech.node_index, *(b.name for b in mech.bodies)]
        raise unknown_name("node or body", body, known, owner=f"mechanism {mech.name!r}")
    points = _points(mech, {(body, ground): _colliding(mech, body)})
    if not points:
        raise ModelError(
            f"body {body!r} has no collision shape that can touch the ground: {', '.join(KINDS)}. "
            "Name a node of it, or give lw.simulation.ContactPoint with a radius."
        )
    return points


def carried(mech: Mechanism, body: str) -> list[_Carried]:
    """The shapes that move with a body, or are fixed in the world."""
    fixed = () if body == WORLD else mech.body(body).geometry
    shapes = [_Carried(x, body, x.pose) for x in fixed]
    for node in mech.nodes:
        if node.body == body:
            shapes += [_Carried(x, node.name, node.pose @ x.pose) for x in node.geometry]
    return shapes


def _colliding(mech: Mechanism, body: str) -> list[_Carried]:
    """The collision shapes among them."""
    return [x for x in carried(mech, body) if x.shape.role != "visual"]


def _described(mech: Mechanism) -> Groups:
    """The shapes that meet planes of the world, by what the mechanism says."""
    groups: Groups = {}
    rules = mech.contact_rules
    planes = [x for x in carried(mech, WORLD) if x.shape.shape in ("plane", "hfield")]
    for body, plane in product(mech.bodies if rules.active else (), planes):
        for moving in carried(mech, body.name):
            laws = pair_laws(rules, moving.shape.name, plane.shape.name)
            if laws is None:
                if "visual" in (moving.shape.role, plane.shape.role):
                    continue
                if excluded(rules, moving.carrier, plane.carrier):
                    continue
                if not meet(moving.shape.surface, plane.shape.surface):
                    continue
                laws = combined(moving.shape.surface, plane.shape.surface)
            key = body.name, _plane(plane, laws)
            groups.setdefault(key, []).append(moving)
    return groups


def shape_points(
    mech: Mechanism, body: str, shape: Geometry, pose: Pose, ground: Ground
) -> tuple[ContactPoint, ...]:
    """The points of one shape of a body over a ground; `pose` is that of its carrier there."""
    return _points(mech, {(body, ground): [_Carried(shape, body, pose @ shape.pose)]})


def heights_of(shape: Geometry, pose: Pose) -> HeightField:
    """The height field of a shape in the world, without laws of friction."""
    ground = _plane(_Carried(shape, WORLD, pose @ shape.pose), Surface())
    assert isinstance(ground, HeightField)
    return ground


def _plane(carried: _Carried, laws: Surface) -> Ground:
    """The plane z = 0 of a pose in the world, or heights above it, with the laws of a contact."""
    pose, shape = carried.pose, carried.shape
    normal = pose.rot[:, 2]
    point = three(pose.p + laws.margin * normal)
    mu, spin, roll = (
        x if laws.condim >= least else 0.0
        for x, least in ((laws.friction, 3), (laws.torsional, 4), (laws.rolling, 6))
    )
    if shape.grid is None:
        return Ground(point, three(normal), mu, spin, roll)
    size = 2.0 * shape.size[0], 2.0 * shape.size[1]
    return HeightField(
        shape.grid, size, point=point, normal=normal, along=pose.rot[:, 0],
        friction=mu, torsional=spin, rolling=roll,
    )  # fmt: skip


# ------------------------------------------------------------------------------- shapes to points


class _Spot(NamedTuple):
    """A point of contact in the body frame, as in `ContactPoint`."""

    label: str
    point: Vector
    radius: float = 0.0
    support: Support | None = None
    error: float = 0.0


class _Hull(NamedTuple):
    """Corners (n, 3) of all shapes with corners of a body."""

    label: str
    corners: Array
    error: float


def _points(mech: Mechanism, groups: Groups) -> tuple[ContactPoint, ...]:
    """Points of all shapes; corners are chosen more sparingly where there are too many."""
    parts = list[tuple[str, Ground, list[_Spot], _Hull | None]]()
    for (body, ground), group in groups.items():
        spots = [spot for x in group for spot in _round(x)]
        parts.append((body, ground, spots, _hull(mech, body, group)))
    points = list[ContactPoint]()
    for chosen in (FEW, *sorted(LEANS, reverse=True)):
        points.clear()
        counts = dict[str, int]()
        for body, ground, spots, corners in parts:
            for spot in (*spots, *(_chosen(corners, chosen) if corners else ())):
                title = f"{spot.label or body}/{counts.get(body, 0)}"
                counts[body] = counts.get(body, 0) + 1
                rest = spot.support, spot.error
                points.append(ContactPoint(title, body, spot.point, spot.radius, ground, *rest))
        if len(points) <= MOST_POINTS:
            break
    return tuple(points)


def _round(carried: _Carried) -> list[_Spot]:
    """The points of a shape without corners."""
    shape, pose = carried.shape, carried.pose
    label, centre, axis = shape.name, three(pose.p), pose.rot[:, 2]
    if shape.shape == "sphere":
        return [_Spot(label, centre, shape.size[0])]
    if shape.shape == "ellipsoid":
        rows = [three(a * column) for a, column in zip(shape.size, pose.rot.T, strict=True)]
        return [_Spot(label, centre, 0.0, Ellipsoid(centre, (rows[0], rows[1], rows[2])))]
    if shape.shape == "capsule":
        radius, length = shape.size
        ends = [three(pose.p + x * length * axis) for x in (-0.5, 0.5)]
        return [_Spot(label, end, radius) for end in ends]
    if shape.shape == "cylinder":
        radius, length = shape.size
        fixed = centre, three(axis), three(pose.rot[:, 0]), radius, 0.5 * length
        corners = ((1, 0.0), (-1, 0.0), (0, 2.0 * pi / 3.0), (0, -2.0 * pi / 3.0))
        return [_Spot(label, centre, 0.0, Rim(*fixed, *corner)) for corner in corners]
    return []


def _hull(mech: Mechanism, body: str, group: Sequence[_Carried]) -> _Hull | None:
    """The corners of all boxes and meshes of a body; None without any."""
    angular = [x for x in group if x.shape.shape in ("box", "mesh")]
    if not angular:
        return None
    source = mech.load_report.source
    parts = [x.pose.apply(shape_corners(x.shape, source)) for x in angular]
    label = angular[0].shape.name if len(angular) == 1 else ""
    return _Hull(label, *hull(np.concatenate(parts), f"body {body!r}"))


def shape_corners(shape: Geometry, source: str) -> Array:
    """The corners of a box or mesh (n, 3), in the frame of the shape."""
    if shape.shape == "box":
        return 0.5 * np.array(shape.size) * np.array(list(product((-1.0, 1.0), repeat=3)))
    assert shape.file is not None
    try:
        path = resolve_mesh(shape.file, source or "model.xml")
        vertices = _vertices(str(path), path.stat().st_mtime_ns)
    except (LinkwiseError, OSError) as problem:
        raise ModelError(
            f"mesh {shape.file!r} may touch something and cannot be read: {problem} Give other "
            "points as contacts, or contacts=() for none."
        ) from None
    return vertices * np.array(shape.scale)


@lru_cache(maxsize=256)
def _vertices(path: str, changed: int) -> Array:
    """The vertices of a mesh file that has not changed since."""
    return hull_corners(read_mesh_file(path).vertices, path)


def _chosen(part: _Hull, most: int) -> list[_Spot]:
    """All corners, or a number of them that are chosen in each step."""
    corners = [three(x) for x in part.corners]
    if len(corners) <= most:
        return [_Spot(part.label, corner) for corner in corners]
    leans = LEANS[min(most, max(LEANS))]
    spots = [Corners(tuple(corners), lean) for lean in leans]
    return [_Spot(part.label, corners[0], 0.0, x, part.error) for x in spots]
