"""A satellite with two arms, in free fall."""

from __future__ import annotations

import numpy as np

from linkwise.model import Builder, Geometry, Mechanism
from linkwise.model.hinges import Free
from linkwise.models.capsule import BLUE, IVORY, ORANGE, SLATE, capsule
from linkwise.models.seven_dof_arm import add_seven_dof_arm
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
    shapes = [Geometry("box", "box", EDGES, Pose.identity(), "both", IVORY)]
    for side, y in (("left", 1.0), ("right", -1.0)):
        shapes.append(capsule(f"{side}_boom", (0, 0.35 * y, 0.2), (0, 0.55 * y, 0.2), 0.02, SLATE))
        panel = Pose.translation((0.0, 1.0 * y, 0.2))
        shapes.append(Geometry(f"{side}_panel", "box", (0.5, 0.9, 0.02), panel, "visual", BLUE))
    shapes.append(
        Geometry(
            "nozzle",
            "cylinder",
            (0.12, 0.14),
            Pose.rpy((0.0, 0.5 * np.pi, 0.0), (-0.47, 0.0, 0.0)),
            "visual",
            ORANGE,
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
