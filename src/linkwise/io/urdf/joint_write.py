"""How are limits, damping, springs and rotors of one freedom written in a URDF?"""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from linkwise.io.report import Reporter
from linkwise.io.xml import Element
from linkwise.io.xml_write import digits, make
from linkwise.model.drive import Drive, PerFreedom

_NONE = 1e308
"""Written for an infinite limit: finite, and read back as none (see `joint.UNLIMITED`)."""


def limit_element(kind: str, drive: Drive, dof: int) -> tuple[str, Element | None]:
    """Type of the joint ("continuous" for a turn without limits) and its `<limit>`."""
    lower, upper = _at(drive.lower, dof), _at(drive.upper, dof)
    effort, velocity = _at(drive.effort, dof), _at(drive.velocity, dof)
    values = {"effort": _bound(effort), "velocity": _bound(velocity)}
    if kind == "revolute" and lower == -np.inf and upper == np.inf:
        bare = effort == np.inf and velocity == np.inf
        return "continuous", None if bare else make("limit", values)
    return kind, make("limit", {"lower": _bound(lower), "upper": _bound(upper), **values})


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


def rotor_element(name: str, drive: Drive, dof: int) -> Element | None:
    """A `<transmission>` with rotor inertia and gear ratio; None where there is nothing to say.

    Reflected inertia is armature + ratio² rotor; the armature goes to the rotor, divided by the
    square of the ratio.
    """
    armature, rotor = _at(drive.armature, dof), _at(drive.rotor_inertia, dof)
    ratio = _at(drive.gear_ratio, dof)
    if armature and abs(ratio) < 1e-10:  # too slow a rotor to carry it
        ratio, rotor = 1.0, armature + ratio**2 * rotor
    elif armature:
        rotor += armature / ratio**2
    if rotor == 0.0 and ratio == 1.0:
        return None
    inertia = make("drake:rotor_inertia", {"value": digits(rotor)})
    gear = make("drake:gear_ratio", {"value": digits(ratio)})
    kind = Element("type", text="transmission_interface/SimpleTransmission")
    ends = make("joint", {"name": name}), make("actuator", {"name": f"{name}_motor"}, inertia, gear)
    return make("transmission", {"name": f"{name}_transmission"}, kind, *ends)


def is_plain(drive: Drive) -> bool:
    """Whether a drive says nothing at all."""
    plain = Drive()
    return all(
        np.all(np.asarray(getattr(drive, f.name)) == getattr(plain, f.name)) for f in fields(drive)
    )


def _at(value: PerFreedom, dof: int) -> float:
    return value[dof] if isinstance(value, tuple) else value


def _bound(value: float) -> str:
    return digits(value) if np.isfinite(value) else repr(float(np.copysign(_NONE, value)))
