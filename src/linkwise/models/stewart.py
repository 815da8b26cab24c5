"""The Stewart platform: six legs in parallel."""

from __future__ import annotations

import numpy as np

from linkwise.model import Builder, Drive, Geometry, Mechanism
from linkwise.model.hinges import Free, Prismatic, Spherical, Universal
from linkwise.models.capsule import BLUE, ORANGE, SLATE, STEEL, capsule, capsule_inertia
from linkwise.spatial import Pose, SpatialInertia, rotation
from linkwise.spatial.array import Array

_HALF_GAP = np.deg2rad(12.0)  # half the angle between the two anchors of a pair


def stewart(
    *,
    base_radius: float = 0.55,
    platform_radius: float = 0.35,
    height: float = 0.7,
    mass: float = 12.0,
) -> Mechanism:
    r"""Six sliding legs carry a platform. 24 dof in the tree, 18 constraints, 6 freedoms.

             ______________
            /___platform___\      six anchors in three pairs below, six above, turned by 60°
             /\    /\    /\       leg k: universal at the base, slider along the leg,
            /  \  /  \  /  \             ball at the platform
           /____\/____\/____\     the sliders are driven, all else is passive
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
        geometry=(Geometry("base", "cylinder", (base_radius + 0.05, 0.02), plate, "both", SLATE),),
    )
    b.body(
        "platform",
        "world",
        Free(),
        inboard=(0.0, 0.0, height),
        inertia=SpatialInertia.solid_cylinder(mass, platform_radius, 0.04),
        geometry=(
            Geometry(
                "plate",
                "cylinder",
                (platform_radius + 0.03, 0.03),
                Pose.translation((0.0, 0.0, 0.015)),
                "both",
                ORANGE,
            ),
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
    """Lower and upper anchor of each leg, both in a horizontal plane through their own centre.

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
