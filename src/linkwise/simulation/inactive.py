"""What a mechanism has that does not act in a rollout or a simulator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.dynamics.passive import passive as dampers_and_springs
from linkwise.model.body import WORLD
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.simulation.implicit.touching import carried
from linkwise.simulation.standard_channel import named


@once_per_mechanism
def inactive(
    mech: Mechanism, integrator: str, passive: bool, actuated: bool, described: bool, touches: bool
) -> tuple[str, ...]:
    """What does not act, one line each.

    Args:
        integrator: How it moves.
        passive: Whether dampers and springs act, and friction where it can.
        actuated: Whether its actuators act.
        described: Whether it touches what the mechanism describes, rather than given contacts.
        touches: Whether anything can touch.
    """
    lines, names, implicit = list[str](), mech.velocity_names, integrator == "implicit"

    def add(what: str, owners: Sequence[str], which: object, why: str = "") -> None:
        places = np.flatnonzero(np.asarray(which))
        if len(places):
            lines.append(f"{what} {named(owners, places)}" + (f": {why}" if why else ""))

    by_impulses = "" if implicit else "use integrator='implicit'"
    if not (implicit and passive):
        why = by_impulses or "passive=False"
        add("Coulomb friction of", names, mech.friction > 0.0, why)
    if not implicit:
        limited = np.isfinite(mech.lower) | np.isfinite(mech.upper)
        add("joint limits of", mech.coordinate_names, limited, by_impulses)
        balls = [body for body in mech.bodies if body.hinge.quaternion is not None]
        cones = [np.isfinite(body.drive.max_angle) for body in balls]
        add("largest turns of", [body.hinge_name for body in balls], cones, by_impulses)
    if not actuated:
        motors = [x.name for x in mech.actuators]
        add("actuators", motors, np.ones(len(motors)), "no controls were given")
    springs = mech.stiffness != 0.0
    if passive:
        unlike = springs & (dampers_and_springs(mech).stiffness == 0.0)
        add("springs of", names, unlike, "v is not the rate of q there")
    else:
        add("dampers and springs of", names, springs | (mech.damping != 0.0), "passive=False")
        if mech.gravity_compensation:
            lines.append("gravity compensation: passive=False")
    add("effort limits of", names, np.isfinite(mech.effort_limit), "they bound actuators only")
    add("speed limits of", names, np.isfinite(mech.velocity_limit))
    lines += of_contacts(mech, implicit=implicit, described=described, touches=touches)
    return (*lines, *of_the_file(mech))


def of_contacts(mech: Mechanism, *, implicit: bool, described: bool, touches: bool) -> list[str]:
    """What touches nothing, one line each; the arguments are those of `inactive`."""
    shapes = [x.shape for x in carried(mech, WORLD) if x.shape.role != "visual"]
    others = [x for x in shapes if x.shape not in ("plane", "hfield")]
    lines = list[str]()
    if not implicit:
        lines.append("contacts: bodies pass through each other and through the ground")
    elif not touches:
        lines.append("contacts: nothing can touch, bodies pass through each other and the ground")
    else:
        lines.append("contacts between bodies: they pass through each other")
    if others and described and implicit:
        labels = [x.name or x.shape for x in others]
        which = named(labels, np.arange(len(labels)))
        lines.append(f"world shapes {which}: only planes and height fields are touched")
    return lines


def of_the_file(mech: Mechanism) -> list[str]:
    """What the reader of the file had to leave out, though it changes the motion."""
    left = [x for x in mech.load_report.affecting("motion") if x.effect != "kept"]
    return [f"of the file, {x.element}: {x.reason}" for x in left]
