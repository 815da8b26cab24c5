"""Which settings hold for a model: units, inertia rules, gravity, flags, and default classes?

MJCF defaults are a tree of classes. A nested class starts as a copy of its parent, with the
parent's elements already read; an element takes the class it names, or the nearest `childclass`
above it, or the main class.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, cast

from linkwise.errors import unknown_name
from linkwise.io.mjcf.actuator_class import KIND, passed_on
from linkwise.io.mjcf.ignored import (
    ACTUATORS,
    ATTRIBUTES,
    CHILDLESS,
    DEFAULT_AFFECTS,
    SUPPORTED_ACTUATORS,
    Ignored,
    ignore,
)
from linkwise.io.report import Reporter
from linkwise.io.xml import Element, choice, number, numbers, shorten

_BOOL: Final = ("true", "false")
_GRAVITY: Final = (0.0, 0.0, -9.81)


@dataclass(frozen=True, slots=True)
class Compiler:
    """The sections `<compiler>`; later ones override earlier ones.

    Attributes:
        degree: Angles are in degrees; else in radians.
        eulerseq: Axes of `euler`, three letters of xyzXYZ.
        autolimits: A range alone makes a limit.
        inertiafromgeom: Whether geoms decide a body's inertia: never, always, or where the body
            has no `<inertial>`.
        inertiagrouprange: First and last geom group that counts for inertia.
        boundmass: Least mass of a body [kg].
        boundinertia: Least principal moment of a body [kg m²].
        settotalmass: Mass that all bodies are scaled to [kg]; not scaled unless positive.
        balanceinertia: Replace impossible principal moments by their mean.
        fitaabb: Fit primitives to the bounding box of a mesh, not to its inertia box.
        alignfree: Whether MuJoCo moves the frames of free bodies to their inertial frames.
        strippath: Use only the last part of file names.
        meshdir: Directory of mesh files, as written.
        others: Settings of attached models, by file.
    """

    degree: bool = True
    eulerseq: str = "xyz"
    autolimits: bool = True
    inertiafromgeom: Literal["auto", "true", "false"] = "auto"
    inertiagrouprange: tuple[int, int] = (0, 5)
    boundmass: float = 0.0
    boundinertia: float = 0.0
    settotalmass: float = -1.0
    balanceinertia: bool = False
    fitaabb: bool = False
    alignfree: bool = False
    strippath: bool = False
    meshdir: str = ""
    others: Mapping[str, Compiler] = field(default_factory=lambda: {})

    def of(self, element: Element) -> Compiler:
        """The settings for an element, those of its file."""
        return self.others.get(element.file, self)


@dataclass(frozen=True, slots=True)
class Options:
    """The parts of the sections `<option>` that matter for a mechanism.

    Attributes:
        gravity: [m/s²], zero if gravity is disabled.
        equality: Equality constraints hold.
        springs: Joint springs act.
        dampers: Joint dampers act.
        friction: Dry friction acts.
        limits: Joint limits hold.
        contacts: Geoms collide.
        filter_parents: A body and its parent do not collide.
    """

    gravity: tuple[float, float, float] = _GRAVITY
    equality: bool = True
    springs: bool = True
    dampers: bool = True
    friction: bool = True
    limits: bool = True
    contacts: bool = True
    filter_parents: bool = True


def read_compiler(root: Element, reporter: Reporter, ignored: Ignored) -> Compiler:
    """All sections `<compiler>`, in order."""
    compiler = Compiler()
    for element in root.findall("compiler"):
        ignored.check(element)
        compiler = _read_compiler(element, compiler)
        for child in element.children:
            affects = "control" if child.tag == "lengthrange" else "motion"
            reporter.note(child, "ignored", "actuator length ranges are not used", affects)
    return compiler


def _read_compiler(element: Element, before: Compiler) -> Compiler:
    if choice(element, "coordinate", ("local", "global"), "local") == "global":
        raise element.error(
            "coordinate='global' is not supported; load and save the model with MuJoCo 2.3.3 to "
            "convert it"
        )
    eulerseq = element.attrib.get("eulerseq", before.eulerseq)
    if len(eulerseq) != 3 or not set(eulerseq) <= set("xyzXYZ"):
        raise element.error(
            f"'eulerseq' is '{shorten(eulerseq)}'; it takes three letters of x, y, z, X, Y, Z"
        )
    low, high = numbers(element, "inertiagrouprange", 2, before.inertiagrouprange)
    infer = choice(element, "inertiafromgeom", ("auto", "true", "false"), before.inertiafromgeom)
    attrib = element.attrib
    return replace(
        before,
        degree=choice(element, "angle", ("degree", "radian"), _angle(before.degree)) == "degree",
        eulerseq=eulerseq,
        autolimits=boolean(element, "autolimits", before.autolimits),
        inertiafromgeom=cast('Literal["auto", "true", "false"]', infer),
        inertiagrouprange=(int(low), int(high)),
        boundmass=number(element, "boundmass", before.boundmass),
        boundinertia=number(element, "boundinertia", before.boundinertia),
        settotalmass=number(element, "settotalmass", before.settotalmass),
        balanceinertia=boolean(element, "balanceinertia", before.balanceinertia),
        fitaabb=boolean(element, "fitaabb", before.fitaabb),
        alignfree=boolean(element, "alignfree", before.alignfree),
        strippath=boolean(element, "strippath", before.strippath),
        meshdir=attrib.get("meshdir", attrib.get("assetdir", before.meshdir)),
    )


def read_options(root: Element, reporter: Reporter, ignored: Ignored) -> Options:
    """All sections `<option>` with their `<flag>`s, in order."""
    options = Options()
    weightless = False
    for element in root.findall("option"):
        ignored.check(element)
        gravity = numbers(element, "gravity", 3, options.gravity)
        options = replace(
            options, gravity=(float(gravity[0]), float(gravity[1]), float(gravity[2]))
        )
        for attr in ("density", "viscosity", "wind"):
            if attr in element.attrib and numbers(element, attr, (1, 3)).any():
                reporter.note(element, "ignored", f"fluid forces ('{attr}')", "motion")
        for flag in element.children:
            if flag.tag != "flag":
                reporter.note(flag, "ignored", "unknown element", "motion")
                continue
            ignored.check(flag)
            options = _read_flag(flag, options, reporter)
            weightless = not enabled(flag, "gravity", not weightless)
    return replace(options, gravity=(0.0, 0.0, 0.0)) if weightless else options


def _read_flag(flag: Element, before: Options, reporter: Reporter) -> Options:
    constrained = enabled(flag, "constraint", True)
    passive = enabled(flag, "passive", True)
    if not constrained:
        reporter.note(
            flag,
            "approximate",
            "constraints are disabled: equalities and dry friction are left out, limits are kept "
            "as data",
            "motion",
        )
    elif not enabled(flag, "limit", True):
        reporter.note(flag, "approximate", "limits are disabled; they are kept as data", "motion")
    return Options(
        gravity=before.gravity,
        equality=enabled(flag, "equality", before.equality) and constrained,
        springs=enabled(flag, "spring", before.springs) and passive,
        dampers=enabled(flag, "damper", before.dampers) and passive,
        friction=enabled(flag, "frictionloss", before.friction) and constrained,
        limits=enabled(flag, "limit", before.limits) and constrained,
        contacts=enabled(flag, "contact", before.contacts) and constrained,
        filter_parents=enabled(flag, "filterparent", before.filter_parents),
    )


def boolean(element: Element, attr: str, default: bool) -> bool:
    """An attribute that is 'true' or 'false'."""
    return choice(element, attr, _BOOL, "true" if default else "false") == "true"


def enabled(element: Element, attr: str, default: bool) -> bool:
    """An attribute that is 'enable' or 'disable'."""
    return (
        choice(element, attr, ("enable", "disable"), "enable" if default else "disable") == "enable"
    )


def limited(element: Element, attr: str, range_attr: str, autolimits: bool) -> bool:
    """Whether a range limits: as `attr` says, or, on "auto", if there is a range other than 0 0.

    Raises:
        ParseError: A range that is not said to be used, with autolimits off.
    """
    word = choice(element, attr, ("true", "false", "auto"), "auto")
    if word != "auto":
        return word == "true"
    given = bool(numbers(element, range_attr, 2, (0.0, 0.0)).any())
    if given and not autolimits:
        raise element.error(
            f"'{range_attr}' is given but not '{attr}', and the compiler says autolimits='false'; "
            f"add {attr}='true' or {attr}='false'"
        )
    return given


def _angle(degree: bool) -> str:
    return "degree" if degree else "radian"


MAIN: Final = "main"

Attributes = dict[str, str]
ClassTable = dict[str, Attributes]

_ORIENTATIONS: Final = frozenset({"quat", "axisangle", "euler", "xyaxes", "zaxis"})
# A shorter list of numbers overrides only the first ones of the class.
_PARTIAL: Final = frozenset(
    {"size", "stiffness", "damping", "friction", "gear", "gainprm", "biasprm", "dynprm"}
)


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
        """The element with the attributes of its class filled in."""
        name = element.attrib.get("class")
        name = inherited if name is None else self.check_class(element, name)
        base = self.classes[name].get(table or element.tag)
        if not base:
            return element
        base = passed_on(base, element) if table == "actuator" else base
        merged = merge(base, element.attrib)
        return Element(
            element.tag, merged, element.children, element.text, element.line, element.file
        )


def merge(base: Attributes, attributes: Attributes) -> Attributes:
    """`own` over `base`, the way MuJoCo reads in sequence.

    Lists of numbers that may be short override only their first entries. Of the ways to say an
    orientation the one given last holds.
    """
    merged = dict(base)
    if not _ORIENTATIONS.isdisjoint(attributes):
        for attr in _ORIENTATIONS:
            merged.pop(attr, None)
    for attr, text in attributes.items():
        if attr in _PARTIAL and attr in base:
            rest = base[attr].split()[len(text.split()) :]
            text = " ".join([text, *rest])
        merged[attr] = text
    return merged


def read_defaults(
    root: Element, reporter: Reporter, ignored: Ignored, mains: Collection[str] = (MAIN,)
) -> Defaults:
    """All classes of the sections `<default>`.

    Args:
        mains: Classes at the top: that of the file, and those of attached models.

    Raises:
        ParseError: A nested class without a name, or a name used twice.
    """
    defaults = Defaults({name: {} for name in mains})
    for section in root.findall("default"):
        top = section.attrib.get("class", MAIN)
        if top not in mains:
            raise section.error(
                f"the top-level class is '{MAIN}'; '{shorten(top)}' has to be nested in it"
            )
        _read_class(section, defaults.classes[top], reporter, ignored)
        stack = [(child, top) for child in reversed(section.findall("default"))]
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
        # Actuators of all kinds share their defaults.
        key = "actuator" if tag in ACTUATORS else tag
        base = table.get(key, {})
        base = passed_on(base, element) if key == "actuator" else base
        table[key] = merge(base, element.attrib)
        if key == "actuator":
            table[key][KIND] = tag
        if tag in ATTRIBUTES or tag in SUPPORTED_ACTUATORS:
            ignored.check(element, key)
            for child in element.children if tag not in CHILDLESS else ():
                ignore(reporter, child, "motion", f"not read inside {element.label}")
        elif tag in DEFAULT_AFFECTS:
            ignore(reporter, element, DEFAULT_AFFECTS[tag])
        else:
            reporter.note(element, "ignored", "no element of this name has defaults", "motion")
