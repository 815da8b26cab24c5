"""A tree of Linkwise as a model of Pinocchio, joint by joint, for hinges that it has.

Joint frames there are our hinge frames O; body frames become frames of the model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.model.hinges import (
    Cylindrical,
    Free,
    Gimbal,
    Helical,
    Hinge,
    Pin,
    Prismatic,
    Spherical,
    Translation,
    Universal,
)
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.pose import Pose

HINGES = (
    *("pin", "prismatic", "helical", "cylindrical", "universal"),
    *("spherical", "gimbal", "translation", "free"),
)
"""Kinds of `lw.models.random_tree` that Pinocchio has, alone or as a row of joints."""


def model_of(mech: Mechanism) -> Any:
    """The same tree in Pinocchio, without inertias."""
    import pinocchio as pin

    model = pin.Model()
    number, outboard = {"world": 0}, {"world": Pose.identity()}
    for body in mech.bodies:
        placement = _se3(outboard[body.parent] @ body.inboard)
        parent = number[body.parent]
        joint = model.addJoint(parent, _joint(body.hinge), placement, body.hinge_name)
        number[body.name], outboard[body.name] = joint, body.outboard
    for name in [*(b.name for b in mech.bodies), *(n.name for n in mech.nodes)]:
        node = mech.node(name)
        place = _se3(outboard[node.body] @ node.pose)
        model.addFrame(pin.Frame(name, number[node.body], place, pin.FrameType.OP_FRAME))
    return model


def _se3(pose: Pose) -> Any:
    import pinocchio as pin

    return pin.SE3(np.array(pose.rot), np.array(pose.p))


def _joint(hinge: Hinge) -> Any:
    import pinocchio as pin

    def row(*joints: Any) -> Any:
        together = pin.JointModelComposite()
        for joint in joints:
            together.addJoint(joint)
        return together

    def turn(axis: Any) -> Any:
        return pin.JointModelRevoluteUnaligned(np.array(axis))

    if isinstance(hinge, Pin):
        return turn(hinge.axis)
    if isinstance(hinge, Prismatic):
        return pin.JointModelPrismaticUnaligned(np.array(hinge.axis))
    if isinstance(hinge, Helical):
        return pin.JointModelHelicalUnaligned(np.array(hinge.axis), hinge.pitch)
    if isinstance(hinge, Cylindrical):
        return row(turn(hinge.axis), pin.JointModelPrismaticUnaligned(np.array(hinge.axis)))
    if isinstance(hinge, Universal):
        return row(turn(hinge.axis_1), turn(hinge.axis_2))
    if isinstance(hinge, Gimbal):
        return row(*(turn(axis) for axis in hinge.axes))
    if isinstance(hinge, Spherical):
        return pin.JointModelSpherical()
    if isinstance(hinge, Translation):
        return pin.JointModelTranslation()
    if isinstance(hinge, Free):
        return pin.JointModelFreeFlyer()
    raise TypeError(f"Pinocchio has no joint for a {hinge.kind} hinge")
