"""The Riccati step of a knot as loops over small tiles: equations (2) and (3) of `shooting.py`.

With k rows of W, n of δx and m of u, a step takes about

    k² (n + m)                 T = S W + C*
    ½ k (n + m)² + k n_C (n + m)   Q = Q₀ + W* T + C W, of which the upper half (n_C: rows of C)
    m³ / 6 + m² n + ½ m n²     L Δ L* = Q_uu, K = −L⁻* Δ⁻¹ L⁻¹ Q_ux, P = Q_xx + Q_ux* K

fused multiplications and additions. As straight code that is longer than the memory for
instructions of a processor, which then waits for them. So each product is a loop over tiles whose
sums stay in registers; the lanes hold problems.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.codegen.scalar.graph import Loop, Scalar
from linkwise.codegen.stepping.stepping import Segment, Sketch, part, placed
from linkwise.control.box import boxed
from linkwise.control.shooting import Layout, sum_products, symmetric
from linkwise.spatial.choice import maximum, minimum
from linkwise.sweeps.factored import Factored, factored
from linkwise.sweeps.sparse import times

SUMS = ("first", "second", "cost", "gap", "worst", "least")
"""What a sweep adds up: how much the cost is expected to fall with a step α, α first + ½ α² second;
the cost, with penalties; and the squares of gaps. The last two are the largest violation of a bound
and the smallest pivot of Q_uu."""

BLANK = (0.0, 0.0, 0.0, 0.0, 0.0, 1e300)
"""The same before a sweep."""


def summed(sums: Any, new: Any) -> list[Any]:
    """What a knot adds."""
    added = [x + y for x, y in zip(sums[:4], new[:4], strict=True)]
    return [*added, maximum(sums[4], new[4]), minimum(sums[5], new[5])]


def tile(n: int) -> int:
    """Entries of a side of a tile, for n of them: few that are padding, many that are shared."""
    return min((1, 2, 3, 4), key=lambda t: (-(-n // t) * t * (1.0 + 0.5 / t), -t))


class Recursion:
    """The segments of a Riccati step, and the memory that they share.

    Attributes:
        k: Rows of W.
        n: Numbers of δx.
        m: Numbers of u.
        wide: Numbers of a row of W: n + m, and padding.
        gain: Numbers of a knot's gains: K, k, P g and g.
    """

    def __init__(self, layout: tuple[Layout, ...], n: int, m: int, *, bounded: bool) -> None:
        """Prepare it.

        Args:
            layout: Where the numbers of an expansion are; of W, in its memory.
            n: Numbers of δx.
            m: Numbers of u.
            bounded: Whether u has bounds.
        """
        self.layout, self.n, self.m, self.bounded = layout, n, m, bounded
        self.k, self.gain = layout[2].shape[0], m * (n + 1) + 2 * n
        self.side, self.inner = tile(n + m), tile(n)
        self.first = 0
        self.square = -(-n // self.inner) * self.inner  # of P
        self.wide = max(-(-(n + m) // self.side) * self.side, self.square)
        self.coupled = [i for i in range(n) if self._couples(i)]
        ends = max(self.coupled, default=-1) + 1
        self.across = -(-ends // self.side) * self.side  # numbers of a row of C*, and padding

    def _couples(self, i: int) -> bool:
        """Whether row i of C = F* P G is not zero: whether column i of F is not."""
        column = np.array(self.layout[0].entries, dtype=object).reshape(self.n, self.n)[:, i]
        return not all(isinstance(x, float) and x == 0.0 for x in column)

    @property
    def memory(self) -> tuple[tuple[str, int], ...]:
        """Registers and their sizes."""
        w, k, m = self.wide, self.k, self.m
        sizes = {
            "W": k * w, "C": k * self.across, "T": k * w, "S": k * k, "Q": self._of_q(w) + w,
            "q_z": self.n + m, "P": self._of_p(self.square) + self.square,
            "lower": m * (m - 1) // 2, "reciprocal": m, "ahead": self.n,
        }  # fmt: skip
        return tuple((name, size) for name, size in sizes.items() if size)

    def _of_q(self, i: int) -> int:
        """Where row i of Q would begin: rows of tiles begin at the diagonal."""
        return _row(i, self.wide, self.side)

    def _of_p(self, i: int) -> int:
        """The same for P."""
        return _row(i, self.square, self.inner)

    def segments(self, moves: int = 0, first: int = 0) -> tuple[Segment, ...]:
        """All of them in order.

        Args:
            moves: Distance by which gains move from knot to knot.
            first: Where those of the first knot are.
        """
        self.first = first
        both = [self._pull(), self._value(), *self._spreads(), *self._products(), self._gains()]
        both += [*self._columns(), self._remainder()]
        return tuple(moving(x, "gain", moves) for x in both)

    # ------------------------------------------------------------------------- straight parts

    def _expansion(self, s: Sketch) -> list[Any]:
        """F, G, the gap, l_z, l_zz and the cost of a knot."""
        rest = [x for i, x in enumerate(self.layout) if i != 2]
        count = 1 + max((x for y in rest for x in y.entries if isinstance(x, int)), default=-1)
        e = s.read("e", count)
        return [x.of(e) for x in rest]

    def _upper(self, s: Sketch) -> Any:
        """P from its upper half."""
        P = np.empty((self.n, self.n), dtype=object)
        for i in range(self.n):
            size = self.n - i
            P[i, i:] = P[i:, i] = s.read(part("P", self._of_p(i) + i, size), size)
        return P

    def _pull(self) -> Segment:
        """p⁺ = p + P g."""
        n, s = self.n, Sketch("pull")
        gap = self._expansion(s)[2]
        pulled = times(self._upper(s), gap[:, None])[:, 0]
        s.write("ahead", list(s.read("p", n) + pulled))
        s.write(part("gain", self.first + self.m * (n + 1), 2 * n), [*pulled, *gap])
        return s.segment()

    def _value(self) -> Segment:
        """S, C, and what Q and Q_z are without W."""
        n, w, k = self.n, self.wide, self.k
        s = Sketch("value")
        W = s.read("W", k * w).reshape(k, w)[:, : n + self.m]
        F, G, gap, l_z, l_zz, cost = self._expansion(s)
        P, ahead = self._upper(s), s.read("ahead", n)
        pulled = ahead - s.read("p", n)
        pg = times(P, G)
        S, cross = symmetric(G.T, pg), times(F.T, pg)
        q_z = l_z + times(W.T, times(G.T, ahead[:, None]))[:, 0]
        q_z[:n] = q_z[:n] + times(F.T, ahead[:, None])[:, 0]
        Q = np.full((w, w), 0.0, dtype=object)
        Q[: n + self.m, : n + self.m] = l_zz
        Q[:n, :n] = Q[:n, :n] + symmetric(F.T, times(P, F))
        padded = np.full((k, max(self.across, n)), 0.0, dtype=object)
        padded[:, :n] = cross.T
        s.write("S", list(S.ravel()))
        if self.across:
            s.write("C", list(padded[:, : self.across].ravel()))
        self._put_q(s, Q, q_z)
        s.write("known", self._known(gap, ahead, pulled, cost))
        return s.segment()

    def _put_q(self, s: Sketch, Q: Any, q_z: Any) -> None:
        """Q as it is before products with W, and Q_z."""
        for i in range(self.n + self.m):
            first = i // self.side * self.side
            s.write(part("Q", self._of_q(i) + first, self.wide - first), list(Q[i, first:]))
        s.write("q_z", list(q_z))

    def _known(self, gap: Any, ahead: Any, pulled: Any, cost: Any) -> list[Any]:
        """What a knot adds to the sums besides what its step gains."""
        return [-(ahead @ gap), gap @ pulled, cost[0], sum((x * x for x in gap), 0.0), cost[1]]

    def _blocks(self, s: Sketch) -> tuple[Any, Any, Any]:
        """Q_z, Q_uu and Q_xu."""
        n, m = self.n, self.m
        q_z, q_uu = s.read("q_z", n + m), np.empty((m, m), dtype=object)
        for i in range(m):
            here = self._of_q(n + i) + n + i
            q_uu[i, i:] = q_uu[i:, i] = s.read(part("Q", here, m - i), m - i)
        rows = [s.read(part("Q", self._of_q(i) + n, m), m) for i in range(n)]
        return q_z, q_uu, np.array(rows, dtype=object)

    def _put_factors(self, s: Sketch, inverse: Factored) -> None:
        """L and Δ⁻¹."""
        lower = [inverse.lower[i, j] for i in range(self.m) for j in range(i)]
        if lower:
            s.write("lower", lower)
        s.write("reciprocal", list(inverse.reciprocal))

    def _put_sums(self, s: Sketch, inverse: Factored, first: Any, second: Any) -> None:
        """The sums, with what the step of this knot gains."""
        known, sums = s.read("known", 5), s.read("sums", len(SUMS))
        least = inverse.pivots[0]
        for x in inverse.pivots[1:]:
            least = minimum(least, x)
        new = [known[0] + first, known[1] + second, *known[2:], least]
        s.write("sums", summed(sums, new))

    def _gains(self) -> Segment:
        """The factors of Q_uu, k, p and the sums."""
        n, m = self.n, self.m
        s = Sketch("gains")
        q_z, q_uu, q_xu = self._blocks(s)
        q_u, (rho,) = q_z[n:], s.read("rho", 1)
        lifted = q_uu + np.diag([rho] * m)
        if self.bounded:
            low, high, u = s.read("u_low", m), s.read("u_high", m), s.read("u", m)
            k, free = boxed(_Looping(s), lifted, q_u, low - u, high - u)
            lifted = free[:, None] * lifted * free + np.diag(1.0 - free)
            inverse = factored(lifted)
            s.write("free", list(free))
        else:
            inverse = factored(lifted)
            k = -(inverse @ q_u[:, None])[:, 0]
        self._put_factors(s, inverse)
        s.write(part("gain", self.first + m * n, m), list(k))
        s.write("p", list(q_z[:n] + sum_products(q_xu, k)))
        self._put_sums(s, inverse, -(q_u @ k), -(k @ sum_products(q_uu, k)))
        return s.segment()

    # --------------------------------------------------------------------------------- tiles

    def _spreads(self) -> list[Segment]:
        """T = S W + C*."""
        starts = range(0, self.n + self.m, self.side)
        parts = [j for j in starts if j < self.across], [j for j in starts if j >= self.across]
        return [self._spread(x, coupled=i == 0) for i, x in enumerate(parts) if x]

    def _spread(self, columns: list[int], *, coupled: bool) -> Segment:
        k, w, c = self.k, self.wide, self.side
        r = tile(k)
        s = Sketch("spread")
        S = [s.read(part("S", a * k, k), k) for a in range(r)]
        W = [s.read(part("W", j * w, c), c) for j in range(k)]
        sums: list[Any] = [0.0] * r
        if coupled:
            sums = [s.read(part("C", a * self.across, c), c) for a in range(r)]
        for a in range(r):
            for j in range(k):
                sums[a] = S[a][j] * W[j] + sums[a]
            s.write(part("T", a * w, c), list(sums[a]))
        # the last tile may overlap the one before
        starts = [min(i, k - r) for i in range(0, k, r)]
        rows = [
            (*[i * k] * r, *[j] * k, *[i * self.across + j] * (r * coupled), *[i * w + j] * r)
            for j in columns for i in starts
        ]  # fmt: skip
        return run_of_rows(s, rows)

    def _products(self) -> list[Segment]:
        """Q = Q₀ + W* T + C W."""
        starts = range(0, self.n + self.m, self.side)
        out = list[Segment]()
        for pairs in ([("W", "T"), ("C", "W")], [("W", "T")]):
            tiles = [
                (i, j) for i in starts for j in starts
                if j >= i and (i < self.across) is (len(pairs) > 1)
            ]  # fmt: skip
            if tiles:
                out.append(self._product(tiles, pairs))
        return out

    def _product(self, tiles: list[tuple[int, int]], pairs: list[tuple[str, str]]) -> Segment:
        """Tiles of Q, with these products of a register, transposed, and another one."""
        k, w, c = self.k, self.wide, self.side
        s = Sketch("product")
        sums = [s.read(part("Q", a * w, c), c) for a in range(c)]
        for left, right in pairs:
            row = self.across if left == "C" else w
            for j in range(k):
                # the same memory is read at two places: names differ behind the brackets
                x = s.read(part(left, j * row, c) + "left", c)
                y = s.read(part(right, j * w, c) + "right", c)
                sums = [x[a] * y + sums[a] for a in range(c)]
        for a in range(c):
            s.write(part("Q", a * w, c), list(sums[a]))
        rows = list[tuple[int, ...]]()
        for i, j in tiles:
            places = [self._of_q(i + a) + j - a * w for a in range(c)]
            rows.append((*places, *[i, j] * (k * len(pairs)), *places))
        return run_of_rows(s, rows)

    def _columns(self) -> list[Segment]:
        """K = −L⁻* Δ⁻¹ L⁻¹ Q_ux."""
        return [self._solved("gain", self.first)]

    def _solved(self, name: str, first: int) -> Segment:
        """The same into a register, two columns at a time, as each number awaits others."""
        n, m, w = self.n, self.m, self.wide
        s = Sketch("columns")
        count = 2 - n % 2
        y = np.stack([s.read(part("Q", b * w + n, m), m) for b in range(count)], axis=1)
        size = m * (m - 1) // 2
        flat = s.read("lower", size) if size else ()
        lower = {(i, j): flat[i * (i - 1) // 2 + j] for i in range(m) for j in range(i)}
        reciprocal = s.read("reciprocal", m)
        shared = 1 + bool(size)
        if self.bounded:
            y = s.read("free", m)[:, None] * y
            shared += 1
        for i in range(m):
            for j in range(i):
                y[i] = y[i] - lower[i, j] * y[j]
        x = reciprocal[:, None] * y
        for i in reversed(range(m)):
            for j in range(i + 1, m):
                x[i] = x[i] - lower[j, i] * x[j]
        for i in range(m):
            s.write(part(name, first + i * n, count), list(-x[i]))
        rows = [
            (*[self._of_q(j + b) - b * w for b in range(count)], *[0] * shared, *[j] * m)
            for j in range(0, n, count)
        ]
        return run_of_rows(s, rows)

    def _remainder(self) -> Segment:
        """P = Q_xx + Q_ux* K."""
        return self._with_gains("gain", self.first)

    def _with_gains(self, name: str, first: int) -> Segment:
        """The same with K in a register, of which the upper half. The rest means nothing."""
        n, m, w, c, wide = self.n, self.m, self.wide, self.inner, self.square
        s = Sketch("remainder")
        sums = [s.read(part("Q", a * w, c), c) for a in range(c)]
        x = [s.read(part("Q", a * w + n, m), m) for a in range(c)]
        for j in range(m):
            K = s.read(part(name, first + j * n, c), c)
            sums = [sums[a] + x[a][j] * K for a in range(c)]
        for a in range(c):
            s.write(part("P", a * wide, c), list(sums[a]))
        starts = range(0, n, c)
        rows = list[tuple[int, ...]]()
        for i, j in ((i, j) for i in starts for j in starts if j >= i):
            q = [self._of_q(i + a) - a * w for a in range(c)]
            p = [self._of_p(i + a) + j - a * wide for a in range(c)]
            rows.append((*[x + j for x in q], *q, *[j] * m, *p))
        return run_of_rows(s, rows)


class _Looping:
    """What `boxed` needs of a formula: a loop."""

    def __init__(self, sketch: Sketch) -> None:
        self.sketch = sketch

    def loop(self, step: Any, x: Any, given: Any, *, most: int) -> tuple[Any, Any]:
        inner = Sketch("round")
        after, again = step(inner, inner.read("x", len(x)), inner.read("given", len(given)))
        inner.write("x", list(after))
        inner.write("again", [again])
        nodes = tuple(self.sketch.scalar(e).node for e in (*x, 1.0, *given))
        results = self.sketch.graph.loop(Loop(inner.traced(), nodes, len(x), most))
        out = np.empty(len(results), dtype=object)
        out[:] = [Scalar(self.sketch.graph, node) for node in results]
        return out[:-1], out[-1]


def run_of_rows(s: Sketch, rows: list[tuple[int, ...]]) -> Segment:
    """The segment, once for each row of shifts."""
    segment = s.segment()
    assert all(len(row) == len(segment.reads) + len(segment.writes) for row in rows)
    return replace(segment, rows=tuple(rows))


def _row(i: int, wide: int, side: int) -> int:
    """Where row i of a symmetric matrix would begin.

    Tiles at the diagonal and right of it are in memory, row by row of tiles.
    """
    first = i // side
    before = side * (first * wide - side * (first * (first - 1)) // 2)
    return before + i % side * (wide - first * side) - first * side


def moving(segment: Segment, register: str, by: int) -> Segment:
    """The segment with a register that moves with the loop."""
    pieces = [x for x, _ in (*segment.reads, *segment.writes) if placed(x)[0] == register]
    return replace(segment, moves=(*segment.moves, *((x, by) for x in dict.fromkeys(pieces))))
