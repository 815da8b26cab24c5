"""How is a hinge with several degrees of freedom written as a series of URDF joints?

Every hinge that is a product of screw motions, pose(q) = exp(S₁ q₁) exp(S₂ q₂) ..., is a series
of single-axis joints. A screw (ω, v) with unit ω turns about the axis through c = ω × v and travels
p = ω · v along it for each radian, so that

    exp(S q) = T(c) Rot(ω, q) T(-c) T(p ω q)

is a revolute joint at c and, where p is not zero, a prismatic joint that mimics it. A screw
(0, v) with unit v is a prismatic joint. The series has the same poses for the same q.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.model.hinges import Hinge
from linkwise.model.hinges.hinge import ScrewHinge
from linkwise.model.hinges.modified import Reversed
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose


@dataclass(frozen=True, slots=True)
class Step:
    """One joint of the series.

    Attributes:
        kind: "revolute" or "prismatic".
        origin: Pose of the joint frame in the link before it.
        axis: Its axis, a unit vector.
        dof: Which entry of q and v it carries.
        travel: None, or the travel [m/rad] of a prismatic joint that mimics the step before it.
    """

    kind: str
    origin: Pose
    axis: Array
    dof: int
    travel: float | None = None


def split_hinge(hinge: Hinge) -> tuple[list[Step], Pose] | None:
    """The joints, and the pose of O in the frame after the last; None if this is not possible."""
    if isinstance(hinge, Reversed) and isinstance(hinge.hinge, ScrewHinge):
        # The inverse of a product: factors inverted, in the other order.
        screws = [(-s, i) for i, s in enumerate(hinge.hinge.screws)][::-1]
    elif isinstance(hinge, ScrewHinge):
        screws = [(s, i) for i, s in enumerate(hinge.screws)]
    else:
        return None
    steps: list[Step] = []
    back = Pose.identity()  # T(-c) of the screw before
    for screw, dof in screws:
        w, v = screw[:3], screw[3:]
        turn, slide = float(np.linalg.norm(w)), float(np.linalg.norm(v))
        if turn == 0.0:
            if abs(slide - 1.0) > 1e-12:
                return None  # q would not be metres
            steps.append(Step("prismatic", back, v, dof))
            back = Pose.identity()
            continue
        if abs(turn - 1.0) > 1e-12:
            return None  # q would not be radians
        c, travel = np.cross(w, v), float(w @ v)
        centre = Pose.translation(c) if c.any() else Pose.identity()
        steps.append(Step("revolute", back @ centre, w, dof))
        back = Pose.translation(-c) if c.any() else Pose.identity()
        if travel != 0.0:
            steps.append(Step("prismatic", back, w, dof, travel))
            back = Pose.identity()
    return steps, back
