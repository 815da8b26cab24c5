"""What does a URDF say for Gazebo that acts here? The friction of links; other laws are lost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from linkwise.errors import unknown_name
from linkwise.io.report import Reporter
from linkwise.io.urdf.link import Link
from linkwise.io.xml import Element
from linkwise.io.xml_write import digits, make
from linkwise.model.contact import Surface
from linkwise.model.geometry import Geometry
from linkwise.model.mechanism import Mechanism

FRICTION: Final = ("mu", "mu1", "mu2")
"""Coefficients of sliding in a `<gazebo reference="LINK">`, along two directions."""


def take_friction(root: Element, links: dict[str, Link], reporter: Reporter) -> None:
    """Give the collision shapes of links the friction of their `<gazebo>`.

    The smaller of two coefficients holds in all directions. It outranks surfaces whose friction no
    file gives (priority 1); between two such links the larger one holds, in Gazebo the smaller.
    """
    for element in root.findall("gazebo"):
        given = [child for child in element.children if child.tag in FRICTION]
        if not given:
            continue
        name = element.attrib.get("reference", "").strip()
        if name not in links:
            reason = unknown_name("link", name, links, owner="the file")
            reporter.note(element, "ignored", f"friction of {reason}", "contact")
            continue
        values = [_coefficient(child) for child in given]
        if len(set(values)) > 1:
            text = f"friction is {min(values):g} in all directions: the smaller coefficient"
            reporter.note(element, "approximate", text, "contact")
        rough = tuple(_rough(shape, min(values)) for shape in links[name].geometry)
        links[name] = replace(links[name], geometry=rough)


def touches(shape: Geometry) -> bool:
    """Whether a shape takes part in contacts."""
    return shape.role != "visual"


def _rough(shape: Geometry, friction: float) -> Geometry:
    if not touches(shape):
        return shape
    return replace(shape, surface=replace(shape.surface, friction=friction, priority=1))


def _coefficient(element: Element) -> float:
    text = element.text.strip() or element.get("value") or ""  # older files have an attribute
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise element.error(f"'{text}' is not a coefficient of friction")
    return value


def friction_elements(mech: Mechanism, reporter: Reporter) -> list[Element]:
    """A `<gazebo>` for each link whose shapes do not have the usual friction."""
    carriers = (*mech.bodies, *mech.nodes)
    each = [_friction(x.name, x.geometry, reporter) for x in carriers]
    return [element for element in each if element is not None]


def _friction(link: str, shapes: Iterable[Geometry], reporter: Reporter) -> Element | None:
    surfaces = [shape.surface for shape in shapes if touches(shape)]
    usual = Surface().friction
    given = sorted({x.friction for x in surfaces if x.priority > 0 or x.friction != usual})
    if not given:
        return None
    friction = digits(given[-1])
    parts = [Element(tag, text=friction) for tag in FRICTION[1:]]
    element = make("gazebo", {"reference": link}, *parts)
    what = f"friction of '{link}'"
    if len({x.friction for x in surfaces}) > 1:
        text = f"a URDF has one for each link: it is {friction} on all shapes"
        reporter.note(what, "ignored", text, "motion")
    elif any(x.priority != 1 for x in surfaces):
        text = "it will count before that of what the link touches (priority 1)"
        reporter.note(what, "approximate", text, "contact")
    return element


LOST: Final[dict[str, tuple[str, ...]]] = {
    "masks": ("contype", "conaffinity"),
    "spinning and rolling friction, or none": ("condim", "torsional", "rolling"),
    "margins": ("margin",),
}
"""What a URDF does not say about shapes, with the fields of their surfaces."""

NAMED: Final = 4
"""Shapes named in one item; of more, how many."""


def report_contact_laws(mech: Mechanism, reporter: Reporter) -> None:
    """Note the contact laws that a URDF has no form for."""
    carriers = (*mech.bodies, *mech.nodes)
    shapes = [(x.name, shape) for x in carriers for shape in x.geometry if touches(shape)]
    for what, fields in LOST.items():
        owners = [
            f"'{shape.name}'" if shape.name else f"a {shape.shape} of '{carrier}'"
            for carrier, shape in shapes
            if any(getattr(shape.surface, x) != getattr(Surface(), x) for x in fields)
        ]
        if owners:
            more = f" and {len(owners) - NAMED} more" if len(owners) > NAMED else ""
            element = f"{what} of {', '.join(owners[:NAMED])}{more}"
            reporter.note(element, "ignored", "a URDF does not have them", "motion")
    rules = mech.contact_rules
    pairs = ", ".join(f"'{x.shape_a}' and '{x.shape_b}'" for x in rules.pairs[:NAMED])
    apart = ", ".join(f"'{a}' and '{b}'" for a, b in rules.excludes[:NAMED])
    for lost, what, reason in (
        (rules.pairs, f"contact pairs {pairs}", "a URDF has no laws for two shapes"),
        (rules.excludes, f"exclusion of {apart}", "a URDF says nothing about who may touch"),
        (not rules.parents, "contacts with parents", "a body of a URDF does not touch its parent"),
        (not rules.active, "contacts that are off", "in a URDF all collision shapes may touch"),
    ):
        if lost:
            reporter.note(what, "ignored", reason, "motion")
