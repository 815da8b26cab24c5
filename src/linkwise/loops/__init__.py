"""Closed chains: loops and couplings, their constraints, assembly, embedding, mobility."""

from linkwise.dynamics.closure import (
    blocked_directions as blocked_directions,
    closed_expression as closed_expression,
    closure_nodes as closure_nodes,
    constraint_bias as constraint_bias,
    constraint_error as constraint_error,
    constraint_inertia_inverse as constraint_inertia_inverse,
    constraint_jacobian as constraint_jacobian,
    constraint_names as constraint_names,
    constraint_sizes as constraint_sizes,
    loop_coordinates as loop_coordinates,
    loop_forces as loop_forces,
)
from linkwise.dynamics.constrained import constraint_forces as constraint_forces
from linkwise.dynamics.loop_drive import (
    loop_drive_forces as loop_drive_forces,
    loop_velocities as loop_velocities,
)
from linkwise.front_door import open_front_door
from linkwise.loops.assembly import (
    Assembly as Assembly,
    assemble as assemble,
    close_loop as close_loop,
)
from linkwise.loops.drive_forces import (
    DriveForces as DriveForces,
    drive_forces as drive_forces,
    holding_forces as holding_forces,
)
from linkwise.loops.embedding import (
    embed as embed,
    full_acceleration as full_acceleration,
    full_velocity as full_velocity,
    independent_force as independent_force,
    independent_velocity as independent_velocity,
)
from linkwise.loops.independent import (
    IndependentCoordinates as IndependentCoordinates,
    independent_coordinates as independent_coordinates,
)
from linkwise.loops.mobility import (
    Mobility as Mobility,
    mobility as mobility,
)
from linkwise.loops.projection import (
    Projection as Projection,
    project_position as project_position,
    project_velocity as project_velocity,
)
from linkwise.model.embedded import (
    Aggregate as Aggregate,
    Embedded as Embedded,
)

open_front_door(globals())
