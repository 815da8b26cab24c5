"""How does a mechanism become an MJCF file that reads back as the same mechanism?

Bodies nest as the tree does, inertias are explicit, angles are in radians, and numbers have all
their digits. Bodies without mass between two hinges are written as one body with several joints,
since MuJoCo has no massless bodies. Nodes become sites, or bodies without joints where they carry
inertia or shapes; loops and couplings become equalities.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from linkwise.io.mjcf.actuator import actuator_elements
from linkwise.io.mjcf.assemble import WORLD_NODE
from linkwise.io.mjcf.contact import flag_element, pair_elements
from linkwise.io.mjcf.equality_write import EqualityWriter
from linkwise.io.mjcf.joint_write import JointOut, joint_elements, joints_of, reference
from linkwise.io.mjcf.surface import surface_attributes
from linkwise.io.report import Reporter
from linkwise.io.xml import MAX_DEPTH, Element
from linkwise.io.xml_write import digits, make, row, xml_text
from linkwise.model.body import WORLD, Body, Node
from linkwise.model.geometry import Geometry
from linkwise.model.grid import Grid
from linkwise.model.hinges import Free, Locked, Prismatic, Translation
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import quaternion
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose

MAX_DOF: Final = 6
"""Most degrees of freedom of one body in MuJoCo."""

MIN_MASS: Final = 1e-15
"""Least mass [kg] and moment of inertia [kg m²] of a moving body in MuJoCo."""


def write_mjcf(mech: Mechanism, reporter: Reporter) -> str:
    """Text of an MJCF file with the same physics.

    Raises:
        ModelError: A hinge that MJCF cannot express; names the body.
    """
    draft = _Draft(mech, reporter, ShapeWriter(reporter))
    draft.write_bodies()
    draft.write_nodes()
    equalities = EqualityWriter(mech, reporter, draft.joint_names, draft.sites, draft.refs)
    equalities.write(draft.follow)
    named = {hinge: [name for name, _ in each] for hinge, each in draft.joint_names.items()}
    motors, pulled = actuator_elements(mech, named, draft.sites, reporter)
    equalities.tendons += pulled
    for element, name in draft.sites_to_add(equalities.new_sites):
        draft.elements[name].children.append(element)
    # inertiafromgeom: what has no <inertial> has no mass, whatever its shapes.
    compiler = {"angle": "radian", "autolimits": "false", "inertiafromgeom": "false"}
    root = make(
        "mujoco",
        {"model": mech.name},
        make("compiler", compiler),
        make("option", {"gravity": row(mech.gravity)}, flag_element(mech.contact_rules)),
        draft.shapes.assets(),
        draft.elements[WORLD],
        pair_elements(mech.contact_rules),
        *equalities.sections(),
        *([make("actuator", {}, *motors)] if motors else []),
    )
    return xml_text(root, comment="Written by Linkwise.")


@dataclass(slots=True)
class _Draft:
    """The tree while it grows.

    Attributes:
        elements: The element of each body written, by its name.
        joint_names: Names of the joints of each hinge, in the order of its joints.
        sites: Names of nodes that are written as sites.
        refs: Reference coordinates of joints that have one other than zero.
        follow: (slide, hinge, travel) of slides that follow a hinge.
    """

    mech: Mechanism
    reporter: Reporter
    shapes: ShapeWriter
    elements: dict[str, Element] = field(default_factory=lambda: {WORLD: make("worldbody")})
    joint_names: dict[str, list[tuple[str, JointOut]]] = field(default_factory=lambda: {})
    sites: set[str] = field(default_factory=lambda: set())
    refs: dict[str, float] = field(default_factory=lambda: {})
    follow: list[tuple[str, str, float]] = field(default_factory=lambda: [])

    def write_bodies(self) -> None:
        """All bodies, each in the element of its parent."""
        mech = self.mech
        absorbed = self.absorbed()
        chains: dict[str, list[tuple[Body, list[JointOut]]]] = {}
        depth = {WORLD: 2}
        taken = {body.hinge_name for body in mech.bodies}
        for body in mech.bodies:
            joints = [] if isinstance(body.hinge, Locked) else joints_of(body, self.reporter)
            chain = [*chains.pop(body.parent, []), (body, joints)]
            self.name_joints(body, joints, taken)
            if body.name in absorbed:
                chains[body.name] = chain
                continue
            parent = chain[0][0].parent
            depth[body.name] = depth[parent] + 1
            self.elements[body.name] = element = self.body_element(body, chain)
            self.elements[parent].children.append(element)
            if joints:
                self.check_mass(body)
        if max(depth.values()) > MAX_DEPTH - 2:
            reason = f"the tree nests {max(depth.values())} levels; `load` reads {MAX_DEPTH}"
            self.reporter.note(f"mechanism '{mech.name}'", "approximate", reason, "other")
        self.check_order()

    def check_mass(self, body: Body) -> None:
        """MuJoCo wants mass and moments of inertia on everything that moves."""
        inertia = self.mech.inertia(body.name)
        if float(inertia.mass) < MIN_MASS or float(inertia.principal()[0][0]) < MIN_MASS:
            reason = "MuJoCo refuses moving bodies without mass or moments of inertia"
            self.reporter.note(f"body '{body.name}'", "approximate", reason, "other")

    def absorbed(self) -> set[str]:
        """Bodies that merge into the joints of their only child."""
        mech = self.mech
        busy = {node.body for node in mech.nodes}
        busy |= {end for loop in mech.loops for end in (loop.node_a, loop.node_b)}
        absorbed: set[str] = set()
        freedoms: dict[str, int] = {}
        after_ball: set[str] = set()
        for k, body in enumerate(mech.bodies):
            children = mech.children[k]
            in_row = body.parent in absorbed
            freedoms[body.name] = body.hinge.nv + (freedoms[body.parent] if in_row else 0)
            if body.hinge.quaternion is not None or (in_row and body.parent in after_ball):
                after_ball.add(body.name)
            if len(children) != 1 or body.name in busy or body.geometry:
                continue
            if float(body.inertia.mass) or body.inertia.J.any() or body.inertia.h.any():
                continue
            child = mech.bodies[children[0]]
            fits = freedoms[body.name] + child.hinge.nv <= MAX_DOF
            still = isinstance(child.hinge, Locked | Free) or isinstance(body.hinge, Locked | Free)
            # After a ball joint MuJoCo takes slides only within one body.
            turns = not isinstance(child.hinge, Prismatic | Translation)
            if fits and not still and not (turns and body.name in after_ball):
                absorbed.add(body.name)
        return absorbed

    def name_joints(self, body: Body, joints: list[JointOut], taken: set[str]) -> None:
        """One joint takes the name of the hinge; several add the name of the coordinate."""
        if len(joints) == 1:
            self.joint_names[body.hinge_name] = [(body.hinge_name, joints[0])]
            return
        named: list[tuple[str, JointOut]] = []
        for joint in joints:
            what = "ball" if joint.q is None else body.hinge.coordinates[joint.q].name
            if joint.travel is not None:
                what += "_travel"
            name = f"{body.hinge_name}_{what}"
            while name in taken:
                name += "_"
            taken.add(name)
            if joint.travel is not None:
                self.follow.append((name, named[-1][0], joint.travel))
            named.append((name, joint))
        self.joint_names[body.hinge_name] = named

    def body_element(self, body: Body, chain: list[tuple[Body, list[JointOut]]]) -> Element:
        """`<body>` with inertia, joints and shapes; the chain ends with the body itself."""
        # S_i, from hinge i to the body frame at the reference, from the last hinge to the first.
        way, ways = Pose.identity(), list[Pose]()
        for one, outs in reversed(chain):
            q = one.hinge.neutral()
            if one is not chain[0][0] and len(outs) == 1:
                q = reference(one)
                if q.any():
                    self.refs[one.hinge_name] = float(q[0])
            ways.append(one.outboard @ way)
            way = one.inboard @ one.hinge.pose(q) @ ways[-1]
        joints: list[Element] = []
        for (one, outs), after in zip(chain, reversed(ways), strict=True):
            names = [name for name, _ in self.joint_names[one.hinge_name]] if outs else []
            if outs:
                ref = self.refs.get(one.hinge_name, 0.0)
                joints += joint_elements(one, outs, names, after, ref, self.reporter)
            if one is not body and one.name != f"{body.name}:{one.hinge_name}":
                reason = f"it has no mass and is written as joints of body '{body.name}'"
                self.reporter.note(f"body '{one.name}'", "approximate", reason, "other")
        place = Pose.identity() if _is_free(chain) and body.parent == WORLD else way
        return make(
            "body",
            {"name": body.name, **pose_attributes(place), **self.carried(body.name)},
            inertial_element(body.inertia, body.name, self.reporter),
            *joints,
            *self.shapes.geoms(body.geometry, body.name, moving=True),
        )

    def carried(self, name: str) -> dict[str, str]:
        """Gravity compensation of a body."""
        share = dict(self.mech.gravity_compensation).get(name, 0.0)
        return {"gravcomp": digits(share)} if share else {}

    def write_nodes(self) -> None:
        """Bare frames as sites; nodes with inertia or shapes, and links, as bodies."""
        for node in self.mech.nodes:
            parent = self.elements[node.body].children
            still = node.body == WORLD
            if node.kind == "frame" and node.inertia is None and not node.geometry:
                self.sites.add(node.name)
                parent.append(make("site", {"name": node.name, **pose_attributes(node.pose)}))
            elif self.is_ground(node):
                parent.extend(self.shapes.geoms(node.geometry, WORLD, moving=False))
            else:
                if node.kind != "link":
                    reason = f"a {node.kind} that carries something reads back as a link"
                    self.reporter.note(f"node '{node.name}'", "approximate", reason, "other")
                parent.append(
                    make(
                        "body",
                        {
                            "name": node.name,
                            **pose_attributes(node.pose),
                            **self.carried(node.name),
                        },
                        inertial_element(node.inertia, node.name, self.reporter),
                        *self.shapes.geoms(node.geometry, node.name, moving=not still),
                    )
                )

    @staticmethod
    def is_ground(node: Node) -> bool:
        """Whether a node only carries shapes of the world itself."""
        bare = node.inertia is None and node.pose.is_identity
        return node.name == WORLD_NODE and node.body == WORLD and bare

    def sites_to_add(self, places: dict[str, tuple[str, Pose]]) -> list[tuple[Element, str]]:
        """Sites that loops need, with the body of each."""
        return [
            (make("site", {"name": name, **pose_attributes(pose)}), body)
            for name, (body, pose) in places.items()
        ]

    def check_order(self) -> None:
        """Nested elements are read depth first."""
        mech = self.mech
        order: list[int] = []
        stack = list(reversed(mech.children[-1]))
        while stack:
            k = stack.pop()
            order.append(k)
            stack.extend(reversed(mech.children[k]))
        if order != list(range(mech.n_bodies)):
            reason = "bodies are written, and read back, depth first: their order changes"
            self.reporter.note(f"mechanism '{mech.name}'", "approximate", reason, "other")


def _is_free(chain: list[tuple[Body, list[JointOut]]]) -> bool:
    joints = chain[0][1]
    return len(chain) == 1 and bool(joints) and joints[0].kind == "free"


MIN_MOMENT: Final = 1e-14
"""Least eigenvalue of a full inertia matrix in MuJoCo [kg m²]."""
ROUNDING: Final = 1e-14
"""Moments are known to this part of the largest entry of the inertia about the body frame."""


def pose_attributes(pose: Pose) -> dict[str, str]:
    """`pos` and `quat`, each left out if it is zero or the identity."""
    attributes: dict[str, str] = {}
    if pose.p.any():
        attributes["pos"] = row(pose.p)
    if (pose.rot != np.eye(3)).any():
        attributes["quat"] = row(quaternion.from_matrix(pose.rot))
    return attributes


def inertial_element(
    inertia: SpatialInertia | None, where: str, reporter: Reporter
) -> Element | None:
    """`<inertial>` about the centre of mass; None for a body without mass.

    MuJoCo refuses a full matrix with moments that are zero, and moments A, B, C with A + B < C.
    If this is due to rounding, principal moments are written, corrected within the rounding.
    """
    if inertia is None or not (float(inertia.mass) or inertia.h.any() or inertia.J.any()):
        return None
    J = inertia.J_com
    attrib = {"pos": row(inertia.com), "mass": digits(float(inertia.mass))}
    moments, axes = inertia.principal()
    low, middle, high = (float(m) for m in moments)
    slack = ROUNDING * float(np.abs(inertia.J).max())
    thin = low < MIN_MOMENT or high > low + middle - slack
    if thin and low > -slack and high <= low + middle + slack:
        low, middle = max(low, 0.0), max(middle, 0.0)
        attrib["diaginertia"] = row((low, middle, min(high, low + middle)))
        attrib["quat"] = row(quaternion.from_matrix(axes))
        return make("inertial", attrib)
    if low < 0.0 or high > low + middle:
        reason = "MuJoCo refuses moments of inertia that no body can have"
        reporter.note(f"inertia of '{where}'", "approximate", reason, "other")
    off = (J[0, 1], J[0, 2], J[1, 2])
    if any(off):
        attrib["fullinertia"] = row((J[0, 0], J[1, 1], J[2, 2], *off))
    else:
        attrib["diaginertia"] = row(np.diag(J))
    return make("inertial", attrib)


@dataclass(slots=True)
class ShapeWriter:
    """Writes shapes as geoms, and collects the mesh assets they need."""

    reporter: Reporter
    meshes: dict[tuple[str, tuple[float, float, float], str], str] = field(
        default_factory=lambda: {}
    )
    hfields: dict[tuple[Grid, tuple[float, ...]], str] = field(default_factory=lambda: {})
    geom_names: set[str] = field(default_factory=lambda: set())

    def geoms(self, shapes: tuple[Geometry, ...], where: str, *, moving: bool) -> list[Element]:
        """`<geom>` elements of a body; planes only where nothing moves."""
        geoms: list[Element] = []
        for shape in shapes:
            if shape.shape == "plane" and moving:
                reason = "MJCF allows planes on the ground only"
                about = "appearance" if shape.role == "visual" else "motion"
                self.reporter.note(f"plane on '{where}'", "ignored", reason, about)
                continue
            attrib = {"type": shape.shape, **self._size(shape), **pose_attributes(_placed(shape))}
            if shape.name and shape.name not in self.geom_names:
                self.geom_names.add(shape.name)
                attrib = {"name": shape.name, **attrib}
            attrib |= surface_attributes(shape)
            if shape.role == "collision":
                attrib["group"] = "3"
            if shape.rgba is not None:
                attrib["rgba"] = row(shape.rgba)
            geoms.append(make("geom", attrib))
        return geoms

    def _size(self, shape: Geometry) -> dict[str, str]:
        size = shape.size
        if shape.shape == "mesh":
            assert shape.file is not None
            key = (shape.file, shape.scale, shape.mesh_inertia)
            return {"mesh": self.meshes.setdefault(key, f"mesh{len(self.meshes)}")}
        if shape.grid is not None:
            key = (shape.grid, shape.size)
            return {"hfield": self.hfields.setdefault(key, f"hfield{len(self.hfields)}")}
        if shape.shape == "box":
            size = tuple(0.5 * s for s in size)
        elif shape.shape in ("cylinder", "capsule"):
            size = (size[0], 0.5 * size[1])
        elif shape.shape == "plane":
            size = (*size, 1.0)
        return {"size": row(size)}

    def assets(self) -> Element | None:
        """`<asset>` with the meshes and height fields used."""
        if not self.meshes and not self.hfields:
            return None
        meshes: list[Element] = []
        for (file, scale, inertia), name in self.meshes.items():
            attrib = {"name": name, "file": file}
            if inertia:
                attrib["inertia"] = inertia
            if scale != (1.0, 1.0, 1.0):
                attrib["scale"] = row(scale)
            meshes.append(make("mesh", attrib))
        for (grid, (x, y, base)), name in self.hfields.items():
            top = float(np.ptp(grid.heights))  # MJCF has heights from 0; `geoms` moves the geom
            attrib = {"name": name, "nrow": f"{grid.rows}", "ncol": f"{grid.columns}"}
            attrib["elevation"] = row(grid.heights[::-1].ravel() - grid.heights.min())
            attrib["size"] = row((x, y, top if top > 0.0 else 1.0, base))
            meshes.append(make("hfield", attrib))
        return make("asset", {}, *meshes)


def _placed(shape: Geometry) -> Pose:
    """The pose of a geom: MJCF has the heights of a field above its lowest one."""
    low = 0.0 if shape.grid is None else float(shape.grid.heights.min())
    return shape.pose @ Pose(np.eye(3), np.array([0.0, 0.0, low])) if low else shape.pose
