"""Steps and sensors of unscented filters of many states: points, and moments of what they become.

A function of points is straight code that runs for all columns ±d, eight at a time. Its moments are
products of matrices: of mean m, with e(±d) in rows and the weight w of a point,

    m = w Σ e,    w E E* − m m*,    w (E₊ − E₋) D*                                              (1)

the last one with the state, of columns D.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import neg, sub
from typing import Any

import numpy as np

from linkwise.codegen.matrices import Matrices, Matrix, padded, same
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.passes import WIDTH, Piece
from linkwise.codegen.writing import Writing
from linkwise.filtering.large_state import corrected, given, joint, state_of
from linkwise.filtering.motion import State
from linkwise.filtering.tangent import displacement
from linkwise.filtering.tick import NEXT, Structure, measured, moved_state


def columns(at: Writing, work: Matrices, P: Matrix, spread: float, out: Matrix) -> list[int]:
    """s L in `out`, P = L L*; across motions that loops allow, points are next to the mean.

    Returns:
        Addresses of the pivots.
    """
    n = P.shape[0]
    if at.mech.loops or at.mech.couplings:
        lifted = work.room(n, n)
        work.copied(P, lifted)
        P, each = lifted, [(lifted.at(i, i),) * 2 for i in range(n)]

        def lift(x: Any) -> Any:
            return x + (NEXT * x + NEXT**2)

        work.compute("lifted", lift, [Piece(1)], [Piece(1)], each)
    pivots = work.factor(P, out)
    row = [(a, a) for i in range(n) for a in (out.at(i, j) for j in range(0, n, WIDTH))]
    one = [Piece(1, 1, 1)]

    def wider(x: Any) -> Any:
        return spread * x

    work.compute("spread", wider, one, one, row, WIDTH)
    return pivots


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Moments of e(±d) of columns d.

    Attributes:
        mean: Mean (size, 1).
        second: Covariance (size, size), of which the upper half is there.
        crossed: Covariance of e and the state (size, n).
    """

    mean: Matrix
    second: Matrix
    crossed: Matrix


def points(work: Matrices, rows: int) -> tuple[Matrix, Matrix]:
    """Blank columns d (rows, 2 rows), and of these the first ones; −d come behind."""
    both = work.blank(work.room(rows, 2 * padded(rows)))
    return both, both.part(slice(None), slice(rows))


def opposite(work: Matrices, both: Matrix) -> None:
    """−d behind d."""
    half = both.shape[1] // 2
    table = [
        (both.at(i, j), both.at(i, half + j))
        for i in range(both.shape[0]) for j in range(0, half, WIDTH)
    ]  # fmt: skip
    one = [Piece(1, 1, 1)]
    work.compute("opposite", neg, one, one, table, WIDTH)


def moments(
    work: Matrices, e: Matrix, first: Matrix, n: int, spread: float, out: Matrix | None
) -> Moments:
    """Mean and covariances, with the state in rows of `out`."""
    size, half, weight = e.shape[0], e.shape[1] // 2, 0.5 / spread**2
    ones = work.room(2 * half, 1)
    work.fill(weight, [ones.at(i, 0) for i in range(2 * half)])
    mean = work.product(e, ones)
    second = work.product(e, work.turned(e), upper=True)
    row = work.turned(mean)
    table = [
        (second.at(i, j), mean.at(i, 0), row.at(0, j), second.at(i, j))
        for i in range(size) for j in range(i // WIDTH * WIDTH, size, WIDTH)
    ]  # fmt: skip
    wide = Piece(1, 1, 1)

    def central(x: Any, a: Any, b: Any) -> Any:
        return weight * x - a * b

    work.compute("central", central, [wide, Piece(1), wide], [wide], table, WIDTH)
    odd = work.room(size, half)
    table = [
        (e.at(i, j), e.at(i, half + j), odd.at(i, j))
        for i in range(size) for j in range(0, half, WIDTH)
    ]  # fmt: skip

    def difference(a: Any, b: Any) -> Any:
        return weight * (a - b)

    work.compute("odd", difference, [wide, wide], [wide], table, WIDTH)
    # columns behind those of the state have nothing in it
    back = work.turned(first.part(slice(n), slice(n)))
    return Moments(mean, second, work.product(odd.part(slice(None), slice(n)), back, out))


def by_points(
    at: Writing, s: Structure, x: State, P: Any, h: Any, impulse: Any
) -> tuple[State, Any, Any]:
    """x⁻, P⁻ without noise of states, and the covariance of x̂ and x⁻."""
    work, mech, nv, n = Matrices(at), at.mech, at.mech.nv, len(P)
    still = slice(n - s.extras, n)
    step = s.dynamics.stepped
    middle = State(*step(at, x, h, None), x.extra, x.tau)
    both, first = points(work, n + nv)
    pivots = columns(at, work, work.symmetric(P), s.spread, first.part(slice(n), slice(n)))
    far = work.vector(s.spread * impulse)
    table = [(far.start + i, first.at(n + i, n + i)) for i in range(nv)]
    work.compute("kept", same, [Piece(1)], [Piece(1)], table)
    opposite(work, both)
    here = given(work, x, h=np.array([h]), q1=middle.q, v1=middle.v)

    def errors(at: Writing, d: Any, flat: Any) -> Any:
        arrays = here.split(flat)
        origin = state_of(arrays)
        point = moved_state(mech, origin, d[:n])
        point = State(point.q, point.v, point.extra, origin.tau + d[n:])
        q, v = step(at, point, arrays["h"][0], None)
        turn = displacement(mech, arrays["q1"], q)
        return np.concatenate([turn, v - arrays["v1"], d[still]])

    e = work.each(errors, both, here.row, work.room(n, both.shape[1]))
    moment = moments(work, e, first, n, s.spread, None)
    mean, second, crossed, pivot = work.results(
        moment.mean.entries, moment.second.mirrored_entries, moment.crossed.entries, pivots
    )
    for each in pivot:
        at.check(status.MATRIX, each, 0.0, np.inf)
    state, after, J = corrected(at, middle, second.reshape(n, n), mean)
    return state, after, J.rows(crossed.reshape(n, n)).T


def seen_by_points(
    at: Writing, work: Matrices, s: Structure, x: State, P: Matrix, inputs: dict[str, Any], y: Any
) -> tuple[Matrix, list[int]]:
    """Rows of H P⁻, H P⁻ H* and ε, and addresses of pivots."""
    mech, n, middle = at.mech, P.shape[0], measured(at, s, x, None, inputs)
    both, first = points(work, n)
    pivots = columns(at, work, P, s.spread, first.part(slice(n), slice(n)))
    opposite(work, both)
    here = given(work, x, middle=middle, **inputs)

    def errors(at: Writing, d: Any, flat: Any) -> Any:
        arrays = here.split(flat)
        point = moved_state(mech, state_of(arrays), d)
        shown = {name: arrays[name] for name in inputs}
        return measured(at, s, point, None, shown) - arrays["middle"]

    rows = len(middle)
    e = work.each(errors, both, here.row, work.room(rows, both.shape[1]))
    sensed = joint(work, n, rows)
    moment = moments(work, e, first, n, s.spread, sensed.part(slice(None), slice(n)))
    S = sensed.part(slice(None), slice(padded(n), padded(n) + rows))
    work.mirrored(moment.second)
    work.copied(moment.second, S)
    far = work.vector(y - middle)
    last = sensed.wide - WIDTH
    table = [(far.start + i, moment.mean.at(i, 0), sensed.at(i, last)) for i in range(rows)]
    work.compute("innovation", sub, [Piece(1), Piece(1)], [Piece(1)], table)
    return sensed, pivots
