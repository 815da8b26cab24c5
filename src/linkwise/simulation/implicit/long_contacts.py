"""Contacts of long mechanisms with the ground: rows and gaps, by kernels with loops over bodies.

Poses, velocities and joint forces of the bodies that may touch are rolled kernels. From poses to
the rows S of `contact_rows.py` is straight code, as long as there are points, however many bodies
there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra.expr import Expr
from linkwise.codegen.formula import Formula
from linkwise.dynamics.actuator_force import PULLED
from linkwise.dynamics.kernels import tree_of
from linkwise.dynamics.quantity import expression
from linkwise.model.mechanism import Mechanism
from linkwise.pipeline import compile
from linkwise.simulation.implicit.collision_steps import rooms
from linkwise.simulation.implicit.contact_rows import rows_at
from linkwise.simulation.implicit.ground import ContactPoint, HeightField
from linkwise.simulation.implicit.over_heights import POSES, any_mechanism
from linkwise.simulation.implicit.segments import IMPACT, MOTION, PUSHED
from linkwise.spatial.array import Array


def written(at: Any, bodies: tuple[str, ...], points: tuple[ContactPoint, ...]) -> Any:
    """S of each row on its own body (rows, 6), gaps and normals, on graph nodes."""
    S, gaps, normals = rows_at(at.read(POSES, 12 * len(bodies)), bodies, points)
    starts = [6 * bodies.index(point.body) for point in points for _ in range(point.rows)]
    each = [row[start : start + 6] for row, start in zip(S, starts, strict=True)]
    return np.array(each), np.array(gaps), np.array(normals, dtype=object)


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """Where the points are at a state, and which are near.

    Attributes:
        S: Of each row on its own body (rows, 6).
        gap: Of points (c,) [m].
        normals: Of points over height fields (3 of each,).
        near: Which points are near enough to push (c,).
        room: β of these.
        rows: Their rows G in `slots` (each, nv); zero in slots that a point does not have.
        before: Velocities of all rows before the step.
    """

    S: Array
    gap: Array
    normals: Array
    near: NDArray[np.bool_]
    room: Array
    rows: Array
    before: Array


class LongContacts:
    """The points of a long mechanism that may touch the ground.

    Attributes:
        points: The points.
        each: Rows of a point where laws are solved, 3 or 6: normal, sliding (2), and with 6
            spinning and rolling (2).
        slots: Places of the rows of all points in these.
        radii: Friction, torsional and rolling of each point (c, 3).
    """

    def __init__(self, mech: Mechanism, points: tuple[ContactPoint, ...]) -> None:
        self.points, self._mech = points, mech
        self._bodies = tuple(dict.fromkeys(point.body for point in points))
        self._poses, self._motion, self._pushed = (
            self._rolled(x) for x in (expression("node_poses"), MOTION, PULLED)
        )
        uneven = any(isinstance(point.ground, HeightField) for point in points)
        names = ("S", "gap", *(("normals",) if uneven else ()))
        parts = written if uneven else _level
        formula = Formula(parts, (self._bodies, points), names)
        self._at = compile(formula, any_mechanism())
        grounds = [point.ground for point in points]
        self.radii = np.array([(x.friction, x.torsional, x.rolling) for x in grounds])
        self._restitution = np.array([x.restitution for x in grounds])
        self.each = 6 if self.radii[:, 1:].any() else 3
        self.slots = np.array(
            [self.each * i + slot for i, x in enumerate(points) for slot in _slots(x)], np.intp
        )
        body = [self._bodies.index(point.body) for point in points]
        self._of_row = np.array(body)[self.slots // self.each]

    @property
    def normal(self) -> NDArray[np.intp]:
        """The first row of each point, among the rows of all."""
        sizes = np.array([point.rows for point in self.points], np.intp)
        return np.cumsum(sizes) - sizes

    def _rolled(self, expr: Expr) -> Any:
        return compile(expr, tree_of(self._mech), nodes=self._bodies, rolled=True)

    def velocities(self, S: Array, q: Array, v: Array) -> Array:
        """Velocities of all rows."""
        V = self._motion(q, v).reshape(-1, 6)
        return np.einsum("ij,ij->i", S, V[self._of_row])

    def places(self, q: Array) -> tuple[Array, Array, Array]:
        """S, gaps and normals."""
        values = self._at(self._poses(q).reshape(-1))
        return values["S"].reshape(-1, 6), values["gap"], values.get("normals", np.zeros(0))

    def at(self, q: Array, v: Array, h: float) -> Near:
        """Where the points are, and the rows of those that may touch in a step."""
        S, gap, normals = self.places(q)
        before = self.velocities(S, q, v)
        towards = before[self.normal]
        sudden = PUSHED + IMPACT * np.abs(towards).max(initial=0.0)
        near = h * (sudden + 2.0 * np.maximum(-towards, 0.0)) > gap
        room = rooms(gap[near], towards[near], self._restitution[near], h)
        taken = np.flatnonzero(near[self.slots // self.each])
        f = np.zeros((len(taken), len(self._bodies), 6))
        f[np.arange(len(taken)), self._of_row[taken]] = S[taken]
        rows = np.zeros((len(self.points), self.each, self._mech.nv))
        if len(taken):
            many = np.broadcast_to(q, (len(taken), len(q)))
            rows.reshape(-1, self._mech.nv)[self.slots[taken]] = self._pushed(
                many, f.reshape(len(taken), -1)
            )
        rows = rows[near].reshape(-1, self._mech.nv)
        return Near(S, gap, normals, near, room, rows, before)


def _level(at: Any, bodies: tuple[str, ...], points: tuple[ContactPoint, ...]) -> Any:
    """`written` over planes, which have no normals of points."""
    return written(at, bodies, points)[:2]


def _slots(point: ContactPoint) -> list[int]:
    """Which of six rows a point has."""
    ground = point.ground
    return [0, 1, 2, *[3] * (ground.torsional > 0.0), *[4, 5] * (ground.rolling > 0.0)]
