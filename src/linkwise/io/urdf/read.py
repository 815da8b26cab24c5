"""How does a URDF become a mechanism?

Links become bodies and joints become hinges, in the order of the file, parents before children.
The root link is fixed to the ground unless another base is requested. Elements that the mechanism
cannot hold are reported.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

from linkwise.errors import LinkwiseError, ModelError, ParseError, unknown_name
from linkwise.io.mesh_path import Roots
from linkwise.io.report import Driven, Reporter, report_drives
from linkwise.io.urdf.joint import Joint, is_differential, read_differential
from linkwise.io.urdf.link import Link, read_origin, read_pose
from linkwise.io.urdf.loop import TAGS, LoopEnd, read_coupling, read_loop
from linkwise.io.urdf.tree import Robot, in_order, read_robot, resolve_mimics, root_link
from linkwise.io.xml import Element, required
from linkwise.model.actuator import Actuator
from linkwise.model.body import WORLD
from linkwise.model.builder import Builder
from linkwise.model.hinges import Free, Hinge, Pin, Prismatic
from linkwise.model.mechanism import Mechanism
from linkwise.model.state import split_coordinate
from linkwise.spatial.pose import Pose

Base = Literal["auto", "fixed", "free"] | Hinge


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

    Raises:
        ParseError: The file does not describe a mechanism; says where, and what to do.
    """
    if not isinstance(base, Hinge) and base not in ("auto", "fixed", "free"):
        raise ModelError(f"base is {base!r}; allowed are 'auto', 'fixed', 'free' or a Hinge")
    file = os.fspath(path)
    robot = read_robot(root, file, reporter, roots)
    top = root_link(robot)
    name = root.attrib.get("name", "").strip()
    if not name:
        name = Path(file).stem
        reporter.note(root, "approximate", f"it has no name; '{name}' is used", "other")
    try:
        followers = resolve_mimics(robot)
        builder = Builder(name)
        places = _add_bodies(builder, robot, top, base)
        _add_frames(builder, robot, places)
        loops = _add_loops(builder, robot, places)
        _add_couplings(builder, robot, followers)
        _add_motors(builder, robot)
        _report_what_does_not_act(robot, loops)
        mechanism = builder.build(load_report=reporter.report())
        return mechanism if keep_fixed else mechanism.merge_locked()
    except ParseError:
        raise
    except LinkwiseError as problem:
        raise ParseError(str(problem), file=file, line=root.line) from None


def _add_bodies(
    builder: Builder, robot: Robot, top: str, base: Base
) -> dict[str, tuple[str, Pose]]:
    """Add all links; returns for each the body it belongs to and its pose there."""
    places: dict[str, tuple[str, Pose]] = {}
    waiting: dict[str, Joint] = {}  # moving joints whose body frame follows on a fixed one
    for name, joint in in_order(robot, top):
        link = robot.links[name]
        if joint is None:
            places[name] = _add_root(builder, robot, link, base)
            continue
        if _is_hinge_frame(robot, joint):
            waiting[name] = joint
            continue
        body, above, outboard = _body_name(robot, link), joint, Pose.identity()
        if joint.parent in waiting:
            above, outboard = waiting[joint.parent], joint.inboard
            places[joint.parent] = (body, outboard.inverse())
        parent, offset = places[above.parent]
        builder.body(
            body,
            parent,
            above.hinge,
            hinge_name=above.name,
            inboard=offset @ above.inboard,
            outboard=outboard,
            inertia=link.inertia,
            drive=above.drive,
            geometry=link.geometry,
        )
        places[name] = (body, Pose.identity())
    return places


def _is_hinge_frame(robot: Robot, joint: Joint) -> bool:
    """Whether the child of a joint only holds the moving side of a hinge.

    `save` writes such a link where the frame of a body is not at its hinge, and the body fixed to
    it by a joint marked `<linkwise:outboard/>`.
    """
    below, link = robot.children.get(joint.child, []), robot.links[joint.child]
    bare = link.inertia is None and not link.geometry
    return joint.hinge.nv > 0 and bare and len(below) == 1 and below[0].closes_frame


def _add_root(builder: Builder, robot: Robot, link: Link, base: Base) -> tuple[str, Pose]:
    """The root link, on the ground or on the requested hinge."""
    if base in ("auto", "fixed"):
        _add_ground(builder, robot, link)
        return WORLD, Pose.identity()
    body = _body_name(robot, link)
    builder.body(
        body,
        WORLD,
        base if isinstance(base, Hinge) else Free(),
        hinge_name=_fresh("root_joint", robot.joints),
        inertia=link.inertia,
        geometry=link.geometry,
    )
    return body, Pose.identity()


def _add_ground(builder: Builder, robot: Robot, link: Link) -> None:
    bare = link.inertia is None and not link.geometry
    if link.name == WORLD and bare:
        return  # the file's name for the ground
    builder.node(
        _body_name(robot, link),
        WORLD,
        inertia=link.inertia,
        kind="link",
        geometry=link.geometry,
    )


def _body_name(robot: Robot, link: Link) -> str:
    if link.name != WORLD:
        return link.name
    name = _fresh("world_link", robot.links)
    reason = f"'{WORLD}' means the ground here; this link is called '{name}'"
    robot.reporter.note(link.element, "approximate", reason, "other")
    return name


def _add_frames(builder: Builder, robot: Robot, places: dict[str, tuple[str, Pose]]) -> None:
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
        _add_frame(builder, robot, required(element, "name"), end, places)


def _report_what_does_not_act(robot: Robot, loops: list[Driven]) -> None:
    """Friction, limits and contacts, which are data here and forces in a simulator."""
    joints = [(j.element, j.name, j.hinge, j.drive) for j in robot.joints.values()]
    report_drives(joints + loops, robot.reporter)
    shapes = [x for link in robot.links.values() for x in link.element.findall("collision")]
    if shapes and any(joint.hinge.nv for joint in robot.joints.values()):
        some = "1 collision shape" if len(shapes) == 1 else f"{len(shapes)} collision shapes"
        reason = (
            f"contacts of {some} do not act: links pass through each other and through the "
            "ground, but for contacts given to lw.rollout or lw.simulate"
        )
        robot.reporter.note(shapes[0], "kept", reason, "motion")


def _add_loops(builder: Builder, robot: Robot, places: dict[str, tuple[str, Pose]]) -> list[Driven]:
    """All loops; returns what drives each."""
    driven = list[Driven]()
    elements = [element for element in robot.root.children if element.tag in TAGS]
    for index, element in enumerate(elements):
        loop = read_loop(element, index + 1, robot.reporter, robot.rotors)
        for letter, end in zip("ab", loop.ends, strict=True):
            _add_frame(builder, robot, f"{loop.name}.{letter}", end, places)
        builder.loop(loop.name, f"{loop.name}.a", f"{loop.name}.b", loop.hinge, drive=loop.drive)
        driven.append((element, loop.name, loop.hinge, loop.drive))
    return driven


def _add_frame(
    builder: Builder, robot: Robot, name: str, end: LoopEnd, places: dict[str, tuple[str, Pose]]
) -> None:
    """A node, under a name that no link and no other frame has."""
    if name in robot.links or name == WORLD:
        raise end.element.error(f"a link '{name}' exists; frames and links have to differ")
    if name in robot.frames:
        line = robot.frames[name].line
        raise end.element.error(f"a frame '{name}' is in line {line}; names have to differ")
    robot.frames[name] = end.element
    body, pose = _placed(end, robot, places)
    builder.node(name, body, pose)


def _placed(end: LoopEnd, robot: Robot, places: dict[str, tuple[str, Pose]]) -> tuple[str, Pose]:
    if end.link not in places:
        raise end.element.error(str(unknown_name("link", end.link, robot.links, owner="the file")))
    body, offset = places[end.link]
    return body, offset @ end.pose


def _add_couplings(
    builder: Builder, robot: Robot, followers: dict[str, tuple[str, float, float]]
) -> None:
    for name, (source, multiplier, offset) in followers.items():
        builder.couple(f"{name}_mimic", name, {source: multiplier}, offset=offset)
    elements = robot.root.findall("linkwise:coupling")
    for index, element in enumerate(elements):
        coupling = read_coupling(element, index + 1, robot.reporter)
        for name in (coupling.dependent, *coupling.terms):
            joint_name, _ = split_coordinate(name, robot.joints)
            if joint_name not in robot.joints:
                reason = unknown_name("joint", joint_name, robot.joints, owner="the file")
                raise element.error(str(reason))
        builder.couple(coupling.name, coupling.dependent, coupling.terms, offset=coupling.offset)


def _add_motors(builder: Builder, robot: Robot) -> None:
    """A motor for each transmission, whose command is the force of its joint, and differentials."""
    motors = list[tuple[Actuator, str, Element]]()
    for name, rotor in robot.rotors.items():
        moves = name in robot.joints and isinstance(robot.joints[name].hinge, Pin | Prismatic)
        if rotor.motor and rotor.element is not None and moves:
            motors.append((Actuator.motor(rotor.motor, name), name, rotor.element))
    for element in robot.root.findall("transmission"):
        if is_differential(element):
            pair = read_differential(element, robot.joints, robot.reporter)
            motors += [(motor, motor.joints[0][0], element) for motor in pair]
    taken = set[str]()
    for motor, joint, element in motors:
        if motor.name in taken:
            name = f"{motor.name}:{joint}"
            reason = f"its name is used twice; the motor is called '{name}'"
            robot.reporter.note(element, "approximate", reason, "control")
            motor = replace(motor, name=name)
        taken.add(motor.name)
        builder.actuator(motor)
    if motors:
        count = "1 actuator acts" if len(motors) == 1 else f"{len(motors)} actuators act"
        reason = f"{count} in lw.rollout and lw.simulate with controls, and in lw.Simulator"
        robot.reporter.note(motors[0][2], "kept", reason, "motion")


def _fresh(name: str, taken: dict[str, Link] | dict[str, Joint]) -> str:
    while name in taken:
        name += "_"
    return name
