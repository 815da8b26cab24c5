"""Large matrices in formulas: products, factors and columns of functions, in loops.

    work = Matrices(at)
    A, B = work.matrix(a), work.matrix(b)
    C = work.product(A, B)
    c, = work.results(C)

Each operation is a pass (`scalar/passes.py`) over tiles of a few rows and eight columns, whose sums
stay in registers. A matrix is in memory row by row; rows are padded to a multiple of eight columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import add, mul
from typing import Any

import numpy as np

from linkwise.codegen.scalar.passes import WIDTH, Pass, Passes, Piece
from linkwise.codegen.scalar.trace import Sketch, Traced
from linkwise.codegen.writing import Writing
from linkwise.sweeps.factored import factored

TILE = 4
"""Rows of a tile of a product."""

FEW = 16
"""Columns that a tile of rows reads, up to which others, in which it is zero, are left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A matrix in the memory.

    Attributes:
        start: Its first entry.
        shape: Its rows and columns.
        wide: From one row to the next.
        filled: For each row the columns in which it may be other than zero; None for all.
    """

    start: int
    shape: tuple[int, int]
    wide: int
    filled: tuple[frozenset[int], ...] | None = None

    def at(self, i: int, j: int) -> int:
        """The address of an entry."""
        return self.start + i * self.wide + j

    def part(self, rows: slice, columns: slice) -> Matrix:
        """Rows and columns of it; columns from a multiple of eight on, where it is written."""
        i, j = rows.indices(self.shape[0]), columns.indices(self.shape[1])
        filled = self.filled
        if filled is not None:
            inside = range(j[0], j[1])
            filled = tuple(frozenset(k - j[0] for k in x if k in inside) for x in filled[rows])
        shape = max(0, i[1] - i[0]), max(0, j[1] - j[0])
        return Matrix(self.at(i[0], j[0]), shape, self.wide, filled)

    def rows(self, first: int, last: int) -> Matrix:
        """Rows of it."""
        return self.part(slice(first, last), slice(None))

    @property
    def entries(self) -> list[int]:
        """The addresses of all entries, row by row."""
        return [self.at(i, j) for i in range(self.shape[0]) for j in range(self.shape[1])]

    @property
    def mirrored_entries(self) -> list[int]:
        """Those of a symmetric matrix, of which the upper half is read."""
        n = range(self.shape[0])
        return [self.at(min(i, j), max(i, j)) for i in n for j in n]


class Matrices:
    """The operations of a formula on matrices, in order.

    Args:
        at: The formula.
    """

    def __init__(self, at: Writing) -> None:
        self.at, self.size = at, 0
        self._passes, self._feeds = list[Pass](), list[tuple[int, int]]()
        self._bodies = dict[Any, Traced]()

    # ---------------------------------------------------------------------------------- memory

    def room(self, rows: int, columns: int) -> Matrix:
        """A matrix with any numbers."""
        wide = padded(columns)
        self.size += rows * wide
        return Matrix(self.size - rows * wide, (rows, columns), wide)

    def put(self, array: Any, places: Iterable[int]) -> None:
        """Numbers that are in the memory from the beginning."""
        for x, place in zip(array, places, strict=True):
            self._feeds.append((self.at.scalar(x).node, place))

    def vector(self, array: Any) -> Matrix:
        """Numbers one after another, as a row."""
        out = self.room(1, len(array))
        self.put(array, range(out.start, out.start + len(array)))
        return out

    def matrix(self, array: Any) -> Matrix:
        """A matrix of numbers (n, m)."""
        out = self.room(*array.shape)
        for i, row in enumerate(array):
            self.put(row, range(out.at(i, 0), out.at(i, 0) + len(row)))
        return out

    def blank(self, out: Matrix) -> Matrix:
        """A matrix that is all zero from here on."""
        body = self._body(("zero",), [], lambda s: s.write("0", [0.0]))
        self._run(body, (), (Piece(1, 1, 1),), [(x,) for x in self._chunks(out)], WIDTH)
        return out

    def fill(self, x: float, addresses: Sequence[int]) -> None:
        """The same number at addresses."""
        self.compute(("fill", x), lambda: [x], [], [Piece(1)], [(a,) for a in addresses])

    def copied(self, A: Matrix, out: Matrix) -> None:
        """A, in memory that may have more columns, which become zero."""
        wide, n = out.wide // WIDTH * WIDTH, A.shape[1]
        table = [(A.at(i, j), out.at(i, j)) for i in range(A.shape[0]) for j in range(0, n, WIDTH)]
        self.compute("copied", same, [Piece(1, 1, 1)], [Piece(1, 1, 1)], table, WIDTH)
        if n % WIDTH:
            beyond = [out.at(i, j) for i in range(A.shape[0]) for j in range(n, padded(n))]
            self.fill(0.0, [x for x in beyond if n < wide])

    def identity(self, n: int) -> Matrix:
        """Ones on the diagonal."""
        out = self.blank(self.room(n, n))
        self.fill(1.0, [out.at(i, i) for i in range(n)])
        return replace(out, filled=tuple(frozenset((i,)) for i in range(n)))

    def results(self, *addresses: Sequence[int]) -> list[Any]:
        """Numbers of the memory after all passes, by their addresses."""
        flat = [x for part in addresses for x in part]
        inputs, places = zip(*self._feeds, strict=True) if self._feeds else ((), ())
        passes = Passes(tuple(self._passes), inputs, places, tuple(flat), self.size)
        made = self.at.scalars(self.at.graph.loop(passes))
        return np.split(made, np.cumsum([len(x) for x in addresses])[:-1])

    def symmetric(self, array: Any) -> Matrix:
        """A symmetric matrix of numbers, of which the upper half is read."""
        out = self.room(*array.shape)
        for i in range(len(array)):
            for j in range(i, len(array)):
                places = {out.at(i, j), out.at(j, i)}
                self.put([array[i, j]] * len(places), places)
        return out

    # ------------------------------------------------------------------------------ operations

    def product(
        self,
        A: Matrix,
        B: Matrix,
        out: Matrix | None = None,
        *,
        less_than: Matrix | None = None,
        turned: bool = False,
        upper: bool = False,
    ) -> Matrix:
        """A B, or A* B; or C − A B.

        Args:
            A: The first one.
            B: The second one.
            out: Where the product goes; default: new memory.
            less_than: C, perhaps the same as `out`.
            turned: Whether A* is meant.
            upper: Whether tiles below the diagonal are left out.
        """
        rows, inner = A.shape[::-1] if turned else A.shape
        assert inner == B.shape[0]
        out = self.room(rows, B.shape[1]) if out is None else out
        along, across = (A.wide, 1) if turned else (1, A.wide)  # from column to column of A
        tiles = dict[tuple[int, int], list[tuple[int, ...]]]()
        for i in range(0, rows, TILE):
            r = min(TILE, rows - i)
            used = self._used(A, i, r, inner) if not turned else None
            first = i // WIDTH * WIDTH if upper else 0
            for j in range(first, B.shape[1], WIDTH):
                place = out.at(i, j)
                before = () if less_than is None else (less_than.at(i, j),)
                if used is None:
                    row = (A.start + i * across, B.at(0, j))
                else:
                    row = tuple(x for k in used for x in (A.at(i, k), B.at(k, j)))
                key = (r, -1 if used is None else len(used))
                tiles.setdefault(key, []).append((*row, *before, place))
        for (r, k), table in tiles.items():
            self._tiles(table, (r, k), inner, (A, B, less_than, out), (along, across))
        return out

    def _used(self, A: Matrix, i: int, r: int, inner: int) -> list[int] | None:
        """Columns in which a tile of rows is not zero, if they are few."""
        if A.filled is None:
            return None
        used = sorted(frozenset[int]().union(*A.filled[i : i + r]))
        return used if len(used) <= min(FEW, inner // 2) else None

    def _tiles(
        self,
        table: list[tuple[int, ...]],
        size: tuple[int, int],
        inner: int,
        matrices: tuple[Matrix, Matrix, Matrix | None, Matrix],
        apart: tuple[int, int],
    ) -> None:
        """Tiles of a product, of r rows, and of k columns of A, or of all (k = −1)."""
        (r, k), (_, B, less_than, out), (along, across) = size, matrices, apart
        reads = list[Piece]()
        if k < 0:
            # row by row of A, as its columns are next to each other: r rows of `inner` numbers
            reads += [Piece(inner, B.wide, 1), *[Piece(inner, along)] * r]
        else:
            reads += [Piece(r, across), Piece(1, 1, 1)] * k
        if less_than is not None:
            reads.append(Piece(r, less_than.wide, 1))

        def write(s: Sketch) -> None:
            x = [s.read(str(i), piece.count) for i, piece in enumerate(reads)]
            sums: list[Any] = list(x[-1]) if less_than is not None else [0.0] * r
            for m in range(inner if k < 0 else k):
                for a in range(r):
                    new = x[1 + a][m] * x[0][m] if k < 0 else x[2 * m][a] * x[2 * m + 1][0]
                    sums[a] = sums[a] + new if less_than is None else sums[a] - new
            s.write("out", sums)

        if k < 0:  # addresses of rows of A one by one
            table = [(y, *(x + a * across for a in range(r)), *rest) for x, y, *rest in table]
        body = self._body(("tile", tuple(reads), less_than is None), reads, write)
        self._run(body, tuple(reads), (Piece(r, out.wide, 1),), table, WIDTH)

    def turned(self, A: Matrix, out: Matrix | None = None) -> Matrix:
        """A*."""
        rows, columns = A.shape
        out = self.room(columns, rows) if out is None else out
        tiles = dict[tuple[int, int], list[tuple[int, ...]]]()
        for i in range(0, rows, TILE):
            for j in range(0, columns, TILE):
                size = min(TILE, rows - i), min(TILE, columns - j)
                row = [A.at(i + a, j) for a in range(size[0])]
                row += [out.at(j + b, i) for b in range(size[1])]
                tiles.setdefault(size, []).append(tuple(row))
        for (r, c), table in tiles.items():
            reads, writes = (Piece(c),) * r, (Piece(r),) * c

            def write(s: Sketch, r: int = r, c: int = c) -> None:
                x = [s.read(str(a), c) for a in range(r)]
                s.write("out", [x[a][b] for b in range(c) for a in range(r)])

            body = self._body(("turned", r, c), reads, write)
            self._run(body, reads, writes, table, 1)
        return out

    def mirrored(self, A: Matrix) -> Matrix:
        """A symmetric matrix of which the upper half is there."""
        n = A.shape[0]
        tiles = dict[int, list[tuple[int, ...]]]()
        for i in range(0, n, TILE):
            for j in range(i, n, TILE):
                r, c = min(TILE, n - i), min(TILE, n - j)
                rows = [A.at(i + a, j) for a in range(r)] + [A.at(j + b, i) for b in range(c)]
                tiles.setdefault(c + 10 * r + (100 if i == j else 0), []).append(tuple(rows))
        for key, table in tiles.items():
            r, c, middle = key // 10 % 10, key % 10, key >= 100
            reads, writes = (Piece(c),) * r, (Piece(r),) * c

            def write(s: Sketch, r: int = r, c: int = c, middle: bool = middle) -> None:
                x = [s.read(str(a), c) for a in range(r)]
                flip = [(min(a, b), max(a, b)) if middle else (a, b)
                        for b in range(c) for a in range(r)]  # fmt: skip
                s.write("out", [x[a][b] for a, b in flip])

            body = self._body(("mirrored", key), reads, write)
            self._run(body, reads, writes, table, 1)
        return A

    def scaled(self, A: Matrix, by: Matrix) -> Matrix:
        """Rows of A times numbers (rows,), in place."""
        reads, writes = (Piece(1, 1, 1), Piece(1)), (Piece(1, 1, 1),)
        table = [
            (A.at(i, j), by.start + i, A.at(i, j))
            for i in range(A.shape[0]) for j in range(0, A.shape[1], WIDTH)
        ]  # fmt: skip
        self.compute("scaled", mul, reads, writes, table, WIDTH)
        return A

    def added(self, addresses: Sequence[int], by: Matrix) -> None:
        """Numbers (n,) more at n addresses."""
        table = [(x, by.start + i, x) for i, x in enumerate(addresses)]
        self.compute("added", add, [Piece(1), Piece(1)], [Piece(1)], table)

    def factor(self, P: Matrix, out: Matrix) -> list[int]:
        """L in a blank matrix, P = L L*; blocks of eight rows, from the first on.

        Returns:
            Addresses of the pivots.
        """
        n, size = P.shape[0], padded(P.shape[0])
        A, root = self.blank(self.room(size, size)), self.blank(self.room(size, size))
        self.copied(P, A)
        self.fill(1.0, [A.at(i, i) for i in range(n, size)])
        back, pivots = self.room(1, size), self.room(1, size)
        square, column = Piece(WIDTH * WIDTH), Piece(WIDTH, A.wide, 1)
        row, corner = Piece(WIDTH), self.room(1, WIDTH * WIDTH)
        packed = self.room(size // WIDTH, WIDTH * WIDTH)
        for k in range(0, size, WIDTH):
            behind = range(k + WIDTH, size, WIDTH)
            here = [A.at(k + a, k) for a in range(WIDTH)]
            table = [(*here, corner.start, back.start + k, pivots.start + k)]
            self.compute("corner", _corner, [row] * WIDTH, [square, row, row], table)
            table = [(corner.start, *(root.at(k + a, k) for a in range(WIDTH)))]
            self.compute("kept", same, [square], [row] * WIDTH, table)
            table = [(corner.start, back.start + k, A.at(k, j), root.at(k, j)) for j in behind]
            self.compute("panel", _panel, [square, row, column], [column], table, WIDTH)
            table = [
                (*(root.at(k + a, i) for a in range(WIDTH)), packed.at(x, 0))
                for x, i in enumerate(behind)
            ]
            self.compute("packed", _joined, [row] * WIDTH, [square], table)
            table = [
                (packed.at(x, 0), root.at(k, j), A.at(i, j), A.at(i, j))
                for x, i in enumerate(behind) for j in behind if j >= i
            ]  # fmt: skip
            self.compute("rest", _rest, [square, column, column], [column], table, WIDTH)
        self.turned(root.part(slice(n), slice(n)), out)
        return [pivots.start + i for i in range(n)]

    def each(
        self,
        function: Callable[[Writing, Any, Any], Any],
        columns: Matrix,
        given: Matrix,
        out: Matrix,
    ) -> Matrix:
        """A function of each column.

        Args:
            function: Of a formula, a column and what is given; returns a column of `out`.
            columns: The columns.
            given: Numbers that stay the same, as a row.
            out: Where the results go.

        Returns:
            `out`; if columns are those of the identity, it says where it may not be zero.
        """
        inner = Writing(self.at.request, axes=self.at.axes)
        count = given.shape[1]
        first = inner.read("d", columns.shape[0]), inner.read("given", count)
        inner.write("out", function(inner, *first))
        if list(inner.reads) != ["d", "given"]:
            raise AssertionError(f"a column reads {list(inner.reads)}; only d and given are there.")
        inner.checks.clear()
        reads = Piece(columns.shape[0], columns.wide, 1), Piece(count)
        body, writes = inner.traced(), (Piece(out.shape[0], out.wide, 1),)
        table = [
            (columns.start + j, given.start, out.start + j)
            for j in range(0, columns.shape[1], WIDTH)
        ]
        self._run(body, reads, writes, table, WIDTH)
        if columns.filled is None:
            return out
        return replace(out, filled=_depending(body, columns.shape[0]))

    def compute(
        self,
        key: object,
        write: Callable[..., Any],
        reads: Sequence[Piece],
        writes: Sequence[Piece],
        table: Sequence[tuple[int, ...]],
        width: int = 1,
    ) -> None:
        """Rounds of straight code.

        Args:
            key: A name of the code, by which it is found again.
            write: A function that, given an array for each piece, returns everything it writes.
            reads: The pieces that are read.
            writes: Those that are written.
            table: For each round the address of each piece.
            width: Columns of a round: 1 or 8.
        """

        def body(s: Sketch) -> None:
            s.write("out", list(write(*(s.read(str(i), x.count) for i, x in enumerate(reads)))))

        made = self._body((key, tuple(reads)), reads, body)
        self._run(made, tuple(reads), tuple(writes), table, width)

    # ------------------------------------------------------------------------------------ rest

    def _body(self, key: Any, reads: Sequence[Piece], write: Callable[[Sketch], None]) -> Traced:
        if key not in self._bodies:
            s = Sketch()
            for i, piece in enumerate(reads):
                s.read(str(i), piece.count)
            write(s)
            self._bodies[key] = s.traced()
        return self._bodies[key]

    def _run(
        self,
        body: Traced,
        reads: tuple[Piece, ...],
        writes: tuple[Piece, ...],
        table: Sequence[tuple[int, ...]],
        width: int,
    ) -> None:
        if table:
            self._passes.append(Pass(body, reads, writes, tuple(table), width))

    def _chunks(self, A: Matrix) -> list[int]:
        return [A.at(i, j) for i in range(A.shape[0]) for j in range(0, A.shape[1], WIDTH)]


def same(x: Any) -> Any:
    """Numbers as they are."""
    return x


def _joined(*rows: Any) -> Any:
    return np.concatenate(rows)


def _corner(*rows: Any) -> Any:
    """L* of a block on the diagonal, reciprocals of its diagonal, and pivots."""
    D = np.array([list(row) for row in rows], dtype=object)
    parts = factored(np.triu(D) + np.triu(D, 1).T)
    roots = np.array([pivot.sqrt() for pivot in parts.pivots], dtype=object)
    back = [root.reciprocal() for root in roots]
    return [*(parts.lower * roots).T.ravel(), *back, *parts.pivots]


def _panel(corner: Any, back: Any, rows: Any) -> Any:
    """L* right of the block."""
    lower, out = corner.reshape(WIDTH, WIDTH).T, list(rows)
    for a in range(WIDTH):
        for b in range(a):
            out[a] = out[a] - lower[a, b] * out[b]
        out[a] = out[a] * back[a]
    return out


def _rest(left: Any, right: Any, rows: Any) -> Any:
    """What is left of P behind the block."""
    left, out = left.reshape(WIDTH, WIDTH), list(rows)
    for b in range(WIDTH):
        out = [x - left[b, a] * right[b] for a, x in enumerate(out)]
    return out


def padded(n: int) -> int:
    """The multiple of eight that is n or more."""
    return -(-n // WIDTH) * WIDTH


def _depending(body: Traced, count: int) -> tuple[frozenset[int], ...]:
    """The entries of a column, of `count`, that each output depends on."""
    graph, sets = body.graph, dict[int, frozenset[int]]()
    for node in graph.used(body.outputs):
        if graph.op[node] == "input":
            entry = graph.a[node]
            sets[node] = frozenset((entry,)) if entry < count else frozenset()
        else:
            sets[node] = frozenset[int]().union(*(sets[x] for x in graph.arguments(node)))
    return tuple(sets[node] for node in body.outputs)
