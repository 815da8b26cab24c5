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
from linkwise.model.lumps import wire_base, wires
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import cross
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
        body: Index of its frame in `frame_poses`: a body, or a line of a flexible one; -1 for the
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
    """Rods between neighbouring nodes of each flexible body, each in a separate frame."""
    parts, radius, frame = list[Part](), 0.8 * _radius(mech, size), mech.n_bodies
    for wire in wires(mech):
        tint = look.bodies[wire.body % len(look.bodies)]
        for a, b in wire.pairs:
            way = wire.rest[b] - wire.rest[a]
            if np.linalg.norm(way) > 1e-9 * size:
                parts.append(Part(frame, rod(np.zeros(3), way, radius, 20), tint))
            frame += 1
    return parts


def _radius(mech: Mechanism, size: float) -> float:
    """Of the rods of generated shapes [m]."""
    return float(min(0.02 * size, 0.05 * size / np.sqrt(1.0 + 0.1 * mech.n_bodies)))


def frame_poses(mech: Mechanism, q: Array) -> Pose:
    """Poses in the world at q (nq,) of all bodies, then of the lines of flexible ones.

    The frame of a line is at its first node; it has the axes of O+, turned the short way from the
    undeformed line to the deformed one.
    """
    poses = mech.poses(q)
    rots, places = [np.asarray(poses.rot)], [np.asarray(poses.p)]
    for wire in wires(mech):
        base = wire_base(mech, wire, poses)
        nodes = wire.nodes(q[mech.q_start[wire.body] : mech.q_start[wire.body + 1]])
        start, end = np.array(wire.pairs).T
        turn = _short_turn(wire.rest[end] - wire.rest[start], nodes[end] - nodes[start])
        rots.append(base.rot @ turn)
        places.append(base.apply(nodes[start]))
    return Pose(np.concatenate(rots), np.concatenate(places)) if len(rots) > 1 else poses


def _short_turn(before: Array, after: Array) -> Array:
    """Rotations (n, 3, 3) that turn vectors (n, 3) into the direction of others.

    With unit vectors a, b and c = a × b:  1 + c~ + c~² / (1 + a·b).
    """
    a, b = (x / np.maximum(np.linalg.norm(x, axis=-1), 1e-300)[:, None] for x in (before, after))
    c, cosine = skew(cross(a, b)), np.einsum("ni,ni->n", a, b)
    return np.eye(3) + c + c @ c / np.maximum(1.0 + cosine, 1e-9)[:, None, None]


def frames(poses: Pose) -> tuple[Array, Array]:
    """Quaternions (..., 4), with w first, and positions (..., 3) of poses."""
    return quaternion.from_matrix(poses.rot), np.asarray(poses.p)
