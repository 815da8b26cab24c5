"""What do tendons and actuators say about a mechanism?

A fixed tendon is a linear combination of joint coordinates; an equality may couple joints by it.
An actuator may add its rotor's inertia and its damping to a joint. All else is control, or forces
that a mechanism does not have, and is reported.
"""

from __future__ import annotations

from dataclasses import replace

from linkwise.errors import unknown_name
from linkwise.io.mjcf.compiler import Options
from linkwise.io.mjcf.defaults import MAIN, Defaults
from linkwise.io.mjcf.equality import FixedTendon
from linkwise.io.mjcf.ignored import ACTUATORS, Ignored
from linkwise.io.mjcf.joint import Joint
from linkwise.io.report import Reporter
from linkwise.io.xml import Element, number, numbers, required
from linkwise.model.drive import Drive

_PARTS = ("fixed", "spatial", "joint", "site", "geom", "pulley")
_FORCES = ("stiffness", "damping", "frictionloss", "armature")


def read_tendons(
    root: Element, defaults: Defaults, reporter: Reporter, ignored: Ignored
) -> dict[str, FixedTendon | None]:
    """Tendons by name: joints and coefficients of fixed ones, None for spatial ones."""
    tendons: dict[str, FixedTendon | None] = {}
    for section in root.findall("tendon"):
        for element in section.children:
            if element.tag not in ("fixed", "spatial"):
                reporter.note(element, "ignored", "unknown kind of tendon", "motion")
                continue
            _report_forces(defaults.apply(element, MAIN, "tendon"), element, reporter)
            for part in element.walk():
                if part.tag in _PARTS:
                    ignored.check(part, "tendon", unknown_only=True)
                else:
                    reporter.note(part, "ignored", "unknown element in a tendon", "motion")
            name = element.attrib.get("name", "")
            if not name:
                continue
            if name in tendons:
                raise element.error("the tendon name is used twice")
            tendons[name] = _read_fixed(element) if element.tag == "fixed" else None
    return tendons


def _read_fixed(element: Element) -> FixedTendon:
    return [
        (required(child, "joint"), number(child, "coef"))
        for child in element.children
        if child.tag == "joint"
    ]


def _report_forces(merged: Element, element: Element, reporter: Reporter) -> None:
    """A tendon moves something if it has forces or limits; else actuators and sensors use it."""
    acting = [
        attr for attr in _FORCES if attr in merged.attrib and numbers(merged, attr, (1, 3)).any()
    ]
    if "range" in merged.attrib and merged.attrib.get("limited") != "false":
        acting.append("range")
    if acting:
        reason = f"tendon forces and limits ({', '.join(acting)}) are not supported"
        reporter.note(element, "ignored", reason, "motion")
    else:
        reason = "tendons are used in equalities only"
        reporter.note(element, "ignored", reason, "control")


def read_actuators(
    root: Element,
    defaults: Defaults,
    options: Options,
    joints: dict[str, Joint],
    reporter: Reporter,
) -> None:
    """Add rotor inertia and damping of actuators to their joints; report the rest of them."""
    driven: set[str] = set()
    for section in root.findall("actuator"):
        for element in section.children:
            if element.tag not in ACTUATORS:
                reporter.note(element, "ignored", "unknown kind of actuator", "motion")
                continue
            reason = "actuators do not act: give their forces as tau, or by a controller"
            reporter.note(element, "ignored", reason, "motion")
            merged = defaults.apply(element, MAIN, "actuator")
            armature = number(merged, "armature", 0.0)
            damping = float(numbers(merged, "damping", (1, 3), 0.0)[0])
            if not armature and not (damping and options.dampers):
                continue
            name = merged.attrib.get("joint") or merged.attrib.get("jointinparent")
            if name is None:
                reason = "'armature' and 'damping' are supported for actuators of joints only"
                reporter.note(element, "ignored", reason, "motion")
                continue
            if name not in joints:
                problem = unknown_name("joint", name, joints, owner="this model")
                raise element.error(str(problem))
            gear = float(numbers(merged, "gear", (1, 6), 1.0)[0])
            joint = joints[name]
            joint.drive = _geared(joint.drive, armature, gear, damping, name in driven)
            driven.add(name)


def _geared(drive: Drive, rotor: float, gear: float, damping: float, again: bool) -> Drive:
    """The drive with a rotor behind a gear; a second rotor is reflected to the joint."""
    had, armature = drive.damping, drive.armature
    assert isinstance(had, float)
    assert isinstance(armature, float)
    drive = replace(drive, damping=had + gear * gear * damping)
    if again:
        return replace(drive, armature=armature + gear * gear * rotor)
    return replace(drive, rotor_inertia=rotor, gear_ratio=gear)
