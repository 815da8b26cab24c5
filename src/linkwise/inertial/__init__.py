"""Inertia as an end effector feels it: effective masses, ellipsoids, maps, macro and mini."""

from linkwise.front_door import open_front_door
from linkwise.inertial.effective_mass import (
    directional_inertia as directional_inertia,
    effective_mass as effective_mass,
    effective_rotational_inertia as effective_rotational_inertia,
)
from linkwise.inertial.macro_mini.dextrous import DextrousCoordination as DextrousCoordination
from linkwise.inertial.macro_mini.parts import (
    MacroMini as MacroMini,
    MacroMiniState as MacroMiniState,
    macro_mini as macro_mini,
)
from linkwise.inertial.macro_mini.reduced_inertia import (
    ReducedInertia as ReducedInertia,
    reduced_inertia as reduced_inertia,
)
from linkwise.inertial.macro_mini.smallest_mini import (
    SmallestMini as SmallestMini,
    smallest_mini as smallest_mini,
)
from linkwise.inertial.properties import (
    InertialProperties as InertialProperties,
    inertial_properties as inertial_properties,
)
from linkwise.inertial.shape import (
    InertialShape as InertialShape,
    belted_ellipsoid as belted_ellipsoid,
    gyration_ellipsoid as gyration_ellipsoid,
    inertia_ellipsoid as inertia_ellipsoid,
)
from linkwise.inertial.workspace_map import (
    InertialMap as InertialMap,
    inertial_map as inertial_map,
)

open_front_door(globals())
