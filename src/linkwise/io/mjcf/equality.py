"""Which loops and couplings do the sections `<equality>` and `<tendon>` make?

connect → a loop that leaves the rotations free; weld → a loop that leaves nothing free; joint and
tendon → a coupling of coordinates. MuJoCo enforces these softly, by forces; here they hold exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from linkwise.errors import unknown_name
from linkwise.io.mjcf.compiler import MAIN, Defaults, boolean
from linkwise.io.mjcf.ignored import Ignored
from linkwise.io.mjcf.joint import Joint
from linkwise.io.mjcf.orientation import make_pose
from linkwise.io.mjcf.tree import Names
from linkwise.io.report import Reporter
from linkwise.io.xml import Element, number, numbers, required, shorten
from linkwise.model.builder import Builder
from linkwise.model.hinges import Hinge, Locked, Spherical
from linkwise.spatial import quaternion
from linkwise.spatial.pose import Pose

FixedTendon = list[tuple[str, float]]
"""Joints of a fixed tendon with their coefficients: length = Σ coef q."""

SpatialTendon = list[tuple[str, str, float]]
"""Sites at both ends of each straight piece, and one over the divisor of its pulley."""

_PARTS = ("fixed", "spatial", "joint", "site", "geom", "pulley")
_FORCES = ("stiffness", "damping", "frictionloss", "armature")
_POLYNOMIAL: Final = (0.0, 1.0, 0.0, 0.0, 0.0)


@dataclass(slots=True)
class Equalities:
    """Adds loops and couplings to a builder.

    Attributes:
        builder: Takes them.
        reporter: Collects what is not supported.
        bodies: World pose of each body at the configuration the file describes.
        sites: Node of each site, by the site's name.
        joints: Joints by name, each with the name of the body its hinge moves.
        tendons: Fixed tendons by name; None for spatial ones.
        taken: Names of bodies and nodes.
    """

    builder: Builder
    reporter: Reporter
    bodies: Mapping[str, Pose]
    sites: Mapping[str, str]
    joints: Mapping[str, tuple[Joint, str, str, Pose]]
    tendons: Mapping[str, FixedTendon | None]
    taken: Names
    names: Names = field(default_factory=Names)
    follows: dict[str, set[str]] = field(default_factory=lambda: {})

    def read(self, root: Element, defaults: Defaults, ignored: Ignored, enabled: bool) -> None:
        """All elements of all sections, in order."""
        add: dict[str, Callable[[Element, str], None]] = {
            "connect": self.connect,
            "weld": self.weld,
            "joint": self.joint,
            "tendon": self.tendon,
        }
        for section in root.findall("equality"):
            for element in section.children:
                if element.tag not in add:
                    reason = f"equality constraints of type '{element.tag}' are not supported"
                    self.reporter.note(element, "ignored", reason, "motion")
                    continue
                ignored.check(element, "equality")
                merged = defaults.apply(element, MAIN, "equality")
                if not enabled:
                    self.reporter.note(element, "ignored", "equalities are disabled", "motion")
                elif not boolean(merged, "active", True):
                    self.reporter.note(element, "ignored", "it is not active", "motion")
                else:
                    name = self.names.fresh(element.attrib.get("name") or element.tag)
                    add[element.tag](merged, name)

    def connect(self, element: Element, name: str) -> None:
        """A point of body 1 stays on a point of body 2."""
        if "anchor" not in element.attrib:
            self.between_sites(element, name, Spherical())
            return
        one, two = self.two_bodies(element)
        at_one = Pose.translation(numbers(element, "anchor", 3))
        at_two = self.bodies[two].inverse().apply(self.bodies[one].apply(at_one.p))
        self.add_loop(name, (one, at_one), (two, Pose.translation(at_two)), Spherical())

    def weld(self, element: Element, name: str) -> None:
        """Body 2 stays fixed to body 1, as in the file or at the pose `relpose`."""
        scale = number(element, "torquescale", 1.0)
        hinge = Locked() if scale != 0.0 else Spherical()
        if scale not in (0.0, 1.0):
            reason = f"'torquescale' {scale:g} weighs soft constraints; this one holds exactly"
            self.reporter.note(element, "approximate", reason, "contact")
        if "body1" not in element.attrib:
            self.between_sites(element, name, hinge)
            return
        one, two = self.two_bodies(element)
        at_two = Pose.translation(numbers(element, "anchor", 3, (0.0, 0.0, 0.0)))
        relpose = numbers(element, "relpose", 7, (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
        if relpose[3:].any():
            at_one = make_pose(quaternion.normalise(relpose[3:]), relpose[:3])
        else:
            at_one = self.bodies[one].inverse() @ self.bodies[two] @ at_two
        self.add_loop(name, (one, at_one), (two, at_two), hinge)

    def joint(self, element: Element, name: str) -> None:
        """y - y0 = a0 + a1 (x - x0) + ... + a4 (x - x0)^4 for joints 1 (y) and 2 (x)."""
        first = self.scalar_joint(element, required(element, "joint1"))
        coefficients = _polynomial(element)
        if "joint2" not in element.attrib:
            self.hold(name, first, first.ref + coefficients[0])
            return
        second = self.scalar_joint(element, required(element, "joint2"))
        shifted = np.polynomial.Polynomial(coefficients)(
            np.polynomial.Polynomial([-second.ref, 1.0])
        )
        powers = np.asarray(shifted.coef, dtype=np.float64)
        powers = np.concatenate([powers, np.zeros(5 - len(powers))])
        powers[0] += first.ref
        if first.name == second.name:
            raise element.error("the two joints are the same one")
        if powers[2:].any():
            if first.name in self.follows or self.reaches(second.name, first.name):
                raise element.error(
                    f"joint '{first.name}' would follow twice, or in a cycle, which couplings "
                    "cannot express"
                )
            terms = {second.name: np.trim_zeros(powers[1:], "b").tolist()}
            self.add_coupling(name, first.name, terms, float(powers[0]))
            return
        linear = {first.name: 1.0, second.name: -float(powers[1])}
        self.add_linear(element, name, linear, float(powers[0]))

    def tendon(self, element: Element, name: str) -> None:
        """L1 - L1_0 = a0 + a1 (L2 - L2_0) + ... for fixed tendons, whose length is Σ coef q."""
        first = self.fixed_tendon(element, "tendon1")
        constant, slope, *higher = _polynomial(element)
        second = self.fixed_tendon(element, "tendon2") if "tendon2" in element.attrib else []
        if first is None or second is None or (second and any(higher)):
            reason = "only linear equalities of fixed tendons are supported"
            self.reporter.note(element, "ignored", reason, "motion")
            return
        linear: dict[str, float] = {}
        for factor, tendon in ((1.0, first), (-slope, second)):
            for joint, coef in tendon:
                linear[joint] = linear.get(joint, 0.0) + factor * coef
                constant += factor * coef * self.scalar_joint(element, joint).ref
        self.add_linear(element, name, linear, constant)

    def hold(self, name: str, joint: Joint, value: float) -> None:
        """A joint held at one value: the body welded to its parent at the pose it has there."""
        _, parent, body, inboard = self.joints[joint.name]
        held = inboard @ joint.hinge.pose(np.array([value]))
        self.add_loop(name, (parent, held), (body, joint.outboard.inverse()), Locked())

    def add_linear(
        self, element: Element, name: str, linear: Mapping[str, float], constant: float
    ) -> None:
        """Σ c_j q_j = constant, solved for a joint that does not follow others yet."""
        moving = {joint: c for joint, c in linear.items() if c != 0.0}
        if len(moving) < 2:
            if not moving:
                raise element.error("this equality constrains nothing")
            joint, c = next(iter(moving.items()))
            self.hold(name, self.scalar_joint(element, joint), constant / c)
            return
        for joint, c in moving.items():
            others = {key: -value / c for key, value in moving.items() if key != joint}
            if joint not in self.follows and not any(self.reaches(k, joint) for k in others):
                self.add_coupling(name, joint, {k: [v] for k, v in others.items()}, constant / c)
                return
        raise element.error(
            "every joint of this equality follows others already; couplings must not form cycles"
        )

    def add_coupling(
        self, name: str, dependent: str, terms: Mapping[str, list[float]], offset: float
    ) -> None:
        """A coupling, remembered so that later ones do not form a cycle."""
        self.follows[dependent] = set(terms)
        self.builder.couple(name, dependent, terms, offset=offset)

    def reaches(self, start: str, goal: str) -> bool:
        """Whether `start` follows `goal`, directly or through others."""
        seen, stack = {start}, [start]
        while stack:
            for joint in self.follows.get(stack.pop(), ()):
                if joint == goal:
                    return True
                if joint not in seen:
                    seen.add(joint)
                    stack.append(joint)
        return False

    def between_sites(self, element: Element, name: str, hinge: Hinge) -> None:
        """A loop between two sites."""
        ends = [self.site_node(element, attr) for attr in ("site1", "site2")]
        self.builder.loop(name, ends[0], ends[1], hinge)

    def add_loop(self, name: str, a: tuple[str, Pose], b: tuple[str, Pose], hinge: Hinge) -> None:
        """A loop between two places, each a body and a pose on it; they become nodes."""
        ends: list[str] = []
        for (body, pose), side in ((a, "a"), (b, "b")):
            end = self.taken.fresh(f"{name}.{side}")
            self.builder.node(end, body, pose)
            ends.append(end)
        self.builder.loop(name, ends[0], ends[1], hinge)

    def two_bodies(self, element: Element) -> tuple[str, str]:
        """Names of body 1 and body 2; without the second it is the world."""
        one = required(element, "body1")
        two = required(element, "body2") if "body2" in element.attrib else "world"
        for name in (one, two):
            if name not in self.bodies:
                problem = unknown_name("body", name, self.bodies, owner="this model")
                raise element.error(str(problem))
        return one, two

    def site_node(self, element: Element, attr: str) -> str:
        """Node of the site that an attribute names."""
        name = required(element, attr)
        if name not in self.sites:
            raise element.error(str(unknown_name("site", name, self.sites, owner="this model")))
        return self.sites[name]

    def scalar_joint(self, element: Element, name: str) -> Joint:
        """A hinge or slide by its name."""
        if name not in self.joints:
            raise element.error(str(unknown_name("joint", name, self.joints, owner="this model")))
        joint = self.joints[name][0]
        if joint.kind not in ("hinge", "slide"):
            raise element.error(
                f"joint '{shorten(name)}' is a {joint.kind} joint; a hinge or slide is needed"
            )
        return joint

    def fixed_tendon(self, element: Element, attr: str) -> FixedTendon | None:
        """The tendon an attribute names; None for one that is not a sum of coordinates."""
        name = required(element, attr)
        if name not in self.tendons:
            problem = unknown_name("tendon", name, self.tendons, owner="this model")
            raise element.error(str(problem))
        return self.tendons[name]


def _polynomial(element: Element) -> list[float]:
    """The five numbers of `polycoef`; those not given are 0 1 0 0 0."""
    given = numbers(element, "polycoef", (1, 5), _POLYNOMIAL).tolist()
    return [*given, *_POLYNOMIAL[len(given) :]]


def read_tendons(
    root: Element, defaults: Defaults, reporter: Reporter, ignored: Ignored
) -> dict[str, FixedTendon | None]:
    """Tendons by name: joints and coefficients of fixed ones, None for spatial ones."""
    tendons: dict[str, FixedTendon | None] = {}
    sections = [x for name in ("actuator", "equality") for x in root.findall(name)]
    ends = ("tendon", "tendon1", "tendon2")
    pulled = {
        x.attrib[a] for part in sections for x in part.children for a in ends if a in x.attrib
    }
    for section in root.findall("tendon"):
        for element in section.children:
            if element.tag not in ("fixed", "spatial"):
                reporter.note(element, "ignored", "unknown kind of tendon", "motion")
                continue
            idle = element.attrib.get("name", "") not in pulled
            _report_forces(defaults.apply(element, MAIN, "tendon"), element, reporter, idle=idle)
            for part in element.walk():
                if part.tag in _PARTS:  # the item of a tendon that does not act is about all of it
                    acts = part is element and not idle and not set(_FORCES) & set(part.attrib)
                    ignored.check(part, "tendon", unknown_only=not acts)
                else:
                    reporter.note(part, "ignored", "unknown element in a tendon", "motion")
            name = element.attrib.get("name", "")
            if not name:
                continue
            if name in tendons:
                raise element.error("the tendon name is used twice")
            tendons[name] = _read_fixed(element) if element.tag == "fixed" else None
    return tendons


def read_paths(root: Element) -> dict[str, SpatialTendon | None]:
    """Spatial tendons by name, as straight pieces; None for those that wrap around geoms."""
    paths: dict[str, SpatialTendon | None] = {}
    for section in root.findall("tendon"):
        for element in section.findall("spatial"):
            pieces, last, share = list[tuple[str, str, float]](), "", 1.0
            for child in element.children:
                if child.tag == "pulley":
                    divisor = number(child, "divisor")
                    if not divisor > 0.0:
                        raise child.error("'divisor' of a pulley has to be positive")
                    last, share = "", 1.0 / divisor
                elif child.tag == "site":
                    site = required(child, "site")
                    pieces += [(last, site, share)] if last else []
                    last = site
            wraps = any(child.tag == "geom" for child in element.children)
            paths[element.attrib.get("name", "")] = None if wraps else pieces
    return paths


def _read_fixed(element: Element) -> FixedTendon:
    return [
        (required(child, "joint"), number(child, "coef"))
        for child in element.children
        if child.tag == "joint"
    ]


def _report_forces(merged: Element, element: Element, reporter: Reporter, *, idle: bool) -> None:
    """A tendon acts if it has forces or limits; otherwise only what pulls at it acts."""
    acting = [
        attr for attr in _FORCES if attr in merged.attrib and numbers(merged, attr, (1, 3)).any()
    ]
    if "range" in merged.attrib and merged.attrib.get("limited") != "false":
        acting.append("range")
    if acting:
        reason = f"tendon forces and limits ({', '.join(acting)}) are not supported"
        reporter.note(element, "ignored", reason, "motion")
    elif idle:
        reason = "tendons are used in equalities and by actuators only; none of them names it"
        reporter.note(element, "ignored", reason, "control")
