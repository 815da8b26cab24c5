"""Algorithms and theorems that carry the name of a paper.

Wen and Bayard's control law and its energy; the diagonalised equations of motion and the
innovations; Theorem 2 of Khatib's reduced inertia and its general form, macro and mini. FD1 to FD4
and RCCFD1 to RCCFD3 are values of `method` of `lw.forward_dynamics`.
"""

from linkwise.documented import OF_TREES as _OF_TREES
from linkwise.dynamics.control import (
    tracking_energy as tracking_energy,
    wen_bayard as wen_bayard,
)
from linkwise.dynamics.forward_dynamics import tip_force_correction as tip_force_correction
from linkwise.dynamics.innovations import (
    InnovationsFactors as InnovationsFactors,
    diagonal_coriolis as diagonal_coriolis,
    diagonal_dynamics as diagonal_dynamics,
    diagonal_velocity as diagonal_velocity,
    force_from_innovations as force_from_innovations,
    innovations as innovations,
    innovations_factors as innovations_factors,
    velocity_from_diagonal as velocity_from_diagonal,
)
from linkwise.front_door import open_front_door
from linkwise.inertial import (
    DextrousCoordination as DextrousCoordination,
    MacroMini as MacroMini,
    ReducedInertia as ReducedInertia,
    SmallestMini as SmallestMini,
    macro_mini as macro_mini,
    reduced_inertia as reduced_inertia,
    smallest_mini as smallest_mini,
)

open_front_door(globals(), texts=_OF_TREES)
