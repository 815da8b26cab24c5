"""Errors of states: displacements along velocities, and derivatives of formulas along them.

An error of the configuration is a displacement d along the velocities at q, the tangent space of
`mech.integrate`. It moves as steps of time do: plain coordinates add, quaternions turn in body axes
by exp(d), positions of free hinges move by d in body axes.

    q ⊕ d,   q₁ ⊖ q₀ with q₀ ⊕ (q₁ ⊖ q₀) = q₁

Other hinges move by their own rule. Rolling balls and soft fingers reach more configurations than
their velocities span: their errors are along the velocities of the holonomic hinge of the same
coordinates (`Hinge.hull`), so that d has more numbers than v, `error_size` in all.

A covariance about q becomes one about q ⊕ d by J P J*, where J = ∂((q ⊕ (d + e)) ⊖ (q ⊕ d))/∂e at
e = 0, the identity for plain coordinates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.codegen.sensitivity import pushed
from linkwise.dynamics.configuration import coordinates, places
from linkwise.dynamics.velocity_space import holonomic
from linkwise.model.hinges import Free, Spherical
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rates import check_turns, counted, moved, rate_map, rates
from linkwise.spatial import quaternion
from linkwise.sweeps.sparse import times

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


class Slopes:
    """Derivatives of numbers of a formula by some variables, a column for each.

    They run forward along the graph, from nodes whose derivatives are known.
    """

    def __init__(self, at: Writing, count: int) -> None:
        self.at, self.count = at, count
        self._known = dict[int, list[int]]()

    def know(self, array: Any, rows: Any) -> None:
        """Give the derivatives (n, count) of an array (n,)."""
        scalar = self.at.scalar
        for x, row in zip(array, rows, strict=True):
            self._known[scalar(x).node] = [scalar(e).node for e in row]

    def of(self, array: Any) -> Any:
        """The derivatives (n, count) of an array (n,)."""
        graph, outputs = self.at.graph, [self.at.scalar(x).node for x in array]
        order = graph.used(outputs, self._known)
        columns = [
            pushed(graph, outputs, {x: row[c] for x, row in self._known.items()}, order)
            for c in range(self.count)
        ]
        out = np.empty((len(outputs), self.count), dtype=object)
        for c, column in enumerate(columns):
            out[:, c] = self.at.scalars(column)
        return out


def error_size(mech: Mechanism) -> int:
    """Numbers in an error of the configuration: nv, and more with nonholonomic hinges."""
    return holonomic(mech).nv


def along_coordinates(mech: Mechanism, q: Any) -> Any:
    """N (nq, error_size) of δq = N d, in a formula."""
    return rate_map(holonomic(mech), q)


def as_displacement(mech: Mechanism, q: Any, dq: Any) -> Any:
    """d (error_size, columns) of δq = N d (nq, columns), in a formula."""
    return times(counted(holonomic(mech), q).T, dq)


def displaced(mech: Mechanism, q: Any, d: Any) -> Any:
    """q ⊕ d (nq,), in a formula; d turns by half a turn at most."""
    wide = holonomic(mech)
    return moved(wide, q, rates(wide, q, d), 1.0)


def displacement(mech: Mechanism, q0: Any, q1: Any) -> Any:
    """q1 ⊖ q0 (error_size,), in a formula."""
    wide = holonomic(mech)
    out, ((at, of), others) = np.empty(wide.nv, dtype=object), places(wide)
    out[of] = q1[at] - q0[at]
    for hinge, i, j in others:
        if type(hinge) in (Free, Spherical):
            out[j][:3] = quaternion.difference(q0[None, i][:, :4], q1[None, i][:, :4])[0]
            if type(hinge) is Free:
                rot = quaternion.to_matrix(q0[None, i][:, :4])[0]
                out[j][3:] = rot.T @ (q1[i][4:] - q0[i][4:])
        else:
            out[j] = hinge.difference(q0[None, i], q1[None, i])[0]
    return out


def carried(at: Writing, q: Any, d: Any) -> tuple[Any, Any]:
    """q ⊕ d (nq,) and J (error_size, error_size), in a formula."""
    mech, size = at.mech, error_size(at.mech)
    slopes = Slopes(at, size)
    check_turns(at, holonomic(mech), d)
    after = displaced(mech, q, d)
    slopes.know(d, np.eye(size))
    return after, as_displacement(mech, after, slopes.of(after))


def _carried(at: Writing) -> Any:
    return carried(at, coordinates(at), at.read("d", error_size(at.mech)))


def _displacement(at: Writing) -> Any:
    return displacement(at.mech, coordinates(at, "q0"), coordinates(at, "q1"))


CARRIED = Formula(_carried, names=("q", "J"))
"""Inputs: q (nq,), d (error_size,)."""

DISPLACEMENT = Formula(_displacement)
"""Inputs: q0, q1 (nq,)."""
