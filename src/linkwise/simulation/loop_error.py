"""How far loops and couplings of one state are from closed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.dynamics.closure import relative_poses
from linkwise.model import closure
from linkwise.model.closure import coupling_error
from linkwise.model.loop_error import loop_error
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

_STILL = np.zeros(6)


@dataclass(frozen=True, slots=True, eq=False)
class Drift:
    """How far the loops were from closing.

    Attributes:
        distance: Largest distance at a loop, or error of a coupling of a slide [m].
        angle: Largest angle at a loop, or error of a coupling of an angle [rad].
        where: The loop or coupling with the largest of these; "" if there is none.
    """

    distance: float = 0.0
    angle: float = 0.0
    where: str = ""

    @property
    def size(self) -> float:
        """The larger of distance [m] and angle [rad]."""
        return max(self.distance, self.angle)


class Gap:
    """Errors of loops and couplings.

    Attributes:
        loops: Rotation vector [rad] and translation [m] of each loop (loops, 6).
        couplings: Error of each coupling [rad or m].
        rows: The errors in the order of `constraint_names` (m,).
    """

    def __init__(self, mech: Mechanism, q: Array) -> None:
        self.mech, self.loops = mech, np.zeros((len(mech.loops), 6))
        parts = list[Array]()
        pairs = zip(mech.loops, relative_poses(mech, q), strict=True)
        for i, (loop, X_ab) in enumerate(pairs):
            e = self.loops[i] = loop_error(loop.hinge, X_ab)
            parts.append(closure.blocked(loop.hinge, X_ab, _STILL).S @ e)
        self.couplings = np.array([float(coupling_error(mech, x, q)) for x in mech.couplings])
        self.rows = np.concatenate([*parts, self.couplings])

    @property
    def size(self) -> float:
        """The largest error of a row [rad or m]."""
        return float(np.abs(self.rows).max(initial=0.0))

    @property
    def drift(self) -> Drift:
        """The largest errors, and where they are."""
        mech = self.mech
        names = [*(x.name for x in mech.loops), *(x.name for x in mech.couplings)]
        if not names:
            return Drift()
        off, slides = np.abs(self.couplings), coupled_slides(mech)
        distance = np.concatenate([np.linalg.norm(self.loops[:, 3:], axis=-1), off * slides])
        angle = np.concatenate([np.linalg.norm(self.loops[:, :3], axis=-1), off * ~slides])
        where = names[int(np.argmax(np.maximum(distance, angle)))]
        return Drift(float(distance.max()), float(angle.max()), where)


def coupled_slides(mech: Mechanism) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which couplings are of a coordinate in metres."""
    units = [x.unit for body in mech.bodies for x in body.hinge.coordinates]
    which = [units[mech.coordinate(x.dependent)] == "m" for x in mech.couplings]
    return np.array(which, dtype=np.bool_)
