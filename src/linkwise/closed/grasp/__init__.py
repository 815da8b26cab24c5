"""Grasps: contacts, their friction, the forces inside an object and how a load is shared."""

from linkwise.closed.grasp.contact import Contact
from linkwise.closed.grasp.contact_state import ContactState, contact_forces, contact_state
from linkwise.closed.grasp.effort import GraspEffort, grasp_effort, needed_wrench
from linkwise.closed.grasp.force_closure import ForceClosure, force_closure
from linkwise.closed.grasp.grasp import Grasp, grasp_map, object_force
from linkwise.closed.grasp.internal_force import (
    ForceSpace,
    InternalForces,
    force_space,
    internal_forces,
)
from linkwise.closed.grasp.load_distribution import LoadDistribution, load_distribution
from linkwise.closed.grasp.margin import GraspMargins, grasp_margins
from linkwise.closed.grasp.virtual_linkage import VirtualLinkage, virtual_linkage
from linkwise.closed.grasp.watch import grasp_watch

__all__ = [
    "Contact",
    "ContactState",
    "ForceClosure",
    "ForceSpace",
    "Grasp",
    "GraspEffort",
    "GraspMargins",
    "InternalForces",
    "LoadDistribution",
    "VirtualLinkage",
    "contact_forces",
    "contact_state",
    "force_closure",
    "force_space",
    "grasp_effort",
    "grasp_map",
    "grasp_margins",
    "grasp_watch",
    "internal_forces",
    "load_distribution",
    "needed_wrench",
    "object_force",
    "virtual_linkage",
]
