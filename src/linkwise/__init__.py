"""Linkwise: the mechanics of multibody systems as spatial operator algebra.

    import linkwise as lw

Nothing here needs more than NumPy to be imported. The algebra, the sample mechanisms and the
converters are imported on first use, so that `import linkwise` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from linkwise.errors import LinkwiseError, ModelError, ParseError, ShapeError
from linkwise.io.load import load
from linkwise.io.save import save
from linkwise.model import (
    Body,
    Builder,
    Coupling,
    Drive,
    Finding,
    Geometry,
    LoadReport,
    Loop,
    Mechanism,
    Node,
)
from linkwise.model.hinges import (
    CustomHinge,
    Cylindrical,
    Free,
    Gimbal,
    Helical,
    Hinge,
    Locked,
    Pin,
    Planar,
    Prismatic,
    RollingBall,
    Screws,
    Spherical,
    Translation,
    Universal,
)
from linkwise.spatial import Pose, SpatialInertia

if TYPE_CHECKING:
    from linkwise import algebra, convert, dynamics, estimation, ledger, models
    from linkwise.dynamics import (
        Energy,
        HybridMotion,
        InnovationsFactors,
        OperationalSpace,
        Renumbering,
        Target,
        articulated_inertias,
        bias_force,
        body_accelerations,
        body_velocity,
        compensating_force,
        composite_inertias,
        computed_torque,
        coriolis_force,
        coriolis_matrix,
        coriolis_product,
        diagonal_coriolis,
        diagonal_dynamics,
        diagonal_velocity,
        energy,
        equivalent_force,
        force_from_innovations,
        forward_dynamics,
        forward_kinematics,
        gather,
        gravity_compensation,
        gravity_force,
        hinge_forces,
        hinge_velocity,
        hybrid_dynamics,
        inboard_velocity,
        innovations,
        innovations_factors,
        inverse_dynamics,
        inverse_kinematics,
        jacobian,
        jacobian_dot,
        jacobian_dot_v,
        jacobian_gram,
        kinetic_energy,
        log_det_mass_matrix,
        mass_matrix,
        mass_matrix_inverse,
        mass_matrix_inverse_product,
        node_acceleration,
        node_velocity,
        operational_inertia,
        operational_inertia_inverse,
        operational_space,
        potential_energy,
        relative_pose,
        renumbering,
        scatter,
        tip_force_correction,
        tracking_energy,
        velocity_from_diagonal,
        wen_bayard,
        with_hinge_frames,
    )
    from linkwise.pipeline import compile, derive, plan, prove

__version__ = "0.1.0"

__all__ = [
    "Body",
    "Builder",
    "Coupling",
    "CustomHinge",
    "Cylindrical",
    "Drive",
    "Energy",
    "Finding",
    "Free",
    "Geometry",
    "Gimbal",
    "Helical",
    "Hinge",
    "HybridMotion",
    "InnovationsFactors",
    "LinkwiseError",
    "LoadReport",
    "Locked",
    "Loop",
    "Mechanism",
    "ModelError",
    "Node",
    "OperationalSpace",
    "ParseError",
    "Pin",
    "Planar",
    "Pose",
    "Prismatic",
    "Renumbering",
    "RollingBall",
    "Screws",
    "ShapeError",
    "SpatialInertia",
    "Spherical",
    "Target",
    "Translation",
    "Universal",
    "algebra",
    "articulated_inertias",
    "bias_force",
    "body_accelerations",
    "body_velocity",
    "compensating_force",
    "compile",
    "composite_inertias",
    "computed_torque",
    "convert",
    "coriolis_force",
    "coriolis_matrix",
    "coriolis_product",
    "derive",
    "diagonal_coriolis",
    "diagonal_dynamics",
    "diagonal_velocity",
    "dynamics",
    "energy",
    "equivalent_force",
    "estimation",
    "force_from_innovations",
    "forward_dynamics",
    "forward_kinematics",
    "gather",
    "gravity_compensation",
    "gravity_force",
    "hinge_forces",
    "hinge_velocity",
    "hybrid_dynamics",
    "inboard_velocity",
    "innovations",
    "innovations_factors",
    "inverse_dynamics",
    "inverse_kinematics",
    "jacobian",
    "jacobian_dot",
    "jacobian_dot_v",
    "jacobian_gram",
    "kinetic_energy",
    "ledger",
    "load",
    "log_det_mass_matrix",
    "mass_matrix",
    "mass_matrix_inverse",
    "mass_matrix_inverse_product",
    "models",
    "node_acceleration",
    "node_velocity",
    "operational_inertia",
    "operational_inertia_inverse",
    "operational_space",
    "plan",
    "potential_energy",
    "prove",
    "relative_pose",
    "renumbering",
    "save",
    "scatter",
    "tip_force_correction",
    "tracking_energy",
    "velocity_from_diagonal",
    "wen_bayard",
    "with_hinge_frames",
]

_LAZY_MODULES = ("algebra", "convert", "dynamics", "estimation", "ledger", "models")
_LAZY_FUNCTIONS = {
    "linkwise.pipeline": ("compile", "derive", "plan", "prove"),
    "linkwise.dynamics": (
        *(
            "coriolis_force",
            "coriolis_matrix",
            "coriolis_product",
        ),
        *("inverse_kinematics", "Target"),
        *("tip_force_correction", "mass_matrix_inverse_product", "log_det_mass_matrix"),
        *("body_accelerations", "node_acceleration", "hinge_forces"),
        *("HybridMotion", "hybrid_dynamics", "InnovationsFactors", "innovations_factors"),
        *("composite_inertias", "articulated_inertias"),
        *("forward_dynamics", "inverse_dynamics", "bias_force", "gravity_force"),
        *("mass_matrix", "mass_matrix_inverse", "forward_kinematics", "jacobian", "node_velocity"),
        *("Energy", "energy", "kinetic_energy", "potential_energy"),
        *("operational_inertia", "operational_inertia_inverse", "operational_space"),
        *("computed_torque", "gravity_compensation", "tracking_energy"),
        *("wen_bayard",),
        "OperationalSpace",
        *("diagonal_velocity", "velocity_from_diagonal", "innovations", "force_from_innovations"),
        *("diagonal_coriolis", "diagonal_dynamics"),
        *("relative_pose", "body_velocity", "inboard_velocity", "hinge_velocity"),
        *("scatter", "gather", "jacobian_gram", "jacobian_dot", "jacobian_dot_v"),
        *("equivalent_force", "compensating_force", "with_hinge_frames"),
        *("Renumbering", "renumbering"),
    ),
}


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        return importlib.import_module(f"linkwise.{name}")
    for module, names in _LAZY_FUNCTIONS.items():
        if name in names:
            found = getattr(importlib.import_module(module), name)
            globals()[name] = found  # from now on a plain attribute
            return found
    raise AttributeError(f"module 'linkwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
