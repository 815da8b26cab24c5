"""Which attributes does an element have once its default class is applied?

MJCF defaults are a tree of classes. A nested class starts as a copy of its parent, with the
parent's own elements already read; an element takes the class it names, or the nearest
`childclass` above it, or the main class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from linkwise.errors import unknown_name
from linkwise.io.mjcf.ignored import (
    ACTUATORS,
    ATTRIBUTES,
    CHILDLESS,
    DEFAULT_AFFECTS,
    Ignored,
    ignore,
)
from linkwise.io.report import Reporter
from linkwise.io.xml import Element, shorten

MAIN: Final = "main"

Attributes = dict[str, str]
ClassTable = dict[str, Attributes]

_ORIENTATIONS: Final = frozenset({"quat", "axisangle", "euler", "xyaxes", "zaxis"})
# A shorter list of numbers overrides only the first ones of the class.
_PARTIAL: Final = frozenset({"size", "stiffness", "damping"})


@dataclass(slots=True)
class Defaults:
    """Attributes by class name, then by element tag (all actuators under "actuator")."""

    classes: dict[str, ClassTable] = field(default_factory=lambda: {MAIN: {}})

    def check_class(self, element: Element, name: str) -> str:
        """`name`, or a ParseError if there is no such class."""
        if name not in self.classes:
            problem = unknown_name("default class", name, self.classes, owner="this model")
            raise element.error(str(problem))
        return name

    def apply(self, element: Element, inherited: str, table: str | None = None) -> Element:
        """The element with the attributes of its class filled in.

        Args:
            element: As written.
            inherited: Class to use if it names none.
            table: Tag under which its defaults stand, if not its own.
        """
        name = element.attrib.get("class")
        name = inherited if name is None else self.check_class(element, name)
        base = self.classes[name].get(table or element.tag)
        if not base:
            return element
        merged = merge(base, element.attrib)
        return Element(
            element.tag, merged, element.children, element.text, element.line, element.file
        )


def merge(base: Attributes, own: Attributes) -> Attributes:
    """`own` over `base`, the way MuJoCo reads one after the other.

    Lists of numbers that may be short override only their first entries. Of the ways to say an
    orientation the one given last holds.
    """
    merged = dict(base)
    if not _ORIENTATIONS.isdisjoint(own):
        for attr in _ORIENTATIONS:
            merged.pop(attr, None)
    for attr, text in own.items():
        if attr in _PARTIAL and attr in base:
            rest = base[attr].split()[len(text.split()) :]
            text = " ".join([text, *rest])
        merged[attr] = text
    return merged


def read_defaults(root: Element, reporter: Reporter, ignored: Ignored) -> Defaults:
    """All classes of the sections `<default>`.

    Raises:
        ParseError: A nested class without a name, or a name used twice.
    """
    defaults = Defaults()
    for section in root.findall("default"):
        name = section.attrib.get("class", MAIN)
        if name != MAIN:
            raise section.error(
                f"the top-level class is '{MAIN}'; '{shorten(name)}' has to be nested in it"
            )
        _read_class(section, defaults.classes[MAIN], reporter, ignored)
        stack = [(child, MAIN) for child in reversed(section.findall("default"))]
        while stack:
            element, parent = stack.pop()
            name = element.attrib.get("class", "")
            if not name:
                raise element.error("a nested <default> needs the attribute 'class'")
            if name in defaults.classes:
                raise element.error(f"the default class '{shorten(name)}' is defined twice")
            table = {tag: dict(attrs) for tag, attrs in defaults.classes[parent].items()}
            _read_class(element, table, reporter, ignored)
            defaults.classes[name] = table
            stack.extend((child, name) for child in reversed(element.findall("default")))
    return defaults


def _read_class(section: Element, table: ClassTable, reporter: Reporter, ignored: Ignored) -> None:
    """Put the elements of one `<default>`, nested classes apart, into its table."""
    for attr in section.attrib:
        if attr != "class":
            reporter.note(section, "ignored", f"unknown attribute '{attr}'", "motion")
    for element in section.children:
        tag = element.tag
        if tag == "default":
            continue
        # Actuators of all kinds share their defaults; they are read for armature and damping.
        key = "actuator" if tag in ACTUATORS else tag
        table[key] = merge(table.get(key, {}), element.attrib)
        if tag in ATTRIBUTES:
            ignored.check(element)
            for child in element.children if tag not in CHILDLESS else ():
                ignore(reporter, child, "motion", f"not read inside {element.label}")
        elif tag in DEFAULT_AFFECTS:
            ignore(reporter, element, DEFAULT_AFFECTS[tag])
        else:
            reporter.note(element, "ignored", "no element of this name has defaults", "motion")
