"""Loops and grasps: mechanisms that are more than a tree."""

from linkwise.closed.assembly import (
    Assembly,
    assemble,
)
from linkwise.closed.close_loop import close_loop
from linkwise.closed.embedding import (
    Aggregate,
    Embedded,
    embed,
    full_acceleration,
    full_velocity,
    independent_force,
    independent_velocity,
)
from linkwise.closed.grasp import (
    Contact,
    ContactState,
    ForceClosure,
    ForceSpace,
    Grasp,
    GraspEffort,
    GraspMargins,
    InternalForces,
    LoadDistribution,
    VirtualLinkage,
    contact_forces,
    contact_state,
    force_closure,
    force_space,
    grasp_effort,
    grasp_map,
    grasp_margins,
    grasp_watch,
    internal_forces,
    load_distribution,
    needed_wrench,
    object_force,
    virtual_linkage,
)
from linkwise.closed.independent import (
    IndependentCoordinates,
    independent_coordinates,
)
from linkwise.closed.inverse_dynamics import (
    ConstrainedForces,
    constrained_inverse_dynamics,
    holding_forces,
)
from linkwise.closed.loop_drive import (
    loop_drive_forces,
    loop_velocities,
)
from linkwise.closed.mobility import (
    Mobility,
    mobility,
)
from linkwise.closed.multi_arm import (
    MultiArm,
    MultiArmMotion,
    multi_arm_dynamics,
    multi_arm_parts,
)
from linkwise.closed.projection import (
    Projection,
    position_projection,
    project_position,
    project_velocity,
)
from linkwise.dynamics.closure import (
    blocked_directions,
    closure_nodes,
    constraint_bias,
    constraint_error,
    constraint_jacobian,
    constraint_names,
    constraint_sizes,
    loop_coordinates,
    loop_errors,
    loop_forces,
)
from linkwise.dynamics.closure_kernels import closed_expression
from linkwise.dynamics.constrained import (
    closure_inertia_inverse,
    constrained_forward_dynamics,
    constraint_forces,
)
from linkwise.dynamics.effective_inertia import (
    effective_inertia,
    effective_inertia_inverse,
    effective_space,
)
from linkwise.front_door import open_front_door

__all__ = [
    "Aggregate",
    "Assembly",
    "ConstrainedForces",
    "Contact",
    "ContactState",
    "Embedded",
    "ForceClosure",
    "ForceSpace",
    "Grasp",
    "GraspEffort",
    "GraspMargins",
    "IndependentCoordinates",
    "InternalForces",
    "LoadDistribution",
    "Mobility",
    "MultiArm",
    "MultiArmMotion",
    "Projection",
    "VirtualLinkage",
    "assemble",
    "blocked_directions",
    "close_loop",
    "closed_expression",
    "closure_inertia_inverse",
    "closure_nodes",
    "constrained_forward_dynamics",
    "constrained_inverse_dynamics",
    "constraint_bias",
    "constraint_error",
    "constraint_forces",
    "constraint_jacobian",
    "constraint_names",
    "constraint_sizes",
    "contact_forces",
    "contact_state",
    "effective_inertia",
    "effective_inertia_inverse",
    "effective_space",
    "embed",
    "force_closure",
    "force_space",
    "full_acceleration",
    "full_velocity",
    "grasp_effort",
    "grasp_map",
    "grasp_margins",
    "grasp_watch",
    "holding_forces",
    "independent_coordinates",
    "independent_force",
    "independent_velocity",
    "internal_forces",
    "load_distribution",
    "loop_coordinates",
    "loop_drive_forces",
    "loop_errors",
    "loop_forces",
    "loop_velocities",
    "mobility",
    "multi_arm_dynamics",
    "multi_arm_parts",
    "needed_wrench",
    "object_force",
    "position_projection",
    "project_position",
    "project_velocity",
    "virtual_linkage",
]

open_front_door(globals(), __all__, careful=("constrained_forward_dynamics",), records=("Grasp",))
