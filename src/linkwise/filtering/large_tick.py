"""The tick of a filter of many states: the equations of `tick.py`, with matrices in loops.

As straight code, products of covariances would grow with the third power of the states. Here they
are passes over tiles (`codegen/matrices.py`). F and H are computed column by column: the derivative
of a step or of sensors along one error is straight code, which runs for all errors, eight at a
time; points of the unscented filter do likewise.

Measurements are taken as in `tick.py`, but each row is only brought up to date before its own turn:
with V = D⁻¹ U of all blocks before it, rows U of H P⁻ and S become U − Uᵢ* Vᵢ, and in the end

    P⁺ = P⁻ − V* U,    d = V* ε                                                                 (1)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.codegen.matrices import Matrices, Matrix, padded, same
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.passes import WIDTH, Piece
from linkwise.codegen.writing import Writing
from linkwise.filtering.large_points import by_points, seen_by_points
from linkwise.filtering.large_state import Given, corrected, given, joint, joint_columns, state_of
from linkwise.filtering.motion import State, closed_again
from linkwise.filtering.tangent import (
    Slopes,
    along_coordinates,
    error_size,
)
from linkwise.filtering.tick import (
    Structure,
    measured,
    read,
    state_slopes,
)
from linkwise.sweeps.factored import factored
from linkwise.sweeps.sparse import times


@dataclass(frozen=True, slots=True, eq=False)
class Ahead:
    """What a step of time gives.

    Attributes:
        state: x⁻.
        P: P⁻.
        cross: Covariance of x⁻ and x̂.
    """

    state: State
    P: Matrix
    cross: Matrix


# ------------------------------------------------------------------------------ by derivatives


def slope(at: Writing, x: State, d: Any) -> Slopes:
    """Derivatives along one displacement d of a state, and of joint forces behind it."""
    mech, ways = at.mech, error_size(at.mech)
    n, slopes = ways + mech.nv + len(x.extra), Slopes(at, 1)
    slopes.know(x.q, times(along_coordinates(mech, x.q), d[:ways, None]))
    slopes.know(np.concatenate([x.v, x.extra]), d[ways:n, None])
    if len(d) > n:
        slopes.know(x.tau, d[n:, None])
    return slopes


def derivative(
    work: Matrices, along: Any, here: Given, shape: tuple[int, int], changed: int
) -> Matrix:
    """F of a function along each error; rows of numbers that it does not change are those of 1."""
    n, count = shape
    F = work.room(n, count)
    top = work.each(along, work.identity(count), here.row, F.rows(0, changed))
    work.blank(F.rows(changed, n))
    still = range(changed, n)
    work.fill(1.0, [F.at(i, i) for i in still])
    assert top.filled is not None
    return replace(F, filled=top.filled + tuple(frozenset((i,)) for i in still))


def by_slopes(
    at: Writing, work: Matrices, s: Structure, x: State, P: Matrix, h: Any, impulse: Any
) -> Ahead:
    """F P F*, with columns for the joint forces behind those of the state."""
    nv, n = at.mech.nv, P.shape[0]
    q, v = s.dynamics.stepped(at, x, h, None)
    here = given(work, x, h=np.array([h]))

    def along(at: Writing, d: Any, flat: Any) -> Any:
        arrays = here.split(flat)
        point = state_of(arrays)
        slopes = slope(at, point, d)
        q, v = s.dynamics.stepped(at, point, arrays["h"][0], None)
        return state_slopes(at, slopes, q, v)[:, 0]

    F = derivative(work, along, here, (n, n + nv), n - s.extras)
    half = work.product(F.part(slice(n), slice(n)), P)
    back = work.room(n + nv, n)  # of (F P), and behind it of forces times their variances
    work.turned(half, back.rows(0, n))
    pushes = work.turned(F.part(slice(n), slice(n, n + nv)), back.rows(n, n + nv))
    work.scaled(pushes, work.vector(impulse * impulse))
    after = work.mirrored(work.product(F, back, upper=True))
    return Ahead(State(q, v, x.extra, x.tau), after, half)


def seen(
    at: Writing, work: Matrices, s: Structure, x: State, P: Matrix, inputs: dict[str, Any]
) -> tuple[Any, Matrix]:
    """h(x⁻), and rows of H P⁻ and H P⁻ H*."""
    n, here = P.shape[0], given(work, x, **inputs)
    y = measured(at, s, x, None, inputs)

    def along(at: Writing, d: Any, flat: Any) -> Any:
        arrays = here.split(flat)
        point = state_of(arrays)
        slopes = slope(at, point, d)
        shown = {name: arrays[name] for name in inputs}
        return slopes.of(measured(at, s, point, None, shown))[:, 0]

    H = work.each(along, work.identity(n), here.row, work.room(len(y), n))
    sensed = joint(work, n, len(y))
    left = work.product(H, P, sensed.part(slice(None), slice(n)))
    work.product(
        H, work.turned(left), sensed.part(slice(None), slice(padded(n), padded(n) + len(y)))
    )
    return y, sensed


# -------------------------------------------------------------------------------- measurements


def conditioned(
    work: Matrices, P: Matrix, sensed: Matrix, blocks: list[list[int]], rules: tuple[Any, Any, Any]
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Measurements one block after another.

    Args:
        work: The memory.
        P: P⁻.
        sensed: Rows of H P⁻, H P⁻ H* and ε.
        blocks: Rows that are accepted or refused together.
        rules: Variances of rows, and for each block whether it is used, and its limit.

    Returns:
        P⁺, of which the upper half is there, d, and ε* D⁻¹ ε and the weight of each block.
    """
    n, m = P.shape[0], sensed.shape[0]
    first, last = padded(n), sensed.wide - WIDTH  # columns of H P⁻ H*, and of ε
    variance, use, limit = (work.vector(x) for x in rules)
    work.added([sensed.at(i, first + i) for i in range(m)], variance)
    V = work.blank(work.room(m, last))
    nis, weight = work.room(1, len(blocks)), work.room(1, len(blocks))
    inverse, wide = work.room(1, max(len(b) for b in blocks) ** 2), Piece(1, 1, 1)
    for k, block in enumerate(blocks):
        b, done = len(block), min(padded(block[0]), m)
        assert block == list(range(block[0], block[0] + b))

        def later(*x: Any, b: int = b, done: int = done) -> Any:
            rows = [y[0] for y in x[1 + b :]]
            for i in range(done):
                rows = [row - x[1 + a][i] * x[0][i] for a, row in enumerate(rows)]
            return rows

        if done:
            reads = [Piece(done, sensed.wide, 1), *[Piece(done, V.wide)] * b, *[wide] * b]
            before = [V.at(0, first + i) for i in block]
            table = [
                (sensed.at(0, j), *before, *[sensed.at(i, j) for i in block] * 2)
                for j in range(0, sensed.wide, WIDTH)
            ]
            work.compute("later", later, reads, [wide] * b, table, WIDTH)

        def solved(*x: Any, b: int = b) -> Any:
            D = np.array([list(row) for row in x[:b]], dtype=object)
            eps = np.array([e[0] for e in x[b : 2 * b]], dtype=object)[:, None]
            parts = factored(np.triu(D) + np.triu(D, 1).T)
            nis = parts.congruence(eps)[0, 0]
            (limit,), (use,) = x[2 * b :]
            weight = (limit - nis).gate(use)
            return [*(weight * parts.matrix).ravel(), nis, weight]

        reads = [*[Piece(b)] * b, *[Piece(1)] * (b + 2)]
        rows = [sensed.at(i, first + block[0]) for i in block] + [sensed.at(i, last) for i in block]
        results = inverse.start, nis.start + k, weight.start + k
        table = [(*rows, limit.start + k, use.start + k, *results)]
        work.compute("solved", solved, reads, [Piece(b * b), Piece(1), Piece(1)], table)

        def gained(*x: Any, b: int = b) -> Any:
            T = x[0].reshape(b, b)
            return [sum(T[a, c] * x[1 + c][0] for c in range(b)) for a in range(b)]

        table = [
            (inverse.start, *(sensed.at(i, j) for i in block), *(V.at(i, j) for i in block))
            for j in range(0, last, WIDTH)
        ]
        work.compute("gained", gained, [Piece(b * b), *[wide] * b], [wide] * b, table, WIDTH)
    gain = V.part(slice(None), slice(n))
    after = work.product(
        gain, sensed.part(slice(None), slice(n)), less_than=P, turned=True, upper=True
    )
    d = work.product(gain, sensed.part(slice(None), slice(last, last + 1)), turned=True)
    return after, d, nis, weight


def closed(at: Writing, x: State, P: Any) -> tuple[State, Any]:
    """The nearest state that loops and couplings allow, and the covariance about it."""
    mech, n = at.mech, len(P)
    if not mech.loops and not mech.couplings:
        return x, P
    work, (q, v) = Matrices(at), closed_again(at, x.q, x.v)
    here = given(work, x)

    def along(at: Writing, d: Any, flat: Any) -> Any:
        point = state_of(here.split(flat))
        slopes = slope(at, point, d)
        q, v = closed_again(at, point.q, point.v)
        return state_slopes(at, slopes, q, v)[:, 0]

    F = derivative(work, along, here, (n, n), n - len(x.extra))
    back = work.turned(work.product(F, work.symmetric(P)))
    (flat,) = work.results(work.product(F, back, upper=True).mirrored_entries)
    return State(q, v, x.extra, x.tau), flat.reshape(n, n)


# ----------------------------------------------------------------------------------------- tick


def large_tick(at: Writing, s: Structure) -> Any:
    """A step of time, then the measurements."""
    r = read(at, s)
    n, work, pivots = len(r.P), Matrices(at), list[int]()
    last = joint_columns(n, len(r.y)) - WIDTH  # where ε is
    cross: Any = None
    if s.unscented:
        state, P, cross = by_points(at, s, r.start, r.P, r.h, r.impulse)
        P[np.diag_indices(n)] = P[np.diag_indices(n)] + r.drifts
        before = work.symmetric(P)
        sensed, pivots = seen_by_points(at, work, s, state, before, r.given, r.y)
    else:
        ahead = by_slopes(at, work, s, r.start, work.symmetric(r.P), r.h, r.impulse)
        before, state, P = ahead.P, ahead.state, ahead.cross
        work.added([before.at(i, i) for i in range(n)], work.vector(r.drifts))
        expected, sensed = seen(at, work, s, state, before, r.given)
        work.put(r.y - expected, [sensed.at(i, last) for i in range(len(r.y))])
    eps = work.room(len(r.y), 1)  # ε changes as measurements are taken
    table = [(sensed.at(i, last), eps.at(i, 0)) for i in range(len(r.y))]
    work.compute("kept", same, [Piece(1)], [Piece(1)], table)
    after, d, nis, weight = conditioned(
        work, before, sensed, s.blocks, (r.variance, r.use, r.limit)
    )
    addresses = [
        after.mirrored_entries,
        d.entries,
        eps.entries,
        nis.entries,
        weight.entries,
        pivots,
    ]
    if s.smoothing and not s.unscented:
        addresses += [before.mirrored_entries, P.entries]
    flat, d, eps, nis, weight, pivots, *more = work.results(*addresses)
    for pivot in pivots:
        at.check(status.MATRIX, pivot, 0.0, np.inf)
    end, P_end, _ = corrected(at, state, flat.reshape(n, n), d)
    end, P_end = closed(at, end, P_end)
    results: list[Any] = [end.q, end.v, *([end.extra] if s.extras else []), P_end, eps, nis, weight]
    if s.smoothing:
        if not s.unscented:
            P, cross = more[0].reshape(n, n), more[1].reshape(n, n).T
        results += [state.q, state.v, P, cross]
    return tuple(results)
