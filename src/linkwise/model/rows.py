"""Rows of velocities that a task prescribes: a task written as a constraint.

A loop requires S V_ab = 0. A task requires that S V_ab have a given value, so its rows are those of
a loop whose hinge blocks exactly these directions; as a row of a coupling it may be a single
velocity. Such loops and couplings occur only in copies of a mechanism made for a task; nothing
closes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.body import Coupling
from linkwise.model.hinges.hinge import Coordinate, Hinge
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose

if TYPE_CHECKING:
    from linkwise.model.embedded import Embedded
    from linkwise.model.mechanism import Mechanism


@dataclass(frozen=True)
class Rows(Hinge):
    """A hinge known only by the directions that it blocks.

    Attributes:
        directions: S (m, 6), rows that need not be orthonormal, angular part first.
        outer: Whether their axes are those of node a, which turn as seen from b; else b's.
        aim: What kind of goal they have: a "pose", "position", "orientation" or "direction".
        axis: For a direction, the axis in b's axes.
    """

    directions: tuple[tuple[float, ...], ...]
    outer: bool = True
    aim: str = "pose"
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)

    @property
    def nv(self) -> int:
        """Number of free directions."""
        return 6 - len(self.directions)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Without meaning."""
        return tuple(Coordinate(f"free_{i}", "") for i in range(self.nv))

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        """Without meaning."""
        return self.coordinates

    @property
    def rows(self) -> Array:
        """S (m, 6)."""
        return np.array(self.directions, dtype=np.float64).reshape(-1, 6)

    def pose(self, q: Array) -> Pose:
        """Not defined for rows of a task."""
        self._refuse()

    def hinge_map(self, q: Array) -> Array:
        """Not defined for rows of a task."""
        self._refuse()

    def bias(self, q: Array, v: Array) -> Array:
        """Not defined for rows of a task."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ModelError("rows of a task have no coordinates: they are prescribed, not closed.")


def has_tasks(mech: Mechanism | Embedded) -> bool:
    """Whether its loops or couplings are tasks, whose rows must be independent."""
    rows = any(isinstance(loop.hinge, Rows) for loop in mech.loops)
    return rows or any(isinstance(coupling, JointRow) for coupling in mech.couplings)


SINGULAR = {8: 1e-9, 4: 1e-4}
"""Smallest pivot of J 𝓜⁻¹ J* of tasks, relative to the terms it is made of, by bytes of a number: a
solution keeps at least half of all digits."""


def row_scales(mech: Mechanism) -> Array:
    """The entry of J 𝓜⁻¹ J* of each row of tasks if all of the mass moved with it (m,).

    Rows far below it are rounding only: those of a node seen from the body it is on, for example.
    """
    mass = mech.total_mass
    parts = [pose.p for body in mech.bodies for pose in (body.inboard, body.outboard)]
    way = sum(float(np.linalg.norm(p)) for p in parts)
    moving = 1.0 / mass if mass > 0.0 else 0.0
    turning = moving / way**2 if way > 0.0 else moving
    scales = list[float]()
    for loop in mech.loops:
        assert isinstance(loop.hinge, Rows)
        scales += [moving if any(row[3:]) else turning for row in loop.hinge.directions]
    return np.array(scales + [min(moving, turning)] * len(mech.couplings))


@dataclass(frozen=True, slots=True)
class JointRow(Coupling):
    """A row that is one velocity of a hinge.

    Attributes:
        index: Which of the velocities of the hinge `dependent`.
    """

    index: int = 0
