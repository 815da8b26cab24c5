"""How does a URDF express loop closures and couplings, which its specification lacks?

Loops are written in the form that Drake and Isaac Sim gave to the tag `loop_joint`, with one
frame on either link and the axes in the first frame:

    <loop_joint name="closure" type="revolute">
      <link1 link="rocker" xyz="0 0 1" rpy="0 0 0"/>
      <link2 link="coupler" xyz="2 0 0" rpy="0 0 0"/>
      <axis xyz="0 1 0"/>
    </loop_joint>

The pose of frame 2 in frame 1 is any that a joint of that type allows. Types, with what they
take: fixed, revolute (axis), prismatic (axis), cylindrical (axis), planar (axis, the normal),
helical (axis, and `pitch` in m/rad), universal (two axes), gimbal (three axes), spherical,
translation, floating, rolling_ball (`radius`), screws (`<screw value>` of six numbers each),
soft_finger (axis: the normal, fixed in the second frame), point_on_plane (axis: the normal, fixed
in the first; and `height`).
`<limit>`, `<dynamics>` and `<linkwise:spring>` are as in a joint, and a `<transmission>` may name
it: a hinge with a rotor then gets a separate link (see `Builder.loop`).

Read as well: `<constraint>` as proposed for urdfdom (pull request 264), with parent, parent_origin,
parent_axis and the same for the child; and `<drake:ball_constraint>`.

A coupling that is more than a mimic is written as

    <linkwise:coupling name="differential" dependent="wrist" offset="0.1">
      <term joint="left" coefficients="0.5"/>  <term joint="right" coefficients="0.5 0.01"/>
    </linkwise:coupling>

and means q(dependent) = offset + Σ (c₁ q + c₂ q² + ...) over the terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from linkwise.errors import LinkwiseError
from linkwise.io.report import Reporter
from linkwise.io.urdf.joint import Rotor, read_axis, read_drive
from linkwise.io.urdf.link import read_pose, report_unknown, write_pose
from linkwise.io.xml import Element, choice, number, numbers, required
from linkwise.io.xml_write import digits, make, row
from linkwise.model.drive import Drive
from linkwise.model.hinges import (
    Cylindrical,
    Free,
    Gimbal,
    Helical,
    Hinge,
    Locked,
    Pin,
    Planar,
    PointOnPlane,
    Prismatic,
    RollingBall,
    Screws,
    SoftFinger,
    Spherical,
    Translation,
    Universal,
)
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import aligning

TAGS: Final = ("loop_joint", "constraint", "drake:ball_constraint")
"""Elements that close a loop."""

_AXES: Final = {"universal": 2, "gimbal": 3} | dict.fromkeys(
    (
        *("revolute", "continuous", "prismatic", "cylindrical", "planar", "helical"),
        *("soft_finger", "point_on_plane"),
    ),
    1,
)
_TYPES: Final = (*_AXES, "fixed", "spherical", "translation", "floating", "rolling_ball", "screws")


@dataclass(slots=True)
class LoopEnd:
    """A frame fixed to a link."""

    link: str
    pose: Pose
    element: Element


@dataclass(slots=True)
class LoopElement:
    """One loop as read."""

    name: str
    element: Element
    ends: tuple[LoopEnd, LoopEnd]
    hinge: Hinge
    drive: Drive


@dataclass(slots=True)
class CouplingElement:
    """One coupling as read; a mimic that is written out."""

    name: str
    element: Element
    dependent: str
    terms: dict[str, tuple[float, ...]]
    offset: float


def read_loop(
    element: Element, number_in_file: int, reporter: Reporter, rotors: Mapping[str, Rotor]
) -> LoopElement:
    """Any element of `TAGS`; `rotors` are those of the file's transmissions, by name."""
    name = element.attrib.get("name", "").strip() or f"loop_{number_in_file}"
    if element.tag == "drake:ball_constraint":
        return LoopElement(name, element, _ball_ends(element), Spherical(), Drive())
    kind = choice(element, "type", _TYPES)
    if element.tag == "constraint":
        ends, axes = _constraint_ends(element, kind, reporter)
    else:
        many = {"link1", "link2", "axis", "screw"}
        once = {"limit", "dynamics", "linkwise:spring"}
        known = {"name", "type", "pitch", "radius", "height"}
        report_unknown(element, known, once, reporter, many, affects="motion")
        links = [child for child in element.children if child.tag in ("link1", "link2")]
        if len(links) != 2:
            raise element.error(f"{len(links)} links are given; write one <link1> and one <link2>")
        first, second = (
            LoopEnd(required(child, "link"), read_pose(child, reporter, ("link",)), child)
            for child in links
        )
        ends, axes = (first, second), [read_axis(axis) for axis in element.findall("axis")]
    hinge = _read_hinge(element, kind, axes)
    drive = read_drive(element, hinge, f"{kind} loop", reporter, rotors.get(name))
    if hinge.nv != 1 and name in rotors:
        reason = f"the rotor of its transmission is not read for a {kind} loop"
        reporter.note(element, "ignored", reason, "motion")
    return LoopElement(name, element, ends, hinge, drive)


def write_loop(
    name: str, hinge: Hinge, ends: tuple[tuple[str, Pose], tuple[str, Pose]]
) -> Element | None:
    """A `<loop_joint>`, or None for a hinge that has no file form (a custom one)."""
    if isinstance(hinge, Locked) and hinge.of is not None:
        held = hinge.pose(hinge.neutral())  # a weld, at where the hinge is held
        ends = ((ends[0][0], ends[0][1] @ held), ends[1])
        hinge = Locked()
    form = _written_hinge(hinge)
    if form is None:
        return None
    kind, extra, children = form
    first, second = (
        make(tag, {"link": link, **write_pose(pose)})
        for tag, (link, pose) in zip(("link1", "link2"), ends, strict=True)
    )
    return make("loop_joint", {"name": name, "type": kind, **extra}, first, second, *children)


def read_coupling(element: Element, number_in_file: int, reporter: Reporter) -> CouplingElement:
    """A `<linkwise:coupling>`."""
    known = {"name", "dependent", "offset"}
    report_unknown(element, known, set(), reporter, {"term"}, affects="motion")
    terms: dict[str, tuple[float, ...]] = {}
    for term in element.findall("term"):
        report_unknown(term, {"joint", "coefficients"}, set(), reporter, affects="motion")
        joint = required(term, "joint")
        if joint in terms:
            raise term.error(f"joint '{joint}' has a term already; add the coefficients up")
        terms[joint] = tuple(numbers(term, "coefficients", (1, 16)).tolist())
    name = element.attrib.get("name", "").strip() or f"coupling_{number_in_file}"
    dependent = required(element, "dependent")
    return CouplingElement(name, element, dependent, terms, number(element, "offset", 0.0))


def write_coupling(
    name: str, dependent: str, terms: dict[str, tuple[float, ...]], offset: float
) -> Element:
    """A `<linkwise:coupling>`."""
    children = [
        make("term", {"joint": joint, "coefficients": row(coefficients)})
        for joint, coefficients in terms.items()
    ]
    attributes = {"name": name, "dependent": dependent, "offset": digits(offset)}
    return make("linkwise:coupling", attributes, *children)


def _read_hinge(element: Element, kind: str, axes: list[tuple[float, float, float]]) -> Hinge:
    count = _AXES.get(kind, 0)
    if kind in _AXES and count == 1 and not axes:
        axes = [(1.0, 0.0, 0.0)]  # the default of a URDF joint
    if len(axes) != count:
        raise element.error(f"{len(axes)} axes are given; a {kind} loop takes {count}")
    try:
        if kind == "universal":
            return Universal(axes[0], axes[1])
        if kind == "gimbal":
            return Gimbal((axes[0], axes[1], axes[2]))
        if kind == "helical":
            return Helical(axes[0], number(element, "pitch"))
        if kind == "point_on_plane":
            return PointOnPlane(number(element, "height", 0.0), axes[0])
        if kind == "rolling_ball":
            return RollingBall(number(element, "radius"))
        if kind == "screws":
            rows = [tuple(numbers(s, "value", 6).tolist()) for s in element.findall("screw")]
            return Screws(tuple(rows))
        if count == 1:
            one = {"prismatic": Prismatic, "cylindrical": Cylindrical, "planar": Planar}
            one |= {"soft_finger": SoftFinger}
            return one.get(kind, Pin)(axes[0])
        none = {"fixed": Locked, "spherical": Spherical, "translation": Translation}
        return none.get(kind, Free)()
    except LinkwiseError as problem:
        raise element.error(str(getattr(problem, "reason", problem))) from None


def _written_hinge(hinge: Hinge) -> tuple[str, dict[str, str], list[Element]] | None:
    """Type, further attributes and children that express a hinge."""

    def axis(*values: tuple[float, float, float]) -> list[Element]:
        return [make("axis", {"xyz": row(value)}) for value in values]

    match hinge:
        case Pin():
            return "revolute", {}, axis(hinge.axis)
        case Prismatic():
            return "prismatic", {}, axis(hinge.axis)
        case Cylindrical():
            return "cylindrical", {}, axis(hinge.axis)
        case Helical():
            return "helical", {"pitch": digits(hinge.pitch)}, axis(hinge.axis)
        case Planar():
            return "planar", {}, axis(hinge.normal)
        case Universal():
            return "universal", {}, axis(hinge.axis_1, hinge.axis_2)
        case Gimbal():
            return "gimbal", {}, axis(*hinge.axes)
        case Screws():
            return "screws", {}, [make("screw", {"value": row(r)}) for r in hinge.rows]
        case SoftFinger():
            return "soft_finger", {}, axis(hinge.normal)
        case PointOnPlane():
            return "point_on_plane", {"height": digits(hinge.height)}, axis(hinge.normal)
        case RollingBall():
            return "rolling_ball", {"radius": digits(hinge.radius)}, []
        case Locked():
            return "fixed", {}, []
        case Spherical():
            return "spherical", {}, []
        case Translation():
            return "translation", {}, []
        case Free():
            return "floating", {}, []
        case _:
            return None


def _ball_ends(element: Element) -> tuple[LoopEnd, LoopEnd]:
    ends: list[LoopEnd] = []
    for body, point in (("A", "AP"), ("B", "BQ")):
        link = element.find(f"drake:ball_constraint_body_{body}")
        place = element.find(f"drake:ball_constraint_p_{point}")
        if link is None or place is None:
            raise element.error("it takes ..._body_A, ..._p_AP, ..._body_B and ..._p_BQ")
        pose = Pose.translation(numbers(place, "value", 3))
        ends.append(LoopEnd(required(link, "name"), pose, link))
    return ends[0], ends[1]


def _constraint_ends(
    element: Element, kind: str, reporter: Reporter
) -> tuple[tuple[LoopEnd, LoopEnd], list[tuple[float, float, float]]]:
    """Ends and axes of a `<constraint>`; the child's axis is turned onto the parent's."""
    once = {f"{side}{part}" for side in ("parent", "child") for part in ("", "_origin", "_axis")}
    report_unknown(element, {"name", "type"}, once, reporter, affects="motion")
    ends: list[LoopEnd] = []
    axes: list[tuple[float, float, float]] = []
    for side in ("parent", "child"):
        end, origin = element.find(side), element.find(f"{side}_origin")
        if end is None:
            raise element.error(f'<{side}> is missing; write <{side} link="..."/>')
        pose = Pose.identity() if origin is None else read_pose(origin, reporter)
        ends.append(LoopEnd(required(end, "link"), pose, end))
        axis = element.find(f"{side}_axis")
        if axis is not None:
            axes.append(read_axis(axis))
    if _AXES.get(kind, 0) == 1 and len(axes) == 2:
        turn = Pose.rotation(aligning(_array(axes[0]), _array(axes[1])))
        ends[1].pose = ends[1].pose @ turn
        axes = axes[:1]
    return (ends[0], ends[1]), axes if kind in _AXES else []


def _array(axis: tuple[float, float, float]):
    import numpy as np

    return np.array(axis) / max(map(abs, axis))
