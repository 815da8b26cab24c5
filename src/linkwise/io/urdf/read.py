"""How does a URDF become a mechanism?

Links become bodies and joints become hinges, in the order of the file, parents before children.
The root link stands on the ground unless another base is asked for. What the mechanism has no
place for is reported, element by element.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from linkwise.model.builder import Builder

from linkwise.errors import LinkwiseError, ModelError, ParseError, unknown_name
from linkwise.io.mesh_path import Roots
from linkwise.io.report import Affects, Reporter
from linkwise.io.urdf.joint import Joint, Mimic, read_joint, read_transmissions
from linkwise.io.urdf.link import (
    Link,
    MeshCheck,
    read_link,
    read_materials,
    read_origin,
    read_pose,
    report_unknown,
)
from linkwise.io.urdf.loop import TAGS, LoopEnd, read_coupling, read_loop
from linkwise.io.xml import Element, required, shorten
from linkwise.model.body import WORLD
from linkwise.model.hinges import Free, Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose

Base = Literal["auto", "fixed", "free"] | Hinge

_USED: Final = {"link", "joint", "material", "transmission", "fixed_frame", "frame"}
_GAZEBO_AFFECTS: Final[dict[str, Affects]] = {
    **dict.fromkeys(("plugin", "sensor", "provideFeedback", "provide_feedback"), "control"),
    **dict.fromkeys(("material", "visual"), "appearance"),
    **dict.fromkeys(("mu", "mu1", "mu2", "kp", "kd", "minDepth", "maxVel", "fdir1"), "contact"),
    **dict.fromkeys(("selfCollide", "self_collide", "collision", "maxContacts"), "contact"),
    **dict.fromkeys(("springStiffness", "springReference", "implicitSpringDamper"), "motion"),
    **dict.fromkeys(("turnGravityOff", "gravity", "dampingFactor", "joint", "static"), "motion"),
}


@dataclass(slots=True)
class _Robot:
    """The links and joints of a file, before they are put in order."""

    root: Element
    links: dict[str, Link]
    joints: dict[str, Joint]
    reporter: Reporter
    children: dict[str, list[Joint]] = field(default_factory=lambda: {})
    above: dict[str, Joint] = field(default_factory=lambda: {})


def read_urdf(
    root: Element,
    path: str | os.PathLike[str],
    reporter: Reporter,
    *,
    base: Base = "auto",
    keep_fixed: bool = False,
    roots: Roots = (),
) -> Mechanism:
    """The mechanism of a `<robot>` element.

    Args:
        root: The element.
        path: Its file, for mesh references and messages.
        reporter: Collects what is approximated or ignored.
        base: "auto" or "fixed" puts the root link on the ground; "free" gives it six freedoms;
            a hinge joins it to the ground by that hinge.
        keep_fixed: Keep links on fixed joints as bodies of their own.
        roots: Folders in which meshes may lie, besides the model's own.

    Raises:
        ParseError: The file does not describe a mechanism; says where, and what to do.
    """
    if not isinstance(base, Hinge) and base not in ("auto", "fixed", "free"):
        raise ModelError(f"base={base!r} was asked; allowed are 'auto', 'fixed', 'free' or a Hinge")
    file = os.fspath(path)
    robot = _read_elements(root, file, reporter, roots)
    top = _root_link(robot)
    name = root.attrib.get("name", "").strip()
    if not name:
        name = Path(file).stem
        reporter.note(root, "approximate", f"it has no name; '{name}' is used", "other")
    try:
        builder = Builder(name)
        places = _add_bodies(builder, robot, top, base)
        _add_frames(builder, robot, places)
        _add_loops(builder, robot, places)
        _add_couplings(builder, robot)
        mechanism = builder.build(load_report=reporter.report())
        return mechanism if keep_fixed else mechanism.merge_locked()
    except ParseError:
        raise
    except LinkwiseError as problem:
        raise ParseError(str(problem), file=file, line=root.line) from None


def _read_elements(root: Element, file: str, reporter: Reporter, roots: Roots) -> _Robot:
    for element in root.children:
        if element.tag.startswith("xacro:"):
            raise element.error("xacro macros are not expanded here; run xacro on the file first")
    _report_rest(root, reporter)
    materials = read_materials(root, reporter)
    meshes = MeshCheck(file, roots, reporter, set())
    links: dict[str, Link] = {}
    for element in root.findall("link"):
        link = read_link(element, materials, meshes)
        _no_twin(link.name, element, links, "link")
        links[link.name] = link
    if not links:
        raise root.error("it has no <link>; a robot has at least one")
    elements = root.findall("joint")
    names = {element.attrib.get("name", "") for element in elements}
    rotors = read_transmissions(root, names, reporter)
    joints: dict[str, Joint] = {}
    robot = _Robot(root, links, joints, reporter)
    for element in elements:
        joint = read_joint(element, rotors, reporter)
        _no_twin(joint.name, element, joints, "joint")
        _connect(robot, joint)
        joints[joint.name] = joint
    return robot


def _report_rest(root: Element, reporter: Reporter) -> None:
    report_unknown(root, {"name", "version"}, set(), reporter, {c.tag for c in root.children})
    for element in root.children:
        if element.tag == "gazebo":
            tags = sorted({child.tag for child in element.children})
            kinds = {_GAZEBO_AFFECTS.get(tag, "other") for tag in tags}
            order: tuple[Affects, ...] = ("motion", "control", "contact", "appearance", "other")
            about = next((kind for kind in order if kind in kinds), "other")
            text = shorten(", ".join(tags)) or "nothing"
            reporter.note(element, "ignored", f"for Gazebo only: {text}", about)
        elif element.tag in ("ros2_control", "sensor"):
            reporter.note(element, "ignored", "not part of the mechanism", "control")
        elif element.tag not in (*_USED, *TAGS, "linkwise:coupling"):
            reporter.note(element, "ignored", "this element is not known", "other")


def _no_twin(
    name: str, element: Element, known: dict[str, Link] | dict[str, Joint], kind: str
) -> None:
    if name in known:
        line = known[name].element.line
        raise element.error(f"a {kind} of this name stands in line {line}; names have to differ")


def _connect(robot: _Robot, joint: Joint) -> None:
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
            f"{other.element.line}; a tree is wanted: close the loop with <loop_joint> instead"
        )
    robot.above[joint.child] = joint
    robot.children.setdefault(joint.parent, []).append(joint)


def _root_link(robot: _Robot) -> str:
    """The one link that is no child, after checking that all others hang below it."""
    tops = [name for name in robot.links if name not in robot.above]
    if len(tops) > 1:
        names = ", ".join(f"'{shorten(name)}'" for name in tops[:6])
        raise robot.links[tops[1]].element.error(
            f"{len(tops)} links have no parent ({names}{', ...' if len(tops) > 6 else ''}); "
            "one root is wanted: join them by fixed or floating joints, or remove them"
        )
    reached = {link for link, _ in _in_order(robot, tops[0])} if tops else set[str]()
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
        f"the joints go round in a circle ({shown}); take one out and close it with <loop_joint>"
    )


def _in_order(robot: _Robot, top: str) -> Iterable[tuple[str, Joint | None]]:
    """Links with the joint above each: parents first, branches in the order of the file."""
    stack: list[tuple[str, Joint | None]] = [(top, None)]
    while stack:
        link, joint = stack.pop()
        yield link, joint
        below = robot.children.get(link, ())
        stack.extend((child.child, child) for child in reversed(below))


def _add_bodies(
    builder: Builder, robot: _Robot, top: str, base: Base
) -> dict[str, tuple[str, Pose]]:
    """Add all links; returns for each the body it belongs to and its pose there."""
    places: dict[str, tuple[str, Pose]] = {}
    waiting: dict[str, Joint] = {}  # moving joints whose body frame follows on a fixed one
    for name, joint in _in_order(robot, top):
        link = robot.links[name]
        inertia = SpatialInertia.zero() if link.inertia is None else link.inertia
        if joint is None and base in ("auto", "fixed"):
            _add_ground(builder, robot, link)
            places[name] = (WORLD, Pose.identity())
            continue
        body = _body_name(robot, link)
        outboard, hinge_above, hinge_name = Pose.identity(), joint, None
        if joint is None:
            hinge = base if isinstance(base, Hinge) else Free()
            hinge_name = _fresh("root_joint", robot.joints)
            builder.body(
                body,
                WORLD,
                hinge,
                hinge_name=hinge_name,
                inertia=inertia,
                geometry=link.geometry,
            )
            places[name] = (body, Pose.identity())
            continue
        if _is_hinge_frame(robot, name):
            waiting[name] = joint
            continue
        if joint.parent in waiting:
            hinge_above, outboard = waiting[joint.parent], joint.inboard
            places[joint.parent] = (body, outboard.inverse())
        assert hinge_above is not None
        parent, offset = places[hinge_above.parent]
        builder.body(
            body,
            parent,
            hinge_above.hinge,
            hinge_name=hinge_above.name,
            inboard=offset @ hinge_above.inboard,
            outboard=outboard,
            inertia=inertia,
            drive=hinge_above.drive,
            geometry=link.geometry,
        )
        places[name] = (body, Pose.identity())
    return places


def _is_hinge_frame(robot: _Robot, name: str) -> bool:
    """Whether a link only holds the moving side of a hinge, away from its body's frame.

    `save` writes such a link, with a joint marked `<linkwise:outboard/>`, where the frame of a
    body is not at its hinge.
    """
    below, link = robot.children.get(name, []), robot.links[name]
    bare = link.inertia is None and not link.geometry
    return bare and len(below) == 1 and below[0].closes_frame


def _add_ground(builder: Builder, robot: _Robot, link: Link) -> None:
    bare = link.inertia is None and not link.geometry
    if link.name == WORLD and bare:
        return  # the file's own word for the ground
    builder.node(
        _body_name(robot, link),
        WORLD,
        inertia=link.inertia,
        kind="link",
        geometry=link.geometry,
    )


def _body_name(robot: _Robot, link: Link) -> str:
    if link.name != WORLD:
        return link.name
    name = _fresh("world_link", robot.links)
    reason = f"'{WORLD}' means the ground here; this link is called '{name}'"
    robot.reporter.note(link.element, "approximate", reason, "other")
    return name


def _add_frames(builder: Builder, robot: _Robot, places: dict[str, tuple[str, Pose]]) -> None:
    """`<fixed_frame>` (Isaac Sim) and `<frame>` (Drake): named frames that are no links."""
    for element in robot.root.children:
        if element.tag == "fixed_frame":
            parent = element.find("parent")
            if parent is None:
                raise element.error('<parent> is missing; write <parent link="..."/>')
            pose = read_origin(element, robot.reporter)
            end = LoopEnd(required(parent, "link"), pose, element)
        elif element.tag == "frame":
            pose = read_pose(element, robot.reporter, ("name", "link"))
            end = LoopEnd(required(element, "link"), pose, element)
        else:
            continue
        name = required(element, "name")
        if name in robot.links:
            raise element.error("a link of this name exists; frames and links have to differ")
        body, pose = _placed(end, robot, places)
        builder.node(name, body, pose)


def _add_loops(builder: Builder, robot: _Robot, places: dict[str, tuple[str, Pose]]) -> None:
    elements = [element for element in robot.root.children if element.tag in TAGS]
    for index, element in enumerate(elements):
        loop = read_loop(element, index + 1, robot.reporter)
        for letter, end in zip("ab", loop.ends, strict=True):
            body, pose = _placed(end, robot, places)
            builder.node(f"{loop.name}/{letter}", body, pose)
        builder.loop(loop.name, f"{loop.name}/a", f"{loop.name}/b", loop.hinge, drive=loop.drive)


def _placed(end: LoopEnd, robot: _Robot, places: dict[str, tuple[str, Pose]]) -> tuple[str, Pose]:
    if end.link not in places:
        raise end.element.error(str(unknown_name("link", end.link, robot.links, owner="the file")))
    body, offset = places[end.link]
    return body, offset @ end.pose


def _add_couplings(builder: Builder, robot: _Robot) -> None:
    found: dict[str, tuple[str, float, float]] = {}
    for joint in robot.joints.values():
        if joint.mimic is not None:
            source, multiplier, offset = _followed(robot, joint.name, found)
            builder.couple(f"{joint.name}_mimic", joint.name, {source: multiplier}, offset)
    elements = robot.root.findall("linkwise:coupling")
    for index, element in enumerate(elements):
        coupling = read_coupling(element, index + 1, robot.reporter)
        for name in (coupling.dependent, *coupling.terms):
            joint_name = name.partition("[")[0]
            if joint_name not in robot.joints:
                reason = unknown_name("joint", joint_name, robot.joints, owner="the file")
                raise element.error(str(reason))
        builder.couple(coupling.name, coupling.dependent, dict(coupling.terms), coupling.offset)


def _followed(
    robot: _Robot, name: str, found: dict[str, tuple[str, float, float]]
) -> tuple[str, float, float]:
    """The joint that a chain of mimics ends at, with the multiplier and offset from there."""
    chain: dict[str, Mimic] = {}
    source = name
    while source not in found:
        joint = robot.joints[source]
        if joint.mimic is None:
            found[source] = (source, 1.0, 0.0)
            break
        chain[source] = joint.mimic
        source = _source(robot, joint, joint.mimic)
        if source in chain:
            raise joint.mimic.element.error(
                f"joint '{joint.name}' follows itself by way of '{source}'; "
                "let one joint of the circle move by itself"
            )
    for follower, mimic in reversed(chain.items()):  # q = m (m' q'' + o') + o
        end, multiplier, offset = found[mimic.joint]
        m, o = mimic.multiplier * multiplier, mimic.multiplier * offset + mimic.offset
        if not (math.isfinite(m) and math.isfinite(o)):
            raise mimic.element.error("the multipliers along the chain exceed the range of numbers")
        found[follower] = (end, m, o)
    return found[name]


def _source(robot: _Robot, joint: Joint, mimic: Mimic) -> str:
    source = robot.joints.get(mimic.joint)
    if source is None:
        reason = unknown_name("joint", mimic.joint, robot.joints, owner="the file")
        raise mimic.element.error(f"joint '{joint.name}' cannot follow it: {reason}")
    if source.hinge.nq != 1:
        raise mimic.element.error(
            f"joint '{source.name}' has {source.hinge.nq} coordinates; "
            "only a joint with one can be followed"
        )
    return source.name


def _fresh(name: str, taken: dict[str, Link] | dict[str, Joint]) -> str:
    while name in taken:
        name += "_"
    return name
