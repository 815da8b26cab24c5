"""Which MJCF joints move a body as its hinge does?

The pose of a body in its parent is  I_1 H_1(q_1) O_1 I_2 H_2(q_2) O_2 ...  where all but the last
hinge move a body without mass. With S_i = O_i I_i+1 O_i+1 ... the way from hinge i to the body
frame at q = 0, this is

    X_0 T_1 T_2 ...,   X_0 = I_1 S_1,   T_i = S_i⁻¹ H_i(q_i) S_i,

a body at X_0 with joints whose points and axes are those of the hinges seen from the body frame.
A hinge with several degrees of freedom is a series of joints in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from linkwise.errors import ModelError
from linkwise.io.report import Reporter
from linkwise.io.urdf.split import split_hinge
from linkwise.io.xml import Element
from linkwise.io.xml_write import digits, make, row
from linkwise.model.body import WORLD, Body
from linkwise.model.hinges import Free, Hinge, Pin, Planar, Prismatic, Spherical
from linkwise.model.hinges.modified import Reversed
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import log

NO_LIMIT: Final = 1e10
"""Written for a missing limit if the other one exists [rad or m]."""


@dataclass(frozen=True, slots=True)
class JointOut:
    """A joint to be written, in the frame O of its hinge at q = 0.

    Attributes:
        kind: free, ball, slide or hinge.
        p, axis: A point on it and its axis.
        q: Which entry of the hinge's q it is; None for several.
        travel: Of a slide that follows the joint before it [m/rad].
    """

    kind: str
    p: Array
    axis: Array
    q: int | None = None
    travel: float | None = None


def joints_of(body: Body, reporter: Reporter) -> list[JointOut]:
    """The joints of one hinge, in series.

    Raises:
        ModelError: MJCF has no such joints.
    """
    hinge = body.hinge
    origin, z = np.zeros(3), np.array([0.0, 0.0, 1.0])
    if isinstance(hinge, Pin | Prismatic):
        return [JointOut("hinge" if isinstance(hinge, Pin) else "slide", origin, _a(hinge.axis), 0)]
    inner = hinge.hinge if isinstance(hinge, Reversed) else hinge
    if isinstance(inner, Spherical | Free):
        if inner is not hinge:
            _note(reporter, body, "it is written the other way round: its coordinates are inverted")
        if isinstance(inner, Spherical):
            return [JointOut("ball", origin, z)]
        if body.parent == WORLD:
            return [JointOut("free", origin, z)]
        _note(reporter, body, "a free hinge between bodies becomes three slides and a ball joint")
        return [
            *(JointOut("slide", origin, e, 4 + i) for i, e in enumerate(np.eye(3))),
            JointOut("ball", origin, z),
        ]
    if isinstance(hinge, Planar):
        reason = "it becomes two slides and a hinge: velocities are along the axes of the plane"
        _note(reporter, body, reason)
        x, y = hinge.in_plane
        axes = (("slide", x), ("slide", y), ("hinge", _a(hinge.normal)))
        return [JointOut(kind, origin, axis, i) for i, (kind, axis) in enumerate(axes)]
    split = split_hinge(hinge)
    if split is None:
        raise ModelError(
            f"body '{body.name}' moves on a {hinge.describe()} hinge, which MJCF cannot express; "
            "lock it, or replace it by pin, prismatic, spherical and free hinges"
        )
    joints: list[JointOut] = []
    frame = Pose.identity()
    for step in split[0]:
        frame = frame @ step.origin
        kind = "hinge" if step.kind == "revolute" else "slide"
        joints.append(JointOut(kind, frame.p, frame.rot @ step.axis, step.dof, step.travel))
    names = f"a {hinge.kind} hinge becomes {len(joints)} joints"
    if any(joint.travel is not None for joint in joints):
        reason = f"{names}, the slide following the hinge by an equality constraint"
        reporter.note(f"hinge '{body.hinge_name}'", "approximate", reason, "motion")
    else:
        _note(reporter, body, names)
    return joints


def joint_elements(
    body: Body,
    joints: Sequence[JointOut],
    names: Sequence[str],
    way: Pose,
    ref: float,
    reporter: Reporter,
) -> list[Element]:
    """The `<joint>` elements of one hinge.

    Args:
        body: The body the hinge moves.
        joints: Its joints, from `joints_of`.
        names: Their names.
        way: S_i, from the hinge frame to the frame of the element they are written in.
        ref: Coordinate of a single joint at the pose the file describes.
        reporter: Collects what a joint cannot express.
    """
    _check_rotation(body, joints, way, reporter)
    back = way.inverse()
    elements: list[Element] = []
    for joint, name in zip(joints, names, strict=True):
        attrib = {"name": name, "type": joint.kind}
        if joint.kind != "free":
            p = back.apply(joint.p)
            if p.any() and joint.kind != "slide":
                attrib["pos"] = row(p)
            if joint.kind != "ball":
                attrib["axis"] = row(back.rot @ joint.axis)
        if ref != 0.0:
            attrib["ref"] = digits(ref)
        if joint.travel is None:
            attrib |= _drive_attributes(body, joint, reporter)
        elements.append(make("joint", attrib))
    return elements


def reference(body: Body) -> Array:
    """Coordinates at which a body coincides with its parent, where a hinge or slide has them.

    A body between two joints of one MJCF body is where it is because of such a reference: written
    as one, it comes back in the same place. Without one this is q = 0.
    """
    hinge, none = body.hinge, body.hinge.neutral()
    if isinstance(hinge, Prismatic):
        q = np.array([-float(_a(hinge.axis) @ (body.inboard.rot.T @ body.inboard.p))])
    elif isinstance(hinge, Pin):
        back = log(body.inboard.rot.T @ body.outboard.rot.T)
        q = np.array([float(_a(hinge.axis) @ back)])
    else:
        return none
    apart = np.abs(body.pose(q).matrix - np.eye(4)).max()
    return q if apart < 1e-13 and abs(float(q[0])) > 1e-15 else none


def _check_rotation(body: Body, joints: Sequence[JointOut], way: Pose, reporter: Reporter) -> None:
    """The coordinates of ball and free joints are those of the body frame itself."""
    turned = bool((np.abs(way.rot - np.eye(3)) > 1e-12).any())
    free = joints[0].kind == "free"
    moved = free and any((np.abs(x.matrix - np.eye(4)) > 1e-12).any() for x in (body.inboard, way))
    if moved or (turned and any(joint.kind == "ball" for joint in joints)):
        _note(reporter, body, "its coordinates change to those of the body frame")


def _drive_attributes(body: Body, joint: JointOut, reporter: Reporter) -> dict[str, str]:
    drive, hinge = body.drive, body.hinge
    pick = _Pick(body, joint, reporter)
    ratio = pick("gear_ratio")
    values = {
        "armature": pick("armature") + ratio * ratio * pick("rotor_inertia"),
        "damping": pick("damping"),
        "frictionloss": pick("friction"),
        "stiffness": pick("stiffness"),
    }
    attributes = {key: digits(value) for key, value in values.items() if value != 0.0}
    if pick("rotor_inertia") != 0.0:
        _note(reporter, body, "rotor and gear are written as the armature they make")
    if joint.q is not None:
        rest = float(drive.array("rest", hinge)[joint.q])
        if rest != 0.0:
            attributes["springref"] = digits(rest)
        attributes |= _range(body, joint.q, reporter)
        effort = float(drive.array("effort", hinge)[_velocity(hinge, joint)])
        if effort <= 0.0:
            reason = f"MJCF has no limit of effort at {effort:g}"
            reporter.note(f"hinge '{body.hinge_name}'", "ignored", reason, "control")
        elif np.isfinite(effort):
            attributes |= {"actuatorfrclimited": "true", "actuatorfrcrange": row((-effort, effort))}
    else:
        if np.isfinite(drive.max_angle):
            attributes |= {"limited": "true", "range": row((0.0, drive.max_angle))}
        if np.isfinite(drive.array("effort", hinge)).any():
            reason = f"a {joint.kind} joint of MJCF has no limit of effort"
            reporter.note(f"hinge '{body.hinge_name}'", "ignored", reason, "control")
    if np.isfinite(drive.array("velocity", hinge)).any():
        reason = "MJCF has no limit of velocity"
        reporter.note(f"hinge '{body.hinge_name}'", "ignored", reason, "control")
    return attributes


def _range(body: Body, q: int, reporter: Reporter) -> dict[str, str]:
    low = float(body.drive.array("lower", body.hinge)[q])
    high = float(body.drive.array("upper", body.hinge)[q])
    if not np.isfinite(low) and not np.isfinite(high):
        return {}
    if not np.isfinite(low) or not np.isfinite(high):
        _note(reporter, body, f"a limit on one side is written with {NO_LIMIT:g} on the other")
        low, high = max(low, -NO_LIMIT), min(high, NO_LIMIT)
    if low >= high:
        reason = f"limits {low:g} and {high:g} leave no room; MJCF refuses them"
        reporter.note(f"hinge '{body.hinge_name}'", "ignored", reason, "control")
        return {}
    return {"limited": "true", "range": row((low, high))}


@dataclass(frozen=True, slots=True)
class _Pick:
    """The value of a drive's field for one joint: its own entry, or the one all share."""

    body: Body
    joint: JointOut
    reporter: Reporter

    def __call__(self, name: str) -> float:
        hinge = self.body.hinge
        values = self.body.drive.array(name, hinge)
        if self.joint.q is not None:
            return float(values[_velocity(hinge, self.joint)])
        if isinstance(hinge, Free) and self.joint.kind == "ball":
            values = values[:3]
        if (values != values[0]).any():
            reason = f"a {self.joint.kind} joint has one '{name}'; the mean is written"
            self.reporter.note(f"hinge '{self.body.hinge_name}'", "approximate", reason, "motion")
        return float(values.mean())


def _velocity(hinge: Hinge, joint: JointOut) -> int:
    """Which entry of v goes with the joint's entry of q."""
    assert joint.q is not None
    return joint.q - (hinge.nq - hinge.nv)


def _note(reporter: Reporter, body: Body, reason: str) -> None:
    reporter.note(f"hinge '{body.hinge_name}'", "approximate", reason, "other")


def _a(axis: tuple[float, float, float]) -> Array:
    return np.array(axis)
