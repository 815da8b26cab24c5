"""Several arms that hold one object: loads, the augmented object, its control (003, 6 and 7)."""

from linkwise.task.multi_effector.augmented_object import (
    AugmentedArm,
    AugmentedObject,
    AugmentedPart,
    augmented_object,
)
from linkwise.task.multi_effector.load import LoadEffect, load_effect, load_inertia

__all__ = [
    "AugmentedArm",
    "AugmentedObject",
    "AugmentedPart",
    "LoadEffect",
    "augmented_object",
    "load_effect",
    "load_inertia",
]
