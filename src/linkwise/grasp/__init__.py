"""Held objects: contacts and friction, internal forces, several arms that carry one load."""

from linkwise.front_door import open_front_door
from linkwise.grasp.arms import MultiArm as MultiArm, multi_arm_parts as multi_arm_parts
from linkwise.grasp.augmented_object import (
    AugmentedArm as AugmentedArm,
    AugmentedObject as AugmentedObject,
    AugmentedPart as AugmentedPart,
    augmented_object as augmented_object,
)
from linkwise.grasp.contact import Contact as Contact
from linkwise.grasp.contact_motion import (
    ContactState as ContactState,
    GraspEffort as GraspEffort,
    GraspMargins as GraspMargins,
)
from linkwise.grasp.force_closure import ForceClosure as ForceClosure
from linkwise.grasp.grasp import Grasp as Grasp
from linkwise.grasp.internal_force import (
    ForceSpace as ForceSpace,
    InternalForces as InternalForces,
)
from linkwise.grasp.load import (
    LoadEffect as LoadEffect,
    ReflectedLoad as ReflectedLoad,
    load_effect as load_effect,
    load_inertia as load_inertia,
    reflected_load as reflected_load,
)
from linkwise.grasp.load_distribution import LoadDistribution as LoadDistribution
from linkwise.grasp.object_control import (
    ObjectController as ObjectController,
    ObjectTorque as ObjectTorque,
)
from linkwise.grasp.virtual_linkage import VirtualLinkage as VirtualLinkage

open_front_door(globals(), records=("Grasp",))
