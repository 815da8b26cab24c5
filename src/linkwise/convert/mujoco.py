"""MuJoCo: position before quaternion (w, x, y, z); free joints mix world and body axes."""

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
from linkwise.convert.rule import FREE_MIXED, SAME, Rule
from linkwise.model.mechanism import Mechanism

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
        _rule,
        aliases={},
        size=(int(model.nq), int(model.nv)),
        orders=(ANGULAR_FIRST, LINEAR_FIRST),
    )


def _unnamed(model: Any, i: int) -> str:
    body = int(model.jnt_bodyid[i])
    name = str(model.body(body).name) or f"body{body}"
    return f"{name}:{i - int(model.body_jntadr[body])}"


def _rule(kind: str, joint: Foreign) -> Rule | None:
    if joint.kind == "free":
        return FREE_MIXED if kind == "free" else None
    if joint.kind == "ball":
        return SAME if kind == "spherical" else None
    return SAME
