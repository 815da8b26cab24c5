"""What does an actuator take over from its default class, where kinds differ?

All kinds of actuators share the defaults of a class. Within one kind its attributes do. Between
kinds MuJoCo passes on what the class comes to as a `<general>`:

    <general> of a class of a servo         has the gain and bias of that servo
    a servo of a class of another servo     has ranges and gears of it, but not its law; that of the
                                            same kind in a class above holds on
    a servo of a class of a <general>       has its own law if it gives its gain, else is left out
"""

from __future__ import annotations

from typing import Final

from linkwise.io.mjcf.ignored import SUPPORTED_ACTUATORS
from linkwise.io.xml import Element, number
from linkwise.io.xml_write import digits, row

KIND: Final = "kind of the class"
"""Marks in the table of a class which kind of actuator it is; no attribute has spaces."""

MIXED: Final = "law of the class"
"""Marks a servo whose class has the law of a `<general>`."""

LAW: Final = frozenset(
    "kp kv dampratio timeconst gaintype gainprm biastype biasprm dyntype dynprm area diameter bias "
    "range force scale lmin lmax vmax fpmax fvmax tausmooth".split()
)
"""Attributes of laws."""

_GAINS: Final = {"position": "kp", "intvelocity": "kp", "velocity": "kv", "cylinder": "area"}
"""Kinds whose gain is that of a `<general>` unless they give it, and the attribute that does."""


def passed_on(base: dict[str, str], element: Element) -> dict[str, str]:
    """What of a class is passed on to an actuator, or to a default.

    Args:
        base: Attributes of the class, with its `KIND`.
        element: The actuator or default.
    """
    before, tag = base.get(KIND, element.tag), element.tag
    if before != tag:
        law = {attr: x for attr, x in base.items() if attr in LAW}
        rest = {attr: x for attr, x in base.items() if attr not in LAW}
        rest |= {f"{before} {attr}": x for attr, x in law.items()}
        old = {attr: rest[f"{tag} {attr}"] for attr in LAW if f"{tag} {attr}" in rest}
        base = rest | old
        if tag == "general":
            several = {"gaintype": "that of several defaults"}
            known = Element(before, law, [], "", element.line, element.file)
            base |= several if old else _general(known)
    given = {x for pair in _ONE_OF for x in pair if pair & element.attrib.keys()}
    base = {attr: x for attr, x in base.items() if attr not in given}
    general = {attr: base.get(f"general {attr}", "none") for attr in ("gainprm", "dyntype")}
    if tag in _GAINS:
        filtered = tag in ("position", "cylinder") and general["dyntype"] != "none"
        gain = {_GAINS[tag], "diameter"} & (base.keys() | element.attrib.keys())
        if filtered or (general["gainprm"] != "none" and not gain):
            base[MIXED] = "general"
    return base


def _general(law: Element) -> dict[str, str]:
    """The attributes of a `<general>` that acts as a default of another kind does."""
    kind, time = law.tag, number(law, "timeconst", 0.0) if law.tag in _TIMED else 0.0
    if "dampratio" in law.attrib:
        return {"biastype": f"dampratio of a default {kind}"}
    if kind not in SUPPORTED_ACTUATORS or "diameter" in law.attrib:
        return {"gaintype": f"that of a default {kind}"}
    kp, kv = number(law, "kp", 1.0), number(law, "kv", 1.0 if kind == "velocity" else 0.0)
    affine = {"gainprm": digits(kp), "biastype": "affine", "biasprm": row((0.0, -kp, -kv))}
    match kind:
        case "position":
            return affine | ({"dyntype": "filterexact", "dynprm": digits(time)} if time else {})
        case "intvelocity":
            return affine | {"dyntype": "integrator"}
        case "velocity":
            return affine | {"gainprm": digits(kv), "biasprm": row((0.0, 0.0, -kv))}
        case "damper":
            return {"gaintype": "affine", "gainprm": row((0.0, 0.0, -kv))}
        case "cylinder":
            bias = {"biastype": "affine", "biasprm": law.attrib.get("bias", "0 0 0")}
            filtered = {"dyntype": "filter", "dynprm": digits(time or 1.0)}
            return {"gainprm": digits(number(law, "area", 1.0))} | bias | filtered
        case _:
            return {}


_ONE_OF: Final = (frozenset({"kv", "dampratio"}), frozenset({"area", "diameter"}))
"""Attributes of which the one that is given last counts."""

_TIMED: Final = ("position", "cylinder")
"""Kinds with one time constant."""
