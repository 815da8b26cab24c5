"""What does a URDF joint say (hinge, drive, mimic, rotor), and how is its drive written?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from linkwise.io.report import Affects, Reporter
from linkwise.io.urdf.link import read_origin, report_unknown
from linkwise.io.xml import Element, choice, number, numbers, parse_numbers, required, shorten
from linkwise.io.xml_write import digits, make
from linkwise.model.actuator import Actuator
from linkwise.model.drive import Drive, PerFreedom
from linkwise.model.hinges import Free, Hinge, Locked, Pin, Planar, Prismatic, Spherical
from linkwise.spatial.pose import Pose

TYPES: Final = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical")
"""Joint types that are read. `spherical` is not in the specification; Bullet and others use it."""

UNLIMITED: Final = 1e300
"""A limit of at least this size means none: the format has no way to write infinity."""

_READ: Final = frozenset(
    "parent child origin axis limit dynamics mimic linkwise:spring linkwise:outboard".split()
)
_AFFECTS: Final[dict[str, Affects]] = {
    **dict.fromkeys(_READ, "motion"),
    "safety_controller": "control",
    "calibration": "control",
}


@dataclass(slots=True)
class Mimic:
    """q of a joint = multiplier * q of `joint` + offset."""

    joint: str
    multiplier: float
    offset: float
    element: Element


@dataclass(slots=True)
class Rotor:
    """What a transmission says about the motor behind a joint."""

    inertia: float = 0.0
    ratio: float = 1.0
    motor: str = ""  # name of the motor; empty for a rotor that nobody commands
    element: Element | None = None


@dataclass(slots=True)
class Joint:
    """One joint as read; `inboard` is the pose of the joint frame in the parent link."""

    name: str
    element: Element
    parent: str
    child: str
    inboard: Pose
    hinge: Hinge
    drive: Drive
    mimic: Mimic | None
    closes_frame: bool


def read_joint(element: Element, rotors: dict[str, Rotor], reporter: Reporter) -> Joint:
    """A `<joint>`."""
    name = required(element, "name")
    kind = choice(element, "type", TYPES)
    report_unknown(
        element,
        {"name", "type"},
        _READ,
        reporter,
        affects=_AFFECTS,
    )
    for tag, known in (("parent", "link"), ("child", "link"), ("axis", "xyz")):
        if (child := element.find(tag)) is not None:
            report_unknown(child, {known}, set(), reporter, affects="motion")
    hinge = _hinge(element, kind)
    return Joint(
        name,
        element,
        _end(element, "parent"),
        _end(element, "child"),
        read_origin(element, reporter),
        hinge,
        read_drive(element, hinge, kind, reporter, rotors.get(name)),
        _mimic(element, kind, reporter),
        element.find("linkwise:outboard") is not None and isinstance(hinge, Locked),
    )


def read_axis(element: Element) -> tuple[float, float, float]:
    """Direction in the attribute xyz of an `<axis>`; of any length but zero."""
    axis = numbers(element, "xyz", 3, (1.0, 0.0, 0.0))
    if not axis.any():
        raise element.error("'xyz' is the zero vector; an axis needs a direction, such as '0 0 1'")
    x, y, z = axis.tolist()
    return (x, y, z)


def read_drive(
    element: Element, hinge: Hinge, kind: str, reporter: Reporter, rotor: Rotor | None = None
) -> Drive:
    """Limits, damping, friction and spring of a joint, and the rotor of its transmission."""
    endless = kind.startswith("continuous")  # a joint, or a loop of this kind
    limit, dynamics = element.find("limit"), element.find("dynamics")
    spring = element.find("linkwise:spring")
    if hinge.nv == 0:
        return Drive()
    if hinge.nv > 1:
        for child in (limit, dynamics, spring):
            if child is not None:
                reporter.note(child, "ignored", f"not read for a {kind} joint", "motion")
        return Drive()
    lower, upper, effort, velocity = -np.inf, np.inf, np.inf, np.inf
    if limit is not None:
        known = {"lower", "upper", "effort", "velocity"}
        report_unknown(limit, known, set(), reporter, affects="control")
        if not endless:
            lower, upper = _bound(limit, "lower", 0.0), _bound(limit, "upper", 0.0)
        elif "lower" in limit.attrib or "upper" in limit.attrib:
            reporter.note(limit, "ignored", "a continuous joint has no lower and upper", "other")
        effort, velocity = _bound(limit, "effort", np.inf), _bound(limit, "velocity", np.inf)
    elif kind in ("revolute", "prismatic"):
        reporter.note(element, "approximate", f"a {kind} joint without <limit> is free", "motion")
    damping = friction = stiffness = rest = 0.0
    if dynamics is not None:
        report_unknown(dynamics, {"damping", "friction"}, set(), reporter, affects="motion")
        damping = number(dynamics, "damping", 0.0)
        friction = number(dynamics, "friction", 0.0)
    if spring is not None:
        report_unknown(spring, {"stiffness", "rest"}, set(), reporter, affects="motion")
        stiffness, rest = number(spring, "stiffness"), number(spring, "rest", 0.0)
    rotor = rotor or Rotor()
    return Drive(
        rotor_inertia=rotor.inertia,
        gear_ratio=rotor.ratio,
        damping=damping,
        friction=friction,
        stiffness=stiffness,
        rest=rest,
        lower=lower,
        upper=upper,
        effort=effort,
        velocity=velocity,
    )


def read_transmissions(
    root: Element, joints: Collection[str], reporter: Reporter
) -> dict[str, Rotor]:
    """Rotor inertia and gear ratio by joint, from `<transmission>` elements.

    Read are `<drake:rotor_inertia value>` and `<drake:gear_ratio value>`, `<motorInertia>` and
    `<mechanicalReduction>`, for one joint with one actuator. The rest of a transmission is about
    control and is reported.
    """
    rotors: dict[str, Rotor] = {}
    for element in root.findall("transmission"):
        if is_differential(element):
            continue
        inertia = _first(element, ("drake:rotor_inertia", "motorInertia"))
        ratio = _first(element, ("drake:gear_ratio", "mechanicalReduction", "mechanical_reduction"))
        ends, actuators = element.findall("joint"), element.findall("actuator")
        name = ends[0].attrib.get("name", "") if ends else ""
        if len(ends) != 1 or len(actuators) > 1:
            reason = f"it has {len(ends)} joints and {len(actuators)} actuators"
        elif name not in joints:
            reason = f"there is no joint called '{shorten(name)}'"
        elif name in rotors:
            reason = f"joint '{name}' has a transmission already"
        else:
            numbers = 0.0 if inertia is None else inertia, 1.0 if ratio is None else ratio
            passive = element.find("linkwise:passive") is not None
            motor = "" if passive else element.attrib.get("name", "") or f"{name}_motor"
            rotors[name] = Rotor(*numbers, motor, element)
            if _only_rotor(element):
                continue
            reason = "only its joint, rotor and ratio are used"
            reporter.note(element, "approximate", reason, "control")
            continue
        about = "motion" if inertia else "control"
        reporter.note(element, "ignored", f"{reason}, so its ratio is not used", about)
    return rotors


DIFFERENTIAL = "DifferentialTransmission"


def is_differential(element: Element) -> bool:
    """Whether a transmission lets two motors move two joints."""
    kind = element.find("type")
    text = element.attrib.get("type", "") if kind is None else kind.text
    ends = element.findall("joint"), element.findall("actuator")
    return text.strip().endswith(DIFFERENTIAL) and all(len(x) == 2 for x in ends)


def read_differential(
    element: Element, joints: Mapping[str, Joint], reporter: Reporter
) -> tuple[Actuator, ...]:
    """The two motors of a differential; none if it cannot act, which is reported.

    With the reductions n of joints (1, 2) and of motors (a, b), the motors turn by
    n_a (n_1 q_1 + n_2 q_2) and n_b (n_1 q_1 − n_2 q_2), and so their torques, the commands, act on
    the joints: τ_1 = n_1 (n_a u_a + n_b u_b), τ_2 = n_2 (n_a u_a − n_b u_b).

    Args:
        element: The transmission.
        joints: Those of the file, by name.
        reporter: Takes what is left out.
    """
    ends, motors = (_by_role(element, tag) for tag in ("joint", "actuator"))
    names = [x.attrib.get("name", "") for x in ends]
    for name in names:
        hinge = joints[name].hinge if name in joints else None
        if not isinstance(hinge, Pin | Prismatic) or names[0] == names[1]:
            reason = f"'{shorten(name)}' is not one of two joints with one degree of freedom"
            reporter.note(element, "ignored", f"{reason}, so its motors do not act", "control")
            return ()
    first, second, a, b = (_reduction(x) for x in (*ends, *motors))
    rotor = _first(element, ("drake:rotor_inertia", "motorInertia"))
    if rotor:
        reason = "its rotors turn with two joints, and their inertia is left out"
        reporter.note(element, "approximate", reason, "motion")
    else:
        reason = "only its joints, motors and reductions are used"
        reporter.note(element, "approximate", reason, "control")
    title = element.attrib.get("name", "") or "differential"
    labels = [x.attrib.get("name", "") or f"{title}_{i + 1}" for i, x in enumerate(motors)]
    return (
        Actuator(labels[0], joints=((names[0], first * a), (names[1], second * a))),
        Actuator(labels[1], joints=((names[0], first * b), (names[1], -second * b))),
    )


def _by_role(element: Element, tag: str) -> list[Element]:
    """The two joints or actuators of a transmission: by their roles, else in their order."""
    ends = element.findall(tag)
    roles = [x.find("role") for x in ends]
    texts = ["" if x is None else x.text.strip() for x in roles]
    return ends[::-1] if texts == [f"{tag}2", f"{tag}1"] else ends


def _reduction(element: Element) -> float:
    ratio = _first(element, ("mechanicalReduction", "mechanical_reduction"))
    return 1.0 if ratio is None else ratio


def _hinge(element: Element, kind: str) -> Hinge:
    if kind == "fixed":
        return Locked()
    if kind == "floating":
        return Free()
    if kind == "spherical":
        return Spherical()
    child = element.find("axis")
    axis = (1.0, 0.0, 0.0) if child is None else read_axis(child)
    return {"prismatic": Prismatic, "planar": Planar}.get(kind, Pin)(axis)


def _end(element: Element, tag: str) -> str:
    child = element.find(tag)
    if child is None:
        raise element.error(f'<{tag}> is missing; write <{tag} link="..."/>')
    return required(child, "link")


def _mimic(element: Element, kind: str, reporter: Reporter) -> Mimic | None:
    child = element.find("mimic")
    if child is None:
        return None
    report_unknown(child, {"joint", "multiplier", "offset"}, set(), reporter, affects="motion")
    mimic = Mimic(
        required(child, "joint"),
        number(child, "multiplier", 1.0),
        number(child, "offset", 0.0),
        child,
    )
    if kind == "fixed":
        reporter.note(child, "ignored", "a fixed joint cannot follow another", "other")
        return None
    if kind in ("floating", "planar", "spherical"):
        raise child.error(
            f"a {kind} joint cannot mimic another; only joints with one degree of freedom can"
        )
    return mimic


def _bound(element: Element, attr: str, default: float) -> float:
    value = number(element, attr, default, largest=np.inf)
    return float(np.copysign(np.inf, value)) if abs(value) >= UNLIMITED else value


def _first(element: Element, tags: tuple[str, ...]) -> float | None:
    """The number in the first element below that has one of the tags, in order of the tags."""
    for tag in tags:
        for child in element.walk():
            if child.tag == tag:
                if "value" in child.attrib:
                    return number(child, "value")
                return parse_numbers(child, "text", child.text, 1)[0]
    return None


def _only_rotor(element: Element) -> bool:
    """Whether nothing is left of a transmission once its rotor and ratio are taken."""
    known = {"transmission", "joint", "actuator", "drake:rotor_inertia", "drake:gear_ratio", "type"}
    known.add("linkwise:passive")
    return all(child.tag in known for child in element.walk())


_NONE = 1e308
"""Written for an infinite limit: finite, and read back as none (see `joint.UNLIMITED`)."""


def limit_element(kind: str, drive: Drive, dof: int) -> tuple[str, Element | None]:
    """Type of the joint ("continuous" for a turn without limits) and its `<limit>`."""
    lower, upper = _at(drive.lower, dof), _at(drive.upper, dof)
    effort, velocity = _at(drive.effort, dof), _at(drive.velocity, dof)
    values = {"effort": _bound_text(effort), "velocity": _bound_text(velocity)}
    if kind == "revolute" and lower == -np.inf and upper == np.inf:
        bare = effort == np.inf and velocity == np.inf
        return "continuous", None if bare else make("limit", values)
    return kind, make("limit", {"lower": _bound_text(lower), "upper": _bound_text(upper), **values})


def dynamics_elements(
    name: str, drive: Drive, dof: int, reporter: Reporter
) -> tuple[Element | None, Element | None]:
    """`<dynamics>` and `<linkwise:spring>`, each None where all is zero."""
    damping, friction = _at(drive.damping, dof), _at(drive.friction, dof)
    stiffness, rest = _at(drive.stiffness, dof), _at(drive.rest, dof)
    dynamics = spring = None
    if damping or friction:
        values = {"damping": digits(damping), "friction": digits(friction)}
        dynamics = make("dynamics", values)
    if stiffness or rest:
        spring = make("linkwise:spring", {"stiffness": digits(stiffness), "rest": digits(rest)})
        reason = "its spring is written as <linkwise:spring>, which only Linkwise reads"
        reporter.note(f"hinge '{name}'", "approximate", reason, "motion")
    return dynamics, spring


def rotor_element(name: str, drive: Drive, dof: int, motor: str = "") -> Element | None:
    """A `<transmission>` with rotor inertia and gear ratio; None if neither is given.

    With the name of a motor it is that of the motor; others are marked `<linkwise:passive/>`.
    Reflected inertia is armature + ratio² rotor; the armature goes to the rotor, divided by the
    square of the ratio.
    """
    armature, rotor = _at(drive.armature, dof), _at(drive.rotor_inertia, dof)
    ratio = _at(drive.gear_ratio, dof)
    if armature and abs(ratio) < 1e-10:  # too slow a rotor to carry it
        ratio, rotor = 1.0, armature + ratio**2 * rotor
    elif armature:
        rotor += armature / ratio**2
    if rotor == 0.0 and ratio == 1.0 and not motor:
        return None
    inertia = make("drake:rotor_inertia", {"value": digits(rotor)})
    gear = make("drake:gear_ratio", {"value": digits(ratio)})
    kind = Element("type", text="transmission_interface/SimpleTransmission")
    ends = make("joint", {"name": name}), make("actuator", {"name": f"{name}_motor"}, inertia, gear)
    if motor:
        return make("transmission", {"name": motor}, kind, *ends)
    passive = make("linkwise:passive")
    return make("transmission", {"name": f"{name}_transmission"}, kind, *ends, passive)


def reductions(first: Actuator, second: Actuator) -> tuple[float, float, float] | None:
    """n_1, n_2 and n_b of a differential of two motors, with n_a = 1 (`read_differential`).

    None if two actuators are not the motors of one.
    """
    both = first, second
    plain = all(x.joints and x == Actuator(x.name, joints=x.joints) for x in both)
    names = [[joint for joint, _ in x.joints] for x in (first, second)]
    if not plain or names[0] != names[1] or len(set(names[0])) != 2 or len(names[0]) != 2:
        return None
    (a, b), (c, d) = ([gear for _, gear in x.joints] for x in (first, second))
    if a * b * c * d == 0.0 or abs(a * d + b * c) > 1e-15 * abs(a * d):
        return None
    return a, b, c / a


def differential_element(
    first: Actuator, second: Actuator, ratios: tuple[float, float, float]
) -> Element:
    """The `<transmission>` of two motors that turn two joints."""

    def end(tag: str, i: int, name: str, ratio: float) -> Element:
        role = Element("role", text=f"{tag}{i}")
        gear = Element("mechanicalReduction", text=digits(ratio))
        return make(tag, {"name": name}, role, gear)

    names = [name for name, _ in first.joints]
    kind = Element("type", text=f"transmission_interface/{DIFFERENTIAL}")
    joints = [end("joint", i + 1, names[i], ratios[i]) for i in range(2)]
    motors = [end("actuator", 1, first.name, 1.0), end("actuator", 2, second.name, ratios[2])]
    return make("transmission", {"name": f"{first.name}_{second.name}"}, kind, *joints, *motors)


def is_plain(drive: Drive) -> bool:
    """Whether a drive has only default values."""
    plain = Drive()
    return all(
        np.all(np.asarray(getattr(drive, f.name)) == getattr(plain, f.name)) for f in fields(drive)
    )


def _at(value: PerFreedom, dof: int) -> float:
    return value[dof] if isinstance(value, tuple) else value


def _bound_text(value: float) -> str:
    return digits(value) if np.isfinite(value) else repr(float(np.copysign(_NONE, value)))
