"""Which links and joints does a URDF have, how are they connected, and which joints mimic?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from linkwise.errors import unknown_name
from linkwise.io.mesh_path import Roots
from linkwise.io.report import Affects, Reporter
from linkwise.io.urdf.gazebo import FRICTION, take_friction
from linkwise.io.urdf.joint import Joint, Mimic, Rotor, read_joint, read_transmissions
from linkwise.io.urdf.link import Link, MeshCheck, read_link, read_materials, report_unknown
from linkwise.io.urdf.loop import TAGS
from linkwise.io.xml import MAX_SIZE, Element, shorten
from linkwise.model.drive import Drive
from linkwise.model.hinges import Locked

_USED: Final = {"link", "joint", "material", "transmission", "fixed_frame", "frame"}
_GAZEBO_AFFECTS: Final[dict[str, Affects]] = {
    **dict.fromkeys(("plugin", "sensor", "provideFeedback", "provide_feedback"), "control"),
    **dict.fromkeys(("material", "visual"), "appearance"),
    **dict.fromkeys(("kp", "kd", "minDepth", "maxVel", "fdir1"), "contact"),
    **dict.fromkeys(("selfCollide", "self_collide", "collision", "maxContacts"), "contact"),
    **dict.fromkeys(("springStiffness", "springReference", "implicitSpringDamper"), "motion"),
    **dict.fromkeys(("turnGravityOff", "gravity", "dampingFactor", "joint", "static"), "motion"),
}


@dataclass(slots=True)
class Robot:
    """The links and joints of a file, before they are put in order."""

    root: Element
    links: dict[str, Link]
    joints: dict[str, Joint]
    reporter: Reporter
    rotors: dict[str, Rotor]
    children: dict[str, list[Joint]] = field(default_factory=lambda: {})
    above: dict[str, Joint] = field(default_factory=lambda: {})
    frames: dict[str, Element] = field(default_factory=lambda: {})


def read_robot(root: Element, file: str, reporter: Reporter, roots: Roots) -> Robot:
    """All links and joints below a `<robot>`, connected; raises if they do not form a tree."""
    _report_rest(root, reporter)
    materials = read_materials(root, reporter)
    meshes = MeshCheck(file, roots, reporter, set())
    links: dict[str, Link] = {}
    for element in root.findall("link"):
        link = read_link(element, materials, meshes)
        _check_unique(link.name, element, links, "link")
        links[link.name] = link
    take_friction(root, links, reporter)
    if not links:
        raise root.error("it has no <link>; a robot has at least one")
    elements = root.findall("joint")
    loops = [element for element in root.children if element.tag in TAGS]
    names = {element.attrib.get("name", "") for element in elements}
    names |= {element.attrib.get("name", "").strip() for element in loops}
    rotors = read_transmissions(root, names, reporter)
    joints: dict[str, Joint] = {}
    robot = Robot(root, links, joints, reporter, rotors)
    for element in elements:
        joint = read_joint(element, rotors, reporter)
        _check_unique(joint.name, element, joints, "joint")
        _connect(robot, joint)
        joints[joint.name] = joint
    return robot


def _report_rest(root: Element, reporter: Reporter) -> None:
    report_unknown(root, {"name", "version"}, set(), reporter, {c.tag for c in root.children})
    for element in root.children:
        if element.tag == "gazebo":
            tags = sorted({child.tag for child in element.children} - {*FRICTION})
            if not tags and element.children:
                continue
            text = shorten(", ".join(tags)) or "nothing"
            reporter.note(element, "ignored", f"for Gazebo only: {text}", _about(tags))
        elif element.tag in ("ros2_control", "sensor"):
            reporter.note(element, "ignored", "not part of the mechanism", "control")
        elif element.tag not in (*_USED, *TAGS, "linkwise:coupling"):
            reporter.note(element, "ignored", "this element is not known", "other")


def _about(tags: list[str]) -> Affects:
    """The most important thing that the children of a `<gazebo>` affect."""
    kinds = {_GAZEBO_AFFECTS[tag] for tag in tags if tag in _GAZEBO_AFFECTS}
    grave: tuple[Affects, ...] = ("motion", "control", "contact", "appearance")
    for kind in grave:
        if kind in kinds:
            return kind
    return "other"


def _check_unique(
    name: str, element: Element, known: dict[str, Link] | dict[str, Joint], kind: str
) -> None:
    if name in known:
        line = known[name].element.line
        raise element.error(f"a {kind} of this name is in line {line}; names have to differ")


def _connect(robot: Robot, joint: Joint) -> None:
    for tag, link in (("parent", joint.parent), ("child", joint.child)):
        if link not in robot.links:
            reason = unknown_name("link", link, robot.links, owner="the file")
            raise joint.element.error(f"its {tag}: {reason}")
    if joint.parent == joint.child:
        raise joint.element.error(f"it joins link '{joint.child}' to itself; name another parent")
    other = robot.above.get(joint.child)
    if other is not None:
        raise joint.element.error(
            f"link '{joint.child}' is already the child of joint '{other.name}' in line "
            f"{other.element.line}; links form a tree: close the loop with <loop_joint> instead"
        )
    robot.above[joint.child] = joint
    robot.children.setdefault(joint.parent, []).append(joint)


def root_link(robot: Robot) -> str:
    """The one link that is no child, after checking that all others hang below it."""
    tops = [name for name in robot.links if name not in robot.above]
    if len(tops) > 1:
        names = ", ".join(f"'{shorten(name)}'" for name in tops[:6])
        raise robot.links[tops[1]].element.error(
            f"{len(tops)} links have no parent ({names}{', ...' if len(tops) > 6 else ''}); "
            "a URDF has one root: join them by fixed or floating joints, or remove them"
        )
    reached = {link for link, _ in in_order(robot, tops[0])} if tops else set[str]()
    lost = next((name for name in robot.links if name not in reached), None)
    if lost is None:
        return tops[0]
    passed: dict[str, None] = {}
    while lost not in passed:  # every link above a lost one is lost too, so that this comes back
        passed[lost] = None
        lost = robot.above[lost].parent
    circle = [lost]
    while len(circle) == 1 or circle[-1] != lost:
        circle.append(robot.above[circle[-1]].parent)
    circle.reverse()
    shown = " -> ".join(circle[:8]) + (" -> ..." if len(circle) > 8 else "")
    raise robot.above[lost].element.error(
        f"the joints form a cycle ({shown}); remove one and close the loop with <loop_joint>"
    )


def in_order(robot: Robot, top: str) -> Iterator[tuple[str, Joint | None]]:
    """Links with the joint above each: parents first, branches in the order of the file."""
    stack: list[tuple[str, Joint | None]] = [(top, None)]
    while stack:
        link, joint = stack.pop()
        yield link, joint
        below = robot.children.get(link, ())
        stack.extend((child.child, child) for child in reversed(below))


def resolve_mimics(robot: Robot) -> dict[str, tuple[str, float, float]]:
    """For each joint that follows another: which, multiplier and offset.

    A joint that follows a fixed one, whose coordinate is zero, is locked at the offset.
    """
    ends: dict[str, tuple[str, float, float]] = {}
    followers: dict[str, tuple[str, float, float]] = {}
    for joint in robot.joints.values():
        if joint.mimic is None:
            continue
        source, multiplier, offset = _followed(robot, joint.name, ends)
        if robot.joints[source].hinge.nq == 1:
            followers[joint.name] = (source, multiplier, offset)
    for joint in robot.joints.values():
        if joint.mimic is not None and joint.name not in followers:
            source, _, offset = ends[joint.name]
            joint.hinge, joint.drive = Locked(joint.hinge, (offset,)), Drive()
            reason = f"joint '{joint.name}' follows the fixed joint '{source}': locked at {offset}"
            robot.reporter.note(joint.mimic.element, "approximate", reason, "motion")
    return followers


def _followed(
    robot: Robot, name: str, ends: dict[str, tuple[str, float, float]]
) -> tuple[str, float, float]:
    """The joint that a chain of mimics ends at, with the multiplier and offset from there."""
    chain: dict[str, Mimic] = {}
    source = name
    while source not in ends:
        joint = robot.joints[source]
        if joint.mimic is None:
            ends[source] = (source, 1.0, 0.0)
            break
        chain[source] = joint.mimic
        source = _source(robot, joint, joint.mimic)
        if source in chain:
            raise joint.mimic.element.error(
                f"joint '{joint.name}' follows itself by way of '{source}'; "
                "let one joint of the cycle move independently"
            )
    for follower, mimic in reversed(chain.items()):  # q = m (m' q'' + o') + o
        end, multiplier, offset = ends[mimic.joint]
        m, o = mimic.multiplier * multiplier, mimic.multiplier * offset + mimic.offset
        if not (abs(m) <= MAX_SIZE and abs(o) <= MAX_SIZE):
            raise mimic.element.error(f"along the chain, q = {m:g} q + {o:g}: too large")
        ends[follower] = (end, m, o)
    return ends[name]


def _source(robot: Robot, joint: Joint, mimic: Mimic) -> str:
    source = robot.joints.get(mimic.joint)
    if source is None:
        reason = unknown_name("joint", mimic.joint, robot.joints, owner="the file")
        raise mimic.element.error(f"joint '{joint.name}' cannot follow it: {reason}")
    if source.hinge.nq > 1:
        raise mimic.element.error(
            f"joint '{source.name}' has {source.hinge.nq} coordinates; "
            "only a joint with one can be followed"
        )
    return source.name
