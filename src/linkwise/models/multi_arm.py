"""Several arms that hold one object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from linkwise.arguments import count, number
from linkwise.errors import ModelError
from linkwise.model import Builder, Mechanism
from linkwise.model.hinges import Free, Hinge, Locked
from linkwise.models.puma560 import add_puma560
from linkwise.models.seven_dof_arm import add_seven_dof_arm, seven_dof_arm
from linkwise.models.shapes import ORANGE, solid
from linkwise.spatial import Pose, SpatialInertia

ArmKind = Literal["seven_dof", "puma560"]

# Bent in a vertical plane with the hand level: the pitch angles add up to a quarter turn [rad].
_SEVEN_DOF = (0.0, 0.35, 0.0, 1.75, 0.0, 0.5 * np.pi - 2.1, 0.0)
_PUMA560 = (0.0, -0.8, 2.7, 0.0, 0.5 * np.pi - 1.9, 0.0)


def dual_arm(
    *, arm: ArmKind = "seven_dof", mass: float = 4.0, grasp: Hinge | None = None
) -> Mechanism:
    r"""Two arms face each other and hold one object between them: `multi_arm(2)`.

        o──o                 o──o
        │   \   ┌───────┐   /   │        two seven-axis arms: 20 dof in the tree,
        │    ▷══│object │══◁    │        12 constraints, 8 dof left
        ┴       └───────┘       ┴

    Args:
        arm: Which arm, see `multi_arm`.
        mass: Mass of the object [kg].
        grasp: What each grasp leaves free, see `multi_arm`; by default nothing.
    """
    return multi_arm(2, arm=arm, mass=mass, grasp=grasp)


def multi_arm(
    n: int,
    *,
    arm: ArmKind = "seven_dof",
    mass: float = 4.0,
    radius: float = 0.25,
    grasp: Hinge | None = None,
) -> Mechanism:
    """n arms in a ring hold one object, rigidly unless `grasp` says otherwise.

                    arm_2                     from above; every arm looks at the object
                      ▽
                   ╭──┴──╮                    tree:         n arms and the object on a free
          arm_3 ▷──┤  o  ├──◁ arm_1                         hinge, n·n_arm + 6 dof
                   ╰──┬──╯                    loops:        n locked ones, 6 n constraints
                      △                       free:         n (n_arm - 6) + 6
                    arm_4

    The object is a separate tree, a disc on the free hinge "object". Loop "grasp_k" welds the
    node "arm_k_hand" (for the PUMA "arm_k_flange") to the node "rim_k" on the object. The loops
    hold at the neutral configuration, to rounding: each arm is built bent (see `posture` in
    `seven_dof_arm`), its base is placed backwards from the grasp, and since the bent hand is level
    all bases stand upright. The neutral configuration is away from every singularity.

    The object's six velocities come first in v, those of the arms after them, and nothing drives
    the object: `multi_arm_parts(mech).arm_rows` says where the arms' rows are. For another grasp
    build with `grasp=`; `mech.without("grasp_k")` lets the object go at one hand.

    Args:
        n: Number of arms, at least 1. Rings of more than about eight need a larger `radius`.
        arm: "seven_dof" for `seven_dof_arm`, "puma560" for `puma560`.
        mass: Mass of the object [kg].
        radius: Radius of the object's rim, where it is held [m].
        grasp: What each grasp leaves free, the z axes of hand and rim node pointing into the
            object: `SoftFinger()`, `Spherical()` ...; by default nothing, `Locked()`.

    Raises:
        ModelError: n is not a whole number from 1 to 1000, or the arm is unknown.
    """
    n = count(n, "the number of arms of multi_arm", least=1, most=1000)
    radius = number(radius, "radius", above=0.0, most=1e6)
    X_BH, add = _arm(arm)
    b = Builder("dual_arm" if n == 2 else f"multi_arm_{n}")
    X_WO = Pose.translation((0.0, 0.0, float(X_BH.p[2])))  # so that all bases are at z = 0
    b.body(
        "object",
        "world",
        Free(),
        inboard=X_WO,
        inertia=SpatialInertia.solid_cylinder(mass, radius, 0.1),
        geometry=(solid("disc", "cylinder", (radius, 0.1), (0.0, 0.0, 0.0), ORANGE),),
    )
    for k in range(1, n + 1):
        angle = 2.0 * np.pi * (k - 1) / n
        # The arm's own x axis points at the object, so seen from the object it comes along -x.
        inward = Pose.rpy((0.0, 0.0, angle)) @ Pose.rpy((0.0, 0.0, np.pi), (radius, 0.0, 0.0))
        X_OG = inward @ Pose.rotation(X_BH.rot)
        hand = add(b, X_WO @ X_OG @ X_BH.inverse(), f"arm_{k}_")
        b.node(f"rim_{k}", "object", X_OG)
        b.loop(f"grasp_{k}", hand, f"rim_{k}", Locked() if grasp is None else grasp)
    return b.build()


def _arm(arm: str) -> tuple[Pose, Callable[[Builder, Pose, str], str]]:
    """Pose of the bent arm's hand in its base, and the function that adds such an arm."""
    if arm == "seven_dof":
        single = seven_dof_arm(posture=_SEVEN_DOF)
        return single.pose(single.neutral(), "hand"), _add_seven_dof
    if arm == "puma560":
        b = Builder("bent")
        flange = add_puma560(b, posture=_PUMA560)
        single = b.build()
        return single.pose(single.neutral(), flange), _add_puma560
    raise ModelError(f"no arm called {arm!r}; known: 'seven_dof', 'puma560'.")


def _add_seven_dof(b: Builder, at: Pose, prefix: str) -> str:
    return add_seven_dof_arm(b, at=at, prefix=prefix, posture=_SEVEN_DOF)


def _add_puma560(b: Builder, at: Pose, prefix: str) -> str:
    return add_puma560(b, at=at, prefix=prefix, posture=_PUMA560)
