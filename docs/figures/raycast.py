"""Pictures of mechanisms by casting parallel rays at their shapes: exact outlines, no viewer.

Every shape is met by solving one quadratic or a few linear equations in its own frame, for all rays
at once. A ray is a start and a common direction; the hit that lies farthest along the direction is
the nearest to the eye, since the direction points from the scene to the eye.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.model import Geometry, Mechanism
from linkwise.spatial import Pose

Array = NDArray[np.float64]
LAMP = np.array([0.25, -0.45, 0.86]) / np.linalg.norm([0.25, -0.45, 0.86])
NO_HIT = -np.inf


@dataclass(frozen=True)
class Solid:
    """A shape placed in the world, with its colour."""

    shape: Geometry
    pose: Pose
    rgb: Array

    @property
    def radius(self) -> float:
        """Of a ball about the centre that holds the shape [m]."""
        size = np.asarray(self.shape.size)
        if self.shape.shape == "box":
            return 0.5 * float(np.linalg.norm(size))
        if self.shape.shape == "cylinder":
            return float(np.hypot(size[0], 0.5 * size[1]))
        if self.shape.shape == "capsule":
            return float(size[0] + 0.5 * size[1])
        return float(size.max())


def solids(mech: Mechanism, q: Array) -> list[Solid]:
    """All shapes of bodies and nodes at a configuration."""
    carriers = [(body.name, body.geometry) for body in mech.bodies]
    carriers += [(node.name, node.geometry) for node in mech.nodes]
    result: list[Solid] = []
    for name, shapes in carriers:
        X_WB = mech.pose(q, name)
        for shape in shapes:
            rgb = np.array(shape.rgba[:3] if shape.rgba is not None else (0.7, 0.7, 0.7))
            result.append(Solid(shape, X_WB @ shape.pose, rgb))
    return result


def meet(solid: Solid, start: Array, towards: Array) -> tuple[Array, Array]:
    """Where rays (n, 3) meet a solid nearest to the eye: distance (n,), outward normal (n, 3)."""
    back = solid.pose.inverse()
    p, d = back.apply(start), back.rot @ towards
    kind, size = solid.shape.shape, solid.shape.size
    if kind == "box":
        t, normal = _slabs(p, d, 0.5 * np.asarray(size))
    elif kind == "sphere":
        t, normal = _ellipsoid(p, d, np.full(3, size[0]))
    elif kind == "ellipsoid":
        t, normal = _ellipsoid(p, d, np.asarray(size))
    elif kind == "cylinder":
        t, normal = _cylinder(p, d, size[0], 0.5 * size[1])
    elif kind == "capsule":
        t, normal = _capsule(p, d, size[0], 0.5 * size[1])
    else:
        raise ValueError(f"no picture of a {kind}")
    return t, normal @ solid.pose.rot.T


def _ellipsoid(p: Array, d: Array, semi_axes: Array) -> tuple[Array, Array]:
    """|p + t d| = 1 in coordinates scaled by the semi-axes."""
    u, w = p / semi_axes, d / semi_axes
    a, b, c = w @ w, u @ w, (u * u).sum(axis=1) - 1.0
    root = b * b - a * c
    t = np.where(root > 0.0, (-b + np.sqrt(np.maximum(root, 0.0))) / a, NO_HIT)
    return t, _unit((p + np.where(root > 0.0, t, 0.0)[:, None] * d) / semi_axes**2)


def _slabs(p: Array, d: Array, half: Array) -> tuple[Array, Array]:
    """The stretch of a ray that lies between three pairs of planes; its far end is what is seen."""
    d = np.where(np.abs(d) < 1e-12, 1e-12, d)
    low, high = (-half - p) / d, (half - p) / d
    near, far = np.minimum(low, high), np.maximum(low, high)
    axis = far.argmin(axis=1)
    t = np.where(near.max(axis=1) < far.min(axis=1), far.min(axis=1), NO_HIT)
    return t, np.eye(3)[axis] * np.sign(d)[axis][:, None]


def _cylinder(p: Array, d: Array, radius: float, half: float) -> tuple[Array, Array]:
    """The stretch inside the round wall and between the two ends."""
    enter, leave = _wall(p, d, radius)
    dz = d[2] if abs(d[2]) > 1e-12 else 1e-12
    low, high = (-half - p[:, 2]) / dz, (half - p[:, 2]) / dz
    bottom, top = np.minimum(low, high), np.maximum(low, high)
    t = np.where(np.maximum(enter, bottom) < np.minimum(leave, top), np.minimum(leave, top), NO_HIT)
    hit = p + np.where(np.isfinite(t), t, 0.0)[:, None] * d
    round_wall = _unit(hit * (1.0, 1.0, 0.0))
    flat_end = np.array([0.0, 0.0, np.sign(dz)])
    return t, np.where((leave < top)[:, None], round_wall, flat_end)


def _capsule(p: Array, d: Array, radius: float, half: float) -> tuple[Array, Array]:
    """The nearest of the round wall between the ends and the balls at both ends."""
    enter, leave = _wall(p, d, radius)
    hit = p + np.where(np.isfinite(leave), leave, 0.0)[:, None] * d
    on_wall = (enter < leave) & (np.abs(hit[:, 2]) <= half)
    best, normal = np.where(on_wall, leave, NO_HIT), _unit(hit * (1.0, 1.0, 0.0))
    for z in (-half, half):
        t, ball = _ellipsoid(p - (0.0, 0.0, z), d, np.full(3, radius))
        nearer = t > best
        best, normal = np.where(nearer, t, best), np.where(nearer[:, None], ball, normal)
    return best, normal


def _wall(p: Array, d: Array, radius: float) -> tuple[Array, Array]:
    """Where rays enter and leave an endless cylinder about z."""
    a = max(float(d[:2] @ d[:2]), 1e-18)
    b, c = p[:, :2] @ d[:2], (p[:, :2] ** 2).sum(axis=1) - radius**2
    root = b * b - a * c
    s = np.sqrt(np.maximum(root, 0.0))
    missed = root <= 0.0
    return np.where(missed, np.inf, (-b - s) / a), np.where(missed, NO_HIT, (-b + s) / a)


def _unit(a: Array) -> Array:
    return a / np.maximum(np.linalg.norm(a, axis=1, keepdims=True), 1e-300)


@dataclass(frozen=True)
class Camera:
    """Looks at the scene without perspective from an azimuth and an elevation [deg]."""

    azimuth: float
    elevation: float

    @property
    def towards(self) -> Array:
        """From the scene to the eye."""
        a, e = np.deg2rad(self.azimuth), np.deg2rad(self.elevation)
        return np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])

    @property
    def plane(self) -> Array:
        """Right and up in the picture, as rows (2, 3)."""
        a = np.deg2rad(self.azimuth)
        right = np.array([-np.sin(a), np.cos(a), 0.0])
        return np.stack([right, np.cross(self.towards, right)])


def picture(
    scene: list[Solid],
    camera: Camera,
    shape: tuple[int, int],
    *,
    paper: Array,
    shadow: Array | None,
    margin: float = 0.06,
    samples: int = 3,
) -> Array:
    """Colours (height, width, 3) of a scene fitted into `shape` pixels; `shadow` on the floor."""
    towards, plane = camera.towards, camera.plane
    ground = min(float(_lowest(solid)) for solid in scene)
    rows, columns = shape[0] * samples, shape[1] * samples
    centre, scale = _fit(scene, camera, (rows, columns), shadow is not None, margin)
    x = centre[0] + scale * (np.arange(columns) + 0.5 - 0.5 * columns)
    y = centre[1] - scale * (np.arange(rows) + 0.5 - 0.5 * rows)
    start = (x[None, :, None] * plane[0] + y[:, None, None] * plane[1]).reshape(-1, 3)
    image = np.tile(paper, (len(start), 1))
    if shadow is not None:
        _cast_shadow(image, scene, start, towards, ground, shadow)
    depth = np.full(len(start), NO_HIT)
    for solid in scene:
        near = _beside(start, solid, towards)
        t, normal = meet(solid, start[near], towards)
        seen = t > depth[near]
        index = near[seen]
        depth[index] = t[seen]
        lit = 0.46 + 0.40 * np.clip(normal[seen] @ LAMP, 0.0, 1.0) + 0.22 * (normal[seen] @ towards)
        image[index] = np.clip(solid.rgb * lit[:, None], 0.0, 1.0)
    grid = image.reshape(shape[0], samples, shape[1], samples, 3)
    return grid.mean(axis=(1, 3))


def pixels(
    points: Array,
    scene: list[Solid],
    camera: Camera,
    shape: tuple[int, int],
    *,
    shadow: bool,
    margin: float = 0.06,
) -> Array:
    """Column and row (n, 2) at which `picture` of that scene shows points (n, 3) of the world."""
    centre, scale = _fit(scene, camera, shape, shadow, margin)
    off = (points @ camera.plane.T - centre) / scale
    return 0.5 * np.array([shape[1], shape[0]]) - 0.5 + off * (1.0, -1.0)


def _fit(
    scene: list[Solid], camera: Camera, shape: tuple[int, int], shadow: bool, margin: float
) -> tuple[Array, float]:
    """What is in the middle of the picture, and metres for each pixel."""
    ground = min(float(_lowest(solid)) for solid in scene)
    low, high = _frame(scene, camera.plane, ground if shadow else None)
    scale = ((high - low) / (np.array([shape[1], shape[0]]) * (1.0 - 2.0 * margin))).max()
    return 0.5 * (low + high), float(scale)


def _cast_shadow(
    image: Array, scene: list[Solid], start: Array, towards: Array, ground: float, shadow: Array
) -> None:
    """Darken the floor right below the solids."""
    floor = start + ((ground - start[:, 2]) / towards[2])[:, None] * towards
    up = np.array([0.0, 0.0, 1.0])
    for solid in scene:
        near = _beside(floor, solid, up)
        t, _ = meet(solid, floor[near], up)
        image[near[t > 1e-9]] = shadow


def _beside(start: Array, solid: Solid, towards: Array) -> NDArray[np.int64]:
    """Rays that pass through the ball around a solid."""
    off = start - solid.pose.p
    across = (off * off).sum(axis=1) - (off @ towards) ** 2
    return np.flatnonzero(across <= 1.0001 * solid.radius**2)


def _lowest(solid: Solid) -> float:
    """Lowest point of a solid: its centre less its reach downward."""
    return float(solid.pose.p[2]) - _reach(solid, np.array([0.0, 0.0, 1.0]))


def _reach(solid: Solid, direction: Array) -> float:
    """How far a solid extends from its centre along a unit direction."""
    d, size = solid.pose.rot.T @ direction, np.asarray(solid.shape.size)
    kind = solid.shape.shape
    if kind == "box":
        return float(0.5 * size @ np.abs(d))
    if kind == "cylinder":
        return float(size[0] * np.hypot(d[0], d[1]) + 0.5 * size[1] * abs(d[2]))
    if kind == "capsule":
        return float(size[0] + 0.5 * size[1] * abs(d[2]))
    return float(np.linalg.norm(np.broadcast_to(size, 3) * d))


def _frame(scene: list[Solid], plane: Array, ground: float | None) -> tuple[Array, Array]:
    """Corners of what is to be seen, shadows included, in the plane of the picture."""
    corners: list[Array] = []
    for solid in scene:
        reach = np.array([_reach(solid, axis) for axis in plane])
        centre = plane @ solid.pose.p
        corners += [centre - reach, centre + reach]
        if ground is not None:
            side = [_reach(solid, axis) for axis in np.eye(3)[:2]]
            for sx in (-side[0], side[0]):
                for sy in (-side[1], side[1]):
                    foot = np.array([solid.pose.p[0] + sx, solid.pose.p[1] + sy, ground])
                    corners.append(plane @ foot)
    stacked = np.array(corners)
    return stacked.min(axis=0), stacked.max(axis=0)
