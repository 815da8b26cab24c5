"""Matrices as pictures: the size of each entry by its colour, blocks by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.errors import ModelError
from linkwise.plot.canvas import Axes, Theme, matplotlib, new_figure, style
from linkwise.plot.time_panel import short
from linkwise.spatial.array import Array

ZERO = 1e-13
"""Entries smaller than this part of the largest are rounding, and count as zero."""

DECADES = 8.0
"""Powers of ten that colours differ for, at most."""

NAMED = 70
"""Most names along an edge; of more, some are left out."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Names and lengths of the blocks along one edge of a matrix."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def blocks(self) -> int:
        """How many blocks there are that have a length."""
        return sum(size > 0 for size in self.sizes)


def boards_for(edges: Sequence[tuple[Edge, Edge]], theme: Theme) -> list[Axes]:
    """A figure with a panel for each pair of edges (rows, columns), side by side."""
    most = max(max(rows.blocks, columns.blocks) for rows, columns in edges)
    pitch = float(np.clip(6.6 / most, 0.11, 0.5))
    widths = [max(pitch * columns.blocks, 1.1) for _, columns in edges]
    height = max(max(pitch * rows.blocks, 1.1) for rows, _ in edges)
    beside = 0.075 * max(len(x) for rows, _ in edges for x in _shown(rows)) * _letters(pitch) / 7
    below = 0.075 * max(len(x) for _, columns in edges for x in _shown(columns))
    room = [0.95 + (beside if i == 0 else 0.0) for i in range(len(edges))]
    size = (sum(widths) + sum(room) + 0.3, height + below * _letters(pitch) / 7 + 0.85)
    figure = new_figure(size, theme)
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06)
    grid = figure.add_gridspec(1, len(edges), width_ratios=widths)
    boards = [figure.add_subplot(grid[0, i]) for i in range(len(edges))]
    for board in boards:
        style(board, theme)
    return boards


def draw_matrix(
    board: Axes,
    matrix: Array,
    rows: Edge,
    columns: Edge,
    theme: Theme,
    *,
    title: str,
    decades: float = DECADES,
    bar: bool = True,
    named_rows: bool = True,
) -> None:
    """Colours by the logarithm of |entry|; what is zero has the colour of no value.

    Args:
        board: Where to draw.
        matrix: (n, m), finite.
        rows: Blocks of the rows.
        columns: Blocks of the columns.
        theme: The look.
        title: Above it.
        decades: Powers of ten that colours differ for.
        bar: Whether to draw a colour bar.
        named_rows: Whether rows have names; else only those of the columns are written.

    Raises:
        ModelError: It is not finite, or has no entries.
    """
    if not np.isfinite(matrix).all():
        raise ModelError(f"{title} is not finite in this state; there is nothing to draw.")
    if not (np.isfinite(decades) and decades > 0.0):
        raise ModelError(f"decades is {decades!r}; it must be a number above zero.")
    sizes = np.abs(matrix)
    largest = float(sizes.max())
    shown = np.ma.masked_where(sizes <= ZERO * largest, sizes)
    colors = matplotlib("matplotlib.colors", "a picture of a matrix")
    colormaps = matplotlib("matplotlib", "a picture of a matrix").colormaps
    high = largest if largest > 0.0 else 1.0
    least = float(shown.min()) if shown.count() else 0.1
    low = max(least, high * 10.0**-decades)
    low = low if high > 1.001 * low else 0.1 * high  # all of one size
    shades = colormaps[theme.map].with_extremes(bad=theme.beyond, under=colormaps[theme.map](0.0))
    n, m = matrix.shape
    image = board.imshow(
        shown, norm=colors.LogNorm(low, high), cmap=shades, aspect="auto", interpolation="nearest",
        extent=(0, m, n, 0), zorder=0,
    )  # fmt: skip
    board.grid(False)
    for spine in board.spines.values():
        spine.set_visible(False)
    _edge(board.xaxis, columns, theme, board.axvline, True)
    _edge(board.yaxis, rows, theme, board.axhline, named_rows)
    board.set_xlim(0, m)
    board.set_ylim(n, 0)
    board.set_title(title, color=theme.ink, fontsize=11)
    if bar:
        place = board.inset_axes((1.025, 0.0, min(0.04, 0.02 + 0.1 / max(m, 1)), 1.0))
        under = bool(shown.count()) and float(shown.min()) < low * 0.999
        beside = board.figure.colorbar(image, cax=place, extend="min" if under else "neither")
        beside.ax.tick_params(colors=theme.faint, labelsize=7.5)
        beside.outline.set_visible(False)
        if high < 150.0 * low:  # few powers of ten: 1, 2 and 5 of each
            ticker = matplotlib("matplotlib.ticker", "a picture of a matrix")
            beside.locator = ticker.LogLocator(subs=(1.0, 2.0, 5.0))
            beside.formatter = ticker.FormatStrFormatter("%g")
            beside.update_ticks()
        beside.ax.minorticks_off()


def _edge(axis: Any, edge: Edge, theme: Theme, line: Any, named: bool) -> None:
    """Names at the middle of blocks, and thin lines between these."""
    ends = np.cumsum([0, *edge.sizes]).tolist()
    keep = [i for i, size in enumerate(edge.sizes) if size]
    step = max(1, -(-len(keep) // NAMED))
    pitch = float(np.clip(6.6 / max(len(keep), 1), 0.11, 0.5))
    middles = [0.5 * (ends[i] + ends[i + 1]) for i in keep[::step]]
    names = [short(edge.names[i], _longest(edge)) for i in keep[::step]]
    axis.set_ticks(middles, names if named else [""] * len(names))
    axis.set_tick_params(length=0, labelsize=_letters(pitch), labelcolor=theme.ink)
    if axis.axis_name == "x" and max((len(x) for x in names), default=0) > 2:
        axis.set_tick_params(rotation=90)
    if 1 < len(keep) < ends[-1]:
        for end in ends[1:-1]:
            line(end, color=theme.paper, lw=0.5 if len(keep) < 40 else 0.25)


def _letters(pitch: float) -> float:
    """Size of letters [points] that fit the pitch of blocks [inch]."""
    return float(np.clip(0.78 * 72.0 * pitch, 4.6, 8.0))


def _longest(edge: Edge) -> int:
    return 22 if edge.blocks <= 30 else 18


def _shown(edge: Edge) -> list[str]:
    return [short(x, _longest(edge)) for x in edge.names] or [""]
