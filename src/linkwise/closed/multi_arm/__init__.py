"""Several arms that hold one object: the algorithms of JPL 88-11, Part II, by name."""

from linkwise.closed.multi_arm.held_object import MultiArm, multi_arm_parts
from linkwise.closed.multi_arm.multi_arm_dynamics import (
    MultiArmMethod,
    MultiArmMotion,
    multi_arm_dynamics,
)

__all__ = [
    "MultiArm",
    "MultiArmMethod",
    "MultiArmMotion",
    "multi_arm_dynamics",
    "multi_arm_parts",
]
