"""How does a mechanism become a URDF?

Bodies become links whose frame is the body's frame, hinges become joints, nodes become links on
fixed joints with their own inertia and shapes. Numbers are written so that they read back the
same. What URDF cannot express is written in the extensions that `read` knows, as a series
of simpler joints (`split`), or not at all; each of these is reported.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from linkwise.errors import ModelError
from linkwise.io.report import Reporter
from linkwise.io.urdf.gazebo import friction_elements, report_contact_laws
from linkwise.io.urdf.joint import (
    differential_element,
    dynamics_elements,
    is_plain,
    limit_element,
    reductions,
    rotor_element,
)
from linkwise.io.urdf.link import link_element, write_pose
from linkwise.io.urdf.loop import write_coupling, write_loop
from linkwise.io.urdf.split import split_hinge
from linkwise.io.xml import Element
from linkwise.io.xml_write import digits, make, row, xml_text
from linkwise.model.actuator import Actuator
from linkwise.model.body import WORLD, Body, Loop, Node
from linkwise.model.drive import Drive
from linkwise.model.hinges import Free, Hinge, Locked, Pin, Planar, Prismatic, Spherical
from linkwise.model.hinges.modified import Reversed
from linkwise.model.mechanism import GRAVITY, Mechanism
from linkwise.model.state import split_coordinate
from linkwise.spatial.pose import Pose


@dataclass(slots=True)
class _Draft:
    """The file while it grows."""

    mech: Mechanism
    reporter: Reporter
    root_link: str
    links: set[str]
    joints: set[str]
    names: dict[tuple[str, int], str] = field(default_factory=lambda: {})
    mimics: dict[str, tuple[str, float, float]] = field(default_factory=lambda: {})
    out: list[Element] = field(default_factory=lambda: [])
    after: list[Element] = field(default_factory=lambda: [])
    motors: dict[str, str] = field(default_factory=lambda: {})

    def link_of(self, body: str) -> str:
        return self.root_link if body == WORLD else body


def write_urdf(mech: Mechanism, reporter: Reporter) -> str:
    """Text of a URDF file that `load` reads back as the same mechanism.

    Raises:
        ModelError: A hinge that URDF cannot express; says which, and what to do.
    """
    skipped = _frames_of_loops(mech)
    root_node = _root_node(mech, skipped)
    draft = _Draft(
        mech,
        reporter,
        WORLD if root_node is None else root_node.name,
        {WORLD, *(body.name for body in mech.bodies), *(node.name for node in mech.nodes)},
        {body.hinge_name for body in mech.bodies},
    )
    _name_joints(draft)
    _write_couplings(draft)
    _name_motors(draft)
    if not np.array_equal(np.asarray(mech.gravity), GRAVITY):
        reporter.note("gravity", "ignored", "a URDF has no gravity; set it after loading", "motion")
    if root_node is None:
        draft.out.append(make("link", {"name": WORLD}))
    else:
        draft.out.append(
            link_element(root_node.name, root_node.inertia, root_node.geometry, reporter)
        )
    for body in mech.bodies:
        _write_body(draft, body)
    for node in mech.nodes:
        if node.name not in skipped and node is not root_node:
            _write_node(draft, node)
    for loop in mech.loops:
        _write_loop(draft, loop, skipped)
    for motor in draft.motors.values():
        reporter.note(f"actuator '{motor}'", "ignored", "its joint is not written", "motion")
    if mech.gravity_compensation:
        reason = "a URDF has no gravity compensation"
        reporter.note("gravity compensation", "ignored", reason, "motion")
    children = draft.out + draft.after + friction_elements(mech, reporter)
    report_contact_laws(mech, reporter)
    robot = make("robot", {"name": mech.name, **_namespaces(children)}, *children)
    return xml_text(robot, comment="Written by Linkwise.")


def _name_motors(draft: _Draft) -> None:
    """Motors by joint, and differentials; other actuators are reported."""
    rest = list(draft.mech.actuators)
    while rest:
        one = rest.pop(0)
        joint = one.joints[0][0] if one.joints else ""
        if one == Actuator.motor(one.name, joint) and joint not in draft.motors:
            draft.motors[joint] = one.name
            continue
        pairs = ((other, reductions(one, other)) for other in rest)
        other, ratios = next(((x, y) for x, y in pairs if y is not None), (None, None))
        if other is not None and ratios is not None and _turn(draft.mech, one):
            rest.remove(other)
            draft.after.append(differential_element(one, other, ratios))
            continue
        reason = (
            "a URDF has motors of single joints, one of each, without gear and bounds, and pairs "
            "of motors that turn two joints by a differential"
        )
        draft.reporter.note(f"actuator '{one.name}'", "ignored", reason, "motion")


def _turn(mech: Mechanism, motor: Actuator) -> bool:
    """Whether the joints of a motor are written as joints with one degree of freedom."""
    hinges = {body.hinge_name: body.hinge for body in mech.bodies}
    return all(isinstance(hinges.get(name), Pin | Prismatic) for name, _ in motor.joints)


def _root_node(mech: Mechanism, skipped: Collection[str]) -> Node | None:
    """The node that was the root link of a file, if there is one: on the ground, unmoved."""
    for node in mech.nodes:
        if node.body == WORLD and node.kind == "link" and node.name not in skipped:
            if node.pose.is_identity:
                return node
    return None


def _frames_of_loops(mech: Mechanism) -> set[str]:
    """Nodes that a loop element implies: bare frames called LOOP.a and LOOP.b."""
    ends = {f"{loop.name}.{end}" for loop in mech.loops for end in "ab"}
    return {
        node.name
        for node in mech.nodes
        if node.name in ends and node.inertia is None and not node.geometry and node.kind == "frame"
    }


def _write_body(draft: _Draft, body: Body) -> None:
    parent = draft.link_of(body.parent)
    hinge, at_hinge = body.hinge, body.outboard.is_identity
    if isinstance(hinge, Locked):
        pose = body.inboard @ hinge.pose(hinge.neutral()) @ body.outboard
        _add_joint(draft, body.hinge_name, "fixed", parent, body.name, pose)
        if hinge.of is not None:
            reason = f"fixed where it is held; that it is a {hinge.of.kind} hinge is not written"
            draft.reporter.note(f"hinge '{body.hinge_name}'", "approximate", reason, "other")
    elif isinstance(hinge, Pin | Prismatic | Planar | Free | Spherical):
        link = body.name if at_hinge else _fresh(f"{body.name}__hinge", draft.links)
        _write_simple(draft, body, hinge, parent, link)
        if not at_hinge:
            _write_outboard(draft, link, body, body.outboard)
    else:
        _write_row(draft, body, parent)
    draft.out.append(link_element(body.name, body.inertia, body.geometry, draft.reporter))


def _write_outboard(draft: _Draft, link: str, body: Body, outboard: Pose) -> None:
    """A bare link at the hinge, and the body fixed to it away from the hinge."""
    draft.out.append(make("link", {"name": link}))
    name = _fresh(f"{body.name}__outboard", draft.joints)
    _add_joint(draft, name, "fixed", link, body.name, outboard, make("linkwise:outboard"))


def _write_simple(draft: _Draft, body: Body, hinge: Hinge, parent: str, link: str) -> None:
    """A hinge that URDF has a joint for."""
    name, drive = body.hinge_name, body.drive
    if isinstance(hinge, Free | Planar | Spherical):
        if not is_plain(drive):
            reason = f"limits, damping or armature of a {hinge.kind} hinge cannot be written"
            draft.reporter.note(f"hinge '{name}'", "ignored", reason, "motion")
        axis = make("axis", {"xyz": row(hinge.normal)}) if isinstance(hinge, Planar) else None
        kind = "planar" if isinstance(hinge, Planar) else "floating"
        if isinstance(hinge, Spherical):
            kind, reason = "spherical", "written as a joint of type 'spherical', which is not in "
            reason += "the specification and which only some readers know"
            draft.reporter.note(f"hinge '{name}'", "approximate", reason, "motion")
        _add_joint(draft, name, kind, parent, link, body.inboard, axis)
        return
    assert isinstance(hinge, Pin | Prismatic)
    kind = "revolute" if isinstance(hinge, Pin) else "prismatic"
    _add_moving(draft, name, kind, parent, link, body.inboard, hinge.axis, drive, 0)


def _write_row(draft: _Draft, body: Body, parent: str) -> None:
    """A hinge that becomes a series of joints with massless links between them."""
    split = split_hinge(body.hinge)
    if split is None:
        base = body.hinge.hinge if isinstance(body.hinge, Reversed) else body.hinge
        raise ModelError(
            f"body '{body.name}' moves on a {body.hinge.describe()} hinge, which URDF cannot "
            f"express; {_other_way(base)}"
        )
    steps, outboard = split[0], split[1] @ body.outboard
    at_hinge = outboard.is_identity
    names: list[str] = []
    at = body.inboard
    for index, step in enumerate(steps):
        name = draft.names[body.hinge_name, step.dof]
        if step.travel is not None:
            name = _fresh(f"{name}_travel", draft.joints)
        last = index == len(steps) - 1
        link = body.name if last and at_hinge else _fresh(f"{body.name}__{index + 1}", draft.links)
        mimic = None if step.travel is None else (names[-1], step.travel, 0.0)
        drive = body.drive if step.travel is None else Drive()
        _add_moving(
            draft,
            name,
            step.kind,
            parent,
            link,
            at @ step.origin,
            step.axis,
            drive,
            step.dof,
            mimic,
        )
        names.append(name)
        parent, at = link, Pose.identity()
        if not last:
            draft.out.append(make("link", {"name": link}))
    if not at_hinge:
        _write_outboard(draft, parent, body, outboard)
    draft.reporter.note(
        f"hinge '{body.hinge_name}'",
        "approximate",
        f"a {body.hinge.kind} hinge is split into the joints {', '.join(names)} with massless "
        "links between: the motion is the same, the coordinates have these names",
        "other",
    )


def _name_joints(draft: _Draft) -> None:
    """Choose the joint that each coordinate of a split hinge is written as."""
    for body in draft.mech.bodies:
        if isinstance(body.hinge, Pin | Prismatic | Planar | Free | Spherical | Locked):
            continue
        for dof, coordinate in enumerate(body.hinge.coordinates[: body.hinge.nv]):
            name = body.hinge_name
            if body.hinge.nv > 1:
                name = _fresh(f"{body.hinge_name}__{coordinate.name}", draft.joints)
            draft.names[body.hinge_name, dof] = name


def _other_way(hinge: Hinge) -> str:
    if isinstance(hinge, Spherical):
        return "save it as MJCF, which has ball joints, or use a Gimbal hinge"
    return "use other hinges, or lock it with mech.lock([...]) before saving"


def _add_moving(
    draft: _Draft,
    name: str,
    kind: str,
    parent: str,
    child: str,
    pose: Pose,
    axis: object,
    drive: Drive,
    dof: int,
    mimic: tuple[str, float, float] | None = None,
) -> None:
    """A revolute or prismatic joint with the drive of one coordinate."""
    kind, limit = limit_element(kind, drive, dof)
    mimic = draft.mimics.get(name, mimic)
    follow = None
    if mimic is not None:
        source, multiplier, offset = mimic
        values = {"joint": source, "multiplier": digits(multiplier), "offset": digits(offset)}
        follow = make("mimic", values)
    direction = make("axis", {"xyz": row(np.asarray(axis, dtype=np.float64))})
    extras = dynamics_elements(name, drive, dof, draft.reporter)
    _add_joint(draft, name, kind, parent, child, pose, direction, limit, *extras, follow)
    rotor = rotor_element(name, drive, dof, draft.motors.pop(name, ""))
    if rotor is not None:
        draft.after.append(rotor)


def _add_joint(
    draft: _Draft,
    name: str,
    kind: str,
    parent: str,
    child: str,
    pose: Pose,
    *children: Element | None,
) -> None:
    origin = None if pose.is_identity else make("origin", write_pose(pose))
    ends = make("parent", {"link": parent}), make("child", {"link": child})
    draft.out.append(make("joint", {"name": name, "type": kind}, origin, *ends, *children))


def _write_node(draft: _Draft, node: Node) -> None:
    name = _fresh(f"{node.name}_fixed", draft.joints)
    _add_joint(draft, name, "fixed", draft.link_of(node.body), node.name, node.pose)
    draft.out.append(link_element(node.name, node.inertia, node.geometry, draft.reporter))


def _write_loop(draft: _Draft, loop: Loop, skipped: Collection[str]) -> None:
    name = loop.name
    ends: list[tuple[str, Pose]] = []
    for end in (loop.node_a, loop.node_b):
        if end in skipped:
            node = draft.mech.node(end)
            ends.append((draft.link_of(node.body), node.pose))
        else:
            ends.append((draft.link_of(end), Pose.identity()))
    hinge = loop.hinge
    if isinstance(hinge, Reversed):
        hinge, ends = hinge.hinge, ends[::-1]
    element = write_loop(name, hinge, (ends[0], ends[1]))
    if element is None:
        reason = f"a {hinge.kind} hinge has no file form"
        draft.reporter.note(f"loop '{name}'", "ignored", reason, "motion")
        return
    if hinge.nv == 1 and not is_plain(loop.drive):
        _, limit = limit_element("prismatic", loop.drive, 0)
        extras = dynamics_elements(name, loop.drive, 0, draft.reporter)
        element.children += [child for child in (limit, *extras) if child is not None]
        rotor = rotor_element(name, loop.drive, 0)  # a gear ratio; armature has a separate body
        if rotor is not None:
            draft.after.append(rotor)
    elif not is_plain(loop.drive):
        draft.reporter.note(f"loop '{name}'", "ignored", "its drive cannot be written", "motion")
    draft.after.append(element)
    reason = "written as <loop_joint>, which only some readers know"
    draft.reporter.note(f"loop '{name}'", "approximate", reason, "motion")


def _write_couplings(draft: _Draft) -> None:
    """Mimics for couplings that are c q + offset, the extension for others."""
    for coupling in draft.mech.couplings:
        terms = {_joint_of(draft, name): c for name, c in coupling.terms}
        dependent = _joint_of(draft, coupling.dependent)
        linear = all(not any(c[1:]) for c in terms.values())
        single = all(
            _is_single(draft.mech, name) for name in (coupling.dependent, *dict(coupling.terms))
        )
        if len(terms) == 1 and linear and single:
            ((source, c),) = terms.items()
            draft.mimics[dependent] = (source, c[0], coupling.offset)
            continue
        draft.after.append(write_coupling(coupling.name, dependent, terms, coupling.offset))
        reason = "more than a mimic: written as <linkwise:coupling>, which only Linkwise reads"
        draft.reporter.note(f"coupling '{coupling.name}'", "approximate", reason, "motion")


def _joint_of(draft: _Draft, key: str) -> str:
    """The name under which the coordinate `hinge` or `hinge[i]` is written."""
    name, index = split_coordinate(key, draft.mech.hinge_index)
    return draft.names.get((name, index or 0), key)


def _is_single(mech: Mechanism, key: str) -> bool:
    """Whether a coordinate is written as a separate joint."""
    name, _ = split_coordinate(key, mech.hinge_index)
    return not isinstance(mech.hinge(name).hinge, Planar | Free | Spherical)


def _namespaces(elements: list[Element]) -> dict[str, str]:
    """Declarations of the prefixes in use, for readers that insist on them."""
    known = {"drake": "https://drake.mit.edu/", "linkwise": "urn:linkwise"}
    used = {e.tag.partition(":")[0] for top in elements for e in top.walk() if ":" in e.tag}
    return {f"xmlns:{prefix}": uri for prefix, uri in known.items() if prefix in used}


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
