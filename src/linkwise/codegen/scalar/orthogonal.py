"""Orthogonal decompositions in formulas: triangles and singular values, without branches.

Rows of small matrices, entries of which are graph nodes or numbers. Rank is decided by the caller,
by gates on the results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.spatial.choice import absolute, gate, maximum, root, where
from linkwise.sweeps.sparse import is_zero

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

ROUNDS = 30
"""The largest number of rounds of Jacobi's method; six or seven are usual."""

ROUNDING = {8: 2e-15, 4: 1e-6}
"""Cosine between rows that are orthogonal, by bytes of a number."""

SORTED = 50.0
"""Squares of lengths of rows that differ by less than this many roundings are in order."""


def dot(x: Any, y: Any) -> Any:
    """x* y of two vectors."""
    products = [a * b for a, b in zip(x, y, strict=True)]
    return sum(products[1:], products[0]) if products else 0.0


def singular(at: Writing, W: Any, *, vectors: bool = True, when: Any = 1.0) -> tuple[Any, Any]:
    """Left singular vectors U (m, m) and values (m,) of W (m, n), the largest first.

    Jacobi's method on one side: rows are turned against each other in pairs until all are
    orthogonal, the longer one first. Small values have as many correct digits as large ones.

    Args:
        at: The formula.
        W: The matrix.
        vectors: Whether U is needed.
        when: Without this being positive the result means nothing, and takes little time.
    """
    m = len(W)
    short = at.shortened(W)
    n = short.shape[1]
    eps = ROUNDING[at.itemsize]
    # Pairs with the same sum, modulo m, have no row in common.
    apart = [[(i, j) for j in range(m) for i in range(j) if (i + j) % m == k] for k in range(m)]

    def sweep(at: Any, x: Any, given: Any) -> tuple[Any, Any]:
        (total,) = given  # sum of all squares
        rows = list(x[: m * n].reshape(m, n))
        turned = list(x[m * n :].reshape(m, -1)) if vectors else []
        worst: Any = -1.0
        for pairs in apart:
            turns = [_turn(rows[i], rows[j], total, eps) for i, j in pairs]
            for (i, j), (c, s, more) in zip(pairs, turns, strict=True):
                worst = maximum(worst, more)
                for all_rows in (rows, turned) if vectors else (rows,):
                    a, b = all_rows[i], all_rows[j]
                    all_rows[i], all_rows[j] = c * a + s * b, c * b - s * a
        return np.concatenate([*rows, *turned]), worst

    first = [short.ravel()] + ([np.eye(m).ravel()] if vectors else [])
    x = np.concatenate([np.asarray(part, dtype=object) for part in first])
    total = dot(short.ravel(), short.ravel())
    x, _ = at.loop(sweep, x, [total], most=ROUNDS, when=when)
    rows = x[: m * n].reshape(m, n)
    values = np.array([root(dot(row, row)) for row in rows])
    return (x[m * n :].reshape(m, m).T if vectors else None), values


def _turn(a: Any, b: Any, total: Any, eps: float) -> tuple[Any, Any, Any]:
    """Cosine and sine of the turn that makes two rows orthogonal, the longer one first.

    tan 2θ = 2 a* b / (a* a - b* b), |θ| ≤ π/4; a quarter of a turn more where they are swapped.
    What a sweep leaves of right angles is as large as the products of its turns and cosines: the
    third number is positive where another sweep is needed.
    """
    one, two, both = _sum(a * a), _sum(b * b), _sum(a * b)
    swap = two - one * (1.0 + SORTED * eps)
    away = both * both - eps * eps * one * (two + eps * eps * total)
    both = gate(away, both)
    half = 0.5 * (one - two)
    r = root(half * half + both * both)
    along = absolute(half) + r  # 2 r cos² θ
    square = 2.0 * r * along
    over = 1.0 / root(where(square, square, 1.0))
    c, s = where(square, along * over, 1.0), where(half, both, -both) * over
    more = gate(away, maximum(both * both - 0.1 * eps * one * two, s * s - 0.1 * eps))
    return where(swap, -s, c), where(swap, c, s), maximum(swap, more)


def _sum(x: Any) -> Any:
    """The sum of numbers (n,), of both halves apart: neither waits for the other."""
    if len(x) < 2:
        return x[0] if len(x) else 0.0
    middle = len(x) // 2
    return _sum(x[:middle]) + _sum(x[middle:])


def part_of_largest(at: Writing, W: Any, part: Any, values: Any) -> Any:
    """A part of the largest singular value of W (m, n), or a number that divides values like it.

    The root r of the sum of all squares is at least that value and at most √m of it: it will do
    where none of the values (k,) is between part r / √m and part r.
    """
    bound: Any = part * root(dot(W.ravel(), W.ravel()))
    near: Any = 0.0
    for value in values:
        near = near + gate(bound - value, gate(value * len(W) ** 0.5 - bound, 1.0))
    largest = singular(at, W, vectors=False, when=near)[1][0]
    return where(near, part * largest, bound)


class Reflected(NamedTuple):
    """Householder's reflections F_1, ..., F_m that turn rows W (m, n) into a triangle.

    W F_1 ... F_m has L in the columns `places`, and zeros in all others.

    Attributes:
        triangle: L (m, m), L L* = W W*.
        places: The column of each row of L that no later reflection changes.
        mirrors: Of each reflection I - s x x* the columns that it changes, x there, and s.
        width: n.
    """

    triangle: Any
    places: list[int]
    mirrors: list[tuple[list[int], Any, Any]]
    width: int

    def across(self, X: Any) -> Any:
        """What X (k, n) has across to W: its components (k, n - m) along orthonormal rows."""
        return np.delete(_mirrored(np.array(X, dtype=object), self.mirrors), self.places, axis=1)

    def along(self, X: Any) -> Any:
        """The other components X V* (k, m), along orthonormal rows V with W = L V."""
        return _mirrored(np.array(X, dtype=object), self.mirrors)[:, self.places]

    def back(self, Y: Any) -> Any:
        """The rows (k, n) that have the components Y (k, n - m)."""
        return self._turned(Y, np.delete(np.arange(self.width), self.places))

    def within(self, Y: Any) -> Any:
        """The rows Y V (k, n) for Y (k, m)."""
        return self._turned(Y, self.places)

    def _turned(self, Y: Any, places: Any) -> Any:
        rows = np.full((len(Y), self.width), 0.0, dtype=object)
        rows[:, places] = Y
        return _mirrored(rows, self.mirrors[::-1])


def _mirrored(rows: Any, mirrors: list[tuple[list[int], Any, Any]]) -> Any:
    """Rows (k, n) after some reflections."""
    for columns, x, s in mirrors:
        for row in rows:
            row[columns] = row[columns] - (s * dot(x, row[columns])) * x
    return rows


def reflected(W: Any) -> Reflected:
    """Reflections of the columns of W (m, n), m ≤ n, that keep what is zero in all states.

    Of the columns in which a row is not zero, its own is the one that fewest later rows have.
    """
    m, n = W.shape
    rest, left = np.array(W, dtype=object), list(range(n))
    places, mirrors = list[int](), list[tuple[list[int], Any, Any]]()
    for k in range(m):
        filled = [j for j in left if not is_zero(rest[k, j])]
        shared = {j: sum(not is_zero(x) for x in rest[k + 1 :, j]) for j in filled or left}
        place = min(shared, key=lambda j: (shared[j], j))
        left.remove(place)
        places.append(place)
        if filled in ([], [place]):
            continue
        columns = [place, *(j for j in filled if j != place)]
        x = rest[k, columns]
        length = root(dot(x, x))
        end = where(x[0], -length, length)
        x[0] = x[0] - end
        square = absolute(end * x[0])
        s = 1.0 / where(square, square, 1.0)
        mirrors.append((columns, x, s))
        rest[k, columns] = [end, *[0.0] * (len(columns) - 1)]
        _mirrored(rest[k + 1 :], mirrors[-1:])
    return Reflected(rest[:, places], places, mirrors, n)


class Independent(NamedTuple):
    """Rows that span a space, with zeros in place of those that depend on others.

    Attributes:
        rows: Orthonormal (m, n).
        exists: 1 for those that are independent, 0 for others (m,).
        beside: What stood beside the rows, combined as they were (m, k).
    """

    rows: Any
    exists: Any
    beside: Any


def independent(
    at: Writing,
    W: Any,
    tolerance: float,
    floor: float,
    beside: Any = None,
    *,
    when: Any = 1.0,
) -> Independent:
    """Rows that span those of W (m, n).

    Gram and Schmidt with pivots, one row a round: the longest of what is left, and across to all
    that were taken once more.

    Args:
        at: The formula.
        W: The rows (m, n).
        tolerance: What is left of a row below this part of the longest row is rounding.
        floor: So is what is left of all rows if the longest is below this.
        beside: Right-hand sides: of W x = beside they make rows x = their new ones (m, k).
        when: Without this being positive the result means nothing, and takes no time.
    """
    m, n = W.shape
    more = np.zeros((m, 0)) if beside is None else beside
    if not m:
        return Independent(W, np.zeros(0), more)
    width = n + more.shape[1]
    least = tolerance * tolerance * longest_square(W, floor)

    def take(at: Any, x: Any, given: Any) -> tuple[Any, Any]:
        rows, taken = x[: m * width].reshape(m, width), x[m * width :]
        short = rows[:, :n]
        left = [gate(0.5 - t, dot(row, row)) for row, t in zip(short, taken, strict=True)]
        best, pick = left[0], [1.0] + [0.0] * (m - 1)
        for i in range(1, m):
            more = left[i] - best
            pick = [p - gate(more, p) if j < i else p for j, p in enumerate(pick)]
            pick[i] = gate(more, 1.0)
            best = maximum(best, left[i])
        counts = gate(best - given[0], 1.0)
        u: Any = sum(p * row for p, row in zip(pick, rows, strict=True))
        along = [t * dot(row, u[:n]) for row, t in zip(short, taken, strict=True)]
        u = u - sum(a * row for a, row in zip(along, rows, strict=True))
        square = dot(u[:n], u[:n])
        u = (counts / root(where(square, square, 1.0))) * u
        after = list[Any]()
        for row, t, p in zip(rows, taken, pick, strict=True):
            rest = row - gate(0.5 - t, dot(row[:n], u[:n])) * u
            after.append(gate(0.5 - p * counts, rest) + p * u)
        return np.concatenate([*after, taken + counts * np.array(pick)]), counts

    first = np.concatenate([np.concatenate([W, more], axis=1).ravel(), np.zeros(m)])
    x, _ = at.loop(take, first, [least], most=min(m, n), when=when)
    taken = x[m * width :]
    rows = taken[:, None] * x[: m * width].reshape(m, width)
    return Independent(rows[:, :n], taken, rows[:, n:])


def longest_square(W: Any, floor: Any) -> Any:
    """The square of the longest row, at least that of `floor`."""
    longest = floor * floor
    for row in W:
        longest = maximum(longest, dot(row, row))
    return longest


def complement(at: Writing, V: Any, exists: Any) -> Independent:
    """Orthonormal rows (n, n) across to orthonormal ones V (m, n) and zeros, and zeros.

    Where no row of V exists, or n of them, this takes little time.
    """
    n, count = V.shape[1], sum(exists, 0.0)
    none: Any = gate(0.5 - count, 1.0)
    some = gate(count - 0.5, gate(n - 0.5 - count, 1.0))
    rows, taken, beside = independent(at, np.eye(n) - V.T @ V, 1e-3, 1.0, when=some)
    return Independent(rows + none * np.eye(n), taken + none, beside)


def packed(rows: Any, exists: Any) -> Any:
    """Rows (m, n) with those that exist in front, in their order, and zeros behind."""
    count: Any = 0.0
    out = np.zeros(rows.shape, dtype=object)
    for row, e in zip(rows, exists, strict=True):
        for k in range(len(rows)):
            out[k] = out[k] + gate(0.5 - absolute(count - float(k)), e) * row
        count = count + e
    return out


def across(at: Writing, A: Any, R: Any, exists: Any, *, when: Any = 1.0) -> Any:
    """A (k, n) without its components along the rows R (m, n): A (I - Q Q*), R* = Q T.

    Gram and Schmidt, one row of R a round; then once more, for what that leaves of rounding.

    Args:
        at: The formula.
        A: Rows.
        R: Other rows, independent of each other, and zeros.
        exists: 0 for rows of R that are zeros, 1 for others (m,).
        when: Without this being positive the result is A, and takes little time.
    """
    (m, n), k = R.shape, len(A)
    if not m:
        return A

    def take(at: Any, x: Any, given: Any) -> tuple[Any, Any]:
        rows, there = x[: (m + k) * n].reshape(m + k, n), x[(m + k) * n :]
        u, rest = rows[0], rows[1:]
        u = (there[0] / root(where(there[0], dot(u, u), 1.0))) * u
        rest = [row - dot(row, u) * u for row in rest]
        turned = [*rest[: m - 1], u, *rest[m - 1 :]]
        return np.concatenate([*turned, there[1:], there[:1]]), 1.0

    def again(at: Any, x: Any, given: Any) -> tuple[Any, Any]:
        Q, rest = given.reshape(m, n), x.reshape(k, n)
        return (rest - (rest @ Q.T) @ Q).ravel(), 0.0

    x, _ = at.loop(take, np.concatenate([R.ravel(), A.ravel(), exists]), most=m, when=when)
    x, _ = at.loop(again, x[m * n : (m + k) * n], x[: m * n], most=1, when=when)
    return x.reshape(k, n)


def orthonormal(X: Any) -> Any:
    """Orthonormal columns that span, one by one, what the columns of X (m, k) span.

    Gram and Schmidt, twice: what the first pass leaves of rounding is gone after the second.
    """
    columns = list[Any]()
    for x in X.T:
        for _ in range(2):
            for u in columns:
                x = x - dot(u, x) * u
        columns.append(x / root(dot(x, x)))
    return np.array(columns).T


def triangular(Y: Any, exists: Any) -> Any:
    """R of `factored`."""
    return factored(Y, exists)[1]


def factored(Y: Any, exists: Any) -> tuple[Any, Any]:
    """Q and R (k, k) of Y = Q R; of columns that do not exist (0 of 0 or 1) those of Q are zero.

    In R they are unit vectors, so that it has an inverse.
    """
    k = Y.shape[1]
    R = np.full((k, k), 0.0, dtype=object)
    columns = list[Any]()
    for j in range(k):
        y = exists[j] * Y[:, j]
        for _ in range(2):
            for i, q in enumerate(columns):
                part = dot(q, y)
                R[i, j] = R[i, j] + part
                y = y - part * q
        length = root(dot(y, y))
        R[j, j] = where(exists[j], length, 1.0)
        columns.append(y / R[j, j])
    return np.array(columns, dtype=object).reshape(Y.T.shape).T, R


def solved_below(R: Any, B: Any) -> Any:
    """R⁻* B for an upper triangle R (k, k) and B (k, m)."""
    rows = list[Any]()
    for i in range(len(R)):
        left = B[i]
        for j in range(i):
            left = left - R[j, i] * rows[j]
        rows.append(left / R[i, i])
    return np.array(rows, dtype=object).reshape(np.shape(B))


def triangle_of(K: Any) -> Any:
    """The upper triangle L with L L* = K (n, n) symmetric and positive: Cholesky from the end.

    What is zero in 𝓜 since bodies are on different branches stays zero.
    """
    n = len(K)
    factor = np.full((n, n), 0.0, dtype=object)
    for j in range(n - 1, -1, -1):
        for i in range(j, -1, -1):
            left = K[i, j] - sum(factor[i, k] * factor[j, k] for k in range(j + 1, n))
            factor[i, j] = root(left) if i == j else left / factor[j, j]
    return factor


def solved(factor: Any, B: Any) -> Any:
    """L⁻¹ B for an upper triangle L, the factor (n, n), and B (n,) or (n, m)."""
    rows = list[Any]()
    for i in range(len(factor) - 1, -1, -1):
        left = B[i]
        for j, row in zip(range(len(factor) - 1, i, -1), rows, strict=True):
            left = left - factor[i, j] * row
        rows.append(left / factor[i, i])
    return np.array(rows[::-1], dtype=object).reshape(np.shape(B))


def completed(rows: Any, exists: Any) -> Any:
    """Orthonormal rows (m, n), in place of those that do not exist others across to the rest.

    Args:
        rows: Of unit length, those that do not exist behind the others.
        exists: 0 or 1 for each of them (m,).
    """
    done, n = list[Any](), rows.shape[1]
    for row, real in zip(rows, exists, strict=True):
        # Of all axes the one that is most across to the rows so far.
        across = [1.0 - sum(x[j] * x[j] for x in done) for j in range(n)]
        best, other = across[0], np.eye(n, dtype=object)[0]
        for j in range(1, n):
            more = across[j] - best
            other = where(more, np.eye(n, dtype=object)[j], other)
            best = maximum(best, across[j])
        row = where(real, row, other)
        for _ in range(2):
            for x in done:
                row = row - dot(x, row) * x
        done.append(row / root(dot(row, row)))
    return np.array(done)
