"""Pictures of a mechanism without a page or a display: triangles through a z-buffer in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.spatial.array import Array
from linkwise.viewer.camera import FIELD, Frame
from linkwise.viewer.look import Look, Rgb
from linkwise.viewer.scene import Scene, frame_poses
from linkwise.viewer.stage import round_length

Image = NDArray[np.uint8]
"""Pixels (height, width, 3), rows from top to bottom."""

Rows = NDArray[np.int64]

PAPER = {"light": (251, 250, 247), "dark": (22, 27, 34)}
"""Background colour of each look: that of pictures and pages."""

OVERSAMPLED = 2
"""Rendered pixels per pixel of the picture, in each direction: edges become smooth."""

AMBIENT, DIFFUSE = 0.42, 0.58
"""Share of the light that reaches every surface, and of the light from one direction."""

CHUNK = 1 << 20
"""Fragments processed at a time; more would take memory, fewer time."""


@dataclass(frozen=True, slots=True, eq=False)
class _Surface:
    """All triangles of one kind (solid or translucent) in the frames of their bodies."""

    vertices: Array
    normals: Array
    body: Rows
    faces: Rows
    rgb: NDArray[np.float32]
    opacity: NDArray[np.float32]


class Renderer:
    """Draws a scene from a fixed camera.

    Args:
        scene: The surfaces.
        look: Colours of the floor and the background.
        frame: What has to be in the picture.
        size: Width and height [pixel].
        grid: Whether to draw the floor.
    """

    def __init__(
        self, scene: Scene, look: Look, frame: Frame, size: tuple[int, int], *, grid: bool = True
    ) -> None:
        self.scene, self.size = scene, size
        self._width, self._height = (OVERSAMPLED * n for n in size)
        self._eye, target = frame.seen(size[0] / size[1])
        back = (self._eye - target) / np.linalg.norm(self._eye - target)
        right = np.cross([0.0, 0.0, 1.0], back)
        right /= np.linalg.norm(right)
        self._axes = np.stack([right, np.cross(back, right), back])
        self._focal = 0.5 * self._height / np.tan(0.5 * FIELD)
        light = self._axes.T @ np.array([-0.45, 0.75, 0.6])
        self._light, self._near = light / np.linalg.norm(light), 1e-3 * frame.radius
        self._surfaces = [_surface(scene, solid) for solid in (True, False)]
        self._paper = self._floor(frame, look, grid)

    def draw(self, q: Array) -> Image:
        """The picture of the mechanism at q (nq,)."""
        poses = frame_poses(self.scene.mech, q)
        rot = np.concatenate([np.asarray(poses.rot).reshape(-1, 3, 3), np.eye(3)[None]])
        p = np.concatenate([np.asarray(poses.p).reshape(-1, 3), np.zeros((1, 3))])
        image = self._paper.copy()
        depth = np.zeros(len(image), np.float32)  # of 1/distance: the largest is the nearest
        for surface in self._surfaces:
            if len(surface.faces):
                self._paint(surface, rot[surface.body], p[surface.body], image, depth)
        k, (width, height) = OVERSAMPLED, self.size
        image = image.reshape(height, k, width, k, 3).mean(axis=(1, 3))
        return np.rint(image).astype(np.uint8)

    def _paint(self, surface: _Surface, rot: Array, p: Array, image: Any, depth: Any) -> None:
        """Put one surface in front of what `image` and `depth` hold."""
        world = np.einsum("vij,vj->vi", rot, surface.vertices) + p
        normal = np.einsum("vij,vj->vi", rot, surface.normals)
        toward = self._eye - world
        facing = np.sign(np.einsum("vi,vi->v", normal, toward))  # files may turn triangles around
        lit = np.maximum(facing * (normal @ self._light), 0.0)
        shade = (AMBIENT + DIFFUSE * lit).astype(np.float32)
        seen = -toward @ self._axes.T
        near = -seen[:, 2]
        visible = (near[surface.faces] > self._near).all(axis=1)
        faces = surface.faces[visible]
        inverse = (1.0 / np.maximum(near, self._near)).astype(np.float32)
        x = 0.5 * self._width + self._focal * seen[:, 0] * inverse
        y = 0.5 * self._height - self._focal * seen[:, 1] * inverse
        rgb, opacity = surface.rgb[visible], surface.opacity[visible]
        owner, light = np.full(len(depth), -1, np.int64), np.zeros(len(depth), np.float32)
        for pixel, triangle, weights in self._fragments(x[faces], y[faces]):
            near_here = np.einsum("fi,fi->f", weights, inverse[faces[triangle]])
            front = near_here > depth[pixel]
            pixel, triangle, near_here = pixel[front], triangle[front], near_here[front]
            np.maximum.at(depth, pixel, near_here)
            first = near_here == depth[pixel]
            pixel, triangle = pixel[first], triangle[first]
            owner[pixel] = triangle
            light[pixel] = np.einsum("fi,fi->f", weights[front][first], shade[faces[triangle]])
        covered = owner >= 0
        color = rgb[owner[covered]] * np.minimum(light[covered], 1.0)[:, None]
        share = opacity[owner[covered]][:, None]
        image[covered] = share * color + (1.0 - share) * image[covered]

    def _fragments(self, x: Array, y: Array) -> Iterator[tuple[Rows, Rows, Any]]:
        """Pixels that triangles (f, 3) cover: pixel, triangle, and weights of its corners."""
        area = (x[:, 1] - x[:, 0]) * (y[:, 2] - y[:, 0]) - (x[:, 2] - x[:, 0]) * (y[:, 1] - y[:, 0])
        low_x, high_x = _cells(x, self._width)
        low_y, high_y = _cells(y, self._height)
        wide, tall = high_x - low_x + 1, high_y - low_y + 1
        kept = np.flatnonzero((np.abs(area) > 1e-9) & (wide > 0) & (tall > 0))
        count = (wide * tall)[kept]
        group = np.cumsum(count) // CHUNK
        for number in np.unique(group):
            some = kept[group == number]
            many = count[group == number]
            triangle = np.repeat(some, many)
            place = np.arange(len(triangle)) - np.repeat(np.cumsum(many) - many, many)
            column = low_x[triangle] + place % wide[triangle]
            row = low_y[triangle] + place // wide[triangle]
            px, py = column + 0.5, row + 0.5
            ax, ay, scale = x[triangle], y[triangle], 1.0 / area[triangle]
            first = (ax[:, 1] - px) * (ay[:, 2] - py) - (ax[:, 2] - px) * (ay[:, 1] - py)
            second = (ax[:, 2] - px) * (ay[:, 0] - py) - (ax[:, 0] - px) * (ay[:, 2] - py)
            a, b = first * scale, second * scale
            weights = np.stack([a, b, 1.0 - a - b], axis=1).astype(np.float32)
            inside = (weights >= -1e-5).all(axis=1)
            yield (row * self._width + column)[inside], triangle[inside], weights[inside]

    def _floor(self, frame: Frame, look: Look, grid: bool) -> Any:
        """The background: paper, and a grid on the floor that fades with the distance."""
        width, height = self.size  # its lines are smooth without oversampling
        paper = np.array(PAPER[look.name], np.float32)
        image = np.tile(paper, (width * height, 1))
        row, column = np.divmod(np.arange(len(image)), width)
        focal = self._focal / OVERSAMPLED
        aim = [column + 0.5 - 0.5 * width, 0.5 * height - row - 0.5, np.full(len(image), -focal)]
        ray = (np.stack(aim, axis=1) @ self._axes / focal).astype(np.float32)
        above = float(self._eye[2] - frame.ground)
        down = np.flatnonzero(ray[:, 2] * np.sign(above) < -1e-6)
        if grid and len(down) and above != 0.0:
            ray = ray[down]
            reach = -above / ray[:, 2:]
            at = (self._eye[:2] + reach * ray[:, :2]).astype(np.float32)
            away = np.hypot(*(at - frame.middle[:2]).T) / (7.0 * frame.radius)
            cell = round_length(0.6 * frame.radius)
            # The width of a pixel on the floor, along each axis: lines are one pixel wide.
            pixel = reach / focal * (np.abs(ray[:, :2] / ray[:, 2:]) + 1.0)
            coarse = pixel.max(axis=1)
            for length, rgb in ((0.2 * cell, look.grid), (cell, look.section)):
                off = np.abs(at / length - np.rint(at / length)) * (length / pixel)
                line = np.clip(1.0 - off.min(axis=1), 0.0, 1.0) * np.clip(1.0 - away, 0.0, 1.0)
                blend = (line * np.clip(length / (6.0 * coarse), 0.0, 1.0))[:, None]
                image[down] += blend * (np.array(rgb, np.float32) - image[down])
        image = image.reshape(height, width, 3).repeat(OVERSAMPLED, axis=0)
        return image.repeat(OVERSAMPLED, axis=1).reshape(-1, 3)


def _cells(x: Array, size: int) -> tuple[Rows, Rows]:
    """The first and last pixel along one axis that triangles (f, 3) may cover."""
    low = np.clip(np.floor(x.min(axis=1) - 0.5), 0, size).astype(np.int64)
    high = np.clip(np.ceil(x.max(axis=1) - 0.5), -1, size - 1).astype(np.int64)
    return low, high


def _surface(scene: Scene, solid: bool) -> _Surface:
    """The visible parts, solid or translucent, as one set of triangles."""
    parts = [x for x in scene.parts if x.layer == "shapes" and (x.opacity >= 1.0) == solid]
    start, vertices, normals, faces = 0, list[Array](), list[Array](), list[Rows]()
    for part in parts:
        mesh = part.mesh
        a, b, c = (mesh.vertices[mesh.faces[:, i]] for i in range(3))
        sums = np.zeros_like(mesh.vertices)
        for i in range(3):
            np.add.at(sums, mesh.faces[:, i], np.cross(b - a, c - a))
        vertices.append(mesh.vertices)
        normals.append(sums / np.maximum(np.linalg.norm(sums, axis=1), 1e-300)[:, None])
        faces.append(mesh.faces + start)
        start += len(mesh.vertices)
    empty = np.zeros((0, 3))
    counts = [len(x.mesh.faces) for x in parts]
    colors: list[Rgb] = [x.rgb for x in parts]
    return _Surface(
        np.concatenate([empty, *vertices]),
        np.concatenate([empty, *normals]),
        np.repeat([x.body for x in parts], [len(v) for v in vertices]).astype(np.int64),
        np.concatenate([np.zeros((0, 3), np.int64), *faces]),
        np.repeat(np.array(colors, np.float32).reshape(-1, 3), counts, axis=0),
        np.repeat(np.array([x.opacity for x in parts], np.float32), counts),
    )
