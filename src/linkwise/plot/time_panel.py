"""Panels over one time axis: one above the other, with events marked in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.errors import ModelError
from linkwise.plot.canvas import Axes, Theme, axes_given, matplotlib, new_figure, style
from linkwise.simulation.recording import Recording

WIDTH = 7.6
"""Of a column of panels [inch]."""

LONGEST = 26
"""Longer names lose their middle [characters]."""

STYLES = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2)))
"""Lines of one colour: the first four colours are solid, the next four dashed."""


def check_recording(rec: object, purpose: str) -> Recording:
    """The recording; raises for what is none."""
    if isinstance(rec, Recording):
        return rec
    raise ModelError(
        f"{purpose} is drawn of a recording, and was given a {type(rec).__name__}; lw.simulate and "
        "lw.load_recording make one."
    )


def stacked(
    heights: Sequence[float], theme: Theme, *, columns: int = 1, given: object = None
) -> list[Axes]:
    """Panels of these heights [inch] over one time axis, column by column.

    Args:
        heights: Of each panel [inch].
        theme: The look.
        columns: How many panels stand side by side.
        given: Axes of the caller to draw into, one or several, in place of new ones.

    Raises:
        ModelError: Another number of Axes was given, or such of three dimensions.
    """
    if given is not None:
        boards = axes_given(given, len(heights))
        boards[-1].set_xlabel("t [s]")
        return boards
    rows = -(-len(heights) // columns)
    tall = [max(heights[r::rows]) for r in range(rows)]
    figure = new_figure((WIDTH * columns, sum(tall) + 0.45), theme)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.04, hspace=0.03)
    grid = figure.add_gridspec(rows, columns, height_ratios=tall)
    boards = list[Axes]()
    for i in range(len(heights)):
        column, row = divmod(i, rows)
        shared = {"sharex": boards[0]} if boards else {}
        board = figure.add_subplot(grid[row, column], **shared)
        style(board, theme)
        board.yaxis.set_major_locator(matplotlib("matplotlib.ticker", "a figure").MaxNLocator(4))
        boards.append(board)
        last = row == rows - 1 or i == len(heights) - 1
        board.tick_params(labelbottom=last)
        if last:
            board.set_xlabel("t [s]")
    return boards


def line_look(i: int, theme: Theme) -> dict[str, Any]:
    """Colour and dashes of the i-th line."""
    dashes = STYLES[(i // len(theme.colors)) % len(STYLES)]
    return {"color": theme.color(i), "linestyle": dashes, "lw": 1.3}


def legend_beside(board: Axes, theme: Theme) -> None:
    """The labels of the lines, to the right of the panel where they hide nothing."""
    if board.get_legend_handles_labels()[1]:
        board.legend(
            loc="center left", bbox_to_anchor=(1.005, 0.5), frameon=False, fontsize=7.5,
            labelcolor=theme.ink, handlelength=1.8, labelspacing=0.25, borderaxespad=0.3,
        )  # fmt: skip


def mark_events(boards: Sequence[Axes], rec: Recording, theme: Theme) -> None:
    """A thin line at each event in all panels, and its name above the first if there is room."""
    if not rec.events:
        return
    span, last = max(rec.duration, 1e-300), -np.inf
    for event in rec.events:
        for board in boards:
            board.axvline(event.t, color=theme.faint, lw=0.8, ls=(0, (2, 2)), zorder=1)
        name = short(event.name)
        room = 0.0125 * len(name) + 0.02  # of the width, at this size of letters
        if event.t - last >= room * span:
            place = (event.t - float(rec.t[0])) / span
            side = "left" if place < room / 2 else "right" if place > 1.0 - room / 2 else "center"
            boards[0].annotate(
                name, (event.t, 1.0), (0, 2), xycoords=boards[0].get_xaxis_transform(),
                textcoords="offset points", ha=side, va="bottom", fontsize=7, color=theme.faint,
                annotation_clip=False,
            )  # fmt: skip
            last = event.t


def span_times(boards: Sequence[Axes], rec: Recording) -> None:
    """The time axis from the first record to the last."""
    if len(rec) > 1:
        boards[0].set_xlim(float(rec.t[0]), float(rec.t[-1]))


def short(name: str, longest: int = LONGEST) -> str:
    """A name that is not too long: its middle is left out."""
    if len(name) <= longest:
        return name
    tail = longest // 2
    return f"{name[: longest - tail - 1]}…{name[-tail:]}"
