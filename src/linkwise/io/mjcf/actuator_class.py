"""What does an actuator take over from its default class, where kinds differ?

All kinds of actuators share the defaults of a class. Within one kind its attributes do. Between
kinds MuJoCo passes on what the class comes to as a `<general>`:

    <general> of a class of a servo         has the gain and bias of that servo
    a servo of a class of another servo     has ranges and gears of it, but not its law; that of the
                                            same kind in a class above holds on
    a servo of a class of a <general>       has what it does not give from the first gain and the
                                            damping of that, if its gain is fixed
"""

from __future__ import annotations

from typing import Final

from linkwise.io.mjcf.ignored import SUPPORTED_ACTUATORS
from linkwise.io.xml import Element, number, numbers
from linkwise.io.xml_write import digits, row

KIND: Final = "kind of the class"
"""Marks in the table of a class which kind of actuator it is; no attribute has spaces."""

MIXED: Final = "law of the class"
"""Marks a servo whose class has a law of a `<general>` that is not combined with it."""

LAW: Final = frozenset(
    "kp kv dampratio timeconst gaintype gainprm biastype biasprm dyntype dynprm area diameter bias "
    "range force scale lmin lmax vmax fpmax fvmax tausmooth".split()
)
"""Attributes of laws."""

_GAINS: Final = {"position": "kp", "intvelocity": "kp", "velocity": "kv", "cylinder": "area"}
"""Kinds whose gain is that of a `<general>` unless they give it, and the attribute that does."""

_OF_ITS_OWN: Final = ("motor", "damper")
"""Kinds that take no law over."""


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
        above = {attr: rest[f"general {attr}"] for attr in LAW if f"general {attr}" in rest}
        base, known = rest | old, Element(before, law, [], "", element.line, element.file)
        if tag == "general":
            base = rest | _general(known)
        elif before == "general" and not old:
            base |= _servo(tag, known)
        elif above and tag not in _OF_ITS_OWN:
            base[MIXED] = "general"
    given = {x for pair in _ONE_OF for x in pair if pair & element.attrib.keys()}
    return {attr: x for attr, x in base.items() if attr not in given}


def _servo(tag: str, law: Element) -> dict[str, str]:
    """The attributes of a servo that acts as the law of a `<general>` says."""
    gain, bias = (numbers(law, x, (1, 10), d) for x, d in (("gainprm", 1.0), ("biasprm", 0.0)))
    dynamics = law.attrib.get("dyntype", "none")
    plain = {law.attrib.get("gaintype", "fixed"), law.attrib.get("biastype", "none")}
    slow = dynamics != "none" and tag in ("position", "cylinder")
    if tag in _OF_ITS_OWN or not law.attrib:
        return {}
    if not plain <= {"fixed", "affine", "none"} or (slow and "filter" not in dynamics):
        return {MIXED: "general"}
    if law.attrib.get("gaintype", "fixed") != "fixed":
        return {MIXED: "general"} if slow else {}
    time = {"timeconst": digits(numbers(law, "dynprm", (1, 10), 1.0)[0])}
    damping = -float([*bias, 0.0, 0.0][2])
    first = {_GAINS[tag]: digits(gain[0])} if "gainprm" in law.attrib else {}
    match tag:
        case "velocity":
            return first
        case "cylinder":
            return first | {"bias": row([*bias, 0.0, 0.0][:3])} | (time if slow else {})
        case _ if damping < 0.0 or (slow and dynamics != "filterexact"):
            return {MIXED: "general"}  # a positive number is a damping ratio
        case _:
            return first | ({"kv": digits(damping)} if damping else {}) | (time if slow else {})


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
