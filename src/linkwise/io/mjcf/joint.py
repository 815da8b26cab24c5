"""What is a joint: its hinge, where it stands, and what acts in it?

MuJoCo moves a body by its joints in order, each in the body frame reached so far:

    X_parent,body = X_0 T_1(q_1) T_2(q_2) ...
    hinge, ball   T(q) = translation(p) rot(q - ref) translation(-p)
    slide         T(q) = translation((q - ref) axis)

so that a joint becomes a hinge with O+ at inboard = X_0 translation(p), turned back by the
reference value, and the body frame away from it by outboard = translation(-p). The coordinate q
keeps its meaning: the pose the file describes is q = ref.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from linkwise.io.mjcf.compiler import Compiler, Options, limited
from linkwise.io.report import Reporter
from linkwise.io.xml import Element, choice, number, numbers
from linkwise.model.drive import Drive
from linkwise.model.hinges import Free, Hinge, Pin, Prismatic, Spherical
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import axis_angle

KINDS: Final = ("free", "ball", "slide", "hinge")
FREEDOMS: Final = {"free": 6, "ball": 3, "slide": 1, "hinge": 1}
SMALL: Final = 1e-14


@dataclass(slots=True)
class Joint:
    """A joint with its defaults applied, in the frame of its body.

    Attributes:
        element: Where it stands.
        name: Name of the hinge.
        kind: One of KINDS.
        p: A point on the joint (3,) [m].
        axis: Unit axis of a slide or hinge (3,).
        ref: Coordinate at the pose the file describes [rad or m].
        drive: Armature, damping, spring, limits.
        springdamper: Time constant [s] and damping ratio that decide spring and damper, if any.
    """

    element: Element
    name: str
    kind: str
    p: Array
    axis: Array
    ref: float
    drive: Drive
    springdamper: tuple[float, float] | None

    @property
    def hinge(self) -> Hinge:
        """The hinge that moves as this joint does."""
        x, y, z = (float(a) for a in self.axis)
        if self.kind == "hinge":
            return Pin((x, y, z))
        if self.kind == "slide":
            return Prismatic((x, y, z))
        return Spherical() if self.kind == "ball" else Free()

    @property
    def inboard(self) -> Pose:
        """Pose of O+ in the body frame before the joint moves."""
        if self.kind == "slide":
            return _shifted(-self.ref * self.axis)
        if self.kind == "hinge" and self.ref != 0.0:
            return Pose.rotation(axis_angle(self.axis, -self.ref), self.p)
        return _shifted(self.p)

    @property
    def outboard(self) -> Pose:
        """Pose of the body frame in O."""
        return Pose.identity() if self.kind == "slide" else _shifted(-self.p)


def read_joint(
    element: Element,
    name: str,
    frame: Pose,
    compiler: Compiler,
    options: Options,
    reporter: Reporter,
) -> Joint:
    """A `<joint>` or `<freejoint>`.

    Args:
        element: With its defaults applied.
        name: Name of the hinge.
        frame: Pose of the frame around it in the body.
        compiler: Global settings.
        options: Which passive forces act.
        reporter: Takes what cannot be said by a `Drive`.
    """
    free = element.tag == "freejoint"
    kind = "free" if free else choice(element, "type", KINDS, "hinge")
    p = np.zeros(3)
    if kind != "free":
        p = frame.apply(numbers(element, "pos", 3, (0.0, 0.0, 0.0)))
    axis = np.array([0.0, 0.0, 1.0])
    if kind in ("slide", "hinge"):
        axis = frame.rot @ numbers(element, "axis", 3, (0.0, 0.0, 1.0))
        length = float(np.linalg.norm(axis))
        if not SMALL <= length < np.inf:
            raise element.error(f"'axis' has length {length:.3g}, which has no direction")
        axis = axis / length
    if free:
        return Joint(element, name, kind, p, axis, 0.0, Drive(), None)
    unit = math.pi / 180.0 if compiler.degree and kind == "hinge" else 1.0
    ref = unit * number(element, "ref", 0.0) if kind in ("slide", "hinge") else 0.0
    timing = _springdamper(element)
    drive = _read_drive(element, kind, unit, compiler, options, reporter)
    return Joint(element, name, kind, p, axis, ref, drive, timing)


def _read_drive(
    element: Element,
    kind: str,
    unit: float,
    compiler: Compiler,
    options: Options,
    reporter: Reporter,
) -> Drive:
    stiffness = _polynomial(element, "stiffness", reporter) if options.springs else 0.0
    if kind == "free" and stiffness:
        reporter.note(element, "ignored", "'stiffness' of a free joint", "motion")
        stiffness = 0.0
    if number(element, "springyield", 0.0) > 0.0 and stiffness:
        reporter.note(element, "approximate", "the spring does not yield", "motion")
    lower, upper, max_angle = _limits(element, kind, compiler)
    rest = unit * number(element, "springref", 0.0) if kind in ("slide", "hinge") else 0.0
    return Drive(
        armature=number(element, "armature", 0.0),
        damping=_polynomial(element, "damping", reporter) if options.dampers else 0.0,
        friction=number(element, "frictionloss", 0.0) if options.friction else 0.0,
        stiffness=stiffness,
        rest=rest,
        lower=lower,
        upper=upper,
        effort=_effort(element, kind, compiler, reporter),
        max_angle=max_angle,
    )


def _polynomial(element: Element, attr: str, reporter: Reporter) -> float:
    """First of up to three coefficients; the others make the force nonlinear."""
    values = numbers(element, attr, (1, 3), 0.0)
    if values[1:].any():
        reason = f"only the first coefficient of '{attr}' is used: the force is taken as linear"
        reporter.note(element, "approximate", reason, "motion")
    return float(values[0])


def _limits(element: Element, kind: str, compiler: Compiler) -> tuple[float, float, float]:
    """Lower and upper limit, and the largest angle of a ball joint."""
    none = (-math.inf, math.inf, math.inf)
    if kind == "free" or not limited(element, "limited", "range", compiler.autolimits):
        return none
    low, high = numbers(element, "range", 2, (0.0, 0.0)).tolist()
    if compiler.degree and kind != "slide":
        low, high = low * (math.pi / 180.0), high * (math.pi / 180.0)
    if kind == "ball":
        if low != 0.0:
            raise element.error(f"'range' of a ball joint starts at 0; found {low:g}")
        return -math.inf, math.inf, high
    if low >= high:
        raise element.error(
            f"'range' is '{element.attrib.get('range', '0 0')}'; the first limit "
            "has to be the smaller one"
        )
    return low, high, math.inf


def _effort(element: Element, kind: str, compiler: Compiler, reporter: Reporter) -> float:
    """The larger of the two bounds on the actuator force."""
    if kind in ("free", "ball"):
        return math.inf
    if not limited(element, "actuatorfrclimited", "actuatorfrcrange", compiler.autolimits):
        return math.inf
    low, high = numbers(element, "actuatorfrcrange", 2, (0.0, 0.0)).tolist()
    if low >= high:
        raise element.error("'actuatorfrcrange': the first bound has to be the smaller one")
    if low != -high:
        reason = f"'actuatorfrcrange' {low:g} {high:g} becomes one bound on the size of the effort"
        reporter.note(element, "approximate", reason, "control")
    return max(abs(low), abs(high))


def _springdamper(element: Element) -> tuple[float, float] | None:
    """Time constant and damping ratio, None if they are not given or zero."""
    time, ratio = numbers(element, "springdamper", 2, (0.0, 0.0)).tolist()
    if time == 0.0 and ratio == 0.0:
        return None
    if time <= 0.0 or ratio <= 0.0:
        raise element.error("'springdamper' takes a positive time constant and damping ratio")
    return time, ratio


def _shifted(p: Array) -> Pose:
    return Pose.translation(p) if p.any() else Pose.identity()
