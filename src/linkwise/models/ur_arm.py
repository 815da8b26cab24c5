"""A six-axis arm of the UR type: three parallel axes, and a wrist whose axes do not meet."""

from __future__ import annotations

import numpy as np

from linkwise.model import Builder, Drive, Geometry, Mechanism
from linkwise.model.hinges import Pin
from linkwise.models.puma560 import about_x
from linkwise.models.shapes import BLUE, IVORY, SLATE, STEEL, Rgba, capsule, pose_between, solid
from linkwise.spatial import Pose, SpatialInertia
from linkwise.spatial.array import ArrayLike

# One row a joint: a [m], d [m], twist α in quarter turns (Denavit-Hartenberg, as published).
FRAMES = (
    (0.0, 0.1625, 1),
    (-0.425, 0.0, 0),
    (-0.3922, 0.0, 0),
    (0.0, 0.1333, 1),
    (0.0, 0.0997, -1),
    (0.0, 0.0996, 0),
)
# Mass [kg] and centre of mass [m] in the Denavit-Hartenberg frame at the far end, as published.
LINKS = (
    (3.761, (0.0, -0.02561, 0.00193)),
    (8.058, (0.2125, 0.0, 0.11336)),
    (2.846, (0.15, 0.0, 0.0265)),
    (1.37, (0.0, -0.0018, 0.01634)),
    (1.3, (0.0, 0.0018, 0.01634)),
    (0.365, (0.0, 0.0, -0.001159)),
)
MAXIMUM_TORQUE = (150.0, 150.0, 150.0, 28.0, 28.0, 28.0)  # [N m], as published
MAXIMUM_SPEED = np.pi  # [rad/s], as published
# Sizes of the solid cylinders whose moments replace those that are not published: radius and
# length [m], and the axis of the link frame that they lie along.
CYLINDERS = (
    (0.06, 0.15, 2),
    (0.06, 0.50, 0),
    (0.05, 0.45, 0),
    (0.045, 0.12, 1),
    (0.045, 0.12, 1),
    (0.035, 0.04, 2),
)
ROTOR_INERTIA, GEAR_RATIO = (6e-5, 6e-5, 6e-5, 1.5e-5, 1.5e-5, 1.5e-5), 101.0
SIDE, FOREARM_SIDE = 0.13, 0.02  # how far upper arm and forearm are drawn beside the shoulder [m]


def ur_arm() -> Mechanism:
    """Six pins: waist, three parallel axes, two more of the wrist. 6 dof, base fixed.

             wrist_1 ┌──o══════════════o══════════════o┐   shoulder, 0.1625 m above the base
                     │      forearm        upper arm   │
             wrist_2 o      0.392 m        0.425 m    ┌┴┐  at q = 0: stretched out along -x,
                     │                                │ │  hand pointing to -y
             wrist_3 o  node "flange"                 └─┘  world

    Frames and angles are those of the published Denavit-Hartenberg table, so that q are the angles
    that such an arm shows: every pin is about the z axis of its link's frame. The axes of
    shoulder, elbow and wrist_1 are parallel; those of the wrist meet in pairs only, so that the
    position of the flange depends on all of them.

    It is singular where the elbow is stretched (q₃ = 0 or ±π), where axes 4 and 6 are parallel
    (q₅ = 0 or ±π), and where the point in which axes 5 and 6 meet is in the plane of the first two.

    Lengths, masses, centres of mass, torques and speeds are the public ones of an arm for loads of
    5 kg. The rest is our own: moments of inertia are those of solid cylinders of about the right
    size, the inertia of rotors is a guess (0.61 and 0.15 kg m² at the joints), and there is no
    friction.

    Source: Universal Robots, "DH parameters for calculations of kinematics and dynamics", UR5e.
    """
    b = Builder("ur_arm")
    foot = solid("foot", "cylinder", (0.075, 0.05), (0, 0, 0.025), SLATE)
    b.node("base", "world", geometry=(foot,))
    parent, inboard = "world", Pose.identity()
    names = ("waist", "shoulder", "elbow", "wrist_1", "wrist_2", "wrist_3")
    for k, (name, (a, d, quarters)) in enumerate(zip(names, FRAMES, strict=True)):
        far = Pose.translation((a, 0.0, d)) @ about_x(quarters)  # the published frame, from ours
        b.body(
            f"{name}_link",
            parent,
            Pin((0.0, 0.0, 1.0)),
            hinge_name=name,
            inboard=inboard,
            inertia=_inertia(k, far),
            drive=Drive(
                rotor_inertia=ROTOR_INERTIA[k],
                gear_ratio=GEAR_RATIO,
                effort=MAXIMUM_TORQUE[k],
                velocity=MAXIMUM_SPEED,
                lower=-2.0 * np.pi,
                upper=2.0 * np.pi,
            ),
            geometry=_shape(k),
        )
        parent, inboard = f"{name}_link", far
    b.node("flange", parent, inboard)
    return b.build()


def _inertia(k: int, far: Pose) -> SpatialInertia:
    """Published mass and centre of mass, moments of a solid cylinder; about our link frame."""
    mass, com = LINKS[k]
    radius, length, axis = CYLINDERS[k]
    across = mass * (3.0 * radius**2 + length**2) / 12.0
    moments = np.full(3, across)
    moments[axis] = 0.5 * mass * radius**2
    return SpatialInertia.from_com(mass, tuple(far.apply(np.array(com))), tuple(moments))


def _shape(k: int) -> tuple[Geometry, ...]:
    """What link k looks like, in its own frame: joints are cylinders, tubes between them."""
    if k == 0:
        return (
            _joint("waist", (0, 0, 0.06), (0, 0, 0.17), 0.062, IVORY),
            _joint("shoulder", (0, 0.06, 0.1625), (0, -0.07, 0.1625), 0.06, BLUE),
        )
    if k == 1:
        a = FRAMES[1][0]
        return (
            _joint("motor", (0, 0, 0.07), (0, 0, 0.19), 0.06, IVORY),
            capsule("tube", (0, 0, SIDE), (a, 0, SIDE), 0.043, STEEL),
            _joint("elbow", (a, 0, 0.07), (a, 0, 0.185), 0.055, BLUE),
        )
    if k == 2:
        a = FRAMES[2][0]
        return (
            _joint("motor", (0, 0, -0.04), (0, 0, 0.07), 0.055, IVORY),
            capsule("tube", (0, 0, FOREARM_SIDE), (a, 0, FOREARM_SIDE), 0.036, STEEL),
            _joint("wrist", (a, 0, -0.03), (a, 0, 0.08), 0.04, BLUE),
        )
    if k == 3:
        d = FRAMES[3][1]
        return (
            _joint("turn", (0, 0, 0.08), (0, 0, 0.175), 0.038, IVORY),
            _joint("bend", (0, 0.04, d), (0, -0.05, d), 0.038, BLUE),
        )
    if k == 4:
        d = FRAMES[4][1]
        return (
            _joint("turn", (0, 0, 0.05), (0, 0, d + 0.04), 0.038, IVORY),
            _joint("bend", (0, -0.03, d), (0, 0.06, d), 0.038, BLUE),
        )
    return (_joint("flange", (0, 0, 0.06), (0, 0, FRAMES[5][1]), 0.032, SLATE),)


def _joint(name: str, start: ArrayLike, end: ArrayLike, radius: float, rgba: Rgba) -> Geometry:
    """The housing of a joint: a cylinder from one point to another."""
    pose, length = pose_between(start, end)
    return solid(name, "cylinder", (radius, length), pose, rgba)
