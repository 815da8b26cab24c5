"""The delta robot: three arms carry a platform that never turns."""

from __future__ import annotations

import numpy as np

from linkwise.errors import ModelError
from linkwise.model import Builder, Drive, Geometry, Mechanism
from linkwise.model.hinges import Free, Pin, Spherical, Universal
from linkwise.models.capsule import BLUE, ORANGE, SLATE, STEEL, capsule, capsule_inertia
from linkwise.spatial import Pose, SpatialInertia, rotation

ROD_RADIUS, ARM_RADIUS = 0.006, 0.018  # [m]


def delta(
    *,
    base_radius: float = 0.20,
    platform_radius: float = 0.06,
    arm: float = 0.25,
    forearm: float = 0.55,
    width: float = 0.08,
    mass: float = 0.3,
) -> Mechanism:
    r"""Three driven arms and three pairs of rods move a platform without turning it. 3 freedoms.

          ─────┬───────base───────┬─────      z up, the base is above
              o                    o          arm k: a driven pin at the base, axis tangent
         arm /                      \         to the circle of radius base_radius
            o═╗                    ╔═o
               ╚╗╲   two rods    ╱╔╝          forearm k: two rods side by side, a
                 ╚╗╲   each    ╱╔╝            parallelogram of the width `width`
                   ╚═o┬──────┬o═╝
                      platform

    This is Clavel's robot with ball-ended rods: each rod hangs on its arm by a universal
    hinge, so that it does not spin about itself, and meets the platform in a ball. In the
    tree: three arms on pins, six rods on universals, the platform on a free hinge; 3 + 12 + 6 = 21
    dof. Six loops "ball_1_left" ... "ball_3_right" are spherical: 18 rows, all independent, and
    three freedoms are left. Rods of one pair stay parallel, which stops the platform from turning.

    At the neutral configuration all arms are level, pointing outwards, and the platform is
    straight below the centre of the base; the frames of the rods have z along the rod, away from
    the arm. Node "tool" is the centre of the platform.

    A pair of rods stops the platform from turning about the axis across both of them. Where three
    such axes lie in one plane, as when all rods are upright, nothing stops one turn of the
    platform: the loops are singular there.

    Args:
        base_radius: Distance of the arms' pins from the centre [m].
        platform_radius: Distance of the middles of the rods' ends from the platform's centre [m].
        arm: Length of the arms [m].
        forearm: Length of the rods [m].
        width: Distance of the two rods of a pair [m].
        mass: Mass of the platform [kg].

    Raises:
        ModelError: The rods are too short to reach the platform with the arms level.
    """
    reach = base_radius + arm - platform_radius
    if not abs(reach) < forearm:
        raise ModelError(
            f"delta with level arms needs rods longer than base_radius + arm - platform_radius = "
            f"{reach:.6g} m; forearm={forearm:.6g} m is not."
        )
    depth = float(np.sqrt(forearm**2 - reach**2))
    b = Builder("delta")
    plate = Geometry(
        "base",
        "cylinder",
        (base_radius + 0.02, 0.02),
        Pose.translation((0, 0, 0.02)),
        "both",
        SLATE,
    )
    b.node("base", "world", geometry=(plate,))
    b.body(
        "platform",
        "world",
        Free(),
        inboard=(0.0, 0.0, -depth),
        inertia=SpatialInertia.solid_cylinder(mass, platform_radius, 0.02),
        geometry=(
            Geometry("plate", "cylinder", (platform_radius, 0.02), Pose.identity(), "both", ORANGE),
        ),
    )
    b.node("tool", "platform")
    across = np.array([0.0, 0.5 * width, 0.0])
    for k in (1, 2, 3):
        turn = rotation.axis_angle(np.array([0.0, 0.0, 1.0]), 2.0 * np.pi * (k - 1) / 3.0)
        elbow, head = np.array([arm, 0.0, 0.0]), np.array([platform_radius, 0.0, 0.0])
        b.body(
            f"arm_{k}",
            "world",
            Pin((0.0, 1.0, 0.0)),
            hinge_name=f"motor_{k}",
            inboard=Pose.rotation(turn, turn @ np.array([base_radius, 0.0, 0.0])),
            inertia=capsule_inertia(0.4, (0, 0, 0), elbow, ARM_RADIUS),
            drive=Drive(lower=-1.2, upper=1.5, effort=15.0, velocity=10.0),
            geometry=(
                capsule("arm", (0, 0, 0), elbow, ARM_RADIUS, BLUE),
                capsule("elbow", elbow - across, elbow + across, 0.6 * ARM_RADIUS, BLUE),
            ),
        )
        # From the elbow to the platform, seen from the level arm.
        lean = rotation.aligning(
            np.array([0.0, 0.0, 1.0]), np.array([-reach, 0.0, -depth]) / forearm
        )
        for side, offset in (("left", across), ("right", -across)):
            rod = f"rod_{k}_{side}"
            end = (0.0, 0.0, forearm)
            b.body(
                rod,
                f"arm_{k}",
                Universal((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
                hinge_name=f"universal_{k}_{side}",
                inboard=Pose.rotation(lean, elbow + offset),
                inertia=capsule_inertia(0.05, (0, 0, 0), end, ROD_RADIUS),
                geometry=(capsule("rod", (0, 0, 0), end, ROD_RADIUS, STEEL),),
            )
            b.node(f"{rod}_end", rod, Pose.translation(end))
            b.node(f"joint_{k}_{side}", "platform", Pose.translation(turn @ (head + offset)))
            b.loop(f"ball_{k}_{side}", f"{rod}_end", f"joint_{k}_{side}", Spherical())
    return b.build()
