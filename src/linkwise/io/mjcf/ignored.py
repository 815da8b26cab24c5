"""Which parts of an MJCF file are not used, and what would they affect?

MuJoCo knows far more than a mechanism: contact, rendering, actuators, sensors. The tables below
classify every element and attribute of MuJoCo's schema (`meaning`; a test walks the schema that
MuJoCo prints): used, refused, or what it would affect. What is in no table is unknown to MuJoCo as
well, and is reported as possibly affecting motion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from linkwise.io.report import Affects, Reporter
from linkwise.io.xml import Element

USED: Final = None
"""Marks an attribute that the reader uses."""

Table = Mapping[str, Affects | None]


def _table(used: str, **ignored: str) -> dict[str, Affects | None]:
    table: dict[str, Affects | None] = dict.fromkeys(used.split(), USED)
    for affects, names in ignored.items():
        for name in names.split():
            table[name] = affects  # type: ignore[assignment]
    return table


_ORIENTATION: Final = "quat axisangle euler xyaxes zaxis"

ATTRIBUTES: Final[dict[str, Table]] = {
    "mujoco": _table("model"),
    "compiler": _table(
        "angle eulerseq coordinate autolimits boundmass boundinertia settotalmass balanceinertia "
        "strippath fitaabb meshdir assetdir inertiafromgeom inertiagrouprange alignfree",
        appearance="texturedir discardvisual passthrough",
        other="usethread fusestatic saveinertial savecompiled savecanonical conflict",
    ),
    "option": _table(
        "gravity density viscosity wind",
        contact="o_friction o_margin o_solimp o_solref cone impratio noslip_iterations "
        "noslip_tolerance ccd_iterations ccd_tolerance sdf_initpoints sdf_iterations collision "
        "mpr_iterations mpr_tolerance",
        motion="actuatorgroupdisable",
        other="timestep integrator iterations jacobian ls_iterations ls_tolerance magnetic solver "
        "sleep_tolerance tolerance apirate",
    ),
    "flag": _table(
        "gravity constraint contact equality limit frictionloss spring damper passive filterparent",
        contact="midphase multiccd nativeccd override refsafe speculative ipc",
        motion="actuation clampctrl",
        control="sensor",
        other="autoreset diagexact energy eulerdamp fwdinv invdiscrete island sleep warmstart",
    ),
    "body": _table(
        f"name childclass mocap pos gravcomp {_ORIENTATION}", other="sleep simple fuse user"
    ),
    "frame": _table(f"name childclass pos scale massscale {_ORIENTATION}", other="scaling"),
    "attach": _table("model body prefix frame"),
    "model": _table("name file content_type"),
    "replicate": _table("count offset euler sep childclass"),
    "inertial": _table(f"pos mass diaginertia fullinertia {_ORIENTATION}"),
    "joint": _table(
        "name class type pos axis springdamper limited actuatorfrclimited actuatorfrcrange range "
        "stiffness ref springref armature damping frictionloss springyield",
        contact="solreflimit solimplimit solreffriction solimpfriction margin",
        motion="actuatorgravcomp",
        other="group user",
    ),
    "freejoint": _table("name align", other="group"),
    "geom": _table(
        "name class type contype conaffinity group size material mass density shellinertia fromto "
        f"pos hfield mesh fitscale rgba condim priority friction margin {_ORIENTATION}",
        contact="solmix solref solimp gap surfacevel adhesion",
        motion="fluidshape fluidcoef",
        appearance="castshadow",
        other="user",
    ),
    "pair": _table(
        "name class geom1 geom2 condim friction margin",
        contact="gap solref solreffriction solimp surfacevel adhesion",
    ),
    "exclude": _table("name body1 body2"),
    "site": _table(
        f"name class pos fromto {_ORIENTATION}",
        appearance="type size rgba material group mesh",
        other="user",
    ),
    "mesh": _table(
        "name class file content_type scale vertex face refpos refquat inertia maxhullvert builtin",
        motion="params",
        appearance="normal texcoord smoothnormal material",
    ),
    "hfield": _table("name file size nrow ncol elevation", appearance="content_type"),
    "tendon": _table(
        "name class joint coef",
        motion="stiffness damping frictionloss armature limited range springlength springyield "
        "actuatorfrclimited actuatorfrcrange",
        contact="margin solreflimit solimplimit solreffriction solimpfriction",
        control="site geom sidesite divisor",
        appearance="rgba material width",
        other="group user",
    ),
    "equality": _table(
        "name class active body1 body2 site1 site2 anchor relpose torquescale joint1 joint2 "
        "polycoef tendon1 tendon2",
        motion="solref solimp",
    ),
    "actuator": _table(
        "name class joint jointinparent tendon site refsite gear ctrllimited forcelimited "
        "actlimited ctrlrange forcerange actrange dyntype gaintype biastype dynprm gainprm biasprm "
        "kp kv dampratio timeconst inheritrange area diameter bias armature damping",
        motion="slidersite cranksite cranklength body actearly actdim nsample interp delay input "
        "ffrange velrange",
        control="lengthrange",
        other="group user",
    ),
    "material": _table(
        "name class rgba",
        appearance="texture emission metallic reflectance roughness shininess specular texrepeat "
        "texuniform",
    ),
}
"""Attributes by element: None for those used, else what they affect."""

_ACTUATORS: Final = (
    "general motor position velocity intvelocity orientation pid damper cylinder muscle adhesion "
    "dcmotor plugin"
)
ACTUATORS: Final = frozenset(_ACTUATORS.split())
"""Elements of the section `<actuator>`."""

SUPPORTED_ACTUATORS: Final = frozenset(
    ("general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder")
)
"""Kinds that are affine in command, length and rate."""

DEFAULT_AFFECTS: Final[dict[str, Affects]] = {
    **{tag: "control" for tag in ACTUATORS - SUPPORTED_ACTUATORS},
    "camera": "appearance",
    "light": "appearance",
    "texture": "appearance",
}
"""What a `<default>` for an element that is not read affects; by itself it does nothing."""

BODY_AFFECTS: Final[dict[str, Affects]] = {
    "camera": "appearance",
    "light": "appearance",
    "plugin": "motion",
}
"""Elements of a body that are reported as a whole."""

ASSET_AFFECTS: Final[dict[str, Affects]] = {
    "texture": "appearance",
    "skin": "appearance",
}
"""Assets that are reported as a whole."""

REFUSED: Final[dict[str, str]] = {
    "composite": "composite objects",
    "flexcomp": "flexible objects (flexcomp)",
    "flex": "deformable objects",
}
"""Elements on which the tree or the masses depend and that are not supported."""

SECTION_AFFECTS: Final[dict[str, Affects]] = {
    "sensor": "control",
    "keyframe": "other",
    "custom": "other",
    "extension": "motion",
}
"""Sections whose children are reported one by one."""

WHOLE_SECTIONS: Final[dict[str, Affects]] = {
    "visual": "appearance",
    "statistic": "appearance",
    "size": "other",
}
"""Sections that are reported as a whole."""


EQUALITIES: Final = ("connect", "weld", "joint", "tendon")
"""Kinds of equality that become loops and couplings."""


def meaning(path: tuple[str, ...]) -> Table | Affects | Literal["refused"] | None:
    """What an element of MJCF means here; None for one that is not in the tables.

    Args:
        path: Tags from below `<mujoco>` to the element, for instance ("worldbody", "body", "geom").

    Returns:
        A table of its attributes if it is read; else what it affects, with everything inside it,
        or "refused".
    """
    section, tag = path[0], path[-1]
    refused = next((one for one in path if one in REFUSED), None)
    if refused is not None and section != "equality":
        return "refused"
    if section in WHOLE_SECTIONS:
        return WHOLE_SECTIONS[section]
    if section in SECTION_AFFECTS:
        return SECTION_AFFECTS[section]
    if section == "contact":
        return {} if tag == "contact" else ATTRIBUTES.get(tag) or "motion"
    if "plugin" in path:
        return "motion"
    if section == "compiler" and tag == "lengthrange":
        return "control"
    if section == "deformable":
        return "appearance"
    if section == "equality":
        return ATTRIBUTES["equality"] if tag in (*EQUALITIES, "equality") else "motion"
    if section == "tendon":
        return ATTRIBUTES["tendon"]
    if section == "actuator":
        return ATTRIBUTES["actuator"] if tag in SUPPORTED_ACTUATORS else "motion"
    if tag in ("asset", "default", "worldbody"):
        return {"class": USED} if tag == "default" else {}
    if section == "asset" or tag == "layer":
        return ATTRIBUTES.get(tag) or ASSET_AFFECTS.get(tag) or "appearance"
    if section == "default":
        kind = "actuator" if tag in SUPPORTED_ACTUATORS else tag
        return DEFAULT_AFFECTS.get(tag) or ATTRIBUTES.get(kind)
    return ATTRIBUTES.get(tag) or BODY_AFFECTS.get(tag)


CHILDLESS: Final = ("flag", "mesh", "hfield", "material", "inertial", "equality")
"""Elements no child of which is read."""


_WHY: Final[dict[Affects, str]] = {
    "contact": "the softness of contacts and constraints does not act",
    "control": "commands and sensors are not part of a mechanism",
    "appearance": "rendering details are not kept",
    "motion": "it does not act",
    "other": "not part of a mechanism",
}


@dataclass(slots=True)
class Ignored:
    """Counts the attributes that are not used, so that each is reported once for all elements."""

    reporter: Reporter
    counts: dict[tuple[str, str], int] = field(default_factory=lambda: {})
    first: dict[tuple[str, str], tuple[Element, Affects | None]] = field(default_factory=lambda: {})

    def check(
        self, element: Element, table: str | None = None, *, unknown_only: bool = False
    ) -> None:
        """Note the unused attributes of an element, and children of one that has none."""
        name = table or element.tag
        known = ATTRIBUTES[name]
        for child in element.children if name in CHILDLESS else ():
            affects = "appearance" if child.tag == "layer" else "motion"
            ignore(self.reporter, child, affects, f"not read inside {element.label}")
        for attr in element.attrib:
            affects = known.get(attr, "unknown")
            if affects is USED or (unknown_only and affects != "unknown"):
                continue
            key = (element.tag, attr)
            self.counts[key] = self.counts.get(key, 0) + 1
            if key not in self.first:
                self.first[key] = (element, None if affects == "unknown" else affects)  # type: ignore[assignment]

    def flush(self) -> None:
        """Report what was counted."""
        for (tag, attr), count in self.counts.items():
            element, affects = self.first[tag, attr]
            others = f" (and {count - 1} more <{tag}>)" if count > 1 else ""
            if affects is None:
                reason = f"unknown attribute '{attr}'{others}"
                self.reporter.note(element, "ignored", reason, "motion")
            else:
                reason = f"attribute '{attr}'{others}: {_WHY[affects]}"
                self.reporter.note(element, "ignored", reason, affects)


def ignore(reporter: Reporter, element: Element, affects: Affects, why: str = "") -> None:
    """Report a whole element that is not used."""
    reporter.note(element, "ignored", why or _WHY[affects], affects)
