"""What does a URDF say for Gazebo that acts here? The friction of links."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from linkwise.errors import unknown_name
from linkwise.io.report import Reporter
from linkwise.io.urdf.link import Link
from linkwise.io.xml import Element
from linkwise.io.xml_write import digits, make
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


def _rough(shape: Geometry, friction: float) -> Geometry:
    if shape.role == "visual":
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
    """A `<gazebo>` for each link whose shapes have a friction that outranks others."""
    carriers = (*mech.bodies, *mech.nodes)
    each = [_friction(x.name, x.geometry, reporter) for x in carriers]
    return [element for element in each if element is not None]


def _friction(link: str, shapes: Iterable[Geometry], reporter: Reporter) -> Element | None:
    surfaces = [shape.surface for shape in shapes if shape.role != "visual"]
    given = sorted({x.friction for x in surfaces if x.priority > 0})
    if not given:
        return None
    friction = digits(given[-1])
    parts = [Element(tag, text=friction) for tag in FRICTION[1:]]
    element = make("gazebo", {"reference": link}, *parts)
    if len(given) > 1 or any(x.priority == 0 for x in surfaces):
        text = f"friction of '{link}' is {friction} on all its shapes"
        reporter.note(element, "approximate", text, "contact")
    return element
