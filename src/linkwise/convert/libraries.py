"""Layouts of other libraries.

Pinocchio: position before quaternion (x, y, z, w), (linear, angular), angles as (cos, sin).
MuJoCo: position before quaternion (w, x, y, z); free joints mix world and body axes.
Drake: quaternion (w, x, y, z) before position; free velocities in world axes.
"""

from __future__ import annotations

from typing import Any

from linkwise.convert.layout import (
    ANGULAR_FIRST,
    LINEAR_FIRST,
    Foreign,
    Layout,
    check_model,
    matched,
)
from linkwise.convert.rule import (
    BALL_RPY,
    BALL_XYZW,
    COS_SIN,
    FREE_LINEAR_FIRST,
    FREE_MIXED,
    FREE_WORLD,
    PLANAR_COS_SIN,
    PLANAR_IN_PARENT,
    SAME,
    Rule,
)
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
        _pinocchio_rule,
        aliases=aliases,
        size=(int(model.nq), int(model.nv)),
        orders=(LINEAR_FIRST, LINEAR_FIRST),
    )


def _pinocchio_rule(kind: str, joint: Foreign) -> Rule | None:
    if joint.nq == 2 and joint.nv == 1:
        return COS_SIN
    special = {"free": FREE_LINEAR_FIRST, "spherical": BALL_XYZW, "planar": PLANAR_COS_SIN}
    if kind in special:
        nq = {"free": 7, "spherical": 4, "planar": 4}[kind]
        return special[kind] if joint.nq == nq else None
    return SAME if joint.nq == joint.nv else None


KINDS = {0: ("free", 7, 6), 1: ("ball", 4, 3), 2: ("slide", 1, 1), 3: ("hinge", 1, 1)}
"""mjtJoint: kind, nq and nv."""


def mujoco_layout(mech: Mechanism, model: Any) -> Layout:
    """Layout of a `mujoco.MjModel` of the same robot.

    Joints are matched by name; a joint without one is called as `lw.load` calls it. Spatial
    velocities (cvel, mj_objectVelocity) are (angular, linear) as ours; applied forces
    (xfrc_applied) are (force, moment).

    Args:
        model: The model.
    """
    check_model(model, "model", "a mujoco.MjModel", ("njnt", "jnt_type", "nq", "nv"))
    joints = list[Foreign]()
    for i in range(int(model.njnt)):
        kind, nq, nv = KINDS[int(model.jnt_type[i])]
        q_start, v_start = int(model.jnt_qposadr[i]), int(model.jnt_dofadr[i])
        name = str(model.joint(i).name) or _unnamed(model, i)
        joints.append(Foreign(name, kind, q_start, nq, v_start, nv))
    return matched(
        "MuJoCo",
        mech,
        joints,
        _mujoco_rule,
        aliases={},
        size=(int(model.nq), int(model.nv)),
        orders=(ANGULAR_FIRST, LINEAR_FIRST),
    )


def _unnamed(model: Any, i: int) -> str:
    body = int(model.jnt_bodyid[i])
    name = str(model.body(body).name) or f"body{body}"
    return f"{name}:{i - int(model.body_jntadr[body])}"


def _mujoco_rule(kind: str, joint: Foreign) -> Rule | None:
    if joint.kind == "free":
        return FREE_MIXED if kind == "free" else None
    if joint.kind == "ball":
        return SAME if kind == "spherical" else None
    return SAME


def drake_layout(mech: Mechanism, plant: Any) -> Layout:
    """Layout of a finalised `pydrake.multibody.plant.MultibodyPlant` of the same robot.

    Joints are matched by name; the floating base that Drake adds takes the name of the body, and
    is our hinge of that body.

    Args:
        plant: The finalised plant.
    """
    check_model(plant, "plant", "a MultibodyPlant", ("GetJointIndices", "get_joint"))
    joints, aliases = list[Foreign](), dict[str, str]()
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        name, child = str(joint.name()), str(joint.child_body().name())
        joints.append(
            Foreign(
                name,
                str(joint.type_name()),
                int(joint.position_start()),
                int(joint.num_positions()),
                int(joint.velocity_start()),
                int(joint.num_velocities()),
            )
        )
        if name not in mech.hinge_index and child in mech.body_index:
            aliases[name] = mech.body(child).hinge_name
    return matched(
        "Drake",
        mech,
        joints,
        _drake_rule,
        aliases=aliases,
        size=(int(plant.num_positions()), int(plant.num_velocities())),
        orders=(ANGULAR_FIRST, ANGULAR_FIRST),
    )


def _drake_rule(kind: str, joint: Foreign) -> Rule | None:
    if kind == "free":
        return FREE_WORLD if joint.nq == 7 else None
    if kind == "spherical":
        return BALL_RPY if joint.nq == 3 else None
    if kind == "planar":
        return PLANAR_IN_PARENT
    return SAME if joint.nq == joint.nv else None
