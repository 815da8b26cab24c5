"""Where any two shapes of a mechanism touch, found by the library coal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import names, number
from linkwise.errors import MissingExtraError, ModelError, unknown_name
from linkwise.model.contact import Surface, combined, excluded, meet, pair_laws
from linkwise.model.geometry import Geometry
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.implicit.ground import ContactPoint, Ground, HeightField
from linkwise.simulation.implicit.over_heights import OverHeights
from linkwise.simulation.implicit.touching import heights_of, shape_corners, shape_points
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.spatial.vector import cross

TOLERANCE = 1e-9
"""Of distances [m] that coal finds by iteration."""

POINTS = 4
"""Most points of a contact between two shapes."""

NEAR = 2e-3
"""Shapes nearer than this [m] are looked at, and those that come nearer in the next steps."""


GROUND = "ground"
"""Name of the further plane."""


@dataclass(frozen=True, slots=True)
class Collisions:
    """Contacts between all collision shapes of a mechanism, and with the ground.

    Which shapes touch, and how they rub, is what the mechanism describes: masks, pairs and
    exclusions of an MJCF file (`ContactRules`), and the surfaces of its shapes. Shapes of one body,
    of a body and its parent, and shapes that are fixed to the world do not touch each other. Shapes
    may be boxes, spheres, capsules, cylinders, ellipsoids, planes and meshes, which count as their
    convex hulls. Height fields of the world are touched by the points of a shape, as in rollouts.

    Attributes:
        ground: A further plane that all shapes may touch, by its own laws; None for none.
        friction: Coulomb's coefficient μ between shapes, |f_t| ≤ μ f_n; None for their own.
        torsional: Length [m] of the moment about the normal, |m_n| ≤ torsional f_n; likewise.
        rolling: Length [m] of the moment that resists rolling, |m_t| ≤ rolling f_n; likewise.
        restitution: Speed after over speed before an impact, from 0 to 1.
        exclude: Further pairs of bodies, by name, that do not touch.
    """

    ground: Ground | None = None
    friction: float | None = None
    torsional: float | None = None
    rolling: float | None = None
    restitution: float = 0.0
    exclude: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name in ("friction", "torsional", "rolling"):
            if getattr(self, name) is not None:
                put(self, name, number(getattr(self, name), f"{name} of collisions", least=0.0))
        e = number(self.restitution, "restitution of collisions", least=0.0, most=1.0)
        put(self, "restitution", e)
        put(self, "exclude", tuple(_two(pair) for pair in self.exclude))
        if self.ground is not None and not isinstance(self.ground, Ground):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(f"ground of collisions is {self.ground!r}; it is a Ground, or None.")


def _two(pair: object) -> tuple[str, str]:
    """Two names of bodies."""
    both = names(pair, "a pair in exclude of collisions")
    if len(both) != 2:
        raise ModelError(f"exclude of collisions has {pair!r}; it lists pairs of two bodies.")
    return both[0], both[1]


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A shape on a body.

    Attributes:
        name: Its name.
        carrier: The name of the body or node that carries it.
        body: The number of its body; -1 for the world.
        kind: What it is.
        surface: How it rubs, and what it touches.
        size: Its numbers, as in `Geometry`.
        rot: Its axes in the body frame (3, 3).
        p: Its centre there (3,) [m].
        solid: The shape of coal.
        reach: The largest distance of a point from the centre [m]; infinite for a plane.
        faces: Normals and offsets of the faces of a mesh (f, 4), n x + d ≤ 0 inside.
    """

    name: str
    carrier: str
    body: int
    kind: str
    surface: Surface
    size: tuple[float, ...]
    rot: Array
    p: Array
    solid: Any
    reach: float
    faces: Array | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two shapes that may touch; the first one moves.

    Attributes:
        name: Name of the contact.
        a: Number of the first shape.
        b: Number of the second.
        laws: Friction, torsional, rolling and restitution.
    """

    name: str
    a: int
    b: int
    laws: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Touching:
    """Points of contact at one state.

    Attributes:
        pair: Number of the pair of each point (n,).
        point: Where it is (n, 3) [m], in the world.
        axes: Its normal, from the second shape to the first, and two tangents (n, 3, 3), by rows.
        gap: Distance of the surfaces there (n,) [m].
    """

    pair: NDArray[np.intp]
    point: Array
    axes: Array
    gap: Array


class Collider:
    """Finds contacts.

    Attributes:
        shapes: All shapes that may touch something.
        pairs: Those that may touch each other.
        bodies: Names of the bodies of the shapes that move.
    """

    def __init__(self, mech: Mechanism, given: Collisions) -> None:
        try:
            import coal  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]
        except ImportError:
            raise MissingExtraError(
                "contacts between bodies", package="coal", extra="collision"
            ) from None
        coal: Any = coal
        self._coal = coal
        carried = [
            (x, b.name, k, Pose.identity()) for k, b in enumerate(mech.bodies) for x in b.geometry
        ]
        for node in mech.nodes:
            k = mech.body_index[node.body]
            carried += [(x, node.name, k, node.pose) for x in node.geometry]
        self.shapes, placed = list[Placed](), list[tuple[Geometry, Pose]]()
        listed = {x for pair in mech.contact_rules.pairs for x in (pair.shape_a, pair.shape_b)}
        for shape, carrier, k, pose in carried:
            if shape.role != "visual" or shape.name in listed:
                self.shapes.append(self._placed(mech, shape, carrier, k, pose))
                placed.append((shape, pose))
        if given.ground is not None:
            self.shapes.append(_plane(coal, given.ground))
        order = sorted({x.body for x in self.shapes if x.body >= 0})
        self._row = {k: i for i, k in enumerate(order)}
        self.bodies = tuple(mech.bodies[k].name for k in order)
        self.pairs = self._pairs(mech, given)
        if not self.pairs:
            raise ModelError(
                f"{mech.name!r} has no two collision shapes that may touch. Add shapes to its "
                "bodies, or give Collisions(ground=Ground()) to touch the ground."
            )
        self._over, self._of_point = self._heights(mech, given.ground, placed)
        uneven = set(self._of_point.tolist())
        self._tests = [
            (coal.ComputeCollision(self.shapes[p.b].solid, self.shapes[p.a].solid),
             coal.ComputeContactPatch(self.shapes[p.b].solid, self.shapes[p.a].solid))
            if i not in uneven else None for i, p in enumerate(self.pairs)
        ]  # fmt: skip
        self._request, self._result = coal.CollisionRequest(), coal.CollisionResult()
        self._request.num_max_contacts = 1
        self._request.gjk_tolerance = self._request.epa_tolerance = TOLERANCE
        self._patch_request, self._patches = coal.ContactPatchRequest(), coal.ContactPatchResult()
        self._placements = [coal.Transform3s() for _ in self.shapes]
        self._ends = np.array([(p.a, p.b) for p in self.pairs])
        reach = np.array([x.reach for x in self.shapes])
        self._reach = reach[self._ends[:, 0]] + reach[self._ends[:, 1]]

    def _placed(self, mech: Mechanism, shape: Geometry, carrier: str, k: int, pose: Pose) -> Placed:
        """A shape as coal has it."""
        coal, size, faces = self._coal, shape.size, None
        reach = float(np.linalg.norm(size)) if size else 0.0
        if shape.shape == "box":
            solid, reach = coal.Box(*size), 0.5 * reach
        elif shape.shape == "sphere":
            solid = coal.Sphere(*size)
        elif shape.shape == "capsule":
            solid, reach = coal.Capsule(*size), size[0] + 0.5 * size[1]
        elif shape.shape == "cylinder":
            solid, reach = coal.Cylinder(*size), float(np.hypot(size[0], 0.5 * size[1]))
        elif shape.shape == "ellipsoid":
            solid, reach = coal.Ellipsoid(*size), max(size)
        elif shape.shape == "plane":
            solid, reach = coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0), np.inf
        elif shape.shape == "hfield":
            if k >= 0:
                raise ModelError(
                    f"the height field {shape.name!r} of {mech.name!r} moves with "
                    f"{carrier!r}; only those fixed to the world are touched. Leave contacts out."
                )
            solid, reach = None, np.inf
        else:
            corners = coal.StdVec_Vec3s()
            for corner in shape_corners(shape, mech.load_report.source):
                corners.append(corner)
            solid = coal.Convex.convexHull(corners, True, "Qt")
            reach = float(np.linalg.norm(np.asarray(solid.points()), axis=1).max())
            normals, offsets = np.asarray(solid.normals()), np.asarray(solid.offsets())
            faces = np.column_stack([normals, np.ravel(offsets)])
        body = "world" if k < 0 else mech.bodies[k].name
        name = shape.name or f"{body}/{len(self.shapes)}"
        rot, p = pose.rot @ shape.pose.rot, pose.rot @ shape.pose.p + pose.p
        rest = shape.surface, size, rot, p, solid, reach, faces
        return Placed(name, carrier, k, shape.shape, *rest)

    def _pairs(self, mech: Mechanism, given: Collisions) -> list[Pair]:
        known = {body.name: k for k, body in enumerate(mech.bodies)} | {"world": -1}
        apart = set[frozenset[int]]()
        for pair in given.exclude:
            for name in pair:
                if name not in known:
                    raise unknown_name("body", name, list(known), owner=f"mechanism {mech.name!r}")
            apart.add(frozenset(known[name] for name in pair))
        pairs = list[Pair]()
        for i, a in enumerate(self.shapes):
            for j in range(i):
                first, second = (j, i) if self.shapes[j].body >= 0 else (i, j)
                ka, kb = self.shapes[first].body, self.shapes[second].body
                if ka == kb or ka < 0 or frozenset((ka, kb)) in apart:
                    continue
                if a.carrier == GROUND and given.ground is not None:
                    plane = given.ground
                    laws = plane.friction, plane.torsional, plane.rolling, plane.restitution
                else:
                    laws = _laws(mech, self.shapes[first], self.shapes[second], given)
                if laws is not None:
                    name = f"{self.shapes[first].name}-{self.shapes[second].name}"
                    pairs.append(Pair(name, first, second, laws))
        return pairs

    def _heights(
        self, mech: Mechanism, ground: Ground | None, placed: list[tuple[Geometry, Pose]]
    ) -> tuple[OverHeights | None, NDArray[np.intp]]:
        """The points of shapes over height fields, which coal does not see, and their pairs."""
        points, of_point = list[ContactPoint](), list[int]()
        for i, pair in enumerate(self.pairs):
            under = self.shapes[pair.b]
            if under.kind != "hfield":
                continue
            field = ground if under.carrier == GROUND else heights_of(*placed[pair.b])
            assert field is not None
            body = mech.bodies[self.shapes[pair.a].body].name
            each = shape_points(mech, body, *placed[pair.a], field)
            points += each
            of_point += [i] * len(each)
        over = OverHeights(self.bodies, tuple(points)) if points else None
        return over, np.array(of_point, np.intp)

    def row(self, shape: int) -> int:
        """The place of the body of a shape in `bodies`; -1 for the world."""
        body = self.shapes[shape].body
        return self._row[body] if body >= 0 else -1

    def find(self, poses: Array, reach: float) -> Touching:
        """The points at which shapes touch or come near.

        Args:
            poses: Of the bodies (b, 3, 4).
            reach: How near they are looked at [m].
        """
        rots, centres = self._place(poses)
        between = np.linalg.norm(centres[self._ends[:, 0]] - centres[self._ends[:, 1]], axis=1)
        self._request.security_margin = reach
        self._patch_request.setPatchTolerance(reach)
        numbers, points = list[int](), list[Array]()
        normals, gaps = list[Array](), list[float]()
        for i in np.flatnonzero(between < self._reach + reach).tolist():
            pair, tests = self.pairs[i], self._tests[i]
            if tests is None:
                continue
            collide, patch = tests
            result, placements = self._result, self._placements
            result.clear()
            collide(placements[pair.b], placements[pair.a], self._request, result)
            if not result.numContacts():
                continue
            contact = result.getContact(0)
            n = np.array(contact.normal)
            spots = [(np.array(contact.pos), float(contact.penetration_depth))]
            if not {self.shapes[pair.a].kind, self.shapes[pair.b].kind} & {"sphere", "ellipsoid"}:
                self._patches.clear()
                patch(placements[pair.b], placements[pair.a], result, self._patch_request,
                      self._patches)  # fmt: skip
                if self._patches.numContactPatches():
                    flat = self._patches.getContactPatch(0)
                    corners = [np.array(flat.getPoint(k)) for k in range(flat.size())]
                    if len(corners) > 1:
                        spots = self._spots(pair, _few(corners), n, spots[0][1], rots, centres)
            for spot, gap in spots:
                if gap < reach:
                    numbers.append(i)
                    points.append(spot)
                    normals.append(n)
                    gaps.append(gap)
        if self._over is not None:
            where, up, apart = self._over.find(poses)
            close = np.flatnonzero(apart < reach)
            numbers += self._of_point[close].tolist()
            points += list(where[close])
            normals += list(up[close])
            gaps += apart[close].tolist()
        count = len(numbers)
        axes = _frames(np.array(normals).reshape(count, 3))
        return Touching(np.array(numbers, dtype=np.intp), np.array(points).reshape(count, 3), axes,
                     np.array(gaps))  # fmt: skip

    def _place(self, poses: Array) -> tuple[list[Array], Array]:
        """Axes and centres of all shapes in the world."""
        rots, centres = list[Array](), np.empty((len(self.shapes), 3))
        for i, shape in enumerate(self.shapes):
            rot, p = shape.rot, shape.p
            if shape.body >= 0:
                body = poses[self._row[shape.body]]
                rot, p = body[:, :3] @ rot, body[:, :3] @ p + body[:, 3]
            self._placements[i].setTransform(rot, p)
            rots.append(rot)
            centres[i] = p
        return rots, centres

    def _spots(
        self,
        pair: Pair,
        corners: list[Array],
        n: Array,
        depth: float,
        rots: list[Array],
        centres: Array,
    ) -> list[tuple[Array, float]]:
        """Corners of a patch, with the distance of the two surfaces along n at each.

        coal gives one depth for all of a patch; where both surfaces are flat or straight there,
        their distance is known at each corner.
        """
        points = np.array(corners)
        up = _heights(self.shapes[pair.a], rots[pair.a], centres[pair.a], points, n)
        down = _heights(self.shapes[pair.b], rots[pair.b], centres[pair.b], points, -n)
        if up is None or down is None:
            return [(corner, depth) for corner in corners]
        points += (0.5 * (up - down))[:, None] * n
        return list(zip(points, (up + down).tolist(), strict=True))


def _heights(shape: Placed, rot: Array, centre: Array, points: Array, n: Array) -> Array | None:
    """How far the surface of a shape is from points (k, 3) along n, on its side towards −n."""
    along = n @ rot
    normal = np.zeros(3)
    if shape.kind == "plane":
        normal[2], offset = 1.0, 0.0
    elif shape.kind == "box":
        i = int(np.abs(along).argmax())
        normal[i], offset = -1.0 if along[i] > 0.0 else 1.0, 0.5 * shape.size[i]
    elif shape.kind in ("capsule", "cylinder"):
        radius, length = shape.size
        if shape.kind == "cylinder" and abs(along[2]) > 0.7:
            normal[2], offset = -1.0 if along[2] > 0.0 else 1.0, 0.5 * length
        else:  # the line with which it lies on something
            normal[:2], offset = -along[:2] / np.hypot(along[0], along[1]), radius
    elif shape.faces is not None:
        i = int(np.argmin(shape.faces[:, :3] @ along))
        normal, offset = shape.faces[i, :3], -float(shape.faces[i, 3])
    else:
        return None
    slope = float(normal @ along)
    return None if slope > -0.1 else (offset - (points - centre) @ (rot @ normal)) / slope


def _few(corners: list[Array]) -> list[Array]:
    """At most POINTS of the corners of a patch, far apart."""
    if len(corners) <= POINTS:
        return corners
    points = np.array(corners)
    chosen = [int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))]
    while len(chosen) < POINTS:
        apart = np.linalg.norm(points[:, None] - points[chosen], axis=2).min(axis=1)
        chosen.append(int(np.argmax(apart)))
    return [corners[i] for i in chosen]


def _laws(
    mech: Mechanism, a: Placed, b: Placed, given: Collisions
) -> tuple[float, float, float, float] | None:
    """Friction, torsional, rolling and restitution of two shapes; None if they do not touch."""
    rules = mech.contact_rules
    laws = pair_laws(rules, a.name, b.name)
    if laws is None:
        related = b.body >= 0 and (mech.parent[a.body] == b.body or mech.parent[b.body] == a.body)
        if (
            not rules.active
            or (related and rules.parents)
            or excluded(rules, a.carrier, b.carrier)
            or not meet(a.surface, b.surface)
        ):
            return None
        laws = combined(a.surface, b.surface)
    of_file = (
        laws.friction if laws.condim >= 3 else 0.0,
        laws.torsional if laws.condim >= 4 else 0.0,
        laws.rolling if laws.condim == 6 else 0.0,
    )
    chosen = given.friction, given.torsional, given.rolling
    mu, spin, roll = (x if y is None else y for x, y in zip(of_file, chosen, strict=True))
    return mu, spin, roll, given.restitution


def _frames(n: Array) -> Array:
    """Normals (k, 3) with two tangents each (k, 3, 3), by rows; right-handed."""
    if not len(n):
        return np.zeros((0, 3, 3))
    t = np.eye(3)[np.argmin(np.abs(n), axis=1)]
    t = t - (n * t).sum(axis=1)[:, None] * n
    t = t / np.linalg.norm(t, axis=1)[:, None]
    return np.stack([n, t, cross(n, t)], axis=1)


def _plane(coal: Any, ground: Ground) -> Placed:
    """The ground as a shape."""
    if isinstance(ground, HeightField):
        n, t, s = ground.axes
        place = np.column_stack([t, s, n]), np.array(ground.point)
        return Placed(GROUND, GROUND, -1, "hfield", Surface(), ground.half, *place, None, np.inf)
    n, t, s = ground.axes
    rot = np.column_stack([t, s, n])
    solid = coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
    place = rot, np.array(ground.point), solid, np.inf
    return Placed(GROUND, GROUND, -1, "plane", Surface(), (0.0, 0.0), *place)


def near(speeds: Sequence[float], h: float) -> float:
    """How near [m] shapes that move with such speeds [m/s] have to be looked at."""
    return max(NEAR, 2.5 * h * max(speeds, default=0.0))
