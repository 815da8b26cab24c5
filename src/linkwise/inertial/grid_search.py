"""Inverse kinematics over a grid of points, outwards from the current state.

Each search starts from the joints of a neighbouring point, one front at a time. Postures of
redundant arms therefore change little from point to point. Points proved out of reach are skipped.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.inverse_kinematics.goal import NodeGoal
from linkwise.dynamics.inverse_kinematics.reach import from_ground
from linkwise.dynamics.inverse_kinematics.search import inverse_kinematics
from linkwise.dynamics.kinematics import forward_kinematics
from linkwise.errors import ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

Progress: TypeAlias = Callable[[int, int], None]

PATIENCE = 10.0
"""Seconds after which a long search reports its progress."""

NEAR = 1e-6
"""Accuracy of inverse kinematics [m]: points out of reach by less may be reached."""


class Front:
    """Inverse kinematics that spreads over a grid of points (..., 3).

    Args:
        mech: The mechanism.
        node: The node that is placed.
        points: Its positions (..., 3) [m].
        orientation: Of the node at all points, or None.
        progress: Called with the number of points done and of all.
    """

    def __init__(
        self,
        mech: Mechanism,
        node: str,
        points: Array,
        orientation: ArrayLike | None,
        progress: Progress | None,
    ) -> None:
        self.mech, self.node, self.orientation = mech, node, orientation
        self.shape = points.shape[:-1]
        self.points = points.reshape(-1, 3)
        self.progress, self.due = progress, time.monotonic() + PATIENCE
        self.done = 0
        self.reached = np.zeros(len(self.points), dtype=np.bool_)
        self.tried = ~self._possible()
        self.q = np.zeros((len(self.points), mech.nq))
        self.miss = np.full(len(self.points), np.inf)

    def spread(self, start: Array, restarts: int, seed: int) -> tuple[Array, NDArray[np.bool_]]:
        """States (..., nq) and where the points are reached (...,)."""
        self.q[:] = start
        possible = ~self.tried
        here = forward_kinematics(self.mech, start, self.node).p
        away = np.where(possible, np.linalg.norm(self.points - here, axis=-1), np.inf)
        nearest = np.array([int(np.argmin(away))])
        self._grow(nearest[possible[nearest]], start[None])
        left = np.flatnonzero(possible & ~self.reached)
        if len(left):
            self._search(left, np.tile(start, (len(left), 1)), restarts, seed)
            self.tried[left] = self.reached[left]
            self._grow(*self._next(left[self.reached[left]]))
        self._report(len(self.points))
        return self.q.reshape(*self.shape, -1), self.reached.reshape(self.shape)

    def _possible(self) -> NDArray[np.bool_]:
        """Points that are not proved out of reach."""
        span = from_ground(self.mech, self.node, limits=True)
        if span is None:
            return np.ones(len(self.points), dtype=np.bool_)  # inverse kinematics decides
        away = np.linalg.norm(self.points - span.start, axis=-1)
        return (away > span.least - NEAR) & (away < span.most + NEAR)

    def _grow(self, rows: NDArray[np.int64], begin: Array) -> None:
        """Search points, then the neighbours of those that were reached, and so on."""
        while len(rows):
            self.tried[rows] = True
            self._search(rows, begin, 0, 0)
            rows, begin = self._next(rows[self.reached[rows]])
            self._report(int(self.tried.sum()))

    def _next(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array]:
        """Untried neighbours of points, each once, and the joints to begin with."""
        index = np.stack(np.unravel_index(rows, self.shape), axis=-1)
        near, source = list[NDArray[np.int64]](), list[NDArray[np.int64]]()
        for axis, size in enumerate(self.shape):
            for step in (-1, 1):
                moved = index.copy()
                moved[:, axis] += step
                inside = (moved[:, axis] >= 0) & (moved[:, axis] < size)
                number = np.atleast_1d(np.ravel_multi_index(tuple(moved[inside].T), self.shape))
                fresh = ~self.tried[number]
                near.append(number[fresh])
                source.append(rows[inside][fresh])
        if not near:
            return np.zeros(0, dtype=np.int64), np.zeros((0, self.mech.nq))
        every, first = np.unique(np.concatenate(near), return_index=True)
        return every, self.q[np.concatenate(source)[first]]

    def _search(self, rows: NDArray[np.int64], begin: Array, restarts: int, seed: int) -> None:
        goal = NodeGoal(position=self.points[rows], orientation=self._turned(len(rows)))
        solution = inverse_kinematics(
            self.mech, {self.node: goal}, begin, restarts=restarts, seed=seed
        )
        miss = solution.position_error[self.node]
        better = solution.reached | (~self.reached[rows] & (miss < self.miss[rows]))
        self.q[rows[better]], self.miss[rows[better]] = solution.q[better], miss[better]
        self.reached[rows[solution.reached]] = True

    def _turned(self, count: int) -> Array | None:
        if self.orientation is None:
            return None
        rot = floats(self.orientation, "orientation")
        if rot.shape not in ((3, 3), (4,)):
            raise ShapeError(
                f"orientation has shape {rot.shape}; it must be one rotation matrix (3, 3) or "
                "quaternion (4,)."
            )
        return np.tile(rot, (count, *([1] * rot.ndim)))

    def _report(self, done: int) -> None:
        self.done = max(self.done, done)  # points that are tried again were counted before
        if self.progress is not None:
            self.progress(self.done, len(self.points))
        elif time.monotonic() > self.due:
            self.due = time.monotonic() + PATIENCE
            if sys.stderr.isatty():
                print(f"{self.done} of {len(self.points)} points", file=sys.stderr)
