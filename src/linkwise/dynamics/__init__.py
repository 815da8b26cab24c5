"""Named quantities of open chains: each is an expression, a docstring and a thin call.

Every function takes q (nq,) or (batch, nq), other arrays likewise; an array without the batch axis
serves all states of a batch. Loops and couplings are left open: all is about the tree.

The kernel behind a function is compiled on first use and kept with the mechanism. `kernel` gives it
away: to explain itself, to be called without this layer, or to show its expression.
"""

from linkwise.dynamics.acceleration import body_accelerations, node_acceleration
from linkwise.dynamics.body_velocities import body_velocities, hinge_velocities, inboard_velocities
from linkwise.dynamics.center_of_mass import (
    center_of_mass,
    center_of_mass_bias,
    center_of_mass_jacobian,
    center_of_mass_velocity,
)
from linkwise.dynamics.configuration import difference, integrate
from linkwise.dynamics.control import (
    computed_torque,
    gravity_compensation,
    tracking_energy,
    wen_bayard,
)
from linkwise.dynamics.coriolis import coriolis_force, coriolis_matrix, coriolis_product
from linkwise.dynamics.derivatives import (
    ForwardDynamicsDerivatives,
    InverseDynamicsDerivatives,
    Linearization,
    forward_dynamics_derivatives,
    inverse_dynamics_derivatives,
    linearize,
)
from linkwise.dynamics.diagonal import (
    diagonal_coriolis,
    diagonal_dynamics,
    diagonal_velocity,
    force_from_innovations,
    innovations,
    velocity_from_diagonal,
)
from linkwise.dynamics.energy import Energy, energy, kinetic_energy, potential_energy
from linkwise.dynamics.equivalent_force import compensating_force, equivalent_force
from linkwise.dynamics.forward_dynamics import forward_dynamics, tip_force_correction
from linkwise.dynamics.hinge_force import hinge_forces
from linkwise.dynamics.hinge_frame import with_hinge_frames
from linkwise.dynamics.hybrid import (
    HybridMotion,
    hybrid_dynamics,
    hybrid_expression,
    hybrid_kernel,
)
from linkwise.dynamics.inertia import (
    InnovationsFactors,
    articulated_inertias,
    composite_inertias,
    innovations_factors,
    log_det_mass_matrix,
)
from linkwise.dynamics.inverse_blocks import mass_matrix_inverse_block
from linkwise.dynamics.inverse_dynamics import bias_force, gravity_force, inverse_dynamics
from linkwise.dynamics.inverse_kinematics import Solution, Target, inverse_kinematics
from linkwise.dynamics.jacobian_gram import jacobian_gram
from linkwise.dynamics.jacobian_rate import jacobian_dot, jacobian_dot_v
from linkwise.dynamics.kernels import kernel
from linkwise.dynamics.kinematics import forward_kinematics, jacobian, node_velocity
from linkwise.dynamics.mass_matrix import (
    mass_matrix,
    mass_matrix_inverse,
    mass_matrix_inverse_product,
)
from linkwise.dynamics.momentum import momentum, momentum_bias, momentum_matrix
from linkwise.dynamics.operational_inertia import operational_inertia, operational_inertia_inverse
from linkwise.dynamics.operational_space import OperationalSpace, operational_space
from linkwise.dynamics.passive_force import passive_force
from linkwise.dynamics.quantity import QUANTITIES, Frame, expression
from linkwise.dynamics.regressor import (
    BaseParameters,
    base_parameters,
    inertial_parameters,
    regressor,
)
from linkwise.dynamics.relative_pose import relative_pose
from linkwise.dynamics.renumbering import Renumbering, renumbering
from linkwise.dynamics.scatter import gather, scatter
from linkwise.dynamics.whole_inertia import WholeInertia, centroidal_inertia, whole_inertia
from linkwise.front_door import open_front_door

__all__ = [
    "QUANTITIES",
    "BaseParameters",
    "Energy",
    "ForwardDynamicsDerivatives",
    "Frame",
    "HybridMotion",
    "InnovationsFactors",
    "InverseDynamicsDerivatives",
    "Linearization",
    "OperationalSpace",
    "Renumbering",
    "Solution",
    "Target",
    "WholeInertia",
    "articulated_inertias",
    "base_parameters",
    "bias_force",
    "body_accelerations",
    "body_velocities",
    "center_of_mass",
    "center_of_mass_bias",
    "center_of_mass_jacobian",
    "center_of_mass_velocity",
    "centroidal_inertia",
    "compensating_force",
    "composite_inertias",
    "computed_torque",
    "coriolis_force",
    "coriolis_matrix",
    "coriolis_product",
    "diagonal_coriolis",
    "diagonal_dynamics",
    "diagonal_velocity",
    "difference",
    "energy",
    "equivalent_force",
    "expression",
    "force_from_innovations",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "forward_kinematics",
    "gather",
    "gravity_compensation",
    "gravity_force",
    "hinge_forces",
    "hinge_velocities",
    "hybrid_dynamics",
    "hybrid_expression",
    "hybrid_kernel",
    "inboard_velocities",
    "inertial_parameters",
    "innovations",
    "innovations_factors",
    "integrate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_kinematics",
    "jacobian",
    "jacobian_dot",
    "jacobian_dot_v",
    "jacobian_gram",
    "kernel",
    "kinetic_energy",
    "linearize",
    "log_det_mass_matrix",
    "mass_matrix",
    "mass_matrix_inverse",
    "mass_matrix_inverse_block",
    "mass_matrix_inverse_product",
    "momentum",
    "momentum_bias",
    "momentum_matrix",
    "node_acceleration",
    "node_velocity",
    "operational_inertia",
    "operational_inertia_inverse",
    "operational_space",
    "passive_force",
    "potential_energy",
    "regressor",
    "relative_pose",
    "renumbering",
    "scatter",
    "tip_force_correction",
    "tracking_energy",
    "velocity_from_diagonal",
    "wen_bayard",
    "whole_inertia",
    "with_hinge_frames",
]

EVERYDAY = (
    *("forward_dynamics", "inverse_dynamics", "bias_force", "gravity_force", "mass_matrix"),
    *("mass_matrix_inverse", "forward_kinematics", "jacobian", "jacobian_dot_v", "node_velocity"),
    *(
        "integrate",
        "difference",
        "kinetic_energy",
        "potential_energy",
        "operational_inertia",
        "operational_inertia_inverse",
    ),
)
"""Functions that take a microsecond, and check what their kernel does not take."""

open_front_door(globals(), __all__, careful=EVERYDAY, records=("Target",))
