"""A humanoid with the segments of an average man."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.model import Builder, Drive, Mechanism
from linkwise.model.hinges import Free, Gimbal, Pin, Universal
from linkwise.models.shapes import BLUE, IVORY, ORANGE, SLATE, capsule, solid
from linkwise.spatial import Pose, SpatialInertia
from linkwise.spatial.array import Array

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Segment:
    """A row of de Leva's table 4, male column.

    Attributes:
        length: For the reference man of 1.741 m [m].
        mass: Fraction of the body's mass.
        com: Distance of the centre of mass from the upper (foot: hind) end, fraction of length.
        radii: Radii of gyration about the sagittal (front-back), transverse (left-right) and
            longitudinal axis through the centre of mass, fraction of length.
    """

    length: float
    mass: float
    com: float
    radii: tuple[float, float, float]


HEAD = Segment(0.2429, 0.0694, 0.5002, (0.303, 0.315, 0.261))  # vertex to cervicale
UPPER_TRUNK = Segment(0.1707, 0.1596, 0.2999, (0.505, 0.320, 0.465))
MIDDLE_TRUNK = Segment(0.2155, 0.1633, 0.4502, (0.482, 0.383, 0.468))
LOWER_TRUNK = Segment(0.1457, 0.1117, 0.6115, (0.615, 0.551, 0.587))
UPPER_ARM = Segment(0.2817, 0.0271, 0.5772, (0.285, 0.269, 0.158))
FOREARM = Segment(0.2689, 0.0162, 0.4574, (0.276, 0.265, 0.121))
HAND = Segment(0.0862, 0.0061, 0.7900, (0.628, 0.513, 0.401))  # wrist to third knuckle
THIGH = Segment(0.4222, 0.1416, 0.4095, (0.329, 0.329, 0.149))
SHANK = Segment(0.4340, 0.0433, 0.4459, (0.255, 0.249, 0.103))
FOOT = Segment(0.2581, 0.0137, 0.4415, (0.257, 0.245, 0.124))

STATURE, MASS = 1.741, 73.0  # of the reference man [m], [kg]
SHOULDER_HEIGHT, NECK_HEIGHT = 0.5155, 0.6033  # above the hip joints [m]
SHOULDER_Y, HIP_Y, HEEL_X = 0.18, 0.085, -0.06  # half breadths; heel behind the ankle [m]
ANKLE_HEIGHT = STATURE - NECK_HEIGHT - HEAD.length - THIGH.length - SHANK.length
STANCE_HEIGHT = THIGH.length + SHANK.length + ANKLE_HEIGHT  # pelvis above the ground [m]


def humanoid(*, mass: float = MASS) -> Mechanism:
    """A man of 1.741 m on a free base. Exactly 30 dof: 6 of the pelvis and 24 in the joints.

                 ( )      head       neck        universal   yaw, pitch               2
            o────-+-────o            shoulders   gimbal      pitch, roll, yaw     2 × 3
            │   torso   │            elbows      pin         flexion              2 × 1
            o     |     o            waist       universal   yaw, pitch               2
            │  ─pelvis─ │            hips        gimbal      pitch, roll, yaw     2 × 3
            ∎  o     o  ∎ hands      knees       pin         flexion              2 × 1
               │     │               ankles      universal   pitch, roll          2 × 2
               o     o               ────────────────────────────────────────────────
               │     │               13 bodies, 30 dof, 31 coordinates (one quaternion)
              ─o    ─o    feet

    He stands upright at the neutral configuration, arms hanging, looking along x, y to his left.
    Pitch, roll and yaw turn about +y, +x and +z, in the order given; elbows and knees count flexion
    positive. The pelvis's frame is half way between the hips and the free hinge gives its place in
    the world; put its height to `STANCE_HEIGHT` = 0.895 m to have the soles on z = 0. Each limb's
    frame is at its upper joint. Nodes: "left_hand" and "right_hand" at the knuckles (they carry the
    hands' inertia), "left_sole" and "right_sole" below the ankles, "head_top".

    Lengths, masses, centres of mass and moments of inertia are those of a living man; breadths,
    the place of the ankle over the foot, joint ranges, torques and damping are rounded values of
    our own.

    Source: P. de Leva, "Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters", Journal
    of Biomechanics 29(9), 1996, 1223-1230, table 4, male column.

    Args:
        mass: Mass of the body [kg]; all segments keep their share of it.
    """
    b = Builder("humanoid")
    b.body(
        "pelvis",
        "world",
        Free(),
        hinge_name="floating_base",
        inertia=_upright(LOWER_TRUNK, mass, LOWER_TRUNK.length),
        geometry=(capsule("pelvis", (0.0, -HIP_Y, 0.03), (0.0, HIP_Y, 0.03), 0.085, SLATE),),
    )
    waist = LOWER_TRUNK.length
    xiphoid = MIDDLE_TRUNK.length
    b.body(
        "torso",
        "pelvis",
        Universal(Z, Y),
        hinge_name="waist",
        inboard=(0.0, 0.0, waist),
        inertia=_upright(MIDDLE_TRUNK, mass, xiphoid)
        + _upright(UPPER_TRUNK, mass, xiphoid + UPPER_TRUNK.length),
        drive=_joint((-0.8, -0.4), (0.8, 1.0), (150.0, 200.0)),
        geometry=(
            capsule("abdomen", (0.0, 0.0, -0.02), (0.0, 0.0, 0.16), 0.105, BLUE),
            capsule("chest", (0.0, -0.075, 0.28), (0.0, 0.075, 0.28), 0.11, BLUE),
            capsule("shoulders", (0.0, -0.14, 0.37), (0.0, 0.14, 0.37), 0.05, BLUE),
        ),
    )
    b.body(
        "head",
        "torso",
        Universal(Z, Y),
        hinge_name="neck",
        inboard=(0.0, 0.0, NECK_HEIGHT - waist),
        inertia=_upright(HEAD, mass, HEAD.length),
        drive=_joint((-1.2, -0.8), (1.2, 0.8), (15.0, 20.0)),
        geometry=(
            capsule("neck", (0.0, 0.0, -0.04), (0.0, 0.0, 0.04), 0.045, IVORY),
            solid(
                "skull", "ellipsoid", (0.095, 0.078, 0.12), (0.01, 0.0, HEAD.length - 0.12), IVORY
            ),
        ),
    )
    b.node("head_top", "head", Pose.translation((0.0, 0.0, HEAD.length)))
    for side, y in (("left", 1.0), ("right", -1.0)):
        _add_arm(b, side, y, mass)
        _add_leg(b, side, y, mass)
    return b.build()


def _add_arm(b: Builder, side: str, y: float, mass: float) -> None:
    """One arm on the left (y = 1) or the right (y = -1); roll outward has the sign of y."""
    elbow, wrist = (0.0, 0.0, -UPPER_ARM.length), (0.0, 0.0, -FOREARM.length)
    roll = sorted((-0.3 * y, 2.6 * y))
    b.body(
        f"{side}_upper_arm",
        "torso",
        Gimbal((Y, X, Z)),
        hinge_name=f"{side}_shoulder",
        inboard=(0.0, SHOULDER_Y * y, SHOULDER_HEIGHT - LOWER_TRUNK.length),
        inertia=_upright(UPPER_ARM, mass, 0.0),
        drive=_joint((-3.0, roll[0], -1.4), (0.9, roll[1], 1.4), (70.0, 70.0, 40.0)),
        geometry=(capsule("upper_arm", (0.0, 0.0, 0.0), elbow, 0.045, IVORY),),
    )
    b.body(
        f"{side}_forearm",
        f"{side}_upper_arm",
        Pin((0.0, -1.0, 0.0)),
        hinge_name=f"{side}_elbow",
        inboard=elbow,
        inertia=_upright(FOREARM, mass, 0.0),
        drive=_joint((0.0,), (2.5,), (60.0,)),
        geometry=(capsule("forearm", (0.0, 0.0, 0.0), wrist, 0.037, BLUE),),
    )
    knuckles = Pose.translation((0.0, 0.0, -FOREARM.length - HAND.length))
    b.node(
        f"{side}_hand",
        f"{side}_forearm",
        knuckles,
        inertia=_upright(HAND, mass, HAND.length),
        kind="link",
        geometry=(solid("hand", "ellipsoid", (0.045, 0.025, 0.085), (0.0, 0.0, 0.01), ORANGE),),
    )


def _add_leg(b: Builder, side: str, y: float, mass: float) -> None:
    """One leg on the left (y = 1) or the right (y = -1); roll outward has the sign of y."""
    knee, ankle = (0.0, 0.0, -THIGH.length), (0.0, 0.0, -SHANK.length)
    roll = sorted((-0.4 * y, 0.8 * y))
    b.body(
        f"{side}_thigh",
        "pelvis",
        Gimbal((Y, X, Z)),
        hinge_name=f"{side}_hip",
        inboard=(0.0, HIP_Y * y, 0.0),
        inertia=_upright(THIGH, mass, 0.0),
        drive=_joint((-2.1, roll[0], -0.7), (0.5, roll[1], 0.7), (220.0, 150.0, 80.0)),
        geometry=(capsule("thigh", (0.0, 0.0, 0.0), knee, 0.07, IVORY),),
    )
    b.body(
        f"{side}_shank",
        f"{side}_thigh",
        Pin(Y),
        hinge_name=f"{side}_knee",
        inboard=knee,
        inertia=_upright(SHANK, mass, 0.0),
        drive=_joint((0.0,), (2.4,), (220.0,)),
        geometry=(capsule("shank", (0.0, 0.0, 0.0), ankle, 0.052, BLUE),),
    )
    middle = (HEEL_X + 0.5 * FOOT.length, 0.0, 0.03 - ANKLE_HEIGHT)
    b.body(
        f"{side}_foot",
        f"{side}_shank",
        Universal(Y, X),
        hinge_name=f"{side}_ankle",
        inboard=ankle,
        inertia=_foot(mass),
        drive=_joint((-0.8, -0.4), (0.6, 0.4), (150.0, 50.0)),
        geometry=(solid("foot", "box", (FOOT.length, 0.09, 0.06), middle, ORANGE),),
    )
    b.node(f"{side}_sole", f"{side}_foot", Pose.translation((0.0, 0.0, -ANKLE_HEIGHT)))


def _joint(lower: tuple[float, ...], upper: tuple[float, ...], effort: tuple[float, ...]) -> Drive:
    """Ranges [rad] and torques [N m], one per degree of freedom."""
    return Drive(
        armature=0.01,
        damping=1.0,
        lower=lower,
        upper=upper,
        effort=effort,
        velocity=12.0,
    )


def _moments(segment: Segment, mass: float) -> Array:
    """m r² about the sagittal, transverse and longitudinal axis [kg m²]."""
    return segment.mass * mass * (segment.length * np.array(segment.radii)) ** 2


def _upright(segment: Segment, mass: float, top: float) -> SpatialInertia:
    """Inertia of a segment that lies along z, its upper end at height `top` in the frame [m]."""
    com = (0.0, 0.0, top - segment.com * segment.length)
    return SpatialInertia.from_com(segment.mass * mass, com, _moments(segment, mass))


def _foot(mass: float) -> SpatialInertia:
    """Inertia of the foot, which lies along x from the heel."""
    sagittal, transverse, longitudinal = _moments(FOOT, mass)
    com = (HEEL_X + FOOT.com * FOOT.length, 0.0, -0.5 * ANKLE_HEIGHT)
    return SpatialInertia.from_com(FOOT.mass * mass, com, (longitudinal, transverse, sagittal))
