"""How does a geom touch others: its friction, masks, priority and margin?"""

from __future__ import annotations

from typing import Final

from linkwise.io.xml import Element, number, numbers
from linkwise.io.xml_write import digits, row
from linkwise.model.contact import CONDIMS, Surface
from linkwise.model.geometry import Geometry

MASKS: Final = ("contype", "conaffinity")
_FRICTION: Final = (1.0, 0.005, 0.0001)


def surface(element: Element) -> Surface:
    """The surface of a `<geom>` with its defaults applied."""
    given = numbers(element, "friction", (1, 3), _FRICTION[0]).tolist()
    if min(given) < 0.0:
        raise element.error("'friction' takes numbers that are not negative")
    sliding, torsional, rolling = [*given, *_FRICTION[len(given) :]]
    contype, conaffinity = (int(number(element, attr, 1.0)) for attr in MASKS)
    priority = int(number(element, "priority", 0.0))
    margin = number(element, "margin", 0.0)
    kind = condim(element)
    return Surface(sliding, torsional, rolling, kind, contype, conaffinity, priority, margin)


def condim(element: Element) -> int:
    """1, 3, 4 or 6."""
    value = number(element, "condim", 3.0)
    if value not in CONDIMS:
        raise element.error(f"'condim' is {value:g}; it is one of {', '.join(map(str, CONDIMS))}")
    return int(value)


def surface_attributes(shape: Geometry) -> dict[str, str]:
    """The attributes of a `<geom>` whose surface is not the usual one."""
    usual, given = Surface(), shape.surface
    attrib = dict[str, str]()
    if shape.role == "visual":
        attrib |= dict.fromkeys(MASKS, "0")
    else:
        for attr in MASKS:
            if getattr(given, attr) != 1:
                attrib[attr] = str(getattr(given, attr))
    friction = (given.friction, given.torsional, given.rolling)
    if friction != (usual.friction, usual.torsional, usual.rolling):
        attrib["friction"] = row(friction)
    for attr in ("condim", "priority"):
        if getattr(given, attr) != getattr(usual, attr):
            attrib[attr] = str(getattr(given, attr))
    if given.margin != usual.margin:
        attrib["margin"] = digits(given.margin)
    return attrib
