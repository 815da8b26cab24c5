"""The appearance of a mechanism: surfaces fixed to its bodies, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from linkwise import arguments
from linkwise.io.mesh_path import Roots
from linkwise.model.body import WORLD
from linkwise.model.geometry import Geometry
from linkwise.model.hinges import Free, Locked, Modal
from linkwise.model.lumps import lump_poses
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.viewer.look import LIGHT, Look, Rgb, rgb
from linkwise.viewer.mesh import Mesh, together
from linkwise.viewer.mesh_file import MeshFiles
from linkwise.viewer.shapes import ball, drum, of_geometry, rod

TOGETHER = 16
"""All mesh files together have at most this many times the triangles of the largest."""

Layer: TypeAlias = Literal["shapes", "collision"]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A surface of one colour, fixed to a body.

    Attributes:
        body: Index of its frame in `frame_poses`: a body, or a lump of a flexible one; -1 for the
            ground.
        mesh: In that frame.
        rgb: Colour.
        opacity: 1 for solid.
        layer: With what it is shown and hidden: "shapes", "collision" ...
    """

    body: int
    mesh: Mesh
    rgb: Rgb
    opacity: float = 1.0
    layer: str = "shapes"


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A mechanism as it is drawn.

    Attributes:
        mech: The mechanism.
        parts: Its surfaces.
        generated: Names of bodies whose shapes were made, because the model has none.
        missing: Mesh files that could not be read, and why.
        size: Its reach [m], for the sizes of what is drawn besides.
    """

    mech: Mechanism
    parts: tuple[Part, ...]
    generated: tuple[str, ...]
    missing: dict[str, str]
    size: float

    def bounds(self, q: Array) -> tuple[Array, Array]:
        """Least and largest coordinates of all parts in the world at q (nq,), (3,) each [m]."""
        q = self.mech.check_q(q)
        poses = frame_poses(self.mech, arguments.rows(q, self.mech.nq, "q", stacked=False))
        seen = [part for part in self.parts if part.layer == "shapes"] or self.parts
        points = [
            part.mesh.corners if part.body < 0 else poses[part.body].apply(part.mesh.corners)
            for part in seen
        ]
        if not points:
            points = [np.asarray(poses.p).reshape(-1, 3), np.zeros((1, 3))]
        every = np.concatenate(points)
        return every.min(axis=0), every.max(axis=0)

    def __str__(self) -> str:
        count = sum(len(part.mesh.faces) for part in self.parts)
        text = f"{self.mech.name}: {len(self.parts)} surfaces, {count} triangles"
        if self.generated:
            text += f"; shapes made for {len(self.generated)} bodies"
        if self.missing:
            text += f"; {len(self.missing)} mesh files missing"
        return text


def scene_of(
    mech: Mechanism, *, roots: Roots = (), look: Look = LIGHT, most: int = 24_000
) -> Scene:
    """The surfaces of a mechanism: those of its file, or generated ones where there are none.

    A body whose mesh file is missing gets a generated shape; a mechanism without any geometry gets
    one for each body. A flexible body is a line of rods between its nodes, which bends. Other
    bodies without geometry stay bare: they are frames in between.

    Args:
        roots: Folders that may contain meshes, besides the model's own folder and package.
        look: Colours of uncoloured shapes.
        most: Most triangles of a mesh file; fewer, if there are more than 16 files.
    """
    names = {s.file for x in (*mech.bodies, *mech.nodes) for s in x.geometry if s.file is not None}
    each = min(most, TOGETHER * most // max(len(names), 1))
    files = MeshFiles(mech.load_report.source, roots, most=each)
    size = reach(mech)
    parts, generated = list[Part](), list[str]()
    bare = not any(x.geometry for x in (*mech.bodies, *mech.nodes))
    for k in range(-1, mech.n_bodies):
        carried = _carried(mech, k)
        color = look.bodies[k % len(look.bodies)]
        shown, open_ = _surfaces(carried, files, k, color, "shapes")
        hidden, _ = _surfaces(carried, files, k, (150, 160, 170), "collision")
        parts += [*shown, *hidden]
        if k >= 0 and (bare or (open_ and not shown)):
            made = generated_parts(mech, k, size, look)
            parts += made
            generated += [mech.bodies[k].name] if made else []
    parts += bending_parts(mech, size, look)
    return Scene(mech, tuple(parts), tuple(generated), dict(files.missing), size)


def _carried(mech: Mechanism, k: int) -> list[tuple[Geometry, Pose]]:
    """Shapes of a body and of its nodes, with the pose of their carrier in the body's frame."""
    name = WORLD if k < 0 else mech.bodies[k].name
    shapes = () if k < 0 else mech.bodies[k].geometry
    carried = [(shape, Pose.identity()) for shape in shapes]
    return carried + [
        (s, node.pose) for node in mech.nodes if node.body == name for s in node.geometry
    ]


def _surfaces(
    carried: Sequence[tuple[Geometry, Pose]], files: MeshFiles, k: int, color: Rgb, layer: Layer
) -> tuple[list[Part], bool]:
    """Surfaces of one layer, one for each colour; and whether a mesh is missing."""
    roles = ("visual", "both") if layer == "shapes" else ("collision",)
    groups, failed = dict[tuple[Rgb, float], list[Mesh]](), False
    chosen = [x for x in carried if x[0].role in roles]
    if layer == "shapes" and not chosen:  # a file of collision shapes alone is better than nothing
        chosen = list(carried)
    for shape, at in chosen:
        rgba, opacity = rgb(shape.rgba), 1.0 if shape.rgba is None else float(shape.rgba[3])
        if opacity <= 0.0 or (k < 0 and shape.shape == "plane"):  # the grid is the floor
            continue
        if shape.shape == "mesh":
            surfaces = [(part.mesh, rgba or part.rgb or color) for part in files.load(shape)]
            failed = failed or not surfaces
        else:
            made = of_geometry(shape)
            surfaces = [(made, rgba or color)] if len(made.faces) else []
        for mesh, tint in surfaces:
            groups.setdefault((tint, opacity), []).append(mesh.moved(at))
    parts = [
        Part(k, together(meshes), tint, opacity if layer == "shapes" else 0.35, layer)
        for (tint, opacity), meshes in groups.items()
    ]
    return parts, failed


def reach(mech: Mechanism) -> float:
    """About how large a mechanism is [m]: its farthest hinge or node from the middle, doubled."""
    points = [np.zeros(3)] if any(b.parent == WORLD for b in mech.bodies) else []
    poses = mech.poses(mech.neutral())
    inertias = mech.inertias
    for k in range(mech.n_bodies):
        points.append(np.asarray(poses[k].p))
        if float(inertias.mass[k]) > 0.0:
            points.append(np.asarray(poses[k].apply(inertias[k].com)))
    for node in mech.nodes:
        if node.body != WORLD:
            points.append(np.asarray(poses[mech.body_index[node.body]].apply(node.pose.p)))
    every = np.array(points).reshape(-1, 3)
    span = float(np.linalg.norm(np.ptp(every, axis=0))) if len(every) else 0.0
    return span if span > 1e-9 else 1.0


def hinge_axes(mech: Mechanism, k: int, q: Array) -> list[tuple[Array, bool]]:
    """Axes of a hinge in the frame O: (unit vector (3,), whether it is a rotation)."""
    body = mech.bodies[k]
    rows = np.asarray(body.hinge.hinge_map(q[mech.q_start[k] : mech.q_start[k + 1]]), float)
    axes = list[tuple[Array, bool]]()
    for row in rows.reshape(-1, 6):
        turns = float(np.linalg.norm(row[:3])) > 1e-9
        along = row[:3] if turns else row[3:]
        length = float(np.linalg.norm(along))
        if length > 1e-9:
            axes.append((along / length, turns))
    return axes


def generated_parts(mech: Mechanism, k: int, size: float, look: Look) -> list[Part]:
    """A body without shapes: rods from its hinge to those it carries, a drum, and its mass."""
    body, inertia = mech.bodies[k], mech.inertias[k]
    start = np.asarray(body.outboard.inverse().p)
    radius = _radius(mech, size)
    ends = [np.asarray(mech.bodies[c].inboard.p) for c in mech.children[k]]
    ends += [np.asarray(n.pose.p) for n in mech.nodes if n.body == body.name]
    mass = float(inertia.mass)
    com = np.asarray(inertia.com) if mass > 0.0 else start
    far = [end for end in ends if np.linalg.norm(end - start) > 0.1 * radius]
    if not far and np.linalg.norm(com - start) > 0.1 * radius:
        far = [com]
    rods = [rod(start, end, radius, 20) for end in far]
    parts = list[Part]()
    tint = look.bodies[k % len(look.bodies)]
    if rods:
        parts.append(Part(k, together(rods), tint))
    drums = list[Mesh]()
    axes = hinge_axes(mech, k, mech.neutral())
    if not isinstance(body.hinge, Free | Locked | Modal) and axes:
        if len(axes) == 1:
            axis = body.outboard.rot.T @ axes[0][0]
            drums.append(drum(start, axis, 1.35 * radius, 3.4 * radius))
        else:
            drums.append(Mesh(ball(1.5 * radius).vertices + start, ball().faces))
    if drums:
        parts.append(Part(k, together(drums), look.hinge))
    if mass > 0.0:
        share = (mass / max(mech.total_mass, 1e-300)) ** (1.0 / 3.0)
        bulb = ball(max(1.25, 3.0 * share) * radius)
        parts.append(Part(k, Mesh(bulb.vertices + com, bulb.faces), tint))
    return parts


def bending_parts(mech: Mechanism, size: float, look: Look) -> list[Part]:
    """Rods between the nodes of each flexible body; half of a rod moves with each of its ends."""
    parts, radius, lump = list[Part](), 0.8 * _radius(mech, size), mech.n_bodies
    for k in mech.flexible:
        body, first = mech.bodies[k], lump
        lump += len(body.lumps)
        if not isinstance(body.hinge, Modal):  # the rotor of a motor
            continue
        places = [Pose.identity(), body.hinge.rest]  # of the nodes in the frame O+
        homes = [(int(mech.parent[k]), body.inboard), (k, body.outboard.inverse())]
        for i, x in enumerate(body.lumps):
            if isinstance(x.hinge, Modal):
                places.append(x.hinge.rest)
                homes.append((first + i, Pose.identity()))
        halves = dict[int, list[Mesh]]()
        for a, b in _nearest_neighbours(np.array([x.p for x in places])):
            for i, j in ((a, b), (b, a)):
                end = places[i].inverse().apply(places[j].p)
                if np.linalg.norm(end) > 1e-9 * size:
                    halves.setdefault(i, []).append(rod(np.zeros(3), 0.5 * end, radius, 20))
        tint = look.bodies[k % len(look.bodies)]
        for i, meshes in halves.items():
            frame, at = homes[i]
            parts.append(Part(frame, together(meshes).moved(at), tint))
    return parts


def _nearest_neighbours(points: Array) -> list[tuple[int, int]]:
    """Pairs of points (n, 3) that are joined in the shortest tree through all of them."""
    distance = np.linalg.norm(points[:, None] - points, axis=-1)
    near, least = np.zeros(len(points), dtype=np.int64), distance[0].copy()
    least[0], pairs = np.inf, list[tuple[int, int]]()
    for _ in range(1, len(points)):
        i = int(np.argmin(least))
        pairs.append((int(near[i]), i))
        closer = (distance[i] < least) & np.isfinite(least)
        near[closer], least[closer] = i, distance[i][closer]
        least[i] = np.inf
    return pairs


def _radius(mech: Mechanism, size: float) -> float:
    """Of the rods of generated shapes [m]."""
    return float(min(0.02 * size, 0.05 * size / np.sqrt(1.0 + 0.1 * mech.n_bodies)))


def frame_poses(mech: Mechanism, q: Array) -> Pose:
    """Poses in the world at q (nq,) of all bodies, then of the lumps of flexible ones."""
    poses = mech.poses(q)
    lumps = [pose for _, pose in lump_poses(mech, q, poses)]
    rot, p = ([getattr(x, name) for x in lumps] for name in ("rot", "p"))
    return Pose(np.concatenate([poses.rot, rot]), np.concatenate([poses.p, p])) if lumps else poses


def frames(poses: Pose) -> tuple[Array, Array]:
    """Quaternions (..., 4), with w first, and positions (..., 3) of poses."""
    return quaternion.from_matrix(poses.rot), np.asarray(poses.p)
