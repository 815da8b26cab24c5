"""Pictures of maps of effective mass."""

from __future__ import annotations

import numpy as np

from linkwise.errors import ModelError
from linkwise.inertial import InertialMap
from linkwise.plot.canvas import Axes, axes_for, matplotlib
from linkwise.plot.theme import ThemeLike, themed

SPREAD = 20.0
"""Maps whose largest value is so many times the smallest have colours by the logarithm."""


def inertial_map(
    of: InertialMap,
    *,
    ax: Axes | None = None,
    theme: ThemeLike = "light",
    log: bool | None = None,
    limits: tuple[float, float] | None = None,
    levels: int = 0,
    bar: bool = True,
) -> Axes:
    """Draw a map of effective mass, over positions or joints.

    Where the node does not get there is no colour; where the direction is blocked, the colour is
    that of the largest value.

    Args:
        of: What `lw.inertial.inertial_map` gives, over one axis (a line) or two (colours).
        ax: Where to draw; by default a new figure.
        theme: "light", "dark" or a `Theme`.
        log: Whether colours, or the height of the line, go by the logarithm; by default where the
            largest value is more than 20 times the smallest.
        limits: Least and largest value that colours differ for; by default those of the map.
        levels: How many lines of equal value are drawn over the colours.
        bar: Whether a bar tells what the colours are.

    Returns:
        The Axes.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        ModelError: A map over more than two axes, or one without any value.
    """
    look = themed(theme)
    if len(of.grid) > 2:
        raise ModelError(f"the map has {len(of.grid)} axes; one or two can be drawn.")
    values = np.where(of.reached, of.values.data, np.nan)
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise ModelError(f"nothing of the map is reached and free to move: {of}.")
    low, high = limits or (float(finite.min()), float(finite.max()))
    if not low <= high:
        raise ModelError(f"limits are {limits!r}; they must be two numbers, the lesser one first.")
    by_log = high > SPREAD * low > 0.0 if log is None else log
    board = axes_for(ax, 2, look)
    units = [f"{name} [{unit}]" for name, unit in zip(of.axes, of.units, strict=True)]
    words = f"{of.title} [{of.unit}]" if of.unit else of.title
    if len(of.grid) == 1:
        board.plot(of.grid[0], np.where(np.isfinite(values), values, np.nan), color=look.color(0))
        board.set_yscale("log" if by_log else "linear")
        board.set_xlabel(units[0])
        board.set_ylabel(words)
        return board
    colors = matplotlib("matplotlib.colors", "a map of effective mass")
    pyplot = matplotlib("matplotlib.pyplot", "a map of effective mass")
    norm = (colors.LogNorm if by_log else colors.Normalize)(low, high)
    shades = pyplot.get_cmap(look.map).with_extremes(bad=look.beyond)
    shown = np.ma.masked_invalid(np.minimum(values, high)).T
    mesh = board.pcolormesh(*of.grid, shown, norm=norm, cmap=shades, shading="nearest", zorder=0)
    if levels:
        lines = (
            np.geomspace(low, high, levels + 2) if by_log else np.linspace(low, high, levels + 2)
        )
        drawn = board.contour(
            *of.grid, shown, levels=lines[1:-1], colors=look.paper, linewidths=0.7
        )
        board.clabel(drawn, fmt="%.2g", fontsize=7, inline_spacing=2)
    board.grid(False)
    ticks = matplotlib("matplotlib.ticker", "a map of effective mass").MaxNLocator
    for axis in (board.xaxis, board.yaxis):
        axis.set_major_locator(
            ticks(6, steps=[1, 2, 5, 10])
        )  # few, so that their numbers do not touch
    board.set_xlabel(units[0])
    board.set_ylabel(units[1])
    if of.kind == "positions":
        board.set_aspect("equal", adjustable="box")
    board.autoscale_view()
    board.autoscale(False)  # a robot that is drawn over it does not change what is seen
    if bar:
        extend = "max" if (values[of.reached] > high).any() else "neither"
        # In a box of the map's own height, whatever becomes of its aspect.
        place = board.inset_axes((1.03, 0.0, 0.04, 1.0))
        beside = board.figure.colorbar(mesh, cax=place, extend=extend)
        beside.set_label(words, color=look.ink, fontsize=9)
        beside.ax.tick_params(colors=look.faint, labelsize=8)
        beside.outline.set_visible(False)
    return board
