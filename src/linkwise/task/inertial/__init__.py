"""Inertial properties: effective masses, the ellipsoids that show them, maps over a workspace.

`response.py` has the mathematics: rows of a Jacobian, whitened, and nothing squared.
"""

from linkwise.front_door import open_front_door
from linkwise.task.inertial.effective_mass import (
    directional_inertia,
    effective_mass,
    effective_rotational_inertia,
)
from linkwise.task.inertial.properties import InertialProperties, inertial_properties
from linkwise.task.inertial.shape import (
    InertialShape,
    belted_ellipsoid,
    gyration_ellipsoid,
    inertia_ellipsoid,
)
from linkwise.task.inertial.workspace_map import InertialMap, inertial_map

__all__ = [
    "InertialMap",
    "InertialProperties",
    "InertialShape",
    "belted_ellipsoid",
    "directional_inertia",
    "effective_mass",
    "effective_rotational_inertia",
    "gyration_ellipsoid",
    "inertia_ellipsoid",
    "inertial_map",
    "inertial_properties",
]

open_front_door(globals(), __all__)
