"""Which bodies are below `<worldbody>`, and what does each of them contain?

The elements are visited without recursion, in file order. Frames and replicates disappear: their
poses and default classes are applied to their content.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from linkwise.io.mjcf.compiler import MAIN, Compiler, Defaults, boolean
from linkwise.io.mjcf.ignored import BODY_AFFECTS, REFUSED, Ignored, ignore
from linkwise.io.mjcf.orientation import check_single_orientation, euler, make_pose, read_pose
from linkwise.io.report import Reporter
from linkwise.io.xml import Element, number, numbers, required, shorten
from linkwise.spatial.pose import Pose


class Names:
    """Names in use. `fresh` gives a new one in constant time, however many were alike before."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    def add(self, name: str) -> None:
        """Put a name in use."""
        self._taken.add(name)

    def fresh(self, base: str) -> str:
        """`wanted`, or `wanted_2`, `wanted_3` ..., whichever is free first; it is in use then."""
        name, i = base, self._next.get(base, 2)
        while name in self._taken:
            name, i = f"{base}_{i}", i + 1
        self._next[base] = i
        self._taken.add(name)
        return name


MAX_REPLICAS: Final = 20_000
"""Most elements that replicates may create: a few lines could create billions."""


class Part(NamedTuple):
    """An element of a body: with its defaults, and the pose of the frame around it."""

    element: Element
    frame: Pose
    name: str


@dataclass(slots=True)
class BodyRecord:
    """A body as written in the file; the first record is the world.

    Attributes:
        element: Its element.
        name: Unique name.
        parent: Index of the parent record, -1 for the world.
        pose: In the parent's body frame, at the configuration the file describes.
        written: `pose` without the frames around the body.
        inertial: The `<inertial>`, if there is one.
        joints, geoms, sites: What it holds, in file order.
    """

    element: Element
    name: str
    parent: int
    pose: Pose
    written: Pose
    inertial: Element | None = None
    joints: list[Part] = field(default_factory=lambda: [])
    geoms: list[Part] = field(default_factory=lambda: [])
    sites: list[Part] = field(default_factory=lambda: [])


class _Visit(NamedTuple):
    element: Element
    body: int
    frame: Pose
    classname: str
    suffix: str


def read_tree(
    root: Element,
    defaults: Defaults,
    compiler: Compiler,
    reporter: Reporter,
    ignored: Ignored,
) -> list[BodyRecord]:
    """All bodies, parents before children.

    Raises:
        ParseError: A feature that would change the tree or the masses and is not supported.
    """
    return _Walk(defaults, compiler, reporter, ignored).run(root)


@dataclass(slots=True)
class _Walk:
    defaults: Defaults
    compiler: Compiler
    reporter: Reporter
    ignored: Ignored
    bodies: list[BodyRecord] = field(default_factory=lambda: [])
    stack: list[_Visit] = field(default_factory=lambda: [])
    replicas: int = 0

    def run(self, root: Element) -> list[BodyRecord]:
        here = Pose.identity()
        self.bodies.append(BodyRecord(root, "world", -1, here, here))
        for section in reversed(root.findall("worldbody")):
            if section.attrib:
                raise section.error("the world has no attributes")
            self.push(section, 0, here, MAIN, "")
        while self.stack:
            self.visit(self.stack.pop())
        self.name_the_nameless()
        return self.bodies

    def push(self, parent: Element, body: int, frame: Pose, classname: str, suffix: str) -> None:
        if suffix:
            self.count_replicas(parent, len(parent.children))
        for child in reversed(parent.children):
            self.stack.append(_Visit(child, body, frame, classname, suffix))

    def count_replicas(self, element: Element, more: int) -> None:
        self.replicas += more
        if self.replicas > MAX_REPLICAS:
            raise element.error(f"replicates make more than {MAX_REPLICAS} elements, the most read")

    def visit(self, visit: _Visit) -> None:
        element, tag = visit.element, visit.element.tag
        if tag in ("joint", "freejoint", "geom", "site"):
            self.visit_part(visit)
        elif tag == "body":
            self.visit_body(visit)
        elif tag == "frame":
            self.visit_frame(visit)
        elif tag == "replicate":
            self.visit_replicate(visit)
        elif tag == "inertial":
            self.visit_inertial(visit)
        elif tag in BODY_AFFECTS:
            why = "plugins are not supported" if tag == "plugin" else ""
            ignore(self.reporter, element, BODY_AFFECTS[tag], why)
        elif tag in REFUSED:
            raise element.error(f"{REFUSED[tag]} are not supported, and the tree depends on them")
        else:
            self.reporter.note(element, "ignored", "unknown element in a body", "motion")

    def visit_part(self, visit: _Visit) -> None:
        element, record = visit.element, self.bodies[visit.body]
        self.ignored.check(element)
        for child in element.children:
            ignore(self.reporter, child, "motion", "plugins and other children are not supported")
        name = element.attrib.get("name", "")
        name = name + visit.suffix if name else ""
        if element.tag in ("joint", "freejoint"):
            if visit.body == 0:
                raise element.error("the world has no joints")
            if element.tag == "joint":
                element = self.defaults.apply(element, visit.classname)
            record.joints.append(Part(element, visit.frame, name))
            return
        check_single_orientation(element)
        merged = self.defaults.apply(element, visit.classname)
        parts = record.geoms if element.tag == "geom" else record.sites
        parts.append(Part(merged, visit.frame, name))

    def visit_inertial(self, visit: _Visit) -> None:
        element, record = visit.element, self.bodies[visit.body]
        self.ignored.check(element)
        check_single_orientation(element)
        if visit.body == 0:
            raise element.error("the world has no inertia")
        if record.inertial is not None:
            raise element.error("the body has an <inertial> already")
        record.inertial = element

    def visit_body(self, visit: _Visit) -> None:
        element = visit.element
        self.ignored.check(element)
        classname = self.childclass(visit)
        written = self.pose(element)
        name = element.attrib.get("name", "")
        name = name + visit.suffix if name else ""
        pose = visit.frame @ written
        self.bodies.append(BodyRecord(element, name, visit.body, pose, written))
        if boolean(element, "mocap", False):
            if visit.body != 0:
                raise element.error("a mocap body has to be a child of the world")
            reason = "a mocap body stays where the file puts it"
            self.reporter.note(element, "approximate", reason, "control")
        self.push(element, len(self.bodies) - 1, Pose.identity(), classname, visit.suffix)

    def visit_frame(self, visit: _Visit) -> None:
        element = visit.element
        self.ignored.check(element)
        if (numbers(element, "scale", (1, 3), 1.0) != 1.0).any() or (
            number(element, "massscale", 0.0) not in (0.0, 1.0)
        ):
            raise element.error("frames with 'scale' or 'massscale' are not supported")
        frame = visit.frame @ self.pose(element)
        self.push(element, visit.body, frame, self.childclass(visit), visit.suffix)

    def visit_replicate(self, visit: _Visit) -> None:
        element = visit.element
        self.ignored.check(element)
        required(element, "count")
        count = number(element, "count")
        if not 1 <= count < 1e9 or count != int(count):
            raise element.error(f"'count' is {count:g}; it takes a whole number from 1")
        for child in element.children:
            if child.tag in ("joint", "freejoint"):
                raise child.error("a joint directly in a replicate; wrap it in a body")
        angles = numbers(element, "euler", 3, (0.0, 0.0, 0.0))
        compiler = self.compiler.of(element)
        angles = np.deg2rad(angles) if compiler.degree else angles
        step = numbers(element, "offset", 3, (0.0, 0.0, 0.0))
        classname, digits = self.childclass(visit), len(str(int(count) - 1))
        turn = make_pose(euler(angles, compiler.eulerseq), step)
        self.count_replicas(element, int(count))
        frames = [Pose.identity()]
        for _ in range(int(count) - 1):
            frames.append(frames[-1] @ turn)
        for i in reversed(range(int(count))):
            suffix = f"{element.attrib.get('sep', '')}{i:0{digits}d}{visit.suffix}"
            self.push(element, visit.body, visit.frame @ frames[i], classname, suffix)

    def childclass(self, visit: _Visit) -> str:
        name = visit.element.attrib.get("childclass")
        return visit.classname if name is None else self.defaults.check_class(visit.element, name)

    def pose(self, element: Element) -> Pose:
        check_single_orientation(element)
        compiler = self.compiler.of(element)
        return read_pose(element, compiler.degree, compiler.eulerseq)

    def name_the_nameless(self) -> None:
        """Names for bodies without one, and a ParseError for one used twice."""
        names = Names(["world"])
        for record in self.bodies[1:]:
            if record.name in names:
                what = "kept for the ground" if record.name == "world" else "used twice"
                raise record.element.error(f"the body name '{shorten(record.name)}' is {what}")
            if record.name:
                names.add(record.name)
        for k, record in enumerate(self.bodies):
            if not record.name:
                record.name = names.fresh(f"body{k}")
