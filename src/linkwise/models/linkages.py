"""Planar linkages: the four-bar, and that of Peaucellier, which draws a straight line."""

from __future__ import annotations

import numpy as np

from linkwise.errors import ModelError
from linkwise.model import Builder, Drive, Mechanism
from linkwise.model.hinges import Pin
from linkwise.models.shapes import BLUE, ORANGE, SLATE, STEEL, Rgba, capsule, capsule_inertia, solid
from linkwise.spatial import Array, Pose

PIN = Pin((0.0, 1.0, 0.0))
RADIUS = 0.008  # of the bars of Peaucellier's linkage [m]


def four_bar(
    *,
    ground: float = 0.4,
    crank: float = 0.1,
    coupler: float = 0.5,
    rocker: float = 0.4,
    density: float = 2.0,
) -> Mechanism:
    """Crank, coupler and rocker in the x-z plane, closed by a pin. One degree of freedom.

                            C
              coupler   ___o        at q = 0 the crank is upright; with the default lengths
                  __---    |        A = (0, 0), B = (0, 0.1), C = (0.4, 0.4), D = (0.4, 0),
          B   o--          |        so BC = 0.5 is the long side of a 3-4-5 triangle and
        crank |            | rocker the rocker is upright too
          A   o            o   D
             /// ground   ///

    In the tree the crank and then the coupler hang on A, the rocker on D: three pins, 3 dof. Loop
    "coupler_rocker" joins the nodes "coupler_end" and "rocker_end" by a pin about y: five
    constraints of which two are independent in the plane (a pin keeps two parallel axes parallel
    three times over), so one degree of freedom remains. It holds exactly at the neutral
    configuration, for all lengths: the coupler's frame is laid out from the point C where the
    circles about B and D meet. All link frames are parallel to the world's there, at the inner pin
    of the link.

    The default lengths satisfy Grashof's condition, shortest + longest = 0.6 < 0.8: the crank goes
    round, the rocker swings.

    Args:
        ground: Distance AD [m].
        crank: Length AB [m].
        coupler: Length BC [m].
        rocker: Length CD [m].
        density: Mass per length of the bars [kg/m].

    Raises:
        ModelError: the lengths cannot be put together with the crank upright.
    """
    p_B, p_D = np.array([0.0, 0.0, crank]), np.array([ground, 0.0, 0.0])
    p_C = _meeting_point(p_B, p_D, coupler, rocker)
    b = Builder("four_bar")
    radius = 0.012
    b.node("ground", "world", geometry=(capsule("ground", (0, 0, 0), p_D, 0.5 * radius, SLATE),))
    motor = Drive(damping=0.01, effort=20.0)
    _bar(b, "crank", "world", np.zeros(3), p_B, density * crank, radius, ORANGE, motor)
    _bar(b, "coupler", "crank", p_B, p_C - p_B, density * coupler, radius, STEEL)
    _bar(b, "rocker", "world", p_D, p_C - p_D, density * rocker, radius, BLUE)
    b.node("coupler_end", "coupler", Pose.translation(p_C - p_B))
    b.node("rocker_end", "rocker", Pose.translation(p_C - p_D))
    b.loop("coupler_rocker", "coupler_end", "rocker_end", PIN)
    return b.build()


def _meeting_point(p_B: Array, p_D: Array, coupler: float, rocker: float) -> Array:
    """The upper of the two points at `coupler` from B and at `rocker` from D, in the x-z plane."""
    along = p_D - p_B
    far = float(np.linalg.norm(along))
    if not abs(coupler - rocker) < far < coupler + rocker:
        raise ModelError(
            f"four_bar with the crank upright has its outer pins {far:.6g} m apart; coupler and "
            f"rocker of {coupler:.6g} and {rocker:.6g} m cannot join them. Their sum must exceed "
            "that distance, their difference stay below it."
        )
    unit = along / far
    # Foot of the height over BD, by the law of cosines, then up along the normal in the plane.
    foot = (far**2 + coupler**2 - rocker**2) / (2.0 * far)
    height = np.sqrt(coupler**2 - foot**2)
    normal = np.array([-unit[2], 0.0, unit[0]])
    return p_B + foot * unit + height * normal


def peaucellier(
    *, arm: float = 0.5, side: float = 0.2, crank: float = 0.2, density: float = 2.0
) -> Mechanism:
    r"""Seven bars in the x-z plane, pinned into three nested loops. One degree of freedom.

                  O                      bars:   OA, OB              "arm_a", "arm_b"
                 /|\                             the rhombus CA, CB   "inner_a", "inner_b"
                / P \                                        DA, DB   "outer_a", "outer_b"
               /  |  \                           and the crank PC     "crank"
              /  _C_  \
             /_--   --_\                 O and P are on the ground, |OP| = |PC|
            B--__   __--A                z is up, x to the right
                 --D--
              ------------>              D, the node "pen", draws this line

    Since OA = OB and the four sides are equal, |OC| |OD| = arm² − side² =: k, always: C and D are
    inverse to each other in a circle about O. The crank leads C on a circle through O, so D runs on
    a straight line: z = −k / (2 crank). It was the first linkage to make a straight line out of
    turns alone (1864).

    In the tree "arm_a" and "arm_b" turn at O; "inner_a" and "outer_a" hang on A, "inner_b" and
    "outer_b" on B, and the "crank" turns at P: seven pins, 7 dof. The three loops are pins as well:
    "inner" joins both inner bars at C, "crank_inner" joins the crank to them there, "outer" joins
    the outer ones at D. Pins in a plane are over-constrained in space: of 15 rows six are
    independent. At the neutral configuration the crank hangs down and the linkage is symmetric
    about the z axis; all link frames are parallel to the world's, at the inner pin of the link.
    It stands still there, and swings about it. Where |OC| becomes arm − side the rhombus is flat
    and the linkage singular: with the default lengths, 83° to either side.

    Args:
        arm: Length of OA and OB [m].
        side: Length of the sides of the rhombus [m].
        crank: Length of PC, and distance of P from O [m].
        density: Mass per length of the bars [kg/m].

    Raises:
        ModelError: The lengths cannot be put together with the crank hanging down.
    """
    if not (side < arm and arm - side < 2.0 * crank < arm + side):
        raise ModelError(
            f"peaucellier with arm={arm:.6g}, side={side:.6g} and crank={crank:.6g} m cannot be "
            "put together: with the crank hanging down C is 2 crank away from O, and that must lie "
            "between arm - side and arm + side, with side shorter than arm."
        )
    origin, down, right = np.zeros(3), np.array([0.0, 0.0, -1.0]), np.array([1.0, 0.0, 0.0])
    near, far = 2.0 * crank, (arm**2 - side**2) / (2.0 * crank)  # C and D from O
    middle = 0.5 * (near + far)
    p_P, p_C, p_D = crank * down, near * down, far * down
    across = np.sqrt(arm**2 - middle**2) * right
    p_A, p_B = middle * down + across, middle * down - across
    b = Builder("peaucellier")
    b.node("ground", "world", geometry=(capsule("ground", origin, p_P, RADIUS, SLATE),))
    for name, parent, start, end, rgba in (
        ("arm_a", "world", origin, p_A, BLUE),
        ("arm_b", "world", origin, p_B, BLUE),
        ("inner_a", "arm_a", p_A, p_C, STEEL),
        ("inner_b", "arm_b", p_B, p_C, STEEL),
        ("outer_a", "arm_a", p_A, p_D, STEEL),
        ("outer_b", "arm_b", p_B, p_D, STEEL),
        ("crank", "world", p_P, p_C, ORANGE),
    ):
        along = end - start
        mass = density * float(np.linalg.norm(along))
        drive = Drive(effort=10.0) if name == "crank" else Drive()
        _bar(b, name, parent, start, along, mass, RADIUS, rgba, drive)
        b.node(f"{name}_end", name, Pose.translation(along))
    b.loop("inner", "inner_a_end", "inner_b_end", PIN)
    b.loop("crank_inner", "crank_end", "inner_a_end", PIN)
    b.loop("outer", "outer_a_end", "outer_b_end", PIN)
    ball = solid("pen", "sphere", (1.5 * RADIUS,), (0.0, 0.0, 0.0), ORANGE, "visual")
    b.node("pen", "outer_a", Pose.translation(p_D - p_A), geometry=(ball,))
    return b.build()


def _bar(
    b: Builder,
    name: str,
    parent: str,
    start: Array,
    along: Array,
    mass: float,
    radius: float,
    rgba: Rgba,
    drive: Drive = Drive(),  # noqa: B008  it is frozen
) -> None:
    """A bar pinned at `start` in its parent's frame."""
    b.body(
        name,
        parent,
        PIN,
        hinge_name=f"{name}_pin",
        inboard=Pose.translation(start),
        inertia=capsule_inertia(mass, (0, 0, 0), along, radius),
        drive=drive,
        geometry=(capsule("bar", (0, 0, 0), along, radius, rgba),),
    )
