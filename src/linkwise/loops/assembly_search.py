"""The search for closed loops from far away, by the Levenberg-Marquardt method.

The coordinates θ of the loops' hinges are searched together with all others, so that the problem is
smooth wherever the search begins. With O where the hinge of a loop puts node b, and X_ob the pose
of b seen from there,

    e = (rotation vector of rot_ob, rot_ob* p_ob),      A = D [J_b - T J_a, -φ_ob* H*] C

The exact slope of ½ |D e|² is A* D e, since the logarithm of a rotation keeps its axis: with some
damping μ,  y = -(A* A + μ)⁻¹ A* D e  reduces the error unless it is least already. Joints that are
held or pulled against a limit do not move in a step; those beyond a limit are put back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.closure import (
    closure_nodes,
    constraint_error,
    constraint_jacobian,
    loop_coordinates,
)
from linkwise.dynamics.inverse_kinematics.joints import Joints, joints
from linkwise.dynamics.kinematics import forward_kinematics, jacobian
from linkwise.dynamics.velocity_space import scale
from linkwise.loops.projection import CREEPING, ROUNDED
from linkwise.model.body import Body, Loop
from linkwise.model.hinges import Locked
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial import rotation
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose

DAMPING = 0.01
"""μ over the mean diagonal entry of A* A, for an error of the size of the mechanism."""

LONGEST = 0.7
"""Largest step of a joint [rad, or of the mechanism's length]."""

SLOW, PATIENCE = 1e-4, 8
"""A search that gains less than this part of its error in this number of steps is at rest."""

WORD = " (closing)"
"""Added to the loops' names for the bodies that represent their hinges."""


@once_per_mechanism
def opened(mech: Mechanism) -> Mechanism:
    """The mechanism with the hinges of its loops in the tree, and welds in their place.

    It only provides the limits of all coordinates that are searched, and how they move. q of the
    mechanism comes first, the coordinates of the loops' hinges follow. A nonholonomic hinge is
    replaced by its hull: all of its poses are allowed.
    """
    bodies, loops = list(mech.bodies), list[Loop]()
    for loop in mech.loops:
        if isinstance(loop.hinge, Locked):
            loops.append(loop)
            continue
        name, node, hull = loop.name + WORD, mech.node(loop.node_a), loop.hinge.hull
        drive = loop.drive
        bodies.append(Body(name, node.body, hull, name, inboard=node.pose, drive=drive))
        loops.append(Loop(loop.name, name, loop.node_b, Locked()))
    return replace(mech, bodies=tuple(bodies), loops=tuple(loops))


@dataclass(slots=True, eq=False)
class Searches:
    """Searches side by side, one row each.

    Attributes:
        problem: The problem.
        q: Coordinates of the opened mechanism (s, nq).
        error: e of all welds and couplings (s, m).
        boost: Factor of the damping (s,).
        tried: Steps so far (s,).
        idle: Consecutive steps with hardly any gain (s,).
    """

    problem: Problem
    q: Array
    error: Array
    boost: Array
    tried: NDArray[np.int64]
    idle: NDArray[np.int64]

    def sizes(self) -> Array:
        """|D e| (s,), in metres."""
        return np.linalg.norm(self.error * self.problem.rows, axis=-1)

    def largest(self) -> Array:
        """The largest error of a row (s,) [rad or m]."""
        return np.abs(self.error).max(axis=-1, initial=0.0)

    def resting(self) -> NDArray[np.bool_]:
        """Searches that are at rest."""
        return (self.idle >= PATIENCE) | (self.boost > 1e12)

    def step(self, at: NDArray[np.int64], slow: float) -> None:
        """One step of some searches, accepted where it leads down."""
        problem, q, e = self.problem, self.q[at], self.error[at] * self.problem.rows
        J = problem.rows[:, None] * problem.jacobian(q) * problem.columns
        pull = -(np.swapaxes(J, 1, 2) @ e[..., None])[..., 0]
        held = problem.joints.held(q, pull / problem.columns)
        J = np.where(held[:, None], 0.0, J)
        pull = np.where(held, 0.0, pull)
        square = np.swapaxes(J, 1, 2) @ J
        size, n = np.linalg.norm(e, axis=-1), pull.shape[1]
        mean = np.trace(square, axis1=1, axis2=2) / max(n, 1)
        mu = DAMPING * self.boost[at] * np.minimum(1.0, size / problem.length) + 1e-13
        square += (mu * np.maximum(mean, 1e-300))[:, None, None] * np.eye(n)
        step = cast(Array, np.linalg.solve(square, pull[..., None]))[..., 0]
        step *= np.minimum(1.0, LONGEST / np.maximum(np.abs(step).max(axis=1), 1e-300))[:, None]
        ahead = problem.joints.moved(q, step * problem.columns)
        error = problem.error(ahead)
        new = np.linalg.norm(error * problem.rows, axis=-1)
        better = new < size
        taken = at[better]
        self.q[taken], self.error[taken] = ahead[better], error[better]
        self.boost[taken] = np.maximum(self.boost[taken] / 10.0, 1e-3)
        self.boost[at[~better]] *= 10.0
        # what creeps at an error of the digits of a file would move far for next to nothing
        small = better & (self.largest()[at] <= ROUNDED)
        gained = new < (1.0 - np.where(small, max(slow, CREEPING), slow)) * size
        self.idle[at] = np.where(gained, 0, self.idle[at] + np.where(small, PATIENCE, 1))
        self.tried[at] += 1


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """The constants of a search.

    Attributes:
        mech: The mechanism.
        joints: The joints of the opened mechanism, with their limits.
        rows: Diagonal of D (m,).
        columns: Diagonal of C (nv,).
        length: The size of the mechanism [m].
        tolerance: Largest error of a row that is closed [rad or m].
    """

    mech: Mechanism
    joints: Joints
    rows: Array
    columns: Array
    length: float
    tolerance: float

    def _placed(self, q: Array) -> list[tuple[Pose, Pose, Array]]:
        """X_ab, X_ob and H (s, nv, 6) of each loop."""
        mech, at = self.mech, self.mech.nq
        X = forward_kinematics(mech, q[:, :at], closure_nodes(mech))
        placed = list[tuple[Pose, Pose, Array]]()
        for i, loop in enumerate(mech.loops):
            X_ab, hinge = X[:, 2 * i].inverse() @ X[:, 2 * i + 1], loop.hinge.hull
            theta, at = q[:, at : at + hinge.nq], at + hinge.nq
            placed.append((X_ab, hinge.pose(theta).inverse() @ X_ab, hinge.hinge_map(theta)))
        return placed

    def error(self, q: Array) -> Array:
        """e (s, m) of the loops, and q_dependent - f(q) of the couplings."""
        mech, parts = self.mech, [np.zeros((len(q), 0))]
        for _, off, _ in self._placed(q) if mech.loops else ():
            back = (np.swapaxes(off.rot, -1, -2) @ off.p[..., None])[..., 0]
            parts += [rotation.log(off.rot), back]
        if mech.couplings:
            count = len(mech.couplings)
            parts.append(constraint_error(mech, q[:, : mech.nq])[:, -count:])
        return np.concatenate(parts, axis=-1)

    def jacobian(self, q: Array) -> Array:
        """[J_b - T J_a, -φ_ob* H*] (s, m, nv) of the loops, and the rows of the couplings."""
        mech, out = self.mech, np.zeros((len(q), len(self.rows), len(self.columns)))
        J, at = np.zeros((len(q), 0, 6, mech.nv)), mech.nv
        if mech.loops:
            J = jacobian(mech, q[:, : mech.nq], closure_nodes(mech)).reshape(len(q), -1, 6, mech.nv)
        for i, (X_ab, off, H) in enumerate(self._placed(q) if mech.loops else ()):
            rows = slice(6 * i, 6 * i + 6)
            T = np.swapaxes(X_ab.shift, -1, -2)
            out[:, rows, : mech.nv] = J[:, 2 * i + 1] - T @ J[:, 2 * i]
            out[:, rows, at : at + H.shape[1]] = -np.swapaxes(H @ off.shift, -1, -2)
            at += H.shape[1]
        if mech.couplings:
            count = len(mech.couplings)
            J_c = constraint_jacobian(mech, q[:, : mech.nq])
            out[:, -count:, : mech.nv] = J_c[:, -count:]
        return out

    def begin(self, q: Array) -> Searches:
        """Searches that begin at q (s, nq)."""
        zeros = np.zeros((2, len(q)), dtype=np.int64)
        return Searches(self, q, self.error(q), np.ones(len(q)), zeros[0], zeros[1])

    def solve(
        self, q: Array, iterations: int, *, slow: float = SLOW, first: bool = False
    ) -> Searches:
        """Searches from q (s, nq) to their end, or until the first of them is closed."""
        searches = self.begin(np.array(q))
        for _ in range(iterations):
            closed = searches.largest() <= self.tolerance
            going = np.flatnonzero(~closed & ~searches.resting())
            if not len(going) or (first and closed.any()):
                break
            searches.step(going, slow)
        return searches

    def unlimited(self) -> Problem:
        """The same without limits."""
        far = np.full(self.joints.mech.nq, np.inf)
        return replace(self, joints=replace(self.joints, lower=-far, upper=far, cones=()))


def problem(mech: Mechanism, hold: tuple[str, ...], *, limits: bool, tolerance: float) -> Problem:
    """The problem of closing the loops of a mechanism."""
    wide = opened(mech)
    measure = scale(wide)
    movable = joints(wide, hold, limits=limits, length=measure.length)
    return Problem(mech, movable, measure.rows, measure.columns, measure.length, tolerance)


def widened(mech: Mechanism, q: Array) -> Array:
    """Coordinates (s, nq) of the opened mechanism, loops' hinges as near to closed as possible."""
    theta = loop_coordinates(mech, q)
    parts = [theta[x.name] for x in mech.loops if not isinstance(x.hinge, Locked)]
    return np.concatenate([q, *parts], axis=-1)
