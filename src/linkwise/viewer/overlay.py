"""What is drawn over a mechanism: axes, masses, ellipsoids, forces and traces, as data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.inertial import InertialShape, ellipsoid, inertial_properties
from linkwise.loops import constraint_forces, holding_forces, loop_forces
from linkwise.model.body import WORLD
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.viewer.look import Look
from linkwise.viewer.mesh import Mesh
from linkwise.viewer.motion import Motion
from linkwise.viewer.scene import Part, hinge_axes
from linkwise.viewer.shapes import ball

CHANNEL = re.compile(r"contact\.(?P<name>.+)\.force")
"""Forces on nodes (k, 3), in world axes [N]; what it is `about` says on which node."""

NODE = re.compile(r"\bon '(?P<node>.+)'")


def contact_arrows(
    motion: Motion | None, time: float, scale: float | None, size: float
) -> tuple[Arrows, float]:
    """Forces of contacts at a time, from channels "contact.NAME.force" of a recording.

    Args:
        scale: Metres for each newton; by default the largest force is of a good length.

    Returns:
        The arrows, from the nodes that are pushed, and the scale that was used.
    """
    none = Arrows(np.zeros((0, 2, 3)), ())
    pushed = [] if motion is None else _pushed(motion)
    largest = max(
        (float(np.linalg.norm(f, axis=1).max(initial=0.0)) for _, f in pushed), default=0.0
    )
    if motion is None or largest <= 0.0:
        return none, scale or 0.0
    used = scale or 0.25 * size / largest
    i = motion.index(time)
    q = motion.at(time)[0]  # forces are those of a record, feet are where they are seen
    starts = np.array([motion.mech.pose(q, node).p for node, _ in pushed])
    forces = np.array([values[i] for _, values in pushed])
    keep = used * np.linalg.norm(forces, axis=1) > 1e-3 * size
    points = np.stack([starts, starts + used * forces], axis=1)[keep]
    return Arrows(points, ("contact",) * len(points)), used


def _pushed(motion: Motion) -> list[tuple[str, Array]]:
    """Nodes that contacts push, and the forces on them (k, 3)."""
    channels: Any = getattr(motion.source, "channels", None) or {}
    known = {*motion.mech.node_index, *motion.mech.body_index}
    pushed = list[tuple[str, Array]]()
    for name in channels:
        match = CHANNEL.fullmatch(str(name))
        if match is None:
            continue
        about = NODE.search(str(channels[name].about))
        node = match["name"] if about is None else about["node"]
        values = np.asarray(channels[name].values, dtype=np.float64)
        if node in known and values.shape == (len(motion.t), 3):
            pushed.append((node, values))
    return pushed


LONGEST = 3.0
"""A belted ellipsoid is cut at this multiple of its middle principal mass."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrows:
    """Arrows in the world.

    Attributes:
        points: Where they begin and end (k, 2, 3) [m].
        kinds: What each of them is: "turn", "slide", "constraint", "contact".
    """

    points: Array
    kinds: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.points)


def tips(mech: Mechanism) -> tuple[str, ...]:
    """The ends of a mechanism: the last node of each body that carries none, or that body."""
    names = list[str]()
    for k, body in enumerate(mech.bodies):
        if not mech.children[k]:
            nodes = [node.name for node in mech.nodes if node.body == body.name]
            names.append(nodes[-1] if nodes else body.name)
    return tuple(names)


def mass_parts(mech: Mechanism, size: float, look: Look) -> list[Part]:
    """A ball at the centre of mass of each body; its volume goes with the mass."""
    parts, total = list[Part](), max(mech.total_mass, 1e-300)
    for k in range(mech.n_bodies):
        inertia = mech.inertias[k]
        mass = float(inertia.mass)
        if mass > 0.0:
            radius = 0.045 * size * max((mass / total) ** (1.0 / 3.0), 0.15)
            made = ball(radius, 20)
            mesh = Mesh(made.vertices + np.asarray(inertia.com), made.faces)
            parts.append(Part(k, mesh, look.mass, 1.0, "masses"))
    return parts


def inertia_parts(mech: Mechanism, look: Look) -> list[Part]:
    """For each body the solid ellipsoid that has its mass, centre of mass and inertia.

    With the principal moments J_i about the centre of mass, the semi-axes of a solid ellipsoid are
    a_i² = 5/(2 m) (J_j + J_k - J_i); those of impossible bodies, below zero, are drawn as zero.
    """
    parts = list[Part]()
    for k in range(mech.n_bodies):
        inertia = mech.inertias[k]
        mass = float(inertia.mass)
        if mass <= 0.0:
            continue
        moments, axes = np.linalg.eigh(np.asarray(inertia.J_com, float))
        squares = 2.5 / mass * (moments.sum() - 2.0 * moments)
        semi = np.sqrt(np.maximum(squares, 0.0))
        if semi.max() <= 0.0:
            continue
        if np.linalg.det(axes) < 0.0:
            axes = axes * np.array([1.0, 1.0, -1.0])
        mesh = ball(1.0, 24).scaled(np.maximum(semi, 0.02 * semi.max()))
        placed = mesh.moved(Pose(axes, np.asarray(inertia.com)))
        parts.append(Part(k, placed, look.inertia, 0.45, "inertia"))
    return parts


def axis_arrows(mech: Mechanism, q: Array, size: float) -> Arrows:
    """Arrows along all axes of all hinges, in the world."""
    poses, points, kinds = mech.poses(q), list[Array](), list[str]()
    half = 0.16 * size
    for k, body in enumerate(mech.bodies):
        if body.hinge.nv == 6:  # a free body has no axes
            continue
        outer = poses[k] @ body.outboard.inverse()
        for along, turns in hinge_axes(mech, k, q):
            d = outer.rot @ along
            points.append(np.stack([outer.p - 0.4 * half * d, outer.p + half * d]))
            kinds.append("turn" if turns else "slide")
    return Arrows(np.array(points).reshape(-1, 2, 3), tuple(kinds))


def belted_scale(mech: Mechanism, q: Array, nodes: Sequence[str], size: float) -> float:
    """Metres for each kilogram at which the belted ellipsoids are of a good size."""
    largest = 0.0
    for node in nodes:
        shape = _belted(mech, q, node, 12)
        if shape is not None:
            largest = max(largest, float(shape.radii.max()))
    return 0.22 * size / largest if largest > 0.0 else 0.0


def belted_mesh(
    mech: Mechanism, q: Array, node: str, scale: float, resolution: int = 48
) -> Mesh | None:
    """The belted ellipsoid of the effective mass at a node, about it; None where there is none."""
    shape = _belted(mech, q, node, resolution)
    if shape is None or scale <= 0.0:
        return None
    at = mech.pose(q, node).p
    return Mesh(shape.placed(at, scale), shape.faces)


def _belted(mech: Mechanism, q: Array, node: str, resolution: int) -> InertialShape | None:
    """The surface, cut where it is far longer than wide: near singular states it has no end."""
    try:
        properties = inertial_properties(mech, q, node)
        masses = np.sort(np.asarray(properties.principal_masses, dtype=np.float64))
        finite = masses[np.isfinite(masses)]
        if not len(finite):
            return None
        limit = LONGEST * float(finite[min(1, len(finite) - 1)])
        cut = None if masses[-1] <= limit else limit
        return ellipsoid(properties, resolution=resolution, limit=cut)
    except LinkwiseError:  # loops that are open, for instance
        return None


def constraint_arrows(
    mech: Mechanism,
    q: Array,
    v: Array | None = None,
    tau: Array | None = None,
    scale: float | None = None,
    size: float = 1.0,
) -> tuple[Arrows, float]:
    """Forces in the loops, as they act on both of their nodes.

    Args:
        scale: Metres for each newton; by default the largest force is of a good length.

    Returns:
        The arrows, and the scale that was used.
    """
    none = Arrows(np.zeros((0, 2, 3)), ())
    if not mech.loops:
        return none, scale or 0.0
    try:
        if v is None:
            lam = holding_forces(mech, q).constraint_forces
        else:
            lam = constraint_forces(mech, q, v, np.zeros(mech.nv) if tau is None else tau)
        wrenches = loop_forces(mech, q, lam)
    except LinkwiseError:
        return none, scale or 0.0
    starts, forces = list[Array](), list[Array]()
    for loop in mech.loops:
        a, b = _where(mech, q, loop.node_a), _where(mech, q, loop.node_b)
        force = b.rot @ wrenches[loop.name][3:]
        starts += [np.asarray(b.p), np.asarray(a.p)]
        forces += [force, -force]
    arrows = np.array(forces)
    if scale is None:
        largest = float(np.linalg.norm(arrows, axis=1).max(initial=0.0))
        scale = 0.25 * size / largest if largest > 0.0 else 0.0
    points = np.stack([np.array(starts), np.array(starts) + scale * arrows], axis=1)
    keep = np.linalg.norm(points[:, 1] - points[:, 0], axis=1) > 1e-3 * size
    return Arrows(points[keep], ("constraint",) * int(keep.sum())), scale


def _where(mech: Mechanism, q: Array, name: str) -> Pose:
    return Pose.identity() if name == WORLD else mech.pose(q, name)


def trace(mech: Mechanism, q: Array, node: str) -> Array:
    """The path of a node (k, 3) in the world for joint positions (k, nq) [m]."""
    return np.asarray(mech.pose(q, node).p)
