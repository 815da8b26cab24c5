"""How do bodies, joints, geoms and sites become a mechanism?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from linkwise.errors import ParseError
from linkwise.io.mjcf.compiler import Compiler
from linkwise.io.mjcf.geom import Assets, Geom, fitted, geom_geometry
from linkwise.io.mjcf.joint import Joint
from linkwise.io.mjcf.mesh import MeshAsset
from linkwise.io.mjcf.orientation import read_fromto, read_pose
from linkwise.io.mjcf.tree import BodyRecord, Names, Part
from linkwise.io.report import Reporter
from linkwise.io.xml import choice
from linkwise.model.body import WORLD
from linkwise.model.builder import Builder
from linkwise.model.geometry import Geometry
from linkwise.model.hinges import Free, Hinge, Locked
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose

Base = Literal["auto", "fixed", "free"] | Hinge

WORLD_NODE: Final = "worldbody"
"""Name of the node on the ground that carries the shapes of the world."""


@dataclass(slots=True)
class Assembly:
    """The parts of a model, one entry per body, and the names they get.

    Attributes:
        records: Bodies, the world first.
        joints, geoms, inertias: Of each body.
        compiler: Global settings.
        assets: What geoms refer to.
        reporter: Collects what is not kept.
        taken: Names of bodies and nodes.
        sites: Node of each named site.
        hinges: By joint: the joint, the bodies inboard and outboard of it, and the pose of O+.
    """

    records: Sequence[BodyRecord]
    joints: Sequence[list[Joint]]
    geoms: Sequence[list[Geom]]
    inertias: Sequence[SpatialInertia]
    compiler: Compiler
    assets: Assets
    reporter: Reporter
    taken: Names = field(default_factory=Names)
    sites: dict[str, str] = field(default_factory=lambda: {})
    hinges: dict[str, tuple[Joint, str, str, Pose]] = field(default_factory=lambda: {})
    hinge_names: Names = field(default_factory=Names)
    looked_at: set[str] = field(default_factory=lambda: set())

    def fill(self, builder: Builder, base: Base) -> None:
        """Add all bodies and nodes to the builder."""
        self.taken = Names(record.name for record in self.records)
        self.hinge_names = Names(joint.name for group in self.joints for joint in group)
        root = None if base == "auto" else self.base_body(base)
        for k, record in enumerate(self.records):
            if k == 0:
                continue
            if k == root:
                self.add_base(builder, k, base)
            elif self.joints[k]:
                self.add_moving(builder, k)
            else:
                self.add_body(builder, k, Locked(), record.pose)
        ground = self.shapes(0)
        if ground:
            builder.node(self.taken.fresh(WORLD_NODE), WORLD, kind="link", geometry=ground)
        for record in self.records:
            for part in record.sites:
                self.add_site(builder, record, part)

    def add_body(self, builder: Builder, k: int, hinge: Hinge, inboard: Pose) -> None:
        """A body on one hinge that is not a joint of the file."""
        record = self.records[k]
        builder.body(
            record.name,
            self.records[record.parent].name,
            hinge,
            hinge_name=self.hinge_names.fresh(record.name),
            inboard=inboard,
            inertia=self.inertias[k],
            geometry=self.shapes(k),
        )

    def add_moving(self, builder: Builder, k: int) -> None:
        """A body on one or more joints; all but the last carry a body without mass."""
        record, group = self.records[k], self.joints[k]
        parent, inboard = self.records[record.parent].name, record.pose
        if group[0].kind == "free":
            if not record.pose.is_identity:
                reason = "where the body starts is a state, not part of the mechanism"
                self.reporter.note(group[0].element, "ignored", reason, "other")
            aligned = self.compiler.of(record.element).alignfree
            if aligned or group[0].element.attrib.get("align") == "true":
                reason = "the body frame is not moved to the inertial frame: other coordinates"
                self.reporter.note(group[0].element, "approximate", reason, "other")
            inboard = Pose.identity()
        for joint in group:
            last = joint is group[-1]
            name = record.name if last else self.taken.fresh(f"{record.name}:{joint.name}")
            inboard = inboard @ joint.inboard
            self.hinges[joint.name] = (joint, parent, name, inboard)
            builder.body(
                name,
                parent,
                joint.hinge,
                hinge_name=joint.name,
                inboard=inboard,
                outboard=joint.outboard,
                inertia=self.inertias[k] if last else SpatialInertia.zero(),
                drive=joint.drive,
                geometry=self.shapes(k) if last else (),
            )
            parent, inboard = name, Pose.identity()

    def base_body(self, base: Base) -> int:
        """Index of the one body on the world that `base` applies to."""
        top = [k for k, r in enumerate(self.records) if r.parent == 0]
        if len(top) != 1:
            raise self.records[0].element.error(
                f"base={base!r} needs exactly one body on the world; found {len(top)}: use "
                "base='auto'"
            )
        return top[0]

    def add_base(self, builder: Builder, k: int, base: Base) -> None:
        """The base body on the requested hinge, in place of its joints."""
        for joint in self.joints[k]:
            reason = f"replaced by base={base!r}"
            self.reporter.note(joint.element, "ignored", reason, "motion")
        pose = self.records[k].pose
        if isinstance(base, Hinge):
            self.add_body(builder, k, base, pose)
        elif base == "free":
            self.add_body(builder, k, Free(), Pose.identity())
        else:
            self.add_body(builder, k, Locked(), pose)

    def shapes(self, k: int) -> tuple[Geometry, ...]:
        """Shapes of a body; those that cannot be kept are reported."""
        shapes: list[Geometry] = []
        for geom in self.geoms[k]:
            if geom.mesh is not None and geom.mesh.name not in self.looked_at:
                self.looked_at.add(geom.mesh.name)
                self.look_for(geom.mesh)
            try:
                shape = geom_geometry(fitted(geom, self.compiler), self.assets, self.reporter)
            except ParseError as problem:
                self.reporter.note(geom.element, "ignored", problem.reason, "appearance")
                continue
            if shape is not None:
                shapes.append(shape)
        return tuple(shapes)

    def look_for(self, mesh: MeshAsset) -> None:
        """Report a missing mesh file; it is not opened."""
        try:
            missing = mesh.file is not None and mesh.path() is None
            reason = "the mesh file does not exist"
        except ParseError as problem:
            missing, reason = True, problem.reason
        if missing:
            self.reporter.note(mesh.element, "approximate", reason, "appearance")

    def add_site(self, builder: Builder, record: BodyRecord, part: Part) -> None:
        """A site as a node; renamed if a body or node already has its name."""
        element = part.element
        if "fromto" in element.attrib:
            pose, _ = read_fromto(element)
        else:
            compiler = self.compiler.of(element)
            pose = read_pose(element, compiler.degree, compiler.eulerseq)
        if part.name and part.name in self.sites:
            raise element.error("the site name is used twice")
        base_name = part.name or f"{record.name}:site"
        name = self.taken.fresh(f"{base_name}:site" if part.name in self.taken else base_name)
        if part.name and name != part.name:
            reason = f"the name is taken by a body or node; the site is called '{name}'"
            self.reporter.note(element, "approximate", reason, "other")
        if choice(element, "type", _SITES, "sphere") == "mesh":
            reason = "the frame is not moved to the centre of the mesh"
            self.reporter.note(element, "approximate", reason, "other")
        if part.name:
            self.sites[part.name] = name
        builder.node(name, record.name, part.frame @ pose)


_SITES: Final = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
