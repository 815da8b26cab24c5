"""The linkage of Peaucellier and Lipkin, which draws a straight line."""

from __future__ import annotations

import numpy as np

from linkwise.errors import ModelError
from linkwise.model import Builder, Drive, Geometry, Mechanism
from linkwise.model.hinges import Pin
from linkwise.models.capsule import BLUE, ORANGE, SLATE, STEEL, capsule, capsule_inertia
from linkwise.spatial import Array, Pose

RADIUS = 0.008  # of the bars [m]


def peaucellier(
    *, arm: float = 0.5, side: float = 0.2, crank: float = 0.2, density: float = 2.0
) -> Mechanism:
    r"""Seven bars in the x-z plane, pinned into three nested loops. One freedom.

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
    _bar(b, "arm_a", "world", origin, p_A, density, BLUE)
    _bar(b, "arm_b", "world", origin, p_B, density, BLUE)
    _bar(b, "inner_a", "arm_a", p_A, p_C - p_A, density, STEEL)
    _bar(b, "inner_b", "arm_b", p_B, p_C - p_B, density, STEEL)
    _bar(b, "outer_a", "arm_a", p_A, p_D - p_A, density, STEEL)
    _bar(b, "outer_b", "arm_b", p_B, p_D - p_B, density, STEEL)
    _bar(b, "crank", "world", p_P, p_C - p_P, density, ORANGE)
    b.loop("inner", "inner_a_end", "inner_b_end", _pin())
    b.loop("crank_inner", "crank_end", "inner_a_end", _pin())
    b.loop("outer", "outer_a_end", "outer_b_end", _pin())
    ball = Geometry("pen", "sphere", (1.5 * RADIUS,), Pose.identity(), "visual", ORANGE)
    b.node("pen", "outer_a", Pose.translation(p_D - p_A), geometry=(ball,))
    return b.build()


def _pin() -> Pin:
    return Pin((0.0, 1.0, 0.0))


def _bar(
    b: Builder,
    name: str,
    parent: str,
    start: Array,
    along: Array,
    density: float,
    rgba: tuple[float, float, float, float],
) -> None:
    """A bar pinned at `start` in its parent's frame, with a node at its end."""
    mass = density * float(np.linalg.norm(along))
    b.body(
        name,
        parent,
        _pin(),
        hinge_name=f"{name}_pin",
        inboard=Pose.translation(start),
        inertia=capsule_inertia(mass, (0, 0, 0), along, RADIUS),
        drive=Drive(effort=10.0) if name == "crank" else Drive(),
        geometry=(capsule("bar", (0, 0, 0), along, RADIUS, rgba),),
    )
    b.node(f"{name}_end", name, Pose.translation(along))
