"""Named quantities of open chains: each is an expression, a docstring and a thin call.

Every function takes q (nq,) or (batch, nq), other arrays likewise; an array without the batch axis
is used for all states of a batch. Loops and couplings are left open unless a function has an
argument `loops`.

The kernel behind a function is compiled on first use and kept with the mechanism. `kernel` returns
it, to explain itself, to be called directly, or to show its expression.
"""

from linkwise.documented import OF_TREES as _OF_TREES
from linkwise.dynamics.acceleration import (
    body_accelerations as body_accelerations,
    node_acceleration as node_acceleration,
)
from linkwise.dynamics.body_vector import (
    body_velocities as body_velocities,
    gather as gather,
    hinge_velocities as hinge_velocities,
    inboard_velocities as inboard_velocities,
    scatter as scatter,
)
from linkwise.dynamics.configuration import (
    difference as difference,
    integrate as integrate,
)
from linkwise.dynamics.control import (
    computed_torque as computed_torque,
    pd_gravity as pd_gravity,
)
from linkwise.dynamics.derivatives import (
    ForwardDynamicsDerivatives as ForwardDynamicsDerivatives,
    InverseDynamicsDerivatives as InverseDynamicsDerivatives,
    Linearization as Linearization,
    forward_dynamics_derivatives as forward_dynamics_derivatives,
    inverse_dynamics_derivatives as inverse_dynamics_derivatives,
)
from linkwise.dynamics.energy import (
    Energy as Energy,
    energy as energy,
    kinetic_energy as kinetic_energy,
    potential_energy as potential_energy,
)
from linkwise.dynamics.forward_dynamics import (
    forward_dynamics as forward_dynamics,
)
from linkwise.dynamics.hinge_force import (
    hinge_forces as hinge_forces,
)
from linkwise.dynamics.hybrid import (
    HybridMotion as HybridMotion,
    hybrid_dynamics as hybrid_dynamics,
    hybrid_expression as hybrid_expression,
    hybrid_kernel as hybrid_kernel,
)
from linkwise.dynamics.inverse_dynamics import (
    inverse_dynamics as inverse_dynamics,
)
from linkwise.dynamics.inverse_kinematics.goal import NodeGoal as NodeGoal
from linkwise.dynamics.inverse_kinematics.search import inverse_kinematics as inverse_kinematics
from linkwise.dynamics.inverse_kinematics.solution import Solution as Solution
from linkwise.dynamics.joint_force import (
    bias_force as bias_force,
    compensating_force as compensating_force,
    coriolis_force as coriolis_force,
    coriolis_matrix as coriolis_matrix,
    coriolis_product as coriolis_product,
    equivalent_force as equivalent_force,
    gravity_force as gravity_force,
    passive_force as passive_force,
)
from linkwise.dynamics.kernels import (
    kernel as kernel,
    tree_of as tree_of,
)
from linkwise.dynamics.kinematics import (
    forward_kinematics as forward_kinematics,
    jacobian as jacobian,
    jacobian_bias as jacobian_bias,
    jacobian_dot as jacobian_dot,
    jacobian_gram as jacobian_gram,
    node_velocity as node_velocity,
    relative_pose as relative_pose,
    with_hinge_frames as with_hinge_frames,
)
from linkwise.dynamics.mass_matrix import (
    articulated_inertias as articulated_inertias,
    composite_inertias as composite_inertias,
    log_det_mass_matrix as log_det_mass_matrix,
    mass_matrix as mass_matrix,
    mass_matrix_inverse as mass_matrix_inverse,
    mass_matrix_inverse_block as mass_matrix_inverse_block,
    mass_matrix_inverse_product as mass_matrix_inverse_product,
)
from linkwise.dynamics.momentum import (
    WholeInertia as WholeInertia,
    center_of_mass as center_of_mass,
    centroidal_inertia as centroidal_inertia,
    momentum as momentum,
    whole_inertia as whole_inertia,
)
from linkwise.dynamics.motion_derivatives import (
    MomentumDerivatives as MomentumDerivatives,
    jacobian_derivative as jacobian_derivative,
    momentum_derivatives as momentum_derivatives,
)
from linkwise.dynamics.operational_space import (
    OperationalSpace as OperationalSpace,
    operational_inertia as operational_inertia,
    operational_inertia_inverse as operational_inertia_inverse,
    operational_space as operational_space,
)
from linkwise.dynamics.quantity import (
    QUANTITIES as QUANTITIES,
    Frame as Frame,
    expression as expression,
)
from linkwise.dynamics.regressor import (
    BaseParameters as BaseParameters,
    base_parameters as base_parameters,
    inertial_parameters as inertial_parameters,
    regressor as regressor,
)
from linkwise.dynamics.renumbering import (
    Renumbering as Renumbering,
    renumbering as renumbering,
)
from linkwise.dynamics.second_derivatives import (
    ForwardDynamicsSecondDerivatives as ForwardDynamicsSecondDerivatives,
    InverseDynamicsSecondDerivatives as InverseDynamicsSecondDerivatives,
    forward_dynamics_second_derivatives as forward_dynamics_second_derivatives,
    inverse_dynamics_second_derivatives as inverse_dynamics_second_derivatives,
)
from linkwise.dynamics.state_feedback import (
    StateFeedback as StateFeedback,
)
from linkwise.front_door import open_front_door

_EVERYDAY = ("pd_gravity", "computed_torque", "hinge_forces", "node_acceleration")
"""Functions that take a microsecond, and check the arguments that their kernel refuses."""

open_front_door(globals(), careful=_EVERYDAY, records=("NodeGoal",), texts=_OF_TREES)
