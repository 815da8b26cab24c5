"""Pinocchio: position before quaternion (x, y, z, w), (linear, angular), angles as (cos, sin)."""

from __future__ import annotations

from typing import Any

from linkwise.convert.layout import LINEAR_FIRST, Foreign, Layout, check_model, matched
from linkwise.convert.rule import BALL_XYZW, COS_SIN, FREE_LINEAR_FIRST, PLANAR_COS_SIN, SAME, Rule
from linkwise.model.mechanism import Mechanism


def pinocchio_layout(mech: Mechanism, model: Any) -> Layout:
    """Layout of a `pinocchio.Model` of the same robot.

    Joints are matched by name; Pinocchio calls a floating base "root_joint", which is our
    first hinge on the world. A joint that mimics another has no coordinate there.

    Args:
        model: The model.
    """
    check_model(model, "model", "a pinocchio.Model", ("names", "joints", "nq", "nv"))
    joints = [
        Foreign(
            name,
            joint.shortname(),
            int(joint.idx_q),
            int(joint.nq),
            int(joint.idx_v),
            int(joint.nv),
        )
        for name, joint in zip(list(model.names)[1:], list(model.joints)[1:], strict=True)
        if "Mimic" not in joint.shortname()
    ]
    aliases = dict[str, str]()
    if "root_joint" not in mech.hinge_index and mech.bodies:
        aliases["root_joint"] = mech.bodies[0].hinge_name
    return matched(
        "Pinocchio",
        mech,
        joints,
        _rule,
        aliases=aliases,
        size=(int(model.nq), int(model.nv)),
        orders=(LINEAR_FIRST, LINEAR_FIRST),
    )


def _rule(kind: str, joint: Foreign) -> Rule | None:
    if joint.nq == 2 and joint.nv == 1:
        return COS_SIN
    special = {"free": FREE_LINEAR_FIRST, "spherical": BALL_XYZW, "planar": PLANAR_COS_SIN}
    if kind in special:
        nq = {"free": 7, "spherical": 4, "planar": 4}[kind]
        return special[kind] if joint.nq == nq else None
    return SAME if joint.nq == joint.nv else None
