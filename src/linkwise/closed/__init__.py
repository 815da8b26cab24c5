"""Loops and grasps: mechanisms that are more than a tree."""

from linkwise.closed.assembly import (
    Assembly,
    assemble,
)
from linkwise.closed.closure import (
    closure_nodes,
    constraint_bias,
    constraint_error,
    constraint_jacobian,
    constraint_names,
    constraint_sizes,
    loop_coordinates,
    loop_errors,
)
from linkwise.closed.constrained import (
    closure_inertia_inverse,
    constrained_forward_dynamics,
    constraint_forces,
)
from linkwise.closed.motion import (
    ConstrainedMotion,
    Crossing,
    Drift,
    close_loop,
    constrained_motion,
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

__all__ = [
    "Assembly",
    "ConstrainedMotion",
    "Crossing",
    "Drift",
    "MultiArm",
    "MultiArmMotion",
    "Projection",
    "assemble",
    "close_loop",
    "closure_inertia_inverse",
    "closure_nodes",
    "constrained_forward_dynamics",
    "constrained_motion",
    "constraint_bias",
    "constraint_error",
    "constraint_forces",
    "constraint_jacobian",
    "constraint_names",
    "constraint_sizes",
    "loop_coordinates",
    "loop_errors",
    "multi_arm_dynamics",
    "multi_arm_parts",
    "position_projection",
    "project_position",
    "project_velocity",
]
