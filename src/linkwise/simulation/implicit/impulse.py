"""The laws of impulses, and one sweep over them: projected Gauss-Seidel.

With the rows G of all directions in which something may push, u = G v' their velocities at the end
of a step and λ their impulses,

    u = A λ + b,      A = G M̂⁻¹ G* = Y* Y,      Y = D^(-½) (I - H ψ K) G*

each row has a law between its λ and its u:

    joint     friction |λ| ≤ h f, against u;  a limit pushes so that  low ≤ u ≤ high
    normal    λ ≥ 0, u + β ≥ 0, one of them zero
    sliding   |λ_t| ≤ μ λ_n; sticks with u_t = 0, or slides with λ_t against u_t; spinning and
              rolling likewise

A sweep solves each for its own λ with the others as they are. A is not formed: a row y of Y has
entries on the way from its body to the base only, and w = e + Y λ gives u_i = b_i + y_i* w.

The three forces of a contact are solved together. It sticks if λ − A_c⁻¹ u is in its cone, with
the block A_c of A; else the normal is solved alone, and then sliding. Legs are light beside the
body they carry, so feet depend on each other much less than the directions of a foot do: sweeps
that solve these at once converge several times faster. Joints and contacts of different limbs are
solved by twos, side by side (`sweeping.py`).

These are Coulomb's laws themselves; the convex problems of other solvers lift a sliding body off
the ground a little. Sweeps begin with the impulses of the last step, so that few of them suffice
while little changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwise.simulation.implicit.ground import ContactPoint
from linkwise.spatial.choice import absolute, clip, gate, maximum, minimum, root, where

TOGETHER = 40
"""Sweeps of a step in which contacts try to stick with all rows at once, or half of those of a step
if these are fewer."""

DEPENDENT = 1e-5
"""A pivot of A_c, relative to its diagonal, below which a contact is solved row by row."""

TINY = 1e-15
"""Keeps the direction of no impulse finite; its square is a number in float32, too."""

IMMOVABLE = 1e-12
"""Mobility [1/kg] of a row below which rounding is all there is."""


class Sweep:
    """One sweep over rows, each with its number.

    Attributes:
        rows: For each row its y, by place in w.
        b: With β added in normal rows.
        mobility: A_ii = y_i* y_i.
        inverse: 1/A_ii; of rows that share a law the inverse of what bounds their block.
        solvers: For the first row of each contact its `solver`, or its `block` and diagonal.
        together: Above zero while contacts try to stick with all rows at once.
        swings: Above zero once contacts side by side change by half of that, lest two that push
            each other swing for ever; None if that is never so.
        impulse: λ, which `joint` and `contact` change.
        w: e + Y λ by place, likewise.
        worst: The largest change of a velocity.
    """

    def __init__(
        self,
        rows: Mapping[int, dict[int, Any]],
        b: Mapping[int, Any],
        mobility: Mapping[int, Any],
        inverse: Mapping[int, Any],
        impulse: Mapping[int, Any],
        w: Mapping[int, Any],
        solvers: Mapping[int, Any],
        together: Any = 1.0,
        swings: Any = None,
    ) -> None:
        self.rows, self.b, self.mobility, self.inverse = rows, b, mobility, inverse
        self.solvers, self.together, self.swings = solvers, together, swings
        self.impulse, self.w = dict(impulse), dict(w)
        self.worst: Any = 0.0

    def velocity(self, i: int) -> Any:
        """u_i."""
        return _sum([self.b[i], *(y * self.w[k] for k, y in self.rows[i].items())])

    def _set(self, i: int, value: Any, swings: Any = None) -> None:
        change = value - self.impulse[i]
        self.worst = maximum(self.worst, absolute(change) * self.mobility[i])
        if swings is not None:
            change = where(swings, 0.5 * change, change)
            value = where(swings, self.impulse[i] + change, value)
        self.impulse[i] = value
        for k, y in self.rows[i].items():
            self.w[k] = self.w[k] + y * change

    def joint(self, i: int, friction: Any, low: Any, high: Any) -> None:
        """A joint with friction h f; None for a bound that it does not have."""
        self.joints({i: (friction, low, high)})

    def joints(self, bounds: Mapping[int, tuple[Any, Any, Any]]) -> None:
        """Joints side by side, with the bounds of `joint`: none waits for the others."""
        values = {i: self._joint(i, *x) for i, x in bounds.items()}
        for i, value in values.items():
            self._set(i, value)

    def _joint(self, i: int, friction: Any, low: Any, high: Any) -> Any:
        """The impulse of a joint.

        λ for u = 0 is limited by friction, and from below and above by those for u at the limits.
        """
        inverse = self.inverse[i]
        free = gate(inverse, self.impulse[i]) - self.velocity(i) * inverse
        value: Any = 0.0 * free
        least = None if low is None else free + low * inverse
        if friction is not None:
            bound = -friction if least is None else maximum(least, -friction)
            value = maximum(minimum(free, friction), bound)
        elif least is not None:
            value = maximum(least, 0.0)
        if high is not None:
            value = minimum(value, free + high * inverse)
        return value

    def contact(self, i: int, point: ContactPoint, friction: Any) -> None:
        """A point on the ground whose rows begin at i, and its μ."""
        self.contacts({i: (point, friction)})

    def contacts(self, points: Mapping[int, tuple[ContactPoint, Any]]) -> None:
        """Points side by side: none waits for the others."""
        self._set_all({i: self._forces((i, i + 1, i + 2), mu) for i, (_, mu) in points.items()})
        spins, rolls = dict[int, list[Any]](), dict[int, list[Any]]()
        for i, (point, _) in points.items():
            if point.ground.torsional > 0.0:
                most = point.ground.torsional * self.impulse[i]
                free = self.impulse[i + 3] - self.velocity(i + 3) * self.inverse[i + 3]
                spins[i + 3] = [clip(free, -most, most)]
        self._set_all(spins)
        for i, (point, _) in points.items():
            if point.ground.rolling > 0.0:
                rows = i + point.rows - 2, i + point.rows - 1
                u = [self.velocity(k) for k in rows]
                rolls[rows[0]] = self._in_disc(rows, u, point.ground.rolling * self.impulse[i])
        self._set_all(rolls)

    def _set_all(self, values: Mapping[int, list[Any]]) -> None:
        """The impulses of some rows from each number on."""
        swings = self.swings if len(values) > 1 else None
        for i, each in values.items():
            for k, x in enumerate(each, i):
                self._set(k, x, swings)

    def _forces(self, rows: tuple[int, int, int], friction: Any) -> list[Any]:
        """Impulses along the normal and two tangents."""
        i, first, second = rows
        u = [self.velocity(k) for k in rows]
        contact, before = self.solvers[i], [self.impulse[k] for k in rows]
        regular, change = solved(contact, u)
        sticks = [x - dx for x, dx in zip(before, change, strict=True)]
        most = friction * sticks[0]
        holds = minimum(sticks[0], most * most - sticks[1] * sticks[1] - sticks[2] * sticks[2])
        holds = gate(regular, gate(self.together, holds))
        push = maximum(before[0] - u[0] * self.inverse[i], 0.0)
        ahead = [x + a * (push - before[0]) for x, a in zip(u[1:], contact, strict=False)]
        slides = [push, *self._in_disc((first, second), ahead, friction * push)]
        return [where(holds, x, y) for x, y in zip(sticks, slides, strict=True)]

    def _in_disc(self, rows: tuple[int, int], u: list[Any], radius: Any) -> list[Any]:
        """Their impulses, from their velocities."""
        values = [self.impulse[k] - x * self.inverse[k] for k, x in zip(rows, u, strict=True)]
        square = sum(x * x for x in values)
        share = where(square - radius * radius, radius / root(square + TINY * TINY), 1.0)
        return [share * x for x in values]


def _sum(terms: list[Any]) -> Any:
    """Σ by pairs: no addition waits for more than a few others."""
    while len(terms) > 1:
        pairs = zip(terms[0::2], terms[1::2], strict=False)
        terms = [a + b for a, b in pairs] + terms[len(terms) & ~1 :]
    return terms[0]


FAR = 1e6
"""Room [m/s] of a contact that does not push."""

BLOCK, SOLVER = 4, 8
"""Numbers of a `block`, and of its `solver`."""


def block(rows: list[dict[int, Any]], mobility: Any, i: int) -> list[Any]:
    """The block A_c of the contact whose rows begin at i, as far as the mobility lacks it.

    With n, s, t for normal and tangents: A_ns, A_nt, A_st and 1 / det A_c, or 0 where A_c is
    singular.
    """
    ns, nt, st = (_product(rows, i + a, i + b) for a, b in ((0, 1), (0, 2), (1, 2)))
    nn, ss, tt = mobility[i : i + 3]
    size = nn * ss * tt
    determinant = size + 2.0 * ns * nt * st - nn * st * st - ss * nt * nt - tt * ns * ns
    regular = minimum(determinant - DEPENDENT * size, size - IMMOVABLE**3)
    return [ns, nt, st, gate(regular, 1.0 / where(regular, determinant, 1.0))]


def solver(block: Any, diagonal: Any) -> list[Any]:
    """What solves the three forces of a contact: A_ns, A_nt, and nn, ns, nt, ss, st, tt of A_c⁻¹.

    Less work in each sweep than the block and the diagonal, and more memory.
    """
    ns, nt, st, scale = block
    first, second, third = _cofactors(ns, nt, st, diagonal)
    each = *first, *second[1:], third[2]
    return [ns, nt, *(scale * x for x in each)]


def solved(numbers: Any, u: Any) -> tuple[Any, list[Any]]:
    """What is above zero where A_c is regular, and A_c⁻¹ u then.

    Args:
        numbers: The `solver` of a contact, or its `block` and diagonal.
        u: A velocity (3,).
    """
    if len(numbers) == SOLVER:
        nn, ns, nt, ss, st, tt = numbers[2:]
        inverse = (nn, ns, nt), (ns, ss, st), (nt, st, tt)
        return tt, [_along(row, u) for row in inverse]
    ns, nt, st, scale, *diagonal = numbers
    return scale, [scale * _along(row, u) for row in _cofactors(ns, nt, st, diagonal)]


def _cofactors(ns: Any, nt: Any, st: Any, diagonal: Any) -> tuple[tuple[Any, ...], ...]:
    """A_c⁻¹ det A_c."""
    nn, ss, tt = diagonal
    off = nt * st - ns * tt, ns * st - nt * ss, ns * nt - nn * st
    return (
        (ss * tt - st * st, off[0], off[1]),
        (off[0], nn * tt - nt * nt, off[2]),
        (off[1], off[2], nn * ss - ns * ns),
    )


def _along(row: Any, u: Any) -> Any:
    return sum(x * y for x, y in zip(row, u, strict=True))


def _product(rows: list[dict[int, Any]], i: int, j: int) -> Any:
    """A_ij."""
    return sum(y * rows[j][k] for k, y in rows[i].items() if k in rows[j])


def inverses(
    rows: list[dict[int, Any]], mobility: Any, contacts: list[tuple[int, ContactPoint]]
) -> Any:
    """`Sweep.inverse`: rows that share a disc take the sum of the sizes of a row, a bound of A."""
    out = np.array([_inverse(x) for x in mobility], dtype=object)
    for start, point in contacts:
        pairs = [(start + 1, start + 2)]
        if point.ground.rolling > 0.0:
            last = start + point.rows
            pairs.append((last - 2, last - 1))
        for i, j in pairs:
            between = absolute(_product(rows, i, j))
            out[i] = out[j] = _inverse(maximum(mobility[i], mobility[j]) + between)
    return out


def _inverse(x: Any) -> Any:
    """1/x; 0 for a row that nothing can move, which so never pushes."""
    return gate(x - IMMOVABLE, 1.0 / maximum(x, IMMOVABLE))
