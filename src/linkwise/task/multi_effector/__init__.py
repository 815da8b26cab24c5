"""Several arms that hold one object: loads, the augmented object, its control (003, 6 and 7)."""

from linkwise.front_door import open_front_door
from linkwise.task.multi_effector.augmented_object import (
    AugmentedArm,
    AugmentedObject,
    AugmentedPart,
    augmented_object,
)
from linkwise.task.multi_effector.controller import AugmentedObjectController
from linkwise.task.multi_effector.load import LoadEffect, load_effect, load_inertia
from linkwise.task.multi_effector.object_torque import ObjectTorque, object_torque
from linkwise.task.multi_effector.reflected_load import ReflectedLoad, reflected_load

__all__ = [
    "AugmentedArm",
    "AugmentedObject",
    "AugmentedObjectController",
    "AugmentedPart",
    "LoadEffect",
    "ObjectTorque",
    "ReflectedLoad",
    "augmented_object",
    "load_effect",
    "load_inertia",
    "object_torque",
    "reflected_load",
]

open_front_door(globals(), __all__)
