"""Closed chains: loops and couplings, their constraints, assembly, embedding, mobility."""

from linkwise.dynamics.closure import (
    blocked_directions as blocked_directions,
    closure_nodes as closure_nodes,
    constraint_bias as constraint_bias,
    constraint_error as constraint_error,
    constraint_jacobian as constraint_jacobian,
    constraint_names as constraint_names,
    constraint_sizes as constraint_sizes,
    loop_coordinates as loop_coordinates,
    loop_errors as loop_errors,
    loop_forces as loop_forces,
)
from linkwise.dynamics.closure_kernels import closed_expression as closed_expression
from linkwise.dynamics.constrained import (
    closure_inertia_inverse as closure_inertia_inverse,
    constrained_forward_dynamics as constrained_forward_dynamics,
    constraint_forces as constraint_forces,
)
from linkwise.dynamics.effective_inertia import (
    effective_inertia as effective_inertia,
    effective_inertia_inverse as effective_inertia_inverse,
    effective_space as effective_space,
)
from linkwise.front_door import open_front_door
from linkwise.loops.assembly import (
    Assembly as Assembly,
    assemble as assemble,
)
from linkwise.loops.close_loop import close_loop as close_loop
from linkwise.loops.embedding.embed import embed as embed
from linkwise.loops.embedding.full_motion import (
    full_acceleration as full_acceleration,
    full_velocity as full_velocity,
    independent_force as independent_force,
    independent_velocity as independent_velocity,
)
from linkwise.loops.independent import (
    IndependentCoordinates as IndependentCoordinates,
    independent_coordinates as independent_coordinates,
)
from linkwise.loops.inverse_dynamics import (
    ConstrainedForces as ConstrainedForces,
    constrained_inverse_dynamics as constrained_inverse_dynamics,
    holding_forces as holding_forces,
)
from linkwise.loops.loop_drive import (
    loop_drive_forces as loop_drive_forces,
    loop_velocities as loop_velocities,
)
from linkwise.loops.mobility import (
    Mobility as Mobility,
    mobility as mobility,
)
from linkwise.loops.projection import (
    Projection as Projection,
    position_projection as position_projection,
    project_position as project_position,
    project_velocity as project_velocity,
)
from linkwise.model.embedded import (
    Aggregate as Aggregate,
    Embedded as Embedded,
)

open_front_door(globals(), careful=("constrained_forward_dynamics",))
