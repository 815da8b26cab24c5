"""Pictures of a study: distributions, what depends on what, indices, bands over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.arguments import is_a
from linkwise.plot.canvas import Axes, ThemeLike, axes_for, legend, themed
from linkwise.spatial.array import Array
from linkwise.study.results import Results
from linkwise.study.sensitivity import Sensitivity
from linkwise.study.statistics import band

DOTS = 4000
"""Cases that a scatter shows, at most: every k-th."""


def study_distribution(
    results: Results,
    column: str,
    *,
    bins: int = 60,
    mark: Sequence[float] = (0.05, 0.5, 0.95),
    ax: Axes | None = None,
    theme: ThemeLike = "light",
) -> Axes:
    """Draw the distribution of a column, with some quantiles.

    Args:
        results: The results of a study.
        column: Its name.
        bins: How many bars.
        mark: Quantiles that are marked.
    """
    look = themed(theme)
    y = _numbers(results, column)
    board: Axes = axes_for(ax, 2, look)
    board.hist(y, bins=bins, color=look.color(1), alpha=0.8, density=True)
    for share in mark:
        at = float(np.quantile(y, share))
        board.axvline(at, color=look.color(0), linewidth=1.0)
        board.annotate(f"{100 * share:g} %", (at, 1.0), xycoords=("data", "axes fraction"),
                    fontsize=7, color=look.ink, rotation=90, va="top", ha="right")  # fmt: skip
    board.set_xlabel(column)
    board.set_ylabel("density")
    return board


def study_scatter(
    results: Results, x: str, y: str, *, ax: Axes | None = None, theme: ThemeLike = "light"
) -> Axes:
    """Draw one column over another, with the median and the 90 % range in ten parts.

    Args:
        results: The results of a study.
        x: The column along the abscissa, as a variable.
        y: The column along the ordinate.
    """
    look = themed(theme)
    a, b = (np.asarray(results[name], np.float64) for name in (x, y))
    fine = np.isfinite(a) & np.isfinite(b)
    a, b = a[fine], b[fine]
    board: Axes = axes_for(ax, 2, look)
    every = max(1, len(a) // DOTS)
    board.plot(a[::every], b[::every], ".", markersize=2, color=look.color(1), alpha=0.35)
    if len(a) >= 100:
        order = np.array_split(np.argsort(a, kind="stable"), 10)
        middle = [float(np.median(a[part])) for part in order]
        low, mid, high = np.transpose([np.quantile(b[part], (0.05, 0.5, 0.95)) for part in order])
        board.fill_between(middle, low, high, color=look.color(0), alpha=0.2, label="90 %")
        board.plot(middle, mid, color=look.color(0), linewidth=1.6, label="median")
        legend(board, look)
    board.set_xlabel(x)
    board.set_ylabel(y)
    return board


def study_band(
    results: Results,
    trajectory: str,
    *,
    entry: str | None = None,
    q: Sequence[float] = (0.05, 0.5, 0.95),
    ax: Axes | None = None,
    theme: ThemeLike = "light",
) -> Axes:
    """Draw quantiles of a trajectory over time.

    Args:
        results: The results of a study.
        trajectory: The trajectory, as named in `keep`.
        entry: The label of its entry; default: the first one.
        q: The lower quantile, the middle and the upper one.
    """
    look = themed(theme)
    t, lines = band(results, trajectory, q=q, entry=entry)
    board: Axes = axes_for(ax, 2, look)
    board.fill_between(t, lines[0], lines[-1], color=look.color(1), alpha=0.25,
                    label=f"{100 * q[0]:g} % to {100 * q[-1]:g} %")  # fmt: skip
    board.plot(t, lines[len(lines) // 2], color=look.color(0), label=f"{100 * q[len(q) // 2]:g} %")
    board.set_xlabel("t [s]")
    board.set_ylabel(trajectory if entry is None else f"{trajectory}[{entry}]")
    legend(board, look)
    return board


def study_indices(
    indices: Sensitivity, *, ax: Axes | None = None, theme: ThemeLike = "light"
) -> Axes:
    """Draw Sobol or Morris indices, the largest on top.

    Args:
        indices: From `lw.study.sensitivity`.
    """
    look = themed(theme)
    indices = is_a(Sensitivity, indices, "indices", "lw.study.sensitivity makes them.")
    board: Axes = axes_for(ax, 2, look)
    order: list[int] = np.argsort(indices.total, kind="stable").tolist()
    names = [indices.names[i] for i in order]
    sobol = indices.kind == "sobol"
    parts = ((indices.first, indices.first_error, "first order" if sobol else "mu*"),
             (indices.total, indices.total_error, "total" if sobol else "sigma"))  # fmt: skip
    for k, (values, errors, label) in enumerate(parts):
        place = np.arange(len(order)) + 0.2 - 0.4 * k
        width = np.nan_to_num(errors[order])
        board.barh(place, values[order], 0.38, xerr=width, color=look.color(1 - k), label=label,
                error_kw={"ecolor": look.ink, "elinewidth": 0.8})  # fmt: skip
    board.set_yticks(range(len(order)), names)
    board.set_xlabel(f"indices of {indices.column}")
    legend(board, look)
    return board


def _numbers(results: Results, column: str) -> Array:
    y = np.asarray(results[column], np.float64)
    return y[np.isfinite(y)]
