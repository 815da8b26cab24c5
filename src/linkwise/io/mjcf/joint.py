"""What is a joint: its hinge, its place, its drive, and the actuators on it?

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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from linkwise.errors import unknown_name
from linkwise.io.mjcf.compiler import MAIN, Compiler, Defaults, Options, limited
from linkwise.io.mjcf.ignored import ACTUATORS
from linkwise.io.mjcf.tree import BodyRecord
from linkwise.io.report import Reporter
from linkwise.io.xml import Element, choice, number, numbers
from linkwise.model.drive import Drive
from linkwise.model.hinges import Free, Hinge, Pin, Prismatic, Spherical
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import axis_angle

KINDS: Final = ("free", "ball", "slide", "hinge")
VELOCITIES: Final = {"free": 6, "ball": 3, "slide": 1, "hinge": 1}
SMALL: Final = 1e-14


@dataclass(slots=True)
class Joint:
    """A joint with its defaults applied, in the frame of its body.

    Attributes:
        element: Its element.
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
    """A `<joint>` or `<freejoint>`."""
    compiler = compiler.of(element)
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


def read_rotors(
    root: Element,
    defaults: Defaults,
    options: Options,
    joints: dict[str, Joint],
    reporter: Reporter,
) -> None:
    """Add rotor inertia and damping of actuators to their joints."""
    driven: set[str] = set()
    for section in root.findall("actuator"):
        for element in section.children:
            if element.tag not in ACTUATORS:
                reporter.note(element, "ignored", "unknown kind of actuator", "motion")
                continue
            merged = defaults.apply(element, MAIN, "actuator")
            armature = number(merged, "armature", 0.0)
            damping = float(numbers(merged, "damping", (1, 3), 0.0)[0])
            if not armature and not (damping and options.dampers):
                continue
            name = merged.attrib.get("joint") or merged.attrib.get("jointinparent")
            if name is None:
                reason = "'armature' and 'damping' are supported for actuators of joints only"
                reporter.note(element, "ignored", reason, "motion")
                continue
            if name not in joints:
                problem = unknown_name("joint", name, joints, owner="this model")
                raise element.error(str(problem))
            gear = float(numbers(merged, "gear", (1, 6), 1.0)[0])
            joint = joints[name]
            joint.drive = _geared(joint.drive, armature, gear, damping, name in driven)
            driven.add(name)


def _geared(drive: Drive, rotor: float, gear: float, damping: float, again: bool) -> Drive:
    """The drive with a rotor behind a gear; a second rotor is reflected to the joint."""
    had, armature = drive.damping, drive.armature
    assert isinstance(had, float)
    assert isinstance(armature, float)
    drive = replace(drive, damping=had + gear * gear * damping)
    if again:
        return replace(drive, armature=armature + gear * gear * rotor)
    return replace(drive, rotor_inertia=rotor, gear_ratio=gear)


MAX_VELOCITIES: Final = 2000
"""Most degrees of freedom for which the dense mass matrix is formed."""


def resolve_springdampers(
    records: Sequence[BodyRecord],
    joints: Sequence[Sequence[Joint]],
    inertias: Sequence[SpatialInertia],
    poses: Sequence[Pose],
    options: Options,
) -> None:
    """Replace stiffness and damping of the joints that have a `springdamper`."""
    timed = [joint for group in joints for joint in group if joint.springdamper is not None]
    if not timed:
        return
    total = sum(VELOCITIES[joint.kind] for group in joints for joint in group)
    if total > MAX_VELOCITIES:
        raise timed[0].element.error(
            f"'springdamper' needs the mass matrix; the model has {total} degrees of freedom, "
            f"and at most {MAX_VELOCITIES} are supported with it"
        )
    mass = mass_matrix(records, joints, inertias, poses)
    try:
        inverse = np.diag(np.linalg.inv(mass))
    except np.linalg.LinAlgError:
        inverse = np.full(total, np.nan)
    start = 0
    for group in joints:
        for joint in group:
            stop = start + VELOCITIES[joint.kind]
            if joint.springdamper is not None:
                inertia = 1.0 / max(float(inverse[start:stop].mean()), 1e-15)
                if not np.isfinite(inertia):
                    raise joint.element.error(
                        "'springdamper' needs joints that move inertia independently of each other"
                    )
                time, ratio = joint.springdamper
                joint.drive = replace(
                    joint.drive,
                    stiffness=inertia / (time * ratio) ** 2 if options.springs else 0.0,
                    damping=2.0 * inertia / time if options.dampers else 0.0,
                )
            start = stop


def mass_matrix(
    records: Sequence[BodyRecord],
    joints: Sequence[Sequence[Joint]],
    inertias: Sequence[SpatialInertia],
    poses: Sequence[Pose],
) -> Array:
    """M_ij = S_i* R S_j with R the composite inertia of the outer one, all in the world frame."""
    composite = [inertia.moved(pose).matrix for inertia, pose in zip(inertias, poses, strict=True)]
    for k in range(len(records) - 1, 0, -1):
        composite[records[k].parent] = composite[records[k].parent] + composite[k]
    screws = [_screws(group, pose) for group, pose in zip(joints, poses, strict=True)]
    starts = np.concatenate([[0], np.cumsum([len(rows) for rows in screws])])
    mass = np.zeros((int(starts[-1]), int(starts[-1])))
    for k, rows in enumerate(screws):
        if not len(rows):
            continue
        momentum = rows @ composite[k]
        here = slice(starts[k], starts[k + 1])
        a = k
        while a > 0:
            above = slice(starts[a], starts[a + 1])
            mass[here, above] = momentum @ screws[a].T
            mass[above, here] = mass[here, above].T
            a = records[a].parent
    armature = [np.full(VELOCITIES[j.kind], _armature(j)) for group in joints for j in group]
    return mass + np.diag(np.concatenate([np.zeros(0), *armature]))


def _armature(joint: Joint) -> float:
    drive = joint.drive
    assert isinstance(drive.armature, float)
    assert isinstance(drive.gear_ratio, float)
    assert isinstance(drive.rotor_inertia, float)
    return drive.armature + drive.gear_ratio**2 * drive.rotor_inertia


def _screws(joints: Sequence[Joint], pose: Pose) -> Array:
    """Unit velocities (n, 6) of the joints, angular first, at the world's origin."""
    rows: list[Array] = []
    for joint in joints:
        point = pose.apply(joint.p)
        if joint.kind == "slide":
            rows.append(np.concatenate([np.zeros(3), pose.rot @ joint.axis]))
            continue
        if joint.kind == "free":
            rows += list(np.hstack([np.zeros((3, 3)), np.eye(3)]))
        axes = [pose.rot @ joint.axis] if joint.kind == "hinge" else list(pose.rot.T)
        rows += [np.concatenate([axis, np.cross(point, axis)]) for axis in axes]
    return np.array(rows).reshape(-1, 6)
