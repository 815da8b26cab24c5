"""A seven-axis arm: spherical shoulder, elbow, spherical wrist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.arguments import constant
from linkwise.model import Builder, Drive, Mechanism
from linkwise.model.hinges import Pin
from linkwise.models.shapes import (
    BLUE,
    IVORY,
    ORANGE,
    SLATE,
    Rgba,
    capsule,
    capsule_inertia,
    solid,
)
from linkwise.spatial import Pose, rotation

SHOULDER, UPPER_ARM, FOREARM, HAND = 0.33, 0.40, 0.38, 0.12
"""Base to shoulder, shoulder to elbow, elbow to wrist, wrist to hand [m]."""


@dataclass(frozen=True, slots=True)
class _Link:
    """One link: where its pin is in the parent link [m], its axis, and its body and drive."""

    joint: str
    offset: float
    axis: tuple[float, float, float]
    mass: float
    reach: float
    radius: float
    limit: float
    effort: float
    speed: float
    rotor: float
    ratio: float
    damping: float
    rgba: Rgba


_ROLL, _PITCH = (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)
# Half of each long segment belongs to the pitch link below it and half to the roll link above it.
_LINKS = (
    _Link("shoulder_yaw", 0.18, _ROLL, 3.6, 0.15, 0.062, 2.96, 170, 1.7, 1.1e-4, 120, 0.6, IVORY),
    _Link("shoulder_pitch", 0.15, _PITCH, 3.8, 0.20, 0.060, 2.09, 170, 1.7, 1.1e-4, 120, 0.6, BLUE),
    _Link("shoulder_roll", 0.20, _ROLL, 2.9, 0.20, 0.055, 2.96, 110, 1.9, 7.0e-5, 100, 0.5, IVORY),
    _Link("elbow_pitch", 0.20, _PITCH, 2.6, 0.19, 0.052, 2.09, 110, 1.9, 7.0e-5, 100, 0.5, BLUE),
    _Link("forearm_roll", 0.19, _ROLL, 1.7, 0.19, 0.048, 2.96, 60, 2.4, 4.0e-5, 100, 0.3, IVORY),
    _Link("wrist_pitch", 0.19, _PITCH, 1.5, 0.05, 0.045, 2.09, 40, 3.1, 2.5e-5, 100, 0.2, BLUE),
    _Link("wrist_roll", 0.05, _ROLL, 0.5, 0.07, 0.038, 3.05, 40, 3.1, 2.5e-5, 100, 0.2, ORANGE),
)


def seven_dof_arm(*, posture: Sequence[float] = (0.0,) * 7) -> Mechanism:
    """Seven pins, roll and pitch in turn, standing straight up at zero. 7 dof, base fixed.

            ▲  node "hand", z outward
            │  wrist_roll (z)
            o  wrist_pitch (y)        0.12 m to the hand
            │  forearm_roll (z)
            o  elbow_pitch (y)        0.38 m to the wrist
            │  shoulder_roll (z)
            o  shoulder_pitch (y)     0.40 m to the elbow
            │  shoulder_yaw (z)
          ──┴──  world                0.33 m to the shoulder

    The first three axes meet in the shoulder, the last three in the wrist: one degree of freedom
    is left for the elbow when the hand is held. Upright it is singular; give a `posture` to have
    q = 0 somewhere better.

    Our own design, with the size and strength usual for arms that work beside people: 16.6 kg of
    moving mass, 1.23 m tall, joint torques of 40 to 170 N m, geared motors whose reflected inertia
    (0.25 to 1.6 kg m²) is not small beside that of the links. No maker's data were used.

    Args:
        posture: Joint angles (7,) [rad] of the upright arm at which the new one has q = 0.
            They are folded into the inboard poses; joint ranges move along.
    """
    b = Builder("seven_dof_arm")
    add_seven_dof_arm(b, posture=constant(posture, (7,), "posture").tolist())
    return b.build()


def add_seven_dof_arm(
    b: Builder,
    *,
    parent: str = "world",
    at: Pose | None = None,
    prefix: str = "",
    posture: Sequence[float] = (0.0,) * 7,
) -> str:
    """Put this arm on a mechanism under construction; returns the name of its hand node.

    Args:
        b: The builder.
        parent: Body that carries the arm.
        at: Pose of the arm's base, z along the first axis, in that body.
        prefix: Put before every name.
        posture: As in `seven_dof_arm`.
    """
    place = Pose.identity() if at is None else at
    foot = solid("foot", "cylinder", (0.085, 0.1), (0, 0, 0.05), SLATE)
    b.node(f"{prefix}base", parent, place, geometry=(foot,))
    for link, offset in zip(_LINKS, posture, strict=True):
        inboard = Pose.translation((0.0, 0.0, link.offset))
        if offset != 0.0:
            inboard = inboard @ Pose.rotation(rotation.axis_angle(np.array(link.axis), offset))
        ends = (0.0, 0.0, 0.0), (0.0, 0.0, link.reach - 0.3 * link.radius)
        name = f"{prefix}{link.joint}"
        b.body(
            f"{name}_link",
            parent,
            Pin(link.axis),
            hinge_name=name,
            inboard=place @ inboard,
            inertia=capsule_inertia(link.mass, *ends, link.radius),
            drive=Drive(
                rotor_inertia=link.rotor,
                gear_ratio=link.ratio,
                damping=link.damping,
                lower=-link.limit - offset,
                upper=link.limit - offset,
                effort=link.effort,
                velocity=link.speed,
            ),
            geometry=(capsule("link", *ends, link.radius, link.rgba),),
        )
        parent, place = f"{name}_link", Pose.identity()
    hand = f"{prefix}hand"
    b.node(hand, parent, Pose.translation((0.0, 0.0, HAND - 0.05)))
    return hand
