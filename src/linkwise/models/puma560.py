"""The PUMA 560 arm with the parameters Armstrong, Khatib and Burdick measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.model import Builder, Drive, Geometry, Mechanism
from linkwise.model.hinges import Pin
from linkwise.models.shapes import BLUE, IVORY, ORANGE, SLATE, capsule, solid
from linkwise.spatial import Pose, SpatialInertia, rotation

# One row a joint: twist α_{i-1} in quarter turns, a_{i-1} [m], d_i [m] (modified DH, table A1).
FRAMES = (
    (0, 0.0, 0.0),
    (-1, 0.0, 0.2435),
    (0, 0.4318, -0.0934),
    (1, -0.0203, 0.4331),
    (-1, 0.0, 0.0),
    (1, 0.0, 0.0),
)
# Mass [kg], centre of mass [m], principal moments about it [kg m²], in the axes of the link frame.
# Link 1: only I_zz = 0.35 was measured; the other numbers of that row do not act on a fixed base.
LINKS = (
    (13.0, (0.0, 0.0, 0.0), (0.35, 0.35, 0.35)),
    (17.40, (0.068, 0.006, -0.016), (0.130, 0.524, 0.539)),
    (4.80, (0.0, -0.070, 0.014), (0.066, 0.0125, 0.086)),
    (0.82, (0.0, 0.0, -0.019), (1.8e-3, 1.8e-3, 1.3e-3)),
    (0.34, (0.0, 0.0, 0.0), (0.3e-3, 0.3e-3, 0.4e-3)),
    (0.09, (0.0, 0.0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3)),
)
EFFECTIVE_MOTOR_INERTIA = (1.14, 4.71, 0.827, 0.200, 0.179, 0.193)  # at the joint [kg m²]
GEAR_RATIO = (62.61, 107.36, 53.69, 76.01, 71.91, 76.73)
MAXIMUM_TORQUE = (97.6, 186.4, 89.4, 24.2, 20.1, 21.3)  # [N m]
BREAK_AWAY_TORQUE = (6.3, 5.5, 2.6, 1.3, 1.0, 1.2)  # used as Coulomb friction [N m]
# Ranges [deg] as they are commonly quoted; not checked against a document (see the docstring).
RANGE = ((-160, 160), (-225, 45), (-45, 225), (-110, 170), (-100, 100), (-266, 266))
FLANGE = 0.05625  # wrist centre to flange [m]


def puma560(*, as_printed: bool = False) -> Mechanism:
    """Six pins: waist, shoulder, elbow and a spherical wrist. 6 degrees of freedom, base fixed.

                   link_2 (0.4318 m)
              o══════════════o  elbow, link_3
             /  shoulder      ║
        ┌───┐                 ║ 0.4331 m      at q = 0: upper arm along x, forearm up,
        │   │ link_1          ║               hand pointing up; q₃ = π/2 stretches the
        │   │ waist           x  wrist,       arm out along x
        └───┘                    links 4-6, node "flange"

    Frames are the paper's (modified Denavit-Hartenberg): every pin is about the z axis of its
    link's frame, frames 0 and 1 are both at the shoulder. The node "flange" is 56 mm beyond
    the wrist.

    Measured and used as published: masses and centres of mass of links 2 to 6; the diagonal of
    their inertia dyadics about the centre of mass (link 1: only I_zz about the waist); the inertia
    of motors and drives seen at each joint, here as gear_ratio² rotor_inertia; gear ratios; maximum
    and break-away torques.

    Not in the paper: mass and centre of mass of link 1 (13 kg at the waist replaces them: they do
    not act while the base is fixed), products of inertia (small; taken as zero), the tool, the
    flange and the joint ranges. The last two are nominal values, not checked against a document:
    lists of the ranges differ (for the wrist roll also ±266° is quoted), so set your own arm's.

    The paper itself was not available: the tables are those of public transcriptions that agree.
    What we learned about the numbers (`tests/models/test_puma560.py`):

    * The dyadic of link 3 is printed as (0.066, 0.0125, 0.086). No rigid body has it: 0.086 exceeds
      the sum of the others by 0.0075. Here the two small moments are raised by half of that, which
      changes the kinetic energy matrix in one entry, the waist's, by 0.004 kg m².
    * Some copies of the table have 0.066 for the last entry. The constant I₆ = 0.333 of
      the explicit model needs 0.086.
    * Of the 23 inertia constants of the explicit model 21 follow from the tables to their printed
      digits. I₁ and I₃, quoted as 1.43 and 1.38, do not: the tables give 1.55 and 1.60 kg m².
    * In the explicit a₂₂ the constant I₁₂ goes with cos q₃, not with cos q₂ as it is quoted.

    Source: B. Armstrong, O. Khatib, J. Burdick, "The explicit dynamic model and inertial parameters
    of the PUMA 560 arm", IEEE International Conference on Robotics and Automation, 1986, 510-518.

    Args:
        as_printed: Keep the dyadic of link 3 as printed; `validate` then reports it as an error.
    """
    b = Builder("puma560")
    below = Pose.translation((0.0, 0.0, -0.38))
    b.node(
        "pedestal",
        "world",
        geometry=(solid("column", "cylinder", (0.09, 0.56), below, SLATE),),
    )
    add_puma560(b, as_printed=as_printed)
    return b.build()


def add_puma560(
    b: Builder,
    *,
    parent: str = "world",
    at: Pose | None = None,
    prefix: str = "",
    posture: Sequence[float] = (0.0,) * 6,
    as_printed: bool = False,
) -> str:
    """Put a PUMA 560 on a mechanism under construction; returns the name of its flange node.

    Args:
        b: The builder.
        parent: Body that carries the arm.
        at: Pose of the arm's frame 0 in that body.
        prefix: Put before every name.
        posture: Paper angles [rad] at which the new arm has q = 0; ranges move along.
        as_printed: As in `puma560`.
    """
    pin = Pin((0.0, 0.0, 1.0))
    inboard_of_base = Pose.identity() if at is None else at
    for k, (quarters, a, d) in enumerate(FRAMES):
        mass, com, moments = LINKS[k]
        inertia = SpatialInertia.from_com(mass, com, moments)
        ratio, offset = GEAR_RATIO[k], posture[k]
        low, high = (np.deg2rad(x) - offset for x in RANGE[k])
        frame = about_x(quarters) @ Pose.translation((a, 0.0, d))
        if offset != 0.0:
            frame = frame @ Pose.rotation(rotation.axis_angle(np.array([0.0, 0.0, 1.0]), offset))
        b.body(
            f"{prefix}link_{k + 1}",
            parent,
            pin,
            hinge_name=f"{prefix}joint_{k + 1}",
            inboard=inboard_of_base @ frame if k == 0 else frame,
            inertia=inertia if as_printed or k != 2 else inertia.nearest_possible(),
            drive=Drive(
                rotor_inertia=EFFECTIVE_MOTOR_INERTIA[k] / ratio**2,
                gear_ratio=ratio,
                friction=BREAK_AWAY_TORQUE[k],
                effort=MAXIMUM_TORQUE[k],
                lower=low,
                upper=high,
            ),
            geometry=_shape(k),
        )
        parent = f"{prefix}link_{k + 1}"
    flange = f"{prefix}flange"
    b.node(flange, parent, Pose.translation((0.0, 0.0, FLANGE)))
    return flange


def about_x(quarters: int) -> Pose:
    """A rotation about x by quarter turns, with exact zeros and ones."""
    c, s = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarters % 4]
    return Pose.rotation(((1.0, 0.0, 0.0), (0.0, c, -s), (0.0, s, c)))


def _shape(k: int) -> tuple[Geometry, ...]:
    """What link k + 1 looks like, in its own frame."""
    if k == 0:
        return (
            capsule("trunk", (0.0, 0.0, -0.12), (0.0, 0.0, 0.0), 0.085, IVORY),
            capsule("shoulder", (0.0, -0.06, 0.0), (0.0, 0.16, 0.0), 0.08, IVORY),
        )
    if k == 1:
        return (
            capsule("upper_arm", (0.0, 0.0, 0.0), (0.4318, 0.0, 0.0), 0.065, BLUE),
            capsule("motor", (-0.1, 0.0, 0.0), (0.0, 0.0, 0.0), 0.06, BLUE),
        )
    if k == 2:
        return (
            capsule("elbow", (0.0, 0.0, 0.0), (0.0, 0.0, 0.07), 0.05, IVORY),
            capsule("forearm", (0.0, 0.0, 0.0), (-0.0203, -0.33, 0.0), 0.045, IVORY),
        )
    if k == 3:
        return (capsule("wrist", (0.0, 0.0, -0.08), (0.0, 0.0, -0.03), 0.04, BLUE),)
    if k == 4:
        return (capsule("bend", (0.0, 0.0, -0.03), (0.0, 0.0, 0.03), 0.03, ORANGE),)
    at = Pose.translation((0.0, 0.0, 0.5 * FLANGE))
    return (solid("flange", "cylinder", (0.028, FLANGE), at, SLATE),)
