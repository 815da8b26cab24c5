"""A biped with both feet on the ground."""

from __future__ import annotations

import numpy as np

from linkwise.model import Builder, Drive, Mechanism
from linkwise.model.hinges import Free, Gimbal, Hinge, Locked, Pin, Universal
from linkwise.models.shapes import (
    BLUE,
    IVORY,
    ORANGE,
    SLATE,
    capsule,
    capsule_inertia,
    pitch,
    solid,
)
from linkwise.spatial import Pose, SpatialInertia

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
TRUNK = (0.18, 0.30, 0.45)  # edges [m]
THIGH = SHANK = 0.36  # [m]
HIP_Y, ANKLE_HEIGHT, FOOT = 0.10, 0.07, (0.20, 0.09, 0.03)  # [m]
STANCE = 0.35  # thighs lean forward by this, knees bend back by twice it [rad]
HIP_HEIGHT = (THIGH + SHANK) * float(np.cos(STANCE)) + ANKLE_HEIGHT  # above ground [m]


def biped(*, contact: Hinge | None = None) -> Mechanism:
    r"""A trunk on a free hinge and two legs, both feet held by the ground. 18 dof, 6 of them free.

            ┌───────┐       trunk on the free hinge "floating_base", frame between the hips
            │ trunk │
            └─o───o─┘       hips      gimbal      pitch, roll, yaw     2 × 3
              /   /         knees     pin         flexion              2 × 1
             o   o          ankles    universal   pitch, roll          2 × 2
              \   \
              _o_ _o_       feet      loops "left_contact", "right_contact" to the ground
            ///////////

    Each loop joins a node on the ground, "left_ground" or "right_ground", to the node "left_sole"
    or "right_sole" in the middle of the sole, below the ankle. By default it is locked: the
    foot is flat on the ground and does not slip, six rows each, and the trunk can still move in all
    six directions. A pin about y leaves the foot to tip over its edge, a spherical hinge makes a
    point contact. The ground pulls as well as it pushes; whether a foot would lift is for the
    constraint forces to show.

    At the neutral configuration it stands with the knees bent, which is folded into the inboard
    poses: thighs lean forward by 0.35 rad, knees bend by 0.7 rad and the feet are level on z = 0,
    right below the hips. All angles count from there. x is forward, y to the left.

    Masses: trunk 20 kg, each thigh 3, shank 2, foot 1 kg: 32 kg. Our own design, the size of a
    ten-year-old child.

    Args:
        contact: What the ground leaves free at a sole; `Locked()` unless given.
    """
    contact = Locked() if contact is None else contact
    b = Builder("biped")
    middle = Pose.translation((0.0, 0.0, 0.5 * TRUNK[2] + 0.03))
    b.body(
        "trunk",
        "world",
        Free(),
        hinge_name="floating_base",
        inboard=(0.0, 0.0, HIP_HEIGHT),
        inertia=SpatialInertia.solid_box(20.0, TRUNK).moved(middle),
        geometry=(
            solid("trunk", "box", TRUNK, middle, IVORY),
            capsule("hips", (0.0, -HIP_Y, 0.0), (0.0, HIP_Y, 0.0), 0.05, SLATE),
        ),
    )
    for side, y in (("left", HIP_Y), ("right", -HIP_Y)):
        _add_leg(b, side, y)
        b.node(f"{side}_ground", "world", Pose.translation((0.0, y, 0.0)))
        b.loop(f"{side}_contact", f"{side}_ground", f"{side}_sole", contact)
    return b.build()


def _add_leg(b: Builder, side: str, y: float) -> None:
    """Thigh, shank and foot, each with its frame at its upper joint."""
    origin, knee, ankle = (0.0, 0.0, 0.0), (0.0, 0.0, -THIGH), (0.0, 0.0, -SHANK)
    b.body(
        f"{side}_thigh",
        "trunk",
        Gimbal((Y, X, Z)),
        hinge_name=f"{side}_hip",
        inboard=Pose.rotation(pitch(-STANCE), (0.0, y, 0.0)),
        inertia=capsule_inertia(3.0, origin, knee, 0.05),
        drive=Drive(lower=(-1.5, -0.6, -0.6), upper=(1.2, 0.6, 0.6), effort=120.0),
        geometry=(capsule("thigh", origin, knee, 0.05, BLUE),),
    )
    b.body(
        f"{side}_shank",
        f"{side}_thigh",
        Pin(Y),
        hinge_name=f"{side}_knee",
        inboard=Pose.rotation(pitch(2.0 * STANCE), knee),
        inertia=capsule_inertia(2.0, origin, ankle, 0.04),
        drive=Drive(lower=-0.65, upper=1.6, effort=120.0),
        geometry=(capsule("shank", origin, ankle, 0.04, IVORY),),
    )
    plate = Pose.translation((0.03, 0.0, -ANKLE_HEIGHT + 0.5 * FOOT[2]))
    b.body(
        f"{side}_foot",
        f"{side}_shank",
        Universal(Y, X),
        hinge_name=f"{side}_ankle",
        inboard=Pose.rotation(pitch(-STANCE), ankle),
        inertia=SpatialInertia.solid_box(1.0, FOOT).moved(plate),
        drive=Drive(lower=(-0.9, -0.5), upper=(0.9, 0.5), effort=80.0),
        geometry=(solid("foot", "box", FOOT, plate, ORANGE),),
    )
    b.node(f"{side}_sole", f"{side}_foot", Pose.translation((0.0, 0.0, -ANKLE_HEIGHT)))
