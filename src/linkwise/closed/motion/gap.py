"""Errors of loops and couplings of one state, together."""

from __future__ import annotations

import numpy as np

from linkwise.dynamics.closure import relative_poses
from linkwise.model import closure
from linkwise.model.closure import coupling_error
from linkwise.model.loop_error import loop_error
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

_STILL = np.zeros(6)


class Gap:
    """How far the loops and couplings are from closed.

    Attributes:
        loops: Rotation vector [rad] and translation [m] of each loop (loops, 6).
        couplings: Error of each coupling [rad or m].
        rows: The errors in the order of `constraint_names` (m,).
    """

    def __init__(self, mech: Mechanism, q: Array) -> None:
        self.loops = np.zeros((len(mech.loops), 6))
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
