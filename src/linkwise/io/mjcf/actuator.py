"""Which actuators does an MJCF file have, and how are those of a mechanism written?

MuJoCo has one general actuator with an affine gain and bias, and shortcuts that fill it in:

    motor        f = u
    position     f = kp (u − l) − kv l̇
    velocity     f = kv (u − l̇)
    intvelocity  ȧ = u, f = kp (a − l) − kv l̇
    damper       f = −kv l̇ u
    cylinder     ȧ = (u − a)/T, f = area a + b₀ + b₁ l + b₂ l̇

`dampratio` means kv = 2 ratio √(kp m), with m the inertia that the actuator feels in the pose
the file describes, 1 / (c* M⁻¹ c).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

import numpy as np

from linkwise.errors import unknown_name
from linkwise.io.mjcf.actuator_class import MIXED
from linkwise.io.mjcf.compiler import MAIN, Compiler, Defaults, limited
from linkwise.io.mjcf.equality import FixedTendon, SpatialTendon
from linkwise.io.mjcf.ignored import ACTUATORS, SUPPORTED_ACTUATORS, Ignored
from linkwise.io.mjcf.joint import Joint
from linkwise.io.report import Reporter
from linkwise.io.xml import Element, choice, number, numbers
from linkwise.io.xml_write import digits, make, row
from linkwise.model.actuator import ALL, Actuator, Range, Three
from linkwise.model.mechanism import Mechanism
from linkwise.model.state import split_coordinate

Cables = tuple[tuple[str, str, float], ...]
"""As in `Actuator`."""

Dynamics = Literal["none", "integrator", "filter"]

_FILTERS: Final[dict[str, Dynamics]] = {
    "none": "none",
    "integrator": "integrator",
    "filter": "filter",
    "filterexact": "filter",
}


@dataclass(slots=True)
class Actuators:
    """Reads the sections `<actuator>`.

    Attributes:
        compiler: Global settings.
        defaults: Default classes.
        joints: Joints by name.
        tendons: Fixed tendons by name; None for spatial ones.
        spatial: Spatial tendons by name; None for those that wrap around geoms.
        sites: Node of each named site.
        mobility: c* M⁻¹ c of joints with gears c, in the pose that the file describes.
        reporter: Collects what is not used.
        ignored: Collects attributes that are not used.
    """

    compiler: Compiler
    defaults: Defaults
    joints: Mapping[str, Joint]
    tendons: Mapping[str, FixedTendon | None]
    spatial: Mapping[str, SpatialTendon | None]
    sites: Mapping[str, str]
    mobility: Callable[[Sequence[tuple[str, float]]], float]
    reporter: Reporter
    ignored: Ignored

    def read(self, root: Element) -> list[Actuator]:
        """The actuators that can act; the others are reported."""
        actuators, taken = list[Actuator](), set[str]()
        first: Element | None = None
        for section in root.findall("actuator"):
            for i, element in enumerate(section.children):
                if element.tag not in ACTUATORS:
                    continue  # reported with the drives
                merged = self.defaults.apply(element, MAIN, "actuator")
                name = merged.attrib.get("name") or f"{element.tag}:{i}"
                if name in taken:
                    raise element.error(f"the actuator name '{name}' is used twice")
                taken.add(name)
                actuator = self._read(element, merged, name)
                if actuator is not None:
                    actuators.append(actuator)
                    first = first or element
        if first is not None:
            count = "1 actuator acts" if len(actuators) == 1 else f"{len(actuators)} actuators act"
            reason = f"{count} in lw.rollout and lw.simulate with controls, and in lw.Simulator"
            self.reporter.note(first, "kept", reason, "motion")
        return actuators

    def _read(self, element: Element, merged: Element, name: str) -> Actuator | None:
        if element.tag not in SUPPORTED_ACTUATORS:
            return self._left_out(element, f"actuators of the kind '{element.tag}' do not act")
        self.ignored.check(element, "actuator")
        if MIXED in merged.attrib:
            what = f"its class has the law of a <{merged.attrib[MIXED]}>"
            return self._left_out(element, f"{what}, which is not combined with <{element.tag}>")
        ends = self._ends(element, merged)
        law = self._law(element, merged, ends[0] if ends else ())
        if ends is None or law is None:
            return None
        (joints, node, wrench, cables), (gain, bias, dynamics, time) = ends, law
        if (node or cables) and any(
            np.isfinite(j.drive.effort).any() for j in self.joints.values()
        ):
            reason = (
                "'actuatorfrcrange' of joints bounds what their motors push in sum; in MuJoCo "
                "actuators at sites and along cables count as well"
            )
            self.reporter.note(element, "approximate", reason, "motion")
        return Actuator(
            name,
            joints,
            node,
            wrench,
            gain,
            bias,
            self._range(merged, "ctrllimited", "ctrlrange", joints),
            self._range(merged, "forcelimited", "forcerange"),
            dynamics,
            time,
            self._range(
                merged, "actlimited", "actrange", joints if element.tag == "intvelocity" else ()
            ),
            cables,
        )

    def _left_out(self, element: Element, reason: str) -> None:
        self.reporter.note(element, "ignored", reason, "motion")

    # ------------------------------------------------------------------------- transmissions

    def _ends(
        self, element: Element, merged: Element
    ) -> tuple[tuple[tuple[str, float], ...], str, tuple[float, ...], Cables] | None:
        """Joints with gears, a node with its wrench, or cables."""
        gear = np.zeros(6)
        given = numbers(merged, "gear", (1, 6), 1.0)
        gear[: len(given)] = given
        attrib = merged.attrib
        if "joint" in attrib or "jointinparent" in attrib:
            name = attrib.get("joint") or attrib["jointinparent"]
            if name not in self.joints:
                raise element.error(str(unknown_name("joint", name, self.joints, owner="the file")))
            if self.joints[name].kind not in ("hinge", "slide"):
                kind = self.joints[name].kind
                return self._left_out(element, f"actuators of a {kind} joint do not act")
            return ((name, float(gear[0])),), "", (), ()
        if "tendon" in attrib:
            name = attrib["tendon"]
            if name not in self.tendons:
                raise element.error(
                    str(unknown_name("tendon", name, self.tendons, owner="the file"))
                )
            tendon = self.tendons[name]
            if tendon is None:
                return self._cables(element, name, float(gear[0]))
            return tuple((j, float(gear[0]) * c) for j, c in tendon), "", (), ()
        if "site" in attrib and "refsite" not in attrib:
            name = attrib["site"]
            if name not in self.sites:
                raise element.error(str(unknown_name("site", name, self.sites, owner="the file")))
            return (), self.sites[name], (*gear[3:].tolist(), *gear[:3].tolist()), ()
        ways = "joints, tendons and sites without 'refsite'"
        return self._left_out(element, f"actuators act on {ways} only")

    def _cables(
        self, element: Element, name: str, gear: float
    ) -> tuple[tuple[()], str, tuple[()], Cables] | None:
        """A spatial tendon, with sites as nodes."""
        path = self.spatial.get(name)
        if path is None:
            return self._left_out(
                element, f"the spatial tendon '{name}' wraps around geoms, and does not act"
            )
        if "dampratio" in element.attrib:
            return self._left_out(element, "'dampratio' of a spatial tendon does not act")
        for site in (x for piece in path for x in piece[:2]):
            if site not in self.sites:
                raise element.error(str(unknown_name("site", site, self.sites, owner="the file")))
        pieces = ((self.sites[a], self.sites[b], gear * share) for a, b, share in path)
        return (), "", (), tuple(pieces)

    # ---------------------------------------------------------------------------------- laws

    def _law(
        self, element: Element, merged: Element, joints: Sequence[tuple[str, float]]
    ) -> tuple[Three, Three, Dynamics, float] | None:
        """Gain, bias, dynamics and time constant."""
        tag = element.tag
        if tag == "general":
            return self._general(element, merged)
        kp, kv = number(merged, "kp", 1.0), number(merged, "kv", 1.0 if tag == "velocity" else 0.0)
        if "dampratio" in merged.attrib and tag in ("position", "intvelocity"):
            kv = 2.0 * number(merged, "dampratio") * math.sqrt(kp / self.mobility(joints))
        match tag:
            case "position":
                time = number(merged, "timeconst", 0.0)
                filtered: Dynamics = "filter" if time > 0.0 else "none"
                return (kp, 0.0, 0.0), (0.0, -kp, -kv), filtered, time
            case "intvelocity":
                return (kp, 0.0, 0.0), (0.0, -kp, -kv), "integrator", 0.0
            case "velocity":
                return (kv, 0.0, 0.0), (0.0, 0.0, -kv), "none", 0.0
            case "damper":
                return (0.0, 0.0, -kv), (0.0, 0.0, 0.0), "none", 0.0
            case "cylinder":
                area = number(merged, "area", 1.0)
                if "diameter" in merged.attrib:
                    area = 0.25 * math.pi * number(merged, "diameter") ** 2
                bias = _three(merged, "bias", 0.0)
                self._exact(element)
                return (area, 0.0, 0.0), bias, "filter", number(merged, "timeconst", 1.0)
            case _:
                return (1.0, 0.0, 0.0), (0.0, 0.0, 0.0), "none", 0.0

    def _general(
        self, element: Element, merged: Element
    ) -> tuple[Three, Three, Dynamics, float] | None:
        attrib = merged.attrib
        kinds = {
            "dyntype": attrib.get("dyntype", "none"),
            "gaintype": attrib.get("gaintype", "fixed"),
            "biastype": attrib.get("biastype", "none"),
        }
        allowed = {
            "dyntype": tuple(_FILTERS),
            "gaintype": ("fixed", "affine"),
            "biastype": ("none", "affine"),
        }
        for attr, kind in kinds.items():
            if kind not in allowed[attr]:
                self._left_out(element, f"an actuator with {attr}='{kind}' does not act")
                return None
        gain, bias = _three(merged, "gainprm", 1.0), _three(merged, "biasprm", 0.0)
        gain = gain if kinds["gaintype"] == "affine" else (gain[0], 0.0, 0.0)
        bias = bias if kinds["biastype"] == "affine" else (0.0, 0.0, 0.0)
        time = _three(merged, "dynprm", 1.0)[0]
        if kinds["dyntype"] == "filter":
            self._exact(element)
        dynamics = _FILTERS[choice(merged, "dyntype", tuple(_FILTERS), "none")]
        return gain, bias, dynamics, time if dynamics == "filter" else 0.0

    def _exact(self, element: Element) -> None:
        """A filter that MuJoCo steps by Euler's method, with an error of the order of the step."""
        reason = "the filter acts as 'filterexact': exactly for a command that is held over a step"
        self.reporter.note(element, "approximate", reason, "other")

    def _range(
        self, merged: Element, flag: str, attr: str, joints: Sequence[tuple[str, float]] = ()
    ) -> Range:
        """Bounds of commands, forces or activations."""
        share = number(merged, "inheritrange", 0.0)
        if share > 0.0 and len(joints) == 1:
            drive = self.joints[joints[0][0]].drive
            low, high = cast(float, drive.lower), cast(float, drive.upper)
            middle, half = 0.5 * (low + high), 0.5 * share * (high - low)
            return middle - half, middle + half
        if not limited(merged, flag, attr, self.compiler.of(merged).autolimits):
            return ALL
        low, high = numbers(merged, attr, 2, (0.0, 0.0)).tolist()
        if low > high:
            raise merged.error(f"'{attr}': the first bound has to be the smaller one")
        return low, high


def _three(element: Element, attr: str, first: float) -> Three:
    """The first three of up to ten numbers."""
    given = numbers(element, attr, (1, 10), first).tolist()
    a, b, c = [*given, 0.0, 0.0][:3]
    return a, b, c


# ---------------------------------------------------------------------------------------- writing


def actuator_elements(
    mech: Mechanism,
    joints: Mapping[str, Sequence[str]],
    sites: set[str],
    reporter: Reporter,
) -> tuple[list[Element], list[Element]]:
    """The actuators as `<general>`, and the fixed tendons that some of them pull.

    Args:
        mech: The mechanism.
        joints: Names of the joints of each hinge, in the order of its velocities.
        sites: Names of nodes that are sites.
        reporter: Collects what cannot be written.
    """
    actuators, tendons = list[Element](), list[Element]()
    for one in mech.actuators:
        attrib = {"name": one.name}
        if one.cables:
            signs = {math.copysign(1.0, gear) if gear else 0.0 for *_, gear in one.cables}
            if (
                any(x not in sites for *ends, _ in one.cables for x in ends)
                or len(signs | {0.0}) != 2
            ):
                reason = "in MJCF, tendons go through sites, and gears have one sign"
                reporter.note(f"actuator '{one.name}'", "ignored", reason, "motion")
                continue
            tendons.append(_spatial(one))
            attrib |= {"tendon": f"{one.name}.tendon", "gear": digits(signs.pop())}
        elif one.node:
            if one.node not in sites:
                reason = f"its node '{one.node}' is not written as a site"
                reporter.note(f"actuator '{one.name}'", "ignored", reason, "motion")
                continue
            attrib |= {"site": one.node, "gear": row((*one.wrench[3:], *one.wrench[:3]))}
        else:
            terms = list[tuple[str, float]]()
            for name, gear in one.joints:
                hinge, index = split_coordinate(name, mech.hinge_index)
                if joints.get(hinge):
                    terms.append((joints[hinge][index or 0], gear))
            if not terms:
                reporter.note(f"actuator '{one.name}'", "ignored", "its joints are locked", "other")
                continue
            if len(terms) == 1:
                attrib |= {"joint": terms[0][0], "gear": digits(terms[0][1])}
            else:
                parts = [make("joint", {"joint": j, "coef": digits(c)}) for j, c in terms]
                tendons.append(make("fixed", {"name": f"{one.name}.tendon"}, *parts))
                attrib["tendon"] = f"{one.name}.tendon"
        attrib |= _law_attributes(one)
        actuators.append(make("general", attrib))
    return actuators, tendons


def _spatial(one: Actuator) -> Element:
    """A tendon with a branch for each piece of cable."""
    parts = list[Element]()
    for a, b, gear in one.cables:
        parts.append(make("pulley", {"divisor": digits(1.0 / abs(gear))}))
        parts += [make("site", {"site": x}) for x in (a, b)]
    return make("spatial", {"name": f"{one.name}.tendon"}, *parts)


def _law_attributes(one: Actuator) -> dict[str, str]:
    attrib = {"gaintype": "affine", "gainprm": row(one.gain)}
    attrib |= {"biastype": "affine", "biasprm": row(one.bias)}
    if one.dynamics != "none":
        attrib["dyntype"] = "filterexact" if one.dynamics == "filter" else one.dynamics
        attrib["dynprm"] = digits(one.time_constant)
    for field, name in (("control", "ctrl"), ("force", "force"), ("activation", "act")):
        bounds = getattr(one, field)
        if bounds != ALL:
            attrib |= {f"{name}limited": "true", f"{name}range": row(bounds)}
    return attrib
