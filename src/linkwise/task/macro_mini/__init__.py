"""A mini on a macro: what it takes away from the inertia at the tip, and how to keep it in range.

`parts.py` has the two mechanisms, `reduced_inertia.py` Lemmas 1 and 2 and Theorem 2,
`smallest_mini.py` the general form of it, `dextrous.py` the coordination.
"""

from linkwise.front_door import open_front_door
from linkwise.task.macro_mini.dextrous import DextrousCoordination
from linkwise.task.macro_mini.parts import MacroMini, MacroMiniState, macro_mini
from linkwise.task.macro_mini.principal import Felt, PrincipalInertia
from linkwise.task.macro_mini.reduced_inertia import ReducedInertia, reduced_inertia
from linkwise.task.macro_mini.smallest_mini import SmallestMini, smallest_mini

__all__ = [
    "DextrousCoordination",
    "Felt",
    "MacroMini",
    "MacroMiniState",
    "PrincipalInertia",
    "ReducedInertia",
    "SmallestMini",
    "macro_mini",
    "reduced_inertia",
    "smallest_mini",
]

open_front_door(globals(), __all__)
