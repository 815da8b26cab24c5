"""Which global settings hold for a model: units, file places, inertia rules, gravity, flags?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, cast

from linkwise.io.mjcf.ignored import Ignored
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


@dataclass(frozen=True, slots=True)
class Options:
    """What of the sections `<option>` concerns a mechanism.

    Attributes:
        gravity: [m/s²], zero if gravity is disabled.
        equality: Equality constraints hold.
        springs: Joint springs act.
        dampers: Joint dampers act.
        friction: Dry friction acts.
        limits: Joint limits hold.
        contacts: Geoms collide.
    """

    gravity: tuple[float, float, float] = _GRAVITY
    equality: bool = True
    springs: bool = True
    dampers: bool = True
    friction: bool = True
    limits: bool = True
    contacts: bool = True


def read_compiler(root: Element, reporter: Reporter, ignored: Ignored) -> Compiler:
    """All sections `<compiler>`, in order."""
    found = Compiler()
    for element in root.findall("compiler"):
        ignored.check(element)
        found = _read_compiler(element, found)
        for child in element.children:
            affects = "control" if child.tag == "lengthrange" else "motion"
            reporter.note(child, "ignored", "actuator length ranges are not used", affects)
    return found


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
    found = Options()
    weightless = False
    for element in root.findall("option"):
        ignored.check(element)
        gravity = numbers(element, "gravity", 3, found.gravity)
        found = replace(found, gravity=(float(gravity[0]), float(gravity[1]), float(gravity[2])))
        for attr in ("density", "viscosity", "wind"):
            if attr in element.attrib and numbers(element, attr, (1, 3)).any():
                reporter.note(element, "ignored", f"fluid forces ('{attr}')", "motion")
        for flag in element.children:
            if flag.tag != "flag":
                reporter.note(flag, "ignored", "unknown element", "motion")
                continue
            ignored.check(flag)
            found = _read_flag(flag, found, reporter)
            weightless = not enabled(flag, "gravity", not weightless)
    return replace(found, gravity=(0.0, 0.0, 0.0)) if weightless else found


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
        ParseError: A range without a word on its use, where autolimits is off.
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
