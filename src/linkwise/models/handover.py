"""A free flyer that hands its cargo from one arm to the other."""

from __future__ import annotations

import dataclasses

import numpy as np

from linkwise.model import Builder, Geometry, Loop, Mechanism
from linkwise.model.hinges import Free, Locked
from linkwise.models.capsule import ORANGE
from linkwise.models.free_flyer import free_flyer
from linkwise.spatial import Pose, SpatialInertia

EDGE, REACH = 0.16, 0.1  # of the cargo; its centre in front of the hand [m]


def handover(*, mass: float = 12.0) -> Mechanism:
    """`free_flyer` with a box in its left hand; there is no gravity. 26 dof, 20 freedoms.

              ┌───────┐
              │  bus  │             "cargo" is a tree of its own, a box on a free hinge;
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
        geometry=(Geometry("box", "box", edges, Pose.identity(), "both", ORANGE),),
    )
    b.node("left_grip", "cargo", ahead.inverse())
    b.node("right_grip", "cargo", Pose.rpy((np.pi, 0.0, 0.0)) @ ahead.inverse())
    grasp = Loop("left_grasp", "left_hand", "left_grip", Locked())
    mech = flyer.mount(b.build(), at="world")
    return dataclasses.replace(mech, name="handover", loops=(grasp,))
