"""How are loops and couplings written as MJCF equalities?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from linkwise.io.mjcf.joint_write import JointOut
from linkwise.io.report import Reporter
from linkwise.io.xml import Element
from linkwise.io.xml_write import digits, make, row
from linkwise.model.body import Coupling, Loop
from linkwise.model.drive import Drive
from linkwise.model.hinges import Locked, Pin, Spherical
from linkwise.model.mechanism import Mechanism
from linkwise.model.state import split_coordinate
from linkwise.spatial.pose import Pose


@dataclass(slots=True)
class EqualityWriter:
    """Collects equalities, the tendons and the sites they need.

    Attributes:
        mech: The mechanism.
        reporter: Collects what cannot be written.
        joints: Names of the joints of each hinge, with what they are.
        sites: Names of nodes that are sites.
        refs: Reference coordinates of joints, zero for those not in it.
        new_sites: Further sites that loops need: body and pose by name.
    """

    mech: Mechanism
    reporter: Reporter
    joints: Mapping[str, Sequence[tuple[str, JointOut]]]
    sites: set[str]
    refs: Mapping[str, float]
    new_sites: dict[str, tuple[str, Pose]] = field(default_factory=lambda: {})
    equalities: list[Element] = field(default_factory=lambda: [])
    tendons: list[Element] = field(default_factory=lambda: [])

    def write(self, follow: Sequence[tuple[str, str, float]]) -> None:
        """All loops and couplings, and slides that follow a hinge: (slide, hinge, travel)."""
        for loop in self.mech.loops:
            self.loop(loop)
        for coupling in self.mech.couplings:
            self.coupling(coupling)
        for slide, hinge, travel in follow:
            coefficients = row((0.0, travel, 0.0, 0.0, 0.0))
            attrib = {"name": slide, "joint1": slide, "joint2": hinge, "polycoef": coefficients}
            self.equalities.append(make("joint", attrib))

    def sections(self) -> list[Element]:
        """`<tendon>` and `<equality>`, if there is something in them."""
        sections: list[Element] = []
        if self.tendons:
            sections.append(make("tendon", {}, *self.tendons))
        if self.equalities:
            sections.append(make("equality", {}, *self.equalities))
        return sections

    def loop(self, loop: Loop) -> None:
        """A loop between two sites: weld, connect, or two connects on the axis of a pin."""
        where = f"loop '{loop.name}'"
        if loop.drive != Drive():
            reason = "MJCF cannot express what acts inside the hinge of a loop"
            self.reporter.note(where, "ignored", reason, "motion")
        hinge = loop.hinge
        if isinstance(hinge, Locked | Spherical):
            tag = "weld" if isinstance(hinge, Locked) else "connect"
            held = hinge.pose(hinge.neutral())
            ends = (self.site(loop, "a", held), self.site(loop, "b", Pose.identity()))
            self.between(tag, loop.name, ends)
        elif isinstance(hinge, Pin):
            reason = "a pin is written as two points held together on its axis"
            self.reporter.note(where, "approximate", reason, "other")
            for i, shift in enumerate((0.0, 1.0)):
                point = Pose.translation(shift * np.array(hinge.axis))
                tail = "" if i == 0 else ":2"
                ends = (self.site(loop, "a", point, tail), self.site(loop, "b", point, tail))
                self.between("connect", loop.name + tail, ends)
        else:
            reason = f"MJCF has no loop that leaves a {hinge.describe()} hinge free"
            self.reporter.note(where, "ignored", reason, "motion")

    def between(self, tag: str, name: str, ends: tuple[str, str]) -> None:
        """A connect or weld of two sites."""
        attrib = {"name": name, "site1": ends[0], "site2": ends[1]}
        self.equalities.append(make(tag, attrib))

    def site(self, loop: Loop, side: str, pose: Pose, tail: str = "") -> str:
        """Name of the site at one end of a loop, moved by `pose`; a new one where it has to be."""
        end = loop.node_a if side == "a" else loop.node_b
        if end in self.sites and pose.is_identity:
            return end
        name = f"{loop.name}.{side}{tail}"
        taken = {*self.mech.body_index, *self.mech.node_index, *self.new_sites}
        while name in taken:
            name += "_"
        node = self.mech.node(end)
        self.new_sites[name] = (node.body, node.pose @ pose)
        return name

    def coupling(self, coupling: Coupling) -> None:
        """One polynomial as a joint equality, several linear terms as one of a fixed tendon."""
        where = f"coupling '{coupling.name}'"
        names = [self.joint(n) for n in (coupling.dependent, *(n for n, _ in coupling.terms))]
        if None in names:
            reason = "MJCF couples single hinges and slides only"
            self.reporter.note(where, "ignored", reason, "motion")
            return
        joints = [str(name) for name in names]
        terms = [_trimmed(coefficients) for _, coefficients in coupling.terms]
        if len(terms) == 1 and len(terms[0]) <= 4:
            powers = self.about_reference([coupling.offset, *terms[0]], joints[0], joints[1])
            attrib = {"name": coupling.name, "joint1": joints[0], "joint2": joints[1]}
            self.equalities.append(make("joint", {**attrib, "polycoef": row(powers)}))
            return
        if any(len(coefficients) > 1 for coefficients in terms):
            reason = "MJCF couples by one quartic polynomial, or by several linear terms"
            self.reporter.note(where, "ignored", reason, "motion")
            return
        # q - Σ c_j q_j is the length of a fixed tendon, held at the offset.
        coefficients = [1.0, *(-c[0] for c in terms)]
        wraps = [
            make("joint", {"joint": joint, "coef": digits(c)})
            for joint, c in zip(joints, coefficients, strict=True)
        ]
        self.tendons.append(make("fixed", {"name": coupling.name}, *wraps))
        attrib = {"name": coupling.name, "tendon1": coupling.name}
        length = sum(
            c * self.refs.get(joint, 0.0) for joint, c in zip(joints, coefficients, strict=True)
        )
        held = row((coupling.offset - length, 0.0, 0.0, 0.0, 0.0))
        self.equalities.append(make("tendon", {**attrib, "polycoef": held}))

    def about_reference(self, powers: list[float], first: str, second: str) -> list[float]:
        """Five coefficients of y - y0 in powers of x - x0, with the references x0 and y0."""
        y0, x0 = self.refs.get(first, 0.0), self.refs.get(second, 0.0)
        if x0 != 0.0:
            shift = np.polynomial.Polynomial([x0, 1.0])
            powers = np.polynomial.Polynomial(powers)(shift).coef.tolist()
        powers = [*powers, 0.0, 0.0, 0.0, 0.0][:5]
        return [powers[0] - y0, *powers[1:]]

    def joint(self, coordinate: str) -> str | None:
        """Joint of a coordinate, "hinge" or "hinge[i]"; None if it is not a separate joint."""
        hinge, index = split_coordinate(coordinate)
        for name, joint in self.joints.get(hinge, ()):
            if joint.q == (index or 0) and joint.travel is None:
                return name
        return None


def _trimmed(coefficients: Sequence[float]) -> list[float]:
    """Without zeros at the end, but one coefficient at least."""
    trimmed = list(coefficients)
    while len(trimmed) > 1 and trimmed[-1] == 0.0:
        trimmed.pop()
    return trimmed or [0.0]
