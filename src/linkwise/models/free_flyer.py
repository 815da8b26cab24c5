"""A satellite with two arms, in free fall, and one that hands over its cargo."""

from __future__ import annotations

import dataclasses

import numpy as np

from linkwise.model import Builder, Loop, Mechanism
from linkwise.model.hinges import Free, Locked
from linkwise.models.seven_dof_arm import add_seven_dof_arm
from linkwise.models.shapes import BLUE, IVORY, ORANGE, SLATE, capsule, solid
from linkwise.spatial import Pose, SpatialInertia

EDGES = (0.8, 0.7, 0.7)  # of the satellite's bus [m]
POSTURE = (0.0, 0.6, 0.0, 1.2, 0.0, -0.3, 0.0)  # reaching forward, elbow out [rad]


def free_flyer(*, mass: float = 150.0) -> Mechanism:
    r"""A satellite on a free hinge carries two seven-axis arms; there is no gravity. 20 dof.

              ╔═══════╗                     ╔═══════╗
              ║ panel ║═══╗             ╔═══║ panel ║
              ╚═══════╝   ║  ┌───────┐  ║   ╚═══════╝        z
                          ╚══│  bus  │══╝                    ↑
                             └┬─────┬┘                  y ←──⊙ x (towards the reader)
                       left_  /     \  right_
                             o       o            arms on the front face, reaching along x

    The body "bus" has its frame at the centre of the box, which is also its centre of mass; its
    free hinge takes the frame from the world's. The arms are `seven_dof_arm` with the prefixes
    "left_" and "right_"; they start bent, away from every singularity. Nodes: "left_hand",
    "right_hand", "docking" on the back face. Momentum is conserved unless something pushes.

    Args:
        mass: Mass of the bus with its panels [kg], as a solid box of 0.8 × 0.7 × 0.7 m.
    """
    b = Builder("free_flyer", gravity=(0.0, 0.0, 0.0))
    shapes = [solid("box", "box", EDGES, (0.0, 0.0, 0.0), IVORY)]
    for side, y in (("left", 1.0), ("right", -1.0)):
        shapes.append(capsule(f"{side}_boom", (0, 0.35 * y, 0.2), (0, 0.55 * y, 0.2), 0.02, SLATE))
        panel = Pose.translation((0.0, 1.0 * y, 0.2))
        shapes.append(solid(f"{side}_panel", "box", (0.5, 0.9, 0.02), panel, BLUE, "visual"))
    shapes.append(
        solid(
            "nozzle",
            "cylinder",
            (0.12, 0.14),
            Pose.rpy((0.0, 0.5 * np.pi, 0.0), (-0.47, 0.0, 0.0)),
            ORANGE,
            "visual",
        )
    )
    b.body(
        "bus",
        "world",
        Free(),
        hinge_name="flight",
        inertia=SpatialInertia.solid_box(mass, EDGES),
        geometry=tuple(shapes),
    )
    forward = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0))  # base z along the bus's x
    for side, y in (("left", 0.2), ("right", -0.2)):
        # Turned about its own axis so that shoulder pitch opens the arms sideways, elbows out.
        turn = np.pi / 2 if y > 0 else -np.pi / 2
        place = Pose.rotation(forward, (0.5 * EDGES[0], y, -0.1)) @ Pose.rpy((0.0, 0.0, turn))
        add_seven_dof_arm(b, parent="bus", at=place, prefix=f"{side}_", posture=POSTURE)
    b.node("docking", "bus", Pose.translation((-0.5 * EDGES[0], 0.0, 0.0)))
    return b.build()


EDGE, REACH = 0.16, 0.1  # of the cargo; its centre in front of the hand [m]


def handover(*, mass: float = 12.0) -> Mechanism:
    """`free_flyer` with a box in its left hand; there is no gravity. 26 dof, 20 of them free.

              ┌───────┐
              │  bus  │             "cargo" is a separate tree, a box on a free hinge;
              └┬─────┬┘             loop "left_grasp" locks its node "left_grip" to the node
        left_  o     o  right_      "left_hand"
               │     │
              [□]cargo ‾            node "right_grip" is where the right hand would take it,
                                    from the other side

    To hand it over, two more mechanisms are derived from this one, with the same coordinates:
    `lw.loops.close_loop(mech, q, "right_grasp", "right_hand", "cargo")` holds it with both hands,
    as they are at q, and `.without("left_grasp")` of that lets the left one go. At the neutral
    configuration the flyer is as in `free_flyer` and the left hand holds the cargo.

    Args:
        mass: Mass of the cargo [kg].
    """
    flyer = free_flyer()
    hand = flyer.pose(flyer.neutral(), "left_hand")
    ahead = Pose.translation((0.0, 0.0, REACH))
    edges = (EDGE, EDGE, EDGE)
    b = Builder("box")
    b.body(
        "cargo",
        "world",
        Free(),
        hinge_name="cargo_flight",
        inboard=hand @ ahead,
        inertia=SpatialInertia.solid_box(mass, edges),
        geometry=(solid("box", "box", edges, (0.0, 0.0, 0.0), ORANGE),),
    )
    b.node("left_grip", "cargo", ahead.inverse())
    b.node("right_grip", "cargo", Pose.rpy((np.pi, 0.0, 0.0)) @ ahead.inverse())
    grasp = Loop("left_grasp", "left_hand", "left_grip", Locked())
    mech = flyer.mount(b.build(), at="world")
    return dataclasses.replace(mech, name="handover", loops=(grasp,))
