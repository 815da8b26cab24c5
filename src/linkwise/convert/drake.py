"""Drake: quaternion (w, x, y, z) before position; free velocities in world axes."""

from __future__ import annotations

from typing import Any

from linkwise.convert.layout import ANGULAR_FIRST, Foreign, Layout, check_model, matched
from linkwise.convert.rule import BALL_RPY, FREE_WORLD, PLANAR_IN_PARENT, SAME, Rule
from linkwise.model.mechanism import Mechanism


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
        _rule,
        aliases=aliases,
        size=(int(plant.num_positions()), int(plant.num_velocities())),
        orders=(ANGULAR_FIRST, ANGULAR_FIRST),
    )


def _rule(kind: str, joint: Foreign) -> Rule | None:
    if kind == "free":
        return FREE_WORLD if joint.nq == 7 else None
    if kind == "spherical":
        return BALL_RPY if joint.nq == 3 else None
    if kind == "planar":
        return PLANAR_IN_PARENT
    return SAME if joint.nq == joint.nv else None
