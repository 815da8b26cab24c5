"""Inertia at an end effector: effective masses, ellipsoids, maps, macro and mini."""

from linkwise.front_door import open_front_door
from linkwise.inertial.effective_mass import (
    directional_inertia as directional_inertia,
    effective_mass as effective_mass,
)
from linkwise.inertial.ellipsoid import InertialShape as InertialShape, ellipsoid as ellipsoid
from linkwise.inertial.macro_mini.coordination import DextrousCoordination as DextrousCoordination
from linkwise.inertial.macro_mini.macro_mini import (
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

open_front_door(globals())
