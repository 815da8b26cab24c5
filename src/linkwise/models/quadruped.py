"""A four-legged robot of the size of a dog."""

from __future__ import annotations

import numpy as np

from linkwise.model import Builder, Drive, Mechanism
from linkwise.model.hinges import Free, Pin
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

TRUNK = (0.42, 0.18, 0.11)  # edges [m]
THIGH, SHANK, FOOT_RADIUS = 0.21, 0.21, 0.02  # [m]
HIP_X, HIP_Y, HIP_OFFSET = 0.19, 0.06, 0.08  # hip in the trunk; leg plane outside the hip [m]
STANCE = 0.8  # thigh leans back by this, the knee bends forward by twice it [rad]
STANCE_HEIGHT = (THIGH + SHANK) * float(np.cos(STANCE)) + FOOT_RADIUS  # trunk above ground [m]


def quadruped() -> Mechanism:
    r"""A trunk on a free hinge and four legs of three pins each. 18 dof.

           ┌──────────────────┐ ⇒ x     every leg, from the trunk outward:
           │      trunk       │           _abduction about x,
           o──────────────────o           _hip about y,
          /                  /            _knee about y,
         o                  o             node _foot at the sole
          \                  \
           •                  •         front_left, front_right, hind_left, hind_right

    At the neutral configuration it stands: thighs lean back by 0.8 rad and knees bend forward by
    1.6 rad, which is folded into the inboard poses, so all leg angles count from the stance and
    the feet are right below the hips. The trunk's frame is its centre and the free hinge gives its
    place in the world; put its height to `STANCE_HEIGHT` = 0.313 m to have the feet on z = 0.

    Masses: trunk 6.0 kg, each abductor 0.6, thigh 0.9, shank 0.2 kg: 12.8 kg. Our own
    design, in the range of today's electric robots of that size, with motors of 18 to 28 N m
    behind small gear ratios.
    """
    b = Builder("quadruped")
    nose = Pose.translation((0.5 * TRUNK[0], 0.0, 0.0))
    b.body(
        "trunk",
        "world",
        Free(),
        hinge_name="floating_base",
        inertia=SpatialInertia.solid_box(6.0, TRUNK),
        geometry=(
            solid("trunk", "box", TRUNK, (0.0, 0.0, 0.0), IVORY),
            solid("face", "box", (0.08, 0.1, 0.06), nose, SLATE, "visual"),
        ),
    )
    for end, x in (("front", HIP_X), ("hind", -HIP_X)):
        for side, y in (("left", 1.0), ("right", -1.0)):
            _add_leg(b, f"{end}_{side}", x, y)
    return b.build()


def _add_leg(b: Builder, leg: str, x: float, side: float) -> None:
    """One leg at `x` [m] along the trunk, on the left (+1) or the right (-1)."""
    hip_end, knee, toe = (0.0, side * HIP_OFFSET, 0.0), (0.0, 0.0, -THIGH), (0.0, 0.0, -SHANK)
    origin = (0.0, 0.0, 0.0)
    b.body(
        f"{leg}_abductor",
        "trunk",
        Pin((1.0, 0.0, 0.0)),
        hinge_name=f"{leg}_abduction",
        inboard=(x, side * HIP_Y, 0.0),
        inertia=capsule_inertia(0.6, origin, hip_end, 0.045),
        drive=_motor(0.85, 18.0, 6.0),
        geometry=(capsule("motor", origin, hip_end, 0.045, SLATE),),
    )
    b.body(
        f"{leg}_thigh",
        f"{leg}_abductor",
        Pin((0.0, 1.0, 0.0)),
        hinge_name=f"{leg}_hip",
        inboard=Pose.rotation(pitch(STANCE), hip_end),
        inertia=capsule_inertia(0.9, origin, knee, 0.028),
        drive=_motor(1.6, 18.0, 6.0),
        geometry=(capsule("thigh", origin, knee, 0.028, BLUE),),
    )
    b.body(
        f"{leg}_shank",
        f"{leg}_thigh",
        Pin((0.0, 1.0, 0.0)),
        hinge_name=f"{leg}_knee",
        inboard=Pose.rotation(pitch(-2.0 * STANCE), knee),
        inertia=capsule_inertia(0.2, origin, toe, 0.014),
        drive=_motor(1.0, 28.0, 9.3),
        geometry=(
            capsule("shank", origin, toe, 0.014, IVORY),
            solid("foot", "sphere", (FOOT_RADIUS,), toe, ORANGE),
        ),
    )
    sole = Pose.rotation(pitch(STANCE), toe) @ Pose.translation((0.0, 0.0, -FOOT_RADIUS))
    b.node(f"{leg}_foot", f"{leg}_shank", sole)


def _motor(limit: float, effort: float, ratio: float) -> Drive:
    """A motor with a rotor of 7e-5 kg m² behind a small gear; the range is ±limit [rad]."""
    return Drive(
        rotor_inertia=7e-5,
        gear_ratio=ratio,
        damping=0.05,
        friction=0.1,
        lower=-limit,
        upper=limit,
        effort=effort,
        velocity=30.0,
    )
