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

from linkwise.codegen import stages
from linkwise.codegen.formula import Formula
from linkwise.codegen.request import Request
from linkwise.codegen.sensitivity import pushed
from linkwise.dynamics.configuration import coordinates, places
from linkwise.dynamics.velocity_space import holonomic
from linkwise.model.hinges import Free, Hinge
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rates import check_turns, counted, moved, rate_map, rates
from linkwise.spatial import quaternion
from linkwise.sweeps.sparse import times

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


class Slopes:
    """Derivatives of numbers of a formula by some variables, a column for each.

    They run forward along the graph, from nodes whose derivatives are known: inputs of the graph,
    or numbers whose derivatives by these were found in another way.
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
        out[j] = of_hinge(hinge, q0[i], q1[i])
    return out


def of_hinge(hinge: Hinge, q0: Any, q1: Any) -> Any:
    """q1 ⊖ q0 of a hinge, in a formula; for nonholonomic ones give the hull."""
    if type(hinge) is not Free:
        return hinge.difference(q0[None], q1[None])[0]
    turn = quaternion.difference(q0[None, :4], q1[None, :4])[0]
    rot = quaternion.to_matrix(q0[None, :4])[0]
    return np.concatenate([turn, rot.T @ (q1[4:] - q0[4:])])


def carried(at: Writing, q: Any, d: Any) -> tuple[Any, Any]:
    """q ⊕ d (nq,) and J (error_size, error_size), in a formula."""
    nq, size = at.mech.nq, error_size(at.mech)
    after, J = np.split(apart(at, TURNED, {"q": q, "d": d}), [nq])
    return after, J.reshape(size, size)


def apart(at: Writing, formula: Formula, given: dict[str, Any]) -> Any:
    """Results of a formula in sequence, traced with its inputs as variables.

    Derivatives by arrays need that. In the graph where an array is computed, what follows may not
    use its nodes: of x = -a, x² is a².
    """
    traced = stages.traced(Request(formula, at.mech, itemsize=at.itemsize))
    out = np.empty(len(traced.outputs), dtype=object)
    out[:] = at.replay(traced, given)
    return out


def _turned(at: Writing) -> Any:
    mech, q, d = at.mech, at.read("q", at.mech.nq), at.read("d", error_size(at.mech))
    slopes = Slopes(at, len(d))
    check_turns(at, holonomic(mech), d)
    after = displaced(mech, q, d)
    slopes.know(d, np.eye(len(d)))
    return after, as_displacement(mech, after, slopes.of(after))


TURNED = Formula(_turned, names=("q", "J"))
"""Inputs: q (nq,), d (error_size,)."""


def _carried(at: Writing) -> Any:
    return carried(at, coordinates(at), at.read("d", error_size(at.mech)))


def _displacement(at: Writing) -> Any:
    return displacement(at.mech, coordinates(at, "q0"), coordinates(at, "q1"))


CARRIED = Formula(_carried, names=("q", "J"))
"""Inputs: q (nq,), d (error_size,)."""

DISPLACEMENT = Formula(_displacement)
"""Inputs: q0, q1 (nq,)."""
