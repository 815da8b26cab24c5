"""Which shapes of an MJCF file touch, how they rub, and how is that written?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from linkwise.errors import unknown_name
from linkwise.io.mjcf.assemble import WORLD_NODE
from linkwise.io.mjcf.compiler import MAIN, Defaults, Options
from linkwise.io.mjcf.geom import Geom
from linkwise.io.mjcf.ignored import Ignored, ignore
from linkwise.io.mjcf.surface import condim
from linkwise.io.mjcf.tree import BodyRecord
from linkwise.io.report import Reporter
from linkwise.io.xml import Element, number, numbers, required
from linkwise.io.xml_write import digits, make, row
from linkwise.model.body import WORLD
from linkwise.model.contact import ContactPair, ContactRules, Surface

_PAIR: Final = (1.0, 1.0, 0.005, 0.0001, 0.0001)
"""Friction of a pair: sliding in two directions, spinning, rolling about two axes."""


def read_contact_rules(
    root: Element,
    defaults: Defaults,
    records: Sequence[BodyRecord],
    options: Options,
    reporter: Reporter,
    ignored: Ignored,
) -> ContactRules:
    """The sections `<contact>`, and what the flags say."""
    pairs, excludes = list[ContactPair](), list[tuple[str, str]]()
    bodies = {record.name for record in records}
    geoms = {part.name for record in records for part in record.geoms}
    for section in root.findall("contact"):
        for attr in section.attrib:
            reporter.note(section, "ignored", f"unknown attribute '{attr}'", "motion")
        for element in section.children:
            if element.tag not in ("pair", "exclude"):
                ignore(reporter, element, "motion", "unknown element")
                continue
            ignored.check(element)
            if element.tag == "pair":
                merged = defaults.apply(element, MAIN)
                a, b = (_known(element, attr, geoms, "geom") for attr in ("geom1", "geom2"))
                pairs.append(ContactPair(a, b, _pair_surface(merged, reporter)))
            else:
                a, b = (_known(element, attr, bodies, "body") for attr in ("body1", "body2"))
                excludes.append((_carrier(a), _carrier(b)))
    return ContactRules(tuple(pairs), tuple(excludes), options.filter_parents, options.contacts)


def _known(element: Element, attr: str, known: set[str], kind: str) -> str:
    name = required(element, attr)
    if name not in known:
        raise element.error(str(unknown_name(kind, name, known, owner="the file")))
    return name


def _carrier(body: str) -> str:
    """The node or body that carries the shapes of a body of the file."""
    return WORLD_NODE if body == WORLD else body


def _pair_surface(element: Element, reporter: Reporter) -> Surface:
    given = numbers(element, "friction", (1, 5), _PAIR[0]).tolist()
    values = [*given, *_PAIR[len(given) :]]
    if values[0] != values[1] or values[3] != values[4]:
        reason = "'friction' differs with the direction; the first of each two numbers is used"
        reporter.note(element, "approximate", reason, "motion")
    margin = number(element, "margin", 0.0)
    return Surface(values[0], values[2], values[3], condim(element), margin=margin)


def pair_elements(rules: ContactRules) -> Element | None:
    """`<contact>` with pairs and exclusions."""
    parts = list[Element]()
    for pair in rules.pairs:
        laws = pair.surface
        friction = (laws.friction, laws.friction, laws.torsional, laws.rolling, laws.rolling)
        attrib = {"geom1": pair.shape_a, "geom2": pair.shape_b, "condim": str(laws.condim)}
        attrib |= {"friction": row(friction), "margin": digits(laws.margin)}
        parts.append(make("pair", attrib))
    for a, b in rules.excludes:
        names = [WORLD if x == WORLD_NODE else x for x in (a, b)]
        parts.append(make("exclude", {"body1": names[0], "body2": names[1]}))
    return make("contact", {}, *parts) if parts else None


def flag_element(rules: ContactRules) -> Element | None:
    """`<flag>` of `<option>`, where contacts are off or parents are not filtered."""
    states = {"contact": rules.active, "filterparent": rules.parents}
    attrib = {name: "disable" for name, on in states.items() if not on}
    return make("flag", attrib) if attrib else None


# -------------------------------------------------------------------------------------- reporting


def report_contacts(
    records: Sequence[BodyRecord],
    geoms: Sequence[Sequence[Geom]],
    rules: ContactRules,
    reporter: Reporter,
) -> None:
    """Note, once, the geoms that can touch another one."""
    if not rules.active:
        return
    moving = list[bool]()
    for record in records:
        above = record.parent >= 0 and moving[record.parent]
        moving.append(above or bool(record.joints))
    masks: dict[tuple[int, int], set[int]] = {}  # bodies by the masks of their geoms
    for k, group in enumerate(geoms):
        for geom in group:
            masks.setdefault(_mask(geom), set()).add(k)
    paired = {x for pair in rules.pairs for x in (pair.shape_a, pair.shape_b)}
    touching = [
        geom
        for k, group in enumerate(geoms)
        for geom in group
        if geom.name in paired or _touches(k, geom, masks, moving)
    ]
    if touching:
        some = "1 geom" if len(touching) == 1 else f"{len(touching)} geoms"
        reason = (
            f"contacts of {some} act with planes and height fields of the world in lw.rollout, "
            "lw.simulate and lw.Simulator with integrator='implicit' only; bodies touch each other "
            "only in lw.simulate, with contacts=Collisions()"
        )
        reporter.note(touching[0].element, "kept", reason, "motion")


def _mask(geom: Geom) -> tuple[int, int]:
    return geom.surface.contype, geom.surface.conaffinity


def _touches(
    k: int, geom: Geom, masks: dict[tuple[int, int], set[int]], moving: Sequence[bool]
) -> bool:
    """Whether some geom of another body meets this one, and one of the two moves."""
    contype, conaffinity = _mask(geom)
    for (other_type, other_affinity), bodies in masks.items():
        if contype & other_affinity or other_type & conaffinity:
            if any(other != k and (moving[k] or moving[other]) for other in bodies):
                return True
    return False
