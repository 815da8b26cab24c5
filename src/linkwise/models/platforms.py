"""Parallel robots: the delta robot, and the Stewart platform on six legs."""

from __future__ import annotations

import numpy as np

from linkwise.errors import ModelError
from linkwise.model import Builder, Drive, Mechanism
from linkwise.model.hinges import Free, Pin, Prismatic, Spherical, Universal
from linkwise.models.shapes import BLUE, ORANGE, SLATE, STEEL, capsule, capsule_inertia, solid
from linkwise.spatial import Pose, SpatialInertia, rotation
from linkwise.spatial.array import Array

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
    r"""Three driven arms and three pairs of rods move a platform without turning it. 3 dof free.

          ─────┬───────base───────┬─────      z up, the base is above
              o                    o          arm k: a driven pin at the base, axis tangent
         arm /                      \         to the circle of radius base_radius
            o═╗                    ╔═o
               ╚╗╲   two rods    ╱╔╝          forearm k: two rods side by side, a
                 ╚╗╲   each    ╱╔╝            parallelogram of the width `width`
                   ╚═o┬──────┬o═╝
                      platform

    This is Clavel's robot with ball-ended rods: each rod hangs on its arm by a universal hinge, so
    that it does not spin about itself, and meets the platform in a ball. In the tree: three arms on
    pins, six rods on universals, the platform on a free hinge; 3 + 12 + 6 = 21 dof. Six loops
    "ball_1_left" ... "ball_3_right" are spherical: 18 rows, all independent, and three dof
    remain free. Rods of one pair stay parallel, which stops the platform from turning.

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
    plate = solid("base", "cylinder", (base_radius + 0.02, 0.02), (0, 0, 0.02), SLATE)
    b.node("base", "world", geometry=(plate,))
    b.body(
        "platform",
        "world",
        Free(),
        inboard=(0.0, 0.0, -depth),
        inertia=SpatialInertia.solid_cylinder(mass, platform_radius, 0.02),
        geometry=(solid("plate", "cylinder", (platform_radius, 0.02), (0.0, 0.0, 0.0), ORANGE),),
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


_HALF_GAP = np.deg2rad(12.0)  # half the angle between the two anchors of a pair


def stewart(
    *,
    base_radius: float = 0.55,
    platform_radius: float = 0.35,
    height: float = 0.7,
    mass: float = 12.0,
) -> Mechanism:
    r"""Six sliding legs carry a platform. 24 dof in the tree, 18 constraints, 6 free.

             ______________
            /___platform___\      six anchors in three pairs below, six above, turned by 60°
             /\    /\    /\       leg k: universal at the base, slider along the leg,
            /  \  /  \  /  \             ball at the platform
           /____\/____\/____\     the sliders are driven, the rest is passive
           \______base______/

    In the tree, "lower_k" turns on the base by a universal hinge, "upper_k" slides in it, and the
    body "platform" moves on a free hinge. Loop "ball_k" joins the node "leg_k" at the leg's end
    to the node "anchor_k" on the platform by a spherical hinge. At the neutral configuration the
    platform is level at `height`, all legs are equally long and the loops hold to rounding: each
    leg's frame is laid out from one anchor to the other, and a slider reads zero there.

    Args:
        base_radius: Radius of the circle of lower anchors [m].
        platform_radius: Radius of the circle of upper anchors [m].
        height: Height of the platform at the neutral configuration [m].
        mass: Mass of the platform [kg], a disc.
    """
    b = Builder("stewart")
    plate = Pose.translation((0.0, 0.0, -0.01))
    b.node(
        "base",
        "world",
        geometry=(solid("base", "cylinder", (base_radius + 0.05, 0.02), plate, SLATE),),
    )
    b.body(
        "platform",
        "world",
        Free(),
        inboard=(0.0, 0.0, height),
        inertia=SpatialInertia.solid_cylinder(mass, platform_radius, 0.04),
        geometry=(
            solid("plate", "cylinder", (platform_radius + 0.03, 0.03), (0.0, 0.0, 0.015), ORANGE),
        ),
    )
    universal, slider = Universal((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), Prismatic((0.0, 0.0, 1.0))
    ball, passive = Spherical(), Drive(damping=0.02)
    motor = Drive(damping=40.0, lower=-0.2, upper=0.2, effort=2000.0, velocity=0.5)
    for k, (foot, head) in enumerate(_anchors(base_radius, platform_radius), start=1):
        anchor = np.array([0.0, 0.0, height]) + head
        along = anchor - foot
        length = float(np.linalg.norm(along))
        rot = rotation.aligning(np.array([0.0, 0.0, 1.0]), along / length)
        sleeve, rod = (0.0, 0.0, 0.6 * length), (0.0, 0.0, -0.65 * length)
        b.body(
            f"lower_{k}",
            "world",
            universal,
            hinge_name=f"universal_{k}",
            inboard=Pose.rotation(rot, foot),
            inertia=capsule_inertia(2.0, (0.0, 0.0, 0.0), sleeve, 0.025),
            drive=passive,
            geometry=(capsule("sleeve", (0.0, 0.0, 0.0), sleeve, 0.025, BLUE),),
        )
        b.body(
            f"upper_{k}",
            f"lower_{k}",
            slider,
            hinge_name=f"slider_{k}",
            inboard=(0.0, 0.0, length),
            inertia=capsule_inertia(1.2, (0.0, 0.0, 0.0), rod, 0.014),
            drive=motor,
            geometry=(capsule("rod", (0.0, 0.0, 0.0), rod, 0.014, STEEL),),
        )
        b.node(f"leg_{k}", f"upper_{k}")
        b.node(f"anchor_{k}", "platform", Pose.translation(head))
        b.loop(f"ball_{k}", f"leg_{k}", f"anchor_{k}", ball)
    b.node("centre", "platform", Pose.translation((0.0, 0.0, 0.03)))
    return b.build()


def _anchors(base_radius: float, platform_radius: float) -> list[tuple[Array, Array]]:
    """Lower and upper anchor of each leg, each in a horizontal plane through its centre.

    Lower pairs sit around 0°, 120°, 240°, upper pairs around 60°, 180°, 300°; a leg goes from each
    lower anchor to the upper pair next to it, so neighbouring legs lean opposite ways.
    """
    legs: list[tuple[Array, Array]] = []
    for pair in range(3):
        for side in (-1.0, 1.0):
            lower = 2.0 * np.pi / 3.0 * pair + side * _HALF_GAP
            upper = 2.0 * np.pi / 3.0 * pair + side * (np.pi / 3.0 - _HALF_GAP)
            legs.append((base_radius * _direction(lower), platform_radius * _direction(upper)))
    return legs


def _direction(angle: float) -> Array:
    return np.array([np.cos(angle), np.sin(angle), 0.0])
