"""A tree of Linkwise as a model of Pinocchio, joint by joint, for hinges that it has.

Joint frames there are our hinge frames O; body frames become frames of the model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.model.body import Body
from linkwise.model.derived import replaced
from linkwise.model.hinges import (
    Cylindrical,
    Free,
    Gimbal,
    Helical,
    Hinge,
    Pin,
    Planar,
    Prismatic,
    Screws,
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

SEATED = (*HINGES, "planar", "screws")
"""Those, and kinds that it has in some place only: see `seated`."""


def seated(mech: Mechanism) -> Mechanism:
    """The same kinds of hinges where Pinocchio can have them.

    Its plane is that of x and y: frames of a planar hinge are turned to it, which changes nothing.
    The last of a row of screws must go through the origin: it is moved there.
    """
    bodies = list[Body]()
    for body in mech.bodies:
        hinge = body.hinge
        if isinstance(hinge, Planar):
            normal = np.array(hinge.normal)
            turn = Pose.rotation(np.stack([*hinge.in_plane, normal], axis=-1))
            inboard, outboard = body.inboard @ turn, turn.inverse() @ body.outboard
            body = replace(body, hinge=Planar(), inboard=inboard, outboard=outboard)
        elif isinstance(hinge, Screws):
            rows = np.array(hinge.rows)
            rows[-1, 3:] = rows[-1, :3] * (rows[-1, :3] @ rows[-1, 3:])
            body = replace(body, hinge=Screws(tuple(map(tuple, rows.tolist()))))
        bodies.append(body)
    return replaced(mech, bodies=tuple(bodies))


def model_of(mech: Mechanism) -> Any:
    """The same tree in Pinocchio, without inertias.

    Its joints are added branch by branch: `crba` and `computeMinverse` take the freedoms of a
    subtree for neighbours, and are wrong, without a word, for other orders.
    """
    import pinocchio as pin

    model = pin.Model()
    number, outboard = {"world": 0}, {"world": Pose.identity()}
    for body in _branch_by_branch(mech):
        placement = _se3(outboard[body.parent] @ body.inboard)
        parent = number[body.parent]
        joint = model.addJoint(parent, _joint(body.hinge), placement, body.hinge_name)
        number[body.name], outboard[body.name] = joint, body.outboard
    for name in [*(b.name for b in mech.bodies), *(n.name for n in mech.nodes)]:
        node = mech.node(name)
        place = _se3(outboard[node.body] @ node.pose)
        model.addFrame(pin.Frame(name, number[node.body], place, pin.FrameType.OP_FRAME))
    return model


def _branch_by_branch(mech: Mechanism) -> list[Body]:
    result, waiting = list[Body](), [k for k in range(mech.n_bodies) if mech.parent[k] < 0][::-1]
    while waiting:
        k = waiting.pop()
        result.append(mech.bodies[k])
        waiting += list(mech.children[k])[::-1]
    return result


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
    if isinstance(hinge, Planar) and hinge.normal == (0.0, 0.0, 1.0):
        return pin.JointModelPlanar()
    if isinstance(hinge, Screws):
        return _screws(hinge)
    raise TypeError(f"Pinocchio has no joint for a {hinge.kind} hinge")


def _screws(hinge: Screws) -> Any:
    """A row of helical joints; each is moved to its axis, which the last one goes through."""
    import pinocchio as pin

    together, before = pin.JointModelComposite(), np.zeros(3)
    for row in np.array(hinge.rows):
        axis, at = row[:3], np.cross(row[:3], row[3:])  # unit axes
        joint = pin.JointModelHelicalUnaligned(axis, float(axis @ row[3:]))
        together.addJoint(joint, pin.SE3(np.eye(3), at - before))
        before = at
    if np.abs(before).max() > 1e-15:
        raise TypeError("Pinocchio has no row of screws whose last is away from the origin")
    return together
